//===- PolynomialExp.cpp - Exponentials by polynomials --------------------===//

#include "dialects/Tile/PolynomialExp.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace tessera::tile::polynomial_exp;

float tessera::tile::polynomialExp2(float exponent) {
  float position = std::fma(exponent, -1.0f / kOctaves, kTop);
  // NaN is saturated to 0.
  position = position > 0 ? std::fmin(position, 1.0f) : 0.0f;
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
