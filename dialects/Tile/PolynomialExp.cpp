//===- PolynomialExp.cpp - Exponentials by polynomials --------------------===//

#include "dialects/Tile/PolynomialExp.h"
#include "llvm/ADT/bit.h"
#include <cmath>

/// As .sat does: NaN is saturated to 0.
static float saturate(float x) { return x > 0 ? std::fmin(x, 1.0f) : 0.0f; }

float tessera::tile::polynomialExp2(float exponent) {
  using namespace polynomial_exp;
  float position = saturate(std::fma(exponent, -1.0f / kOctaves, kTop));
  // Products of 24 and 8 bits are exact in double.
  double place = static_cast<double>(position) * kOctaves, octave = std::ceil(place);
  float fraction = static_cast<float>(octave - place);
  float power = kCoefficients.front();
  for (size_t i = 1; i < kCoefficients.size(); ++i)
    power = std::fma(power, fraction, kCoefficients[i]);
  float number = static_cast<float>(octave) + kFirst;
  return llvm::bit_cast<float>(llvm::bit_cast<uint32_t>(number) * kFieldFactor +
                               llvm::bit_cast<uint32_t>(power));
}

float tessera::tile::precisePolynomialExp2(float exponent) {
  using namespace precise_exp;
  float position = saturate(std::fma(exponent, -1.0f / kOctaves, kTop));
  float octave = std::fma(position, static_cast<float>(kOctaves), kFirst);
  float place = saturate(std::fma(exponent, -0.5f, std::fma(octave, -0.5f, kMiddle)));
  float power = kCoefficients.front();
  for (size_t i = 1; i < kCoefficients.size(); ++i)
    power = std::fma(power, place, kCoefficients[i]);
  return llvm::bit_cast<float>(llvm::bit_cast<uint32_t>(power) -
                               (llvm::bit_cast<uint32_t>(octave) << 23));
}
