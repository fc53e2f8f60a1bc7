//===- PolynomialExp.h - Exponentials by polynomials ----------------------===//
//
// How an exponential that tile-polynomial-exp marks is computed.
//
// 2^x = 2^i 2^f (W. Cody, W. Waite, "Software Manual for the Elementary Functions", 1980). There
// are two ways. Where every result is rounded to 16 bits, f is in 0 to 1 and 2^f is the polynomial
// of third degree that is the best of those that are 1 at 0; x is brought to 0 to 1 first, from the
// top down, as saturation to that interval is part of an instruction, and f follows from there.
// Where results stay f32, that interval is too narrow for f: it then serves to find i only, f is
// taken from x itself, and the polynomial is of fifth degree.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_POLYNOMIALEXP_H
#define TESSERA_DIALECTS_TILE_POLYNOMIALEXP_H

#include <array>
#include <cstdint>

namespace tessera::tile {

/// The attribute `tile.polynomial` says how many of so many elements are polynomials.
constexpr int64_t kExponentialShares = 16;

namespace polynomial_exp {
/// Exponents from -127, where the power is 0, to 128 are octaves 255 to 0.
constexpr int64_t kOctaves = 255;
/// Where an exponent of 0 is among the octaves, as a part of them: 128 / 255 rounded down, so that
/// it is in the octave that it begins.
constexpr float kTop = 0x1.0101p-1f;
/// Added to an octave, it leaves the octave in the lowest bits of a float; its own bits are
/// 0x4B0000EA.
constexpr float kFirst = 0x1p23f + 234;
/// The bits of octave + kFirst times this, plus those of the polynomial, are those of the power:
/// kFirst becomes 0x40000000 - 234, which makes the exponent field of 1, 127, 255 in octave 0, and
/// each octave takes 1 of the field and an ulp.
constexpr uint32_t kFieldFactor = 0u - (1u << 23) - 1;
/// From the third degree down. The last is 234 + 255 ulps above 1, of which nothing is left in the
/// lowest octave, and 255 in octave 0: NaN, not infinity.
constexpr std::array<float, 4> kCoefficients = {0.07686872780323029f, 0.22796599566936493f,
                                                0.6949759721755981f, 1 + (234 + 255) * 0x1p-23f};
} // namespace polynomial_exp

namespace precise_exp {
/// Exponents from 128 down to -126 are octaves 0 to 254, each around its exponent, of which f is
/// half of a unit to either side.
constexpr int64_t kOctaves = 254;
constexpr float kTop = 128.0f / kOctaves;
/// Added to an octave, it leaves 128 less the octave in the lowest 9 bits, negated.
constexpr float kFirst = 0x1p23f + 384;
/// From octave + kFirst to the place of exponent 0 in its octave, where octaves are 0 to 1 from one
/// half above to one half below: (128 - octave) / 2 + 1 / 2.
constexpr float kMiddle = kFirst / 2 + 64 + 0.5f;
/// From the fifth degree down: 2^(1 - 2 w) for places w from 1/4 to 3/4, the best of those that are
/// 1/2 at 1, where exponents of -127 and less are saturated, so that nothing is left of them. At 0,
/// where those above the top and NaN are, it is just below 2, which makes NaN of the largest
/// octave.
constexpr std::array<float, 6> kCoefficients = {-0.03859548064471717f, 0.25127145842111415f,
                                                -0.8504129214331658f,  1.9078429902351228f,
                                                -2.7698972296170634f,  1.9997911830387094f};
} // namespace precise_exp

/// 2^exponent as the instructions compute it, to 1.2e-4 of it. Between 2^-127 and 2^-126 at most
/// 2^-126, and exactly 0 below; NaN from 2^128 on and of NaN.
float polynomialExp2(float exponent);

/// The same to 2^-21 of it. Between 2^-127 and 2^-126 at most 2^-126, and exactly 0 below; infinity
/// for 2^128, NaN above and of NaN.
float precisePolynomialExp2(float exponent);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_POLYNOMIALEXP_H
