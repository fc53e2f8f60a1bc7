//===- Numeric.cpp - Small floating-point formats and rounding ------------===//
#include "lib/Simulator/Numeric.h"
#include <algorithm>
#include <array>

using namespace tessera::sim::detail;

uint32_t tessera::sim::detail::encodeFloat(double value, const FloatFormat &f, Rounding mode,
                                           bool satfinite) {
  uint64_t bits = bitCast<uint64_t>(value);
  uint32_t sign = uint32_t(bits >> 63) << (f.exponentBits + f.mantissaBits);
  uint32_t maxExponent = (1u << f.exponentBits) - 1;
  uint32_t mantissaOnes = (1u << f.mantissaBits) - 1;
  uint32_t infinity = f.ieee ? maxExponent << f.mantissaBits : 0;
  uint32_t nan = maxExponent << f.mantissaBits | mantissaOnes;
  uint32_t largest = f.ieee ? infinity - 1 : nan - 1;
  if (value != value)
    return nan;
  uint32_t magnitudeInf = f.ieee && !satfinite ? infinity : satfinite ? largest : nan;
  if (std::isinf(value))
    return sign | magnitudeInf;
  if (value == 0)
    return sign;

  int exponent;
  std::frexp(std::fabs(value), &exponent); // a fraction in [1/2, 1)
  exponent -= 1;
  int smallest = 1 - f.bias;
  int scale = f.mantissaBits - std::max(exponent, smallest); // the quantum is 2^-scale
  double scaled = std::ldexp(std::fabs(value), scale);       // exact: a power of two
  double whole = std::floor(scaled);
  double rest = scaled - whole;
  bool negative = sign != 0, up = false;
  switch (mode) {
  case Rounding::Nearest:
    up = rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) != 0);
    break;
  case Rounding::NearestAway:
    up = rest >= 0.5;
    break;
  case Rounding::Zero:
    break;
  case Rounding::Down:
    up = negative && rest > 0;
    break;
  case Rounding::Up:
    up = !negative && rest > 0;
    break;
  }
  if (up)
    whole += 1;
  // `whole` counts quanta; numbers of one format are consecutive integers as bit patterns.
  uint64_t quanta = uint64_t(whole);
  int stored = std::max(exponent, smallest) + f.bias; // of the normal range, 1 for subnormals
  uint64_t pattern =
      (uint64_t(stored) << f.mantissaBits) + quanta - (uint64_t(1) << f.mantissaBits);
  if (pattern > largest) {
    bool toLargest = satfinite || mode == Rounding::Zero || (mode == Rounding::Down && !negative) ||
                     (mode == Rounding::Up && negative);
    return sign | (toLargest ? largest : magnitudeInf);
  }
  return sign | uint32_t(pattern);
}

float tessera::sim::detail::decodeFloat(uint32_t bits, const FloatFormat &f) {
  uint32_t mantissa = bits & ((1u << f.mantissaBits) - 1);
  uint32_t exponent = bits >> f.mantissaBits & ((1u << f.exponentBits) - 1);
  bool negative = bits >> (f.mantissaBits + f.exponentBits) & 1;
  uint32_t maxExponent = (1u << f.exponentBits) - 1;
  float r;
  if (f.ieee && exponent == maxExponent)
    r = mantissa ? bitCast<float>(kCanonicalNaN) : bitCast<float>(0x7f800000u);
  else if (!f.ieee && exponent == maxExponent && mantissa == (1u << f.mantissaBits) - 1)
    r = bitCast<float>(kCanonicalNaN);
  else if (exponent == 0)
    r = std::ldexp(float(mantissa), 1 - f.bias - f.mantissaBits);
  else
    r = std::ldexp(float(mantissa | 1u << f.mantissaBits), int(exponent) - f.bias - f.mantissaBits);
  return negative ? -r : r;
}

uint32_t tessera::sim::detail::floatToF16(float value) {
  uint32_t u = bitCast<uint32_t>(value);
  uint32_t sign = u >> 16 & 0x8000;
  u &= 0x7fffffff;
  if (u > 0x7f800000)
    return 0x7fff;
  if (u >= 0x477ff000) // rounds to 2^16 or more
    return sign | 0x7c00;
  if (u < 0x38800000) { // below the normal range: let the adder round to multiples of 2^-24
    float f = bitCast<float>(u) + 0.5f;
    return sign | (bitCast<uint32_t>(f) - 0x3f000000);
  }
  u += 0xfff + (u >> 13 & 1);
  return sign | ((u - 0x38000000) >> 13);
}

double tessera::sim::detail::fmaToOdd(double a, double b, double c) {
  double p = a * b; // exact: the factors have at most 24 bits
  double s = p + c;
  double bb = s - p;
  double error = (p - (s - bb)) + (c - bb); // Knuth's two-sum
  if (error == 0 || s != s || std::isinf(s))
    return s;
  uint64_t u = bitCast<uint64_t>(s);
  if (u & 1)
    return s;
  // Step towards the exact value: away from zero when the error has the sign of the sum.
  bool away = (error > 0) == (s > 0);
  return bitCast<double>(away ? u + 1 : u - 1);
}
