//===- MathTest.cpp - The math dialect in the interpreter -----------------===//

#include "RunKernelText.h"
#include "lib/Support/Rounding.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace tessera;
using namespace tessera::test;

namespace {
struct UnaryCase {
  const char *name;
  std::vector<double> x, expected;
};
} // namespace

/// Values of Python's math module, printed with repr.
static const UnaryCase unaryCases[] = {
    {"exp",
     {-1.5, 0.0, 0.75, 3.0},
     {0.22313016014842982, 1.0, 2.117000016612675, 20.085536923187668}},
    {"exp2", {-1.5, 0.0, 0.75, 3.0}, {0.3535533905932738, 1.0, 1.681792830507429, 8.0}},
    {"expm1",
     {-1.5, 0.0009765625, 0.75, 3.0},
     {-0.7768698398515702, 0.0009770394924165351, 1.1170000166126748, 19.085536923187668}},
    {"log",
     {0.25, 1.0, 2.5, 100.0},
     {-1.3862943611198906, 0.0, 0.9162907318741551, 4.605170185988092}},
    {"log2", {0.25, 1.0, 2.5, 100.0}, {-2.0, 0.0, 1.3219280948873624, 6.643856189774724}},
    {"log10", {0.25, 1.0, 2.5, 100.0}, {-0.6020599913279624, 0.0, 0.3979400086720376, 2.0}},
    {"log1p",
     {-0.5, 0.0009765625, 2.5, 100.0},
     {-0.6931471805599453, 0.0009760859730554589, 1.252762968495368, 4.61512051684126}},
    {"sqrt", {0.25, 2.0, 3.0, 100.0}, {0.5, 1.4142135623730951, 1.7320508075688772, 10.0}},
    {"rsqrt", {0.25, 2.0, 3.0, 100.0}, {2.0, 0.7071067811865475, 0.5773502691896258, 0.1}},
    {"cbrt", {-8.0, 0.125, 2.0, 27.0}, {-2.0, 0.5, 1.2599210498948732, 3.0}},
    {"erf",
     {-1.5, 0.0, 0.75, 3.0},
     {-0.9661051464753108, 0.0, 0.7111556336535151, 0.9999779095030014}},
    {"erfc",
     {-1.5, 0.0, 0.75, 3.0},
     {1.9661051464753108, 1.0, 0.28884436634648486, 2.2090496998585438e-05}},
    {"sin",
     {-1.5, 0.0, 0.75, 3.0},
     {-0.9974949866040544, 0.0, 0.6816387600233341, 0.1411200080598672}},
    {"cos",
     {-1.5, 0.0, 0.75, 3.0},
     {0.0707372016677029, 1.0, 0.7316888688738209, -0.9899924966004454}},
    {"tan",
     {-1.5, 0.0, 0.75, 3.0},
     {-14.101419947171719, 0.0, 0.9315964599440725, -0.1425465430742778}},
    {"asin",
     {-1.0, 0.0, 0.75, 0.5},
     {-1.5707963267948966, 0.0, 0.848062078981481, 0.5235987755982989}},
    {"acos",
     {-1.0, 0.0, 0.75, 0.5},
     {3.141592653589793, 1.5707963267948966, 0.7227342478134157, 1.0471975511965979}},
    {"atan",
     {-1.5, 0.0, 0.75, 3.0},
     {-0.982793723247329, 0.0, 0.6435011087932844, 1.2490457723982544}},
    {"sinh",
     {-1.5, 0.0, 0.75, 3.0},
     {-2.1292794550948173, 0.0, 0.82231673193583, 10.017874927409903}},
    {"cosh",
     {-1.5, 0.0, 0.75, 3.0},
     {2.352409615243247, 1.0, 1.2946832846768448, 10.067661995777765}},
    {"tanh",
     {-1.5, 0.0, 0.75, 3.0},
     {-0.9051482536448664, 0.0, 0.6351489523872873, 0.9950547536867305}},
    {"asinh",
     {-1.5, 0.0, 0.75, 3.0},
     {-1.1947632172871094, 0.0, 0.6931471805599453, 1.8184464592320668}},
    {"acosh",
     {1.0, 1.5, 2.0, 3.0},
     {0.0, 0.9624236501192069, 1.3169578969248166, 1.762747174039086}},
    {"atanh",
     {-0.5, 0.0, 0.75, 0.25},
     {-0.5493061443340548, 0.0, 0.9729550745276566, 0.25541281188299536}},
    {"absf", {-1.5, 0.0, 0.75, -3.0}, {1.5, 0.0, 0.75, 3.0}},
    {"floor", {-1.5, 0.25, 2.5, -3.0}, {-2.0, 0.0, 2.0, -3.0}},
    {"ceil", {-1.5, 0.25, 2.5, -3.0}, {-1.0, 1.0, 3.0, -3.0}},
    {"trunc", {-1.5, 0.25, 2.5, -3.75}, {-1.0, 0.0, 2.0, -3.0}},
    {"round", {-1.5, 0.25, 2.5, -3.75}, {-2.0, 0.0, 3.0, -4.0}},
    {"roundeven", {-1.5, 0.25, 2.5, 3.5}, {-2.0, 0.0, 2.0, 4.0}},
};

TEST(Math, UnaryFunctions) {
  for (const UnaryCase &test : unaryCases) {
    std::string body = llvm::formatv("%r = math.{0} %x : tensor<4xf32>", test.name);
    std::vector<double> exact = apply(body, test.x, test.x, Precision::Exact),
                        kernel = apply(body, test.x, test.x, Precision::Kernel);
    for (size_t i = 0; i < test.x.size(); ++i) {
      EXPECT_NEAR(exact[i], test.expected[i], 4e-16 * std::fabs(test.expected[i]))
          << test.name << " of " << test.x[i];
      EXPECT_EQ(kernel[i], roundToF32(test.expected[i])) << test.name << " of " << test.x[i];
    }
  }
}

TEST(Math, BinaryFunctions) {
  auto run = [](const char *name, std::vector<double> x, std::vector<double> y) {
    return apply(llvm::formatv("%r = math.{0} %x, %y : tensor<{1}xf32>", name, x.size()).str(), x,
                 y, Precision::Exact);
  };
  EXPECT_EQ(run("powf", {2, 9, 0.5}, {10, 0.5, -3}), (std::vector<double>{1024, 3, 8}));
  EXPECT_EQ(run("copysign", {2, -9, 0.5}, {-1, 0, -0.0}), (std::vector<double>{-2, 9, -0.5}));
  // pi / 4, -3 pi / 4 and pi
  std::vector<double> angles = run("atan2", {1, -1, 0}, {1, -1, -1});
  EXPECT_DOUBLE_EQ(angles[0], 0.7853981633974483);
  EXPECT_DOUBLE_EQ(angles[1], -2.356194490192345);
  EXPECT_DOUBLE_EQ(angles[2], 3.141592653589793);
}

TEST(Math, FusedMultiplyAddRoundsOnce) {
  // (1 + 2^-23)(1 - 2^-23) - 1 = -2^-46, which is lost when the product is rounded to f32.
  std::vector<double> x = {1 + 0x1p-23}, y = {1 - 0x1p-23};
  EXPECT_EQ(apply("%m1 = arith.constant dense<-1.0> : tensor<1xf32>\n"
                  "%r = math.fma %x, %y, %m1 : tensor<1xf32>",
                  x, y, Precision::Kernel)[0],
            -0x1p-46);
  EXPECT_EQ(apply("%m1 = arith.constant dense<-1.0> : tensor<1xf32>\n"
                  "%p = arith.mulf %x, %y : tensor<1xf32>\n"
                  "%r = arith.addf %p, %m1 : tensor<1xf32>",
                  x, y, Precision::Kernel)[0],
            0);
}

TEST(Math, ClampAndSincos) {
  EXPECT_EQ(apply("%one = arith.constant dense<1.0> : tensor<4xf32>\n"
                  "%r = math.clampf %x to [%y, %one] : tensor<4xf32>",
                  {-3, 0.5, 7, 1}, {-1, -1, -1, 0}, Precision::Kernel),
            (std::vector<double>{-1, 0.5, 1, 1}));
  std::vector<double> one = apply("%s, %c = math.sincos %x : tensor<2xf32>\n"
                                  "%s2 = arith.mulf %s, %s : tensor<2xf32>\n"
                                  "%c2 = arith.mulf %c, %c : tensor<2xf32>\n"
                                  "%r = arith.addf %s2, %c2 : tensor<2xf32>",
                                  {0.3, 2}, {0, 0}, Precision::Exact);
  EXPECT_NEAR(one[0], 1, 1e-15);
  EXPECT_NEAR(one[1], 1, 1e-15);
}

/// Runs `operations`, which turn %a and %b (tensor<Nxi8>) into %c (tensor<Nxi8>).
static std::vector<double> applyInt8(const std::string &operations, std::vector<double> x,
                                     std::vector<double> y) {
  std::string body = llvm::formatv("%a = arith.fptosi %x : tensor<{0}xf32> to tensor<{0}xi8>\n"
                                   "%b = arith.fptosi %y : tensor<{0}xf32> to tensor<{0}xi8>\n"
                                   "{1} : tensor<{0}xi8>\n"
                                   "%r = arith.sitofp %c : tensor<{0}xi8> to tensor<{0}xf32>",
                                   x.size(), operations);
  return apply(body, x, y, Precision::Kernel);
}

TEST(Math, IntegerFunctions) {
  using V = std::vector<double>;
  EXPECT_EQ(applyInt8("%c = math.absi %a", {-5, 5, -128}, {0, 0, 0}), (V{5, 5, -128}));
  EXPECT_EQ(applyInt8("%c = math.ctpop %a", {-1, 5, 0}, {0, 0, 0}), (V{8, 2, 0}));
  EXPECT_EQ(applyInt8("%c = math.ctlz %a", {-1, 5, 0}, {0, 0, 0}), (V{0, 5, 8}));
  EXPECT_EQ(applyInt8("%c = math.cttz %a", {-1, 12, 0}, {0, 0, 0}), (V{0, 2, 8}));
  EXPECT_EQ(applyInt8("%c = math.ipowi %a, %b", {3, -2, -1, 5, 2}, {4, 5, -3, -1, 7}),
            (V{81, -32, -1, 0, -128}));
  EXPECT_EQ(apply("%i = arith.fptosi %y : tensor<2xf32> to tensor<2xi32>\n"
                  "%r = math.fpowi %x, %i : tensor<2xf32>, tensor<2xi32>",
                  {1.5, 2}, {3, -2}, Precision::Kernel),
            (V{3.375, 0.25}));
}

TEST(Math, Classes) {
  double inf = HUGE_VAL, nan = std::nan("");
  auto run = [&](const char *name) {
    return apply(llvm::formatv("%b = math.{0} %x : tensor<5xf32>\n"
                               "%r = arith.uitofp %b : tensor<5xi1> to tensor<5xf32>",
                               name)
                     .str(),
                 {1, 0x1p-127, -inf, nan, 0}, {0, 0, 0, 0, 0}, Precision::Kernel);
  };
  using V = std::vector<double>;
  EXPECT_EQ(run("isfinite"), (V{1, 1, 0, 0, 1}));
  EXPECT_EQ(run("isinf"), (V{0, 0, 1, 0, 0}));
  EXPECT_EQ(run("isnan"), (V{0, 0, 0, 1, 0}));
  EXPECT_EQ(run("isnormal"), (V{1, 0, 0, 0, 0}));
}
