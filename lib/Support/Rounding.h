//===- Rounding.h - Doubles rounded to narrower formats -------------------===//
//
// Rounding to nearest, ties to even, as llvm::APFloat does it, in code that
// vectorises: a double holds any f16, bf16 or f32 value exactly, and rounding
// the double result of one +, -, *, / or sqrt of such values gives the
// correctly rounded narrow result (53 >= 2p + 2: Figueroa, "When is double
// rounding innocuous?", 1995).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SUPPORT_ROUNDING_H
#define TESSERA_LIB_SUPPORT_ROUNDING_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tessera {

inline uint64_t bitsOf(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline double fromBits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
/// 2^exponent for a normal double.
constexpr double powerOfTwo(int exponent) {
  double result = 1;
  for (int i = 0; i < exponent; ++i)
    result *= 2;
  for (int i = 0; i > exponent; --i)
    result /= 2;
  return result;
}

/// Rounds to the binary format with `Precision` significant bits (the implicit one included) whose
/// normal numbers have exponents MinExponent..MaxExponent. Overflow gives infinity, NaN stays NaN.
template <int Precision, int MinExponent, int MaxExponent>
inline double roundToFormat(double x) {
  constexpr int drop = 53 - Precision;
  constexpr double smallestNormal = powerOfTwo(MinExponent);
  constexpr double overflow = powerOfTwo(MaxExponent + 1);
  // Adding this leaves exactly the bits of the subnormals' grid.
  constexpr double grid = powerOfTwo(MinExponent - Precision + 1 + 52);
  double magnitude = std::fabs(x);
  uint64_t bits = bitsOf(magnitude);
  uint64_t odd = (bits >> drop) & 1;
  double normal =
      fromBits((bits + ((uint64_t(1) << (drop - 1)) - 1) + odd) & ~((uint64_t(1) << drop) - 1));
  normal = normal >= overflow ? std::numeric_limits<double>::infinity() : normal;
  double subnormal = (magnitude + grid) - grid;
  double rounded = magnitude < smallestNormal ? subnormal : normal;
  return x != x ? x : std::copysign(rounded, x);
}

inline double roundToF16(double x) { return roundToFormat<11, -14, 15>(x); }
inline double roundToBF16(double x) { return roundToFormat<8, -126, 127>(x); }
inline double roundToTF32(double x) { return roundToFormat<11, -126, 127>(x); }
/// Rounds as roundToFormat does, and to the largest number `most` what would be larger, infinity
/// included: the only way in which Hopper rounds to 8 bits (PTX ISA 9.7.9.21, cvt .satfinite).
template <int Precision, int MinExponent, int MaxExponent>
inline double saturateToFormat(double x, double most) {
  double rounded = roundToFormat<Precision, MinExponent, MaxExponent>(x);
  return std::fabs(rounded) > most ? std::copysign(most, x) : rounded;
}
inline double roundToE4M3(double x) { return saturateToFormat<4, -6, 8>(x, 448); }
inline double roundToE5M2(double x) { return saturateToFormat<3, -14, 15>(x, 57344); }
inline double roundToF32(double x) { return static_cast<float>(x); }

/// a * b + c rounded to odd, for factors of at most 26 significant bits, whose product is exact:
/// rounding the result once more to a format of at most 50 bits gives the fused result.
inline double fusedToOdd(double a, double b, double c) {
  double product = a * b, sum = product + c;
  double part = sum - product;
  double error = (product - (sum - part)) + (c - part);
  // Infinite sums have no meaningful error; NaN compares false.
  if (!(std::fabs(error) > 0) || !std::isfinite(sum) || (bitsOf(sum) & 1))
    return sum;
  bool away = (error > 0) == (sum > 0);
  return fromBits(bitsOf(sum) + (away ? 1 : -1));
}

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_ROUNDING_H
