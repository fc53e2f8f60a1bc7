//===- PolynomialExpTest.cpp - Exponentials by polynomials ----------------===//

#include "dialects/Tile/PolynomialExp.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using tessera::tile::polynomialExp2;
using tessera::tile::precisePolynomialExp2;

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// The largest relative error over exponents `step` apart.
static double largestError(float from, float to, float step,
                           float (*function)(float) = polynomialExp2) {
  double largest = 0;
  for (float x = from; x <= to; x += step)
    largest = std::max(largest, std::fabs(function(x) / std::exp2(double(x)) - 1));
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

TEST(PrecisePolynomialExp, IsPreciseEverywhere) {
  EXPECT_LT(largestError(-125.99f, 127.99f, 0x1p-10f, precisePolynomialExp2), 0x1p-21);
  EXPECT_LT(largestError(-1.5f, 1.5f, 0x1p-20f, precisePolynomialExp2), 0x1p-21);
  // Sums lose no more: the errors of neighbours cancel out.
  double sum = 0, exact = 0;
  for (float x = -8; x <= 0; x += 0x1p-12f) {
    sum += precisePolynomialExp2(x);
    exact += std::exp2(double(x));
  }
  EXPECT_LT(std::fabs(sum / exact - 1), 0x1p-23);
  EXPECT_EQ(precisePolynomialExp2(0), 1);
}

TEST(PrecisePolynomialExp, VanishesAtTheBottom) {
  for (float x : {-127.0f, -127.5f, -128.0f, -300.0f, -1e30f, -infinity})
    EXPECT_EQ(llvm::bit_cast<uint32_t>(precisePolynomialExp2(x)), 0u) << x;
  for (float x = -127; x < -126; x += 0x1p-10f) {
    EXPECT_GE(precisePolynomialExp2(x), 0) << x;
    EXPECT_LE(precisePolynomialExp2(x), 0x1p-126f) << x;
  }
}

TEST(PrecisePolynomialExp, HasNoSmallResultsForLargeExponents) {
  EXPECT_EQ(precisePolynomialExp2(128), infinity);
  for (float x : {128.5f, 129.0f, 129.5f, 130.0f, 200.0f, 256.0f, 384.0f, 1e30f, infinity})
    EXPECT_TRUE(std::isnan(precisePolynomialExp2(x))) << x;
  for (float sign : {1.0f, -1.0f})
    EXPECT_TRUE(std::isnan(precisePolynomialExp2(std::copysign(std::nanf(""), sign))));
}
