//===- RoundingTest.cpp - Fast rounding against llvm::APFloat -------------===//

#include "lib/Support/Rounding.h"
#include "llvm/ADT/APFloat.h"
#include <gtest/gtest.h>
#include <random>

using namespace tessera;
using llvm::APFloat;

static double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}
static APFloat narrow(const llvm::fltSemantics &semantics, double x) {
  APFloat value(x);
  bool losesInfo;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  return value;
}

/// Checks one value and its negative, zeros by sign and NaN by kind.
static void expectRounds(const llvm::fltSemantics &semantics, double (*round)(double), double x) {
  for (double y : {x, -x}) {
    double expected = toDouble(narrow(semantics, y)), got = round(y);
    if (expected != expected)
      ASSERT_TRUE(got != got) << y;
    else
      ASSERT_EQ(bitsOf(expected), bitsOf(got)) << std::hexfloat << y << " to " << got;
  }
}

/// Every value of a 16-bit format, the middle between it and the next, and the doubles around both.
static void checkAllNeighbours(const llvm::fltSemantics &semantics, double (*round)(double)) {
  uint64_t infinity = APFloat::getInf(semantics).bitcastToAPInt().getZExtValue();
  auto valueOf = [&](uint64_t bits) { return toDouble(APFloat(semantics, llvm::APInt(16, bits))); };
  // Beyond the largest number the grid goes on: overflow starts half a unit above it.
  double top = 2 * valueOf(infinity - 1) - valueOf(infinity - 2);
  for (uint64_t bits = 0; bits < infinity; ++bits) {
    double low = valueOf(bits), high = bits + 1 == infinity ? top : valueOf(bits + 1);
    double middle = low + (high - low) / 2;
    for (double x : {low, middle})
      for (double y : {std::nextafter(x, -1.0), x, std::nextafter(x, HUGE_VAL)})
        expectRounds(semantics, round, y);
  }
  for (double x : {0.0, HUGE_VAL, std::nan(""), 1e300, 1e-300, 0x1p-1074})
    expectRounds(semantics, round, x);
}

TEST(Rounding, F16) { checkAllNeighbours(APFloat::IEEEhalf(), roundToF16); }
TEST(Rounding, BF16) { checkAllNeighbours(APFloat::BFloat(), roundToBF16); }

TEST(Rounding, F32) {
  std::mt19937_64 generator(1);
  for (int i = 0; i < 100000; ++i) {
    double x = fromBits(generator());
    expectRounds(APFloat::IEEEsingle(), roundToF32, x);
    // A double half-way between two floats.
    double low = static_cast<float>(x);
    expectRounds(APFloat::IEEEsingle(), roundToF32,
                 low + (std::nextafter(static_cast<float>(low), INFINITY) - low) / 2);
  }
}

/// Fused multiply-add of random values of a format, with addends that cancel or lie far away.
static void checkFused(const llvm::fltSemantics &semantics, double (*round)(double), int range) {
  std::mt19937_64 generator(2);
  auto draw = [&](int exponents) {
    double fraction = 1 + static_cast<double>(generator() >> 12) * 0x1p-52;
    int exponent = static_cast<int>(generator() % (2 * exponents)) - exponents;
    return round(std::ldexp(generator() & 1 ? -fraction : fraction, exponent));
  };
  for (int i = 0; i < 200000; ++i) {
    double a = draw(range / 2), b = draw(range / 2), c = i % 3 ? draw(range) : round(-a * b);
    APFloat expected = narrow(semantics, a);
    expected.fusedMultiplyAdd(narrow(semantics, b), narrow(semantics, c),
                              APFloat::rmNearestTiesToEven);
    ASSERT_EQ(bitsOf(toDouble(expected)), bitsOf(round(fusedToOdd(a, b, c))))
        << std::hexfloat << a << " * " << b << " + " << c;
  }
}

TEST(Rounding, FusedF16) { checkFused(APFloat::IEEEhalf(), roundToF16, 14); }
TEST(Rounding, FusedBF16) { checkFused(APFloat::BFloat(), roundToBF16, 100); }
TEST(Rounding, FusedF32) { checkFused(APFloat::IEEEsingle(), roundToF32, 100); }

TEST(Rounding, TF32) {
  std::mt19937_64 generator(4);
  for (int i = 0; i < 300000; ++i) {
    // Every eighth number is subnormal.
    uint32_t bits = static_cast<uint32_t>(generator()) & (i % 8 ? ~0u : 0x807fffffu);
    float a;
    std::memcpy(&a, &bits, 4);
    if (a != a)
      continue;
    APFloat expected(a);
    bool loses;
    expected.convert(APFloat::FloatTF32(), APFloat::rmNearestTiesToEven, &loses);
    ASSERT_EQ(toDouble(expected), roundToTF32(a)) << std::hexfloat << a;
  }
}

TEST(Rounding, OneOperationInDoubleThenNarrow) {
  // What lets every element be a double: one operation in double, rounded, is the narrow operation.
  std::mt19937_64 generator(3);
  for (int i = 0; i < 300000; ++i) {
    float a, b;
    uint32_t bits[2] = {static_cast<uint32_t>(generator()), static_cast<uint32_t>(generator())};
    std::memcpy(&a, &bits[0], 4);
    std::memcpy(&b, &bits[1], 4);
    if (a != a || b != b)
      continue;
    auto expectSame = [](float expected, double wide) {
      float got = static_cast<float>(wide);
      ASSERT_TRUE(expected != expected ? got != got : expected == got);
    };
    expectSame(a + b, double(a) + double(b));
    expectSame(a * b, double(a) * double(b));
    expectSame(a / b, double(a) / double(b));
    expectSame(std::sqrt(a), std::sqrt(double(a)));
  }
}
