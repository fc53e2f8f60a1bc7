//===- Numeric.h - Small floating-point formats and rounding ----*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_NUMERIC_H
#define TESSERA_SIMULATOR_NUMERIC_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tessera::sim::detail {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, NearestAway };

template <class To, class From>
inline To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

/// A binary format: sign, exponent, mantissa. `ieee` formats have infinities; E4M3 has only one NaN
/// per sign and uses the largest exponent for numbers.
struct FloatFormat {
  int exponentBits, mantissaBits, bias;
  bool ieee;
};
constexpr FloatFormat kF16{5, 10, 15, true}, kBF16{8, 7, 127, true}, kTF32{8, 10, 127, true},
    kE5M2{5, 2, 15, true}, kE4M3{4, 3, 7, false};

/// Rounds a double to the format. Overflow gives infinity (or the largest number, by rounding mode
/// or `satfinite`); NaN gives the format's canonical NaN.
uint32_t encodeFloat(double value, const FloatFormat &format, Rounding mode, bool satfinite);
float decodeFloat(uint32_t bits, const FloatFormat &format);

inline float bf16ToFloat(uint32_t bits) { return bitCast<float>(bits << 16); }
/// Round to nearest even; NaN becomes the canonical 0x7fff.
inline uint32_t floatToBf16(float f) {
  uint32_t u = bitCast<uint32_t>(f);
  if ((u & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
uint32_t floatToF16(float f); ///< round to nearest even

inline bool isSubnormal(uint32_t bits) { return (bits & 0x7f800000) == 0; } ///< zero included
inline float flush(float f) {
  uint32_t u = bitCast<uint32_t>(f);
  return bitCast<float>(isSubnormal(u) ? u & 0x80000000 : u);
}
constexpr uint32_t kCanonicalNaN = 0x7fffffff;
inline float canonical(float f) { return f != f ? bitCast<float>(kCanonicalNaN) : f; }

inline float f16ToFloat(uint32_t h) {
  uint32_t sign = (h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
  if (exponent == 31)
    return bitCast<float>(mantissa ? kCanonicalNaN : sign | 0x7f800000);
  if (exponent)
    return bitCast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  float f = float(mantissa) * 0x1p-24f;
  return bitCast<float>(bitCast<uint32_t>(f) | sign);
}

/// a * b + c, rounded to odd in double precision: rounding that again to a format of at most 51
/// bits is exact.
double fmaToOdd(double a, double b, double c);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_NUMERIC_H
