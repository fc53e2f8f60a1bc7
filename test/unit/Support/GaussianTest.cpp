//===- GaussianTest.cpp - Reproducible standard normal numbers ------------===//

#include "lib/Support/Gaussian.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace tessera;

TEST(Gaussian, PolarMethodOnTheDocumentedGenerator) {
  // The method again, with the C library's logarithm, which agrees to the last places.
  std::mt19937_64 generator;
  Gaussian probe(0, "");
  // The name "" hashes to a constant of XXH3 (64 bits, seed 0, no input).
  generator.seed(0x2d06800538d394c2ull);
  for (int pair = 0; pair < 1000; ++pair) {
    double u, v, s;
    do {
      u = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
      v = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
      s = u * u + v * v;
    } while (s >= 1 || s == 0);
    double factor = std::sqrt(-2 * std::log(s) / s);
    ASSERT_NEAR(probe.next(), u * factor, 1e-14 * std::fabs(u * factor));
    ASSERT_NEAR(probe.next(), v * factor, 1e-14 * std::fabs(v * factor));
  }
}

TEST(Gaussian, NamesAndSeedsAreIndependentStreams) {
  double a = Gaussian(0, "q").next();
  EXPECT_EQ(a, Gaussian(0, "q").next());
  EXPECT_NE(a, Gaussian(0, "k").next());
  EXPECT_NE(a, Gaussian(1, "q").next());
}

TEST(Gaussian, Moments) {
  Gaussian gaussian(7, "x");
  constexpr int count = 200000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < count; ++i) {
    double x = gaussian.next();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  // Five standard deviations of each mean: 1, sqrt(2) and sqrt(96) over sqrt(count).
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 5 * std::sqrt(2.0 / count));
  EXPECT_NEAR(fourth / count, 3, 5 * std::sqrt(96.0 / count));
}
