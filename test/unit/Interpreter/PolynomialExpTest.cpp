//===- PolynomialExpTest.cpp - Exponentials by polynomials ----------------===//

#include "dialects/Tile/PolynomialExp.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using tessera::tile::polynomialExp2;

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// The largest relative error over exponents `step` apart.
static double largestError(float from, float to, float step) {
  double largest = 0;
  for (float x = from; x <= to; x += step)
    largest = std::max(largest, std::fabs(polynomialExp2(x) / std::exp2(double(x)) - 1));
  return largest;
}

TEST(PolynomialExp, IsCloseEverywhere) {
  EXPECT_LT(largestError(-125.99f, 127.99f, 0x1p-10f), 1.2e-4);
  // Where the exponents of a softmax are.
  EXPECT_LT(largestError(-32, 0, 0x1p-14f), 1.05e-4);
  EXPECT_LT(largestError(-0x1p-6f, 0x1p-6f, 0x1p-24f), 1.2e-4);
  EXPECT_NEAR(polynomialExp2(0), 1, 2.5e-5);
}

TEST(PolynomialExp, VanishesAtTheBottom) {
  for (float x : {-127.0f, -127.5f, -128.0f, -300.0f, -1e30f, -infinity})
    EXPECT_EQ(llvm::bit_cast<uint32_t>(polynomialExp2(x)), 0u) << x;
  for (float x = -127; x < -126; x += 0x1p-10f) {
    EXPECT_GE(polynomialExp2(x), 0) << x;
    EXPECT_LE(polynomialExp2(x), 0x1p-126f) << x;
  }
}

TEST(PolynomialExp, HasNoSmallResultsForLargeExponents) {
  for (float x : {128.0f, 128.5f, 129.0f, 200.0f, 256.0f, 384.0f, 1e30f, infinity})
    EXPECT_TRUE(std::isnan(polynomialExp2(x))) << x;
  for (float sign : {1.0f, -1.0f})
    EXPECT_TRUE(std::isnan(polynomialExp2(std::copysign(std::nanf(""), sign))));
}
