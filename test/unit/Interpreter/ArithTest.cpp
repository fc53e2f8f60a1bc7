//===- ArithTest.cpp - The arith dialect in the interpreter ---------------===//

#include "RunKernelText.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace tessera;
using namespace tessera::test;
using V = std::vector<double>;

/// The i8 results of a binary operation, read as signed.
static V applyInt8(const char *op, V x, V y) {
  return apply(llvm::formatv("%a = arith.fptosi %x : tensor<{0}xf32> to tensor<{0}xi8>\n"
                             "%b = arith.fptosi %y : tensor<{0}xf32> to tensor<{0}xi8>\n"
                             "%c = arith.{1} %a, %b : tensor<{0}xi8>\n"
                             "%r = arith.sitofp %c : tensor<{0}xi8> to tensor<{0}xf32>",
                             x.size(), op)
                   .str(),
               x, y, Precision::Kernel);
}

TEST(Arith, WrappingIntegers) {
  EXPECT_EQ(applyInt8("addi", {100, -100, 1}, {100, -100, 2}), (V{-56, 56, 3}));
  EXPECT_EQ(applyInt8("subi", {100, -100, 1}, {-100, 100, 2}), (V{-56, 56, -1}));
  EXPECT_EQ(applyInt8("muli", {100, -100, 3}, {3, 3, -4}), (V{44, -44, -12}));
  EXPECT_EQ(applyInt8("andi", {12, -1}, {10, 7}), (V{8, 7}));
  EXPECT_EQ(applyInt8("ori", {12, -128}, {10, 7}), (V{14, -121}));
  EXPECT_EQ(applyInt8("xori", {12, -1}, {10, 7}), (V{6, -8}));
}

TEST(Arith, ShiftsIncludingByTheWidthOrMore) {
  EXPECT_EQ(applyInt8("shli", {3, 3, 3, 3}, {6, 7, 8, -1}), (V{-64, -128, 0, 0}));
  EXPECT_EQ(applyInt8("shrui", {-128, -128, -128, 64}, {1, 7, 8, 3}), (V{64, 1, 0, 8}));
  EXPECT_EQ(applyInt8("shrsi", {-128, -128, -128, 64}, {1, 7, 8, 100}), (V{-64, -1, -1, 0}));
}

TEST(Arith, DivisionsRoundAsTheirNamesSay) {
  EXPECT_EQ(applyInt8("divsi", {7, -7, 7, -7}, {2, 2, -2, -2}), (V{3, -3, -3, 3}));
  EXPECT_EQ(applyInt8("remsi", {7, -7, 7, -7}, {2, 2, -2, -2}), (V{1, -1, 1, -1}));
  EXPECT_EQ(applyInt8("floordivsi", {7, -7, 7, -7, 6}, {2, 2, -2, -2, -2}), (V{3, -4, -4, 3, -3}));
  EXPECT_EQ(applyInt8("ceildivsi", {7, -7, 7, -7, 6}, {2, 2, -2, -2, 2}), (V{4, -3, -3, 4, 3}));
  // -7 is 249 and -2 is 254 without a sign.
  EXPECT_EQ(applyInt8("divui", {7, -7, 7}, {2, 2, -2}), (V{3, 124, 0}));
  EXPECT_EQ(applyInt8("remui", {7, -7, 7}, {2, 2, -2}), (V{1, 1, 7}));
  EXPECT_EQ(applyInt8("ceildivui", {7, -7, 7}, {2, 2, -2}), (V{4, 125, 1}));
}

TEST(Arith, MinimaAndMaximaOfIntegers) {
  EXPECT_EQ(applyInt8("maxsi", {-1, 3}, {2, 2}), (V{2, 3}));
  EXPECT_EQ(applyInt8("minsi", {-1, 3}, {2, 2}), (V{-1, 2}));
  EXPECT_EQ(applyInt8("maxui", {-1, 3}, {2, 2}), (V{-1, 3}));
  EXPECT_EQ(applyInt8("minui", {-1, 3}, {2, 2}), (V{2, 2}));
}

/// low + 1000 * high of an operation with two results.
static V applyExtended(const char *op, const char *highType, V x, V y) {
  return apply(llvm::formatv("%a = arith.fptosi %x : tensor<{0}xf32> to tensor<{0}xi8>\n"
                             "%b = arith.fptosi %y : tensor<{0}xf32> to tensor<{0}xi8>\n"
                             "%l, %h = arith.{1} %a, %b : tensor<{0}xi8>{2}\n"
                             "%lf = arith.sitofp %l : tensor<{0}xi8> to tensor<{0}xf32>\n"
                             "%hf = arith.sitofp %h : tensor<{0}x{3}> to tensor<{0}xf32>\n"
                             "%k = arith.constant dense<1000.0> : tensor<{0}xf32>\n"
                             "%m = arith.mulf %hf, %k : tensor<{0}xf32>\n"
                             "%r = arith.addf %lf, %m : tensor<{0}xf32>",
                             x.size(), op,
                             llvm::StringRef(highType) == "i1"
                                 ? llvm::formatv(", tensor<{0}xi1>", x.size()).str()
                                 : "",
                             highType)
                   .str(),
               x, y, Precision::Kernel);
}

TEST(Arith, ExtendedIntegers) {
  // 255 + 1 = 256: low 0, carry (-1 as a signed i1).
  EXPECT_EQ(applyExtended("addui_extended", "i1", {-1, 1}, {1, 1}), (V{-1000, 2}));
  // -128 * 3 = -384 = -2 * 256 + 128, and 100 * 100 = 10000 = 39 * 256 + 16.
  EXPECT_EQ(applyExtended("mulsi_extended", "i8", {-128, 100}, {3, 100}), (V{-2128, 39016}));
  // 128 * 3 = 384 = 1 * 256 + 128.
  EXPECT_EQ(applyExtended("mului_extended", "i8", {-128, 100}, {3, 100}), (V{872, 39016}));
}

TEST(Arith, IntegerComparisons) {
  auto run = [](const char *predicate) {
    return apply(llvm::formatv("%a = arith.fptosi %x : tensor<3xf32> to tensor<3xi8>\n"
                               "%b = arith.fptosi %y : tensor<3xf32> to tensor<3xi8>\n"
                               "%c = arith.cmpi {0}, %a, %b : tensor<3xi8>\n"
                               "%r = arith.uitofp %c : tensor<3xi1> to tensor<3xf32>",
                               predicate)
                     .str(),
                 {-1, 2, 1}, {1, 2, 3}, Precision::Kernel);
  };
  EXPECT_EQ(run("eq"), (V{0, 1, 0}));
  EXPECT_EQ(run("ne"), (V{1, 0, 1}));
  EXPECT_EQ(run("slt"), (V{1, 0, 1}));
  EXPECT_EQ(run("sle"), (V{1, 1, 1}));
  EXPECT_EQ(run("sgt"), (V{0, 0, 0}));
  EXPECT_EQ(run("sge"), (V{0, 1, 0}));
  EXPECT_EQ(run("ult"), (V{0, 0, 1}));
  EXPECT_EQ(run("ule"), (V{0, 1, 1}));
  EXPECT_EQ(run("ugt"), (V{1, 0, 0}));
  EXPECT_EQ(run("uge"), (V{1, 1, 0}));
}

TEST(Arith, FloatComparisonsWithNaN) {
  double nan = std::nan("");
  auto run = [&](const char *predicate) {
    return apply(llvm::formatv("%c = arith.cmpf {0}, %x, %y : tensor<4xf32>\n"
                               "%r = arith.uitofp %c : tensor<4xi1> to tensor<4xf32>",
                               predicate)
                     .str(),
                 {1, 2, 3, nan}, {2, 2, 2, 2}, Precision::Kernel);
  };
  const std::pair<const char *, V> cases[] = {
      {"false", {0, 0, 0, 0}}, {"oeq", {0, 1, 0, 0}}, {"ogt", {0, 0, 1, 0}},
      {"oge", {0, 1, 1, 0}},   {"olt", {1, 0, 0, 0}}, {"ole", {1, 1, 0, 0}},
      {"one", {1, 0, 1, 0}},   {"ord", {1, 1, 1, 0}}, {"ueq", {0, 1, 0, 1}},
      {"ugt", {0, 0, 1, 1}},   {"uge", {0, 1, 1, 1}}, {"ult", {1, 0, 0, 1}},
      {"ule", {1, 1, 0, 1}},   {"une", {1, 0, 1, 1}}, {"uno", {0, 0, 0, 1}},
      {"true", {1, 1, 1, 1}}};
  for (const auto &[predicate, expected] : cases)
    EXPECT_EQ(run(predicate), expected) << predicate;
}

TEST(Arith, FloatArithmetic) {
  auto run = [](const char *op, V x, V y, Precision precision) {
    return apply(llvm::formatv("%r = arith.{0} %x, %y : tensor<{1}xf32>", op, x.size()).str(), x, y,
                 precision);
  };
  // 2^24 + 1 is no f32.
  EXPECT_EQ(run("addf", {0x1p24}, {1}, Precision::Kernel), V{0x1p24});
  EXPECT_EQ(run("addf", {0x1p24}, {1}, Precision::Exact), V{0x1p24 + 1});
  EXPECT_EQ(run("subf", {0x1p24}, {-1}, Precision::Kernel), V{0x1p24});
  EXPECT_EQ(run("mulf", {1 + 0x1p-23}, {1 + 0x1p-23}, Precision::Kernel), V{1 + 0x1p-22});
  EXPECT_EQ(run("divf", {1}, {3}, Precision::Kernel), V{11184811 * 0x1p-25});
  EXPECT_EQ(run("divf", {1, -1}, {0, 0}, Precision::Kernel), (V{HUGE_VAL, -HUGE_VAL}));
  EXPECT_EQ(run("remf", {7.5, -7.5}, {2, 2}, Precision::Kernel), (V{1.5, -1.5}));
  EXPECT_EQ(apply("%r = arith.negf %x : tensor<2xf32>", {1, -2}, {0, 0}, Precision::Kernel),
            (V{-1, 2}));
}

TEST(Arith, MinimaAndMaximaWithNaNAndZeros) {
  double nan = std::nan("");
  auto run = [&](const char *op) {
    // Reciprocals tell -0 from +0.
    return apply(llvm::formatv("%m = arith.{0} %x, %y : tensor<4xf32>\n"
                               "%one = arith.constant dense<1.0> : tensor<4xf32>\n"
                               "%r = arith.divf %one, %m : tensor<4xf32>",
                               op)
                     .str(),
                 {-0.0, 0.0, nan, 4}, {0.0, -0.0, 2, nan}, Precision::Kernel);
  };
  EXPECT_EQ(run("maxnumf"), (V{HUGE_VAL, HUGE_VAL, 0.5, 0.25}));
  EXPECT_EQ(run("minnumf"), (V{-HUGE_VAL, -HUGE_VAL, 0.5, 0.25}));
  V largest = run("maximumf"), smallest = run("minimumf");
  EXPECT_EQ(largest[0], HUGE_VAL);
  EXPECT_EQ(largest[1], HUGE_VAL);
  EXPECT_EQ(smallest[0], -HUGE_VAL);
  EXPECT_EQ(smallest[1], -HUGE_VAL);
  for (double x : {largest[2], largest[3], smallest[2], smallest[3]})
    EXPECT_TRUE(std::isnan(x));
}

TEST(Arith, FloatConversions) {
  auto through = [](const char *type, Precision precision) {
    return apply(llvm::formatv("%n = arith.truncf %x : tensor<3xf32> to tensor<3x{0}>\n"
                               "%r = arith.extf %n : tensor<3x{0}> to tensor<3xf32>",
                               type)
                     .str(),
                 {1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-20, 65520}, {0, 0, 0}, precision);
  };
  // 1 + 2^-8 lies between two bf16 values: to even. 65520 is the first that overflows f16.
  EXPECT_EQ(through("bf16", Precision::Kernel), (V{1, 1 + 0x1p-7, 65536}));
  EXPECT_EQ(through("f16", Precision::Kernel), (V{1 + 0x1p-8, 1 + 0x1p-8, HUGE_VAL}));
  EXPECT_EQ(through("bf16", Precision::Exact), (V{1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-20, 65520}));
  // Three bits of fraction: 1 + 2^-8 is 1. What is beyond 448 becomes 448, as of cvt.satfinite.
  V narrow = through("f8E4M3FN", Precision::Kernel);
  EXPECT_EQ(narrow[0], 1);
  EXPECT_EQ(narrow[2], 448);
}

TEST(Arith, FloatToIntegerSaturates) {
  auto run = [](const char *op) {
    return apply(llvm::formatv("%i = arith.{0} %x : tensor<5xf32> to tensor<5xi8>\n"
                               "%r = arith.sitofp %i : tensor<5xi8> to tensor<5xf32>",
                               op)
                     .str(),
                 {-2.9, 2.9, 1000, -1000, std::nan("")}, {0, 0, 0, 0, 0}, Precision::Kernel);
  };
  EXPECT_EQ(run("fptosi"), (V{-2, 2, 127, -128, 0}));
  EXPECT_EQ(run("fptoui"), (V{0, 2, -1, 0, 0}));
}

TEST(Arith, IntegerConversions) {
  auto run = [](const char *operations, V x) {
    std::string body =
        std::string("%a = arith.fptosi %x : tensor<{0}xf32> to tensor<{0}xi16>\n") + operations;
    return apply(llvm::formatv(body.c_str(), x.size()).str(), x, x, Precision::Kernel);
  };
  EXPECT_EQ(run("%b = arith.trunci %a : tensor<{0}xi16> to tensor<{0}xi8>\n"
                "%r = arith.sitofp %b : tensor<{0}xi8> to tensor<{0}xf32>",
                {300, -1}),
            (V{44, -1}));
  EXPECT_EQ(run("%b = arith.extui %a : tensor<{0}xi16> to tensor<{0}xi32>\n"
                "%r = arith.sitofp %b : tensor<{0}xi32> to tensor<{0}xf32>",
                {300, -1}),
            (V{300, 65535}));
  EXPECT_EQ(run("%b = arith.extsi %a : tensor<{0}xi16> to tensor<{0}xi32>\n"
                "%r = arith.sitofp %b : tensor<{0}xi32> to tensor<{0}xf32>",
                {300, -1}),
            (V{300, -1}));
  EXPECT_EQ(run("%b = arith.index_castui %a : tensor<{0}xi16> to tensor<{0}xindex>\n"
                "%c = arith.index_cast %b : tensor<{0}xindex> to tensor<{0}xi32>\n"
                "%r = arith.sitofp %c : tensor<{0}xi32> to tensor<{0}xf32>",
                {300, -1}),
            (V{300, 65535}));
  EXPECT_EQ(run("%r = arith.uitofp %a : tensor<{0}xi16> to tensor<{0}xf32>", {300, -1}),
            (V{300, 65535}));
}

TEST(Arith, IntegersRoundToFloatOnce) {
  // 2^60 + 2^36 + 1 lies just above the middle of two f32 values, but rounds to the middle in
  // double.
  std::string body = "%i = arith.constant dense<1152921573326323713> : tensor<1xi64>\n"
                     "%r = arith.sitofp %i : tensor<1xi64> to tensor<1xf32>";
  EXPECT_EQ(apply(body, {0}, {0}, Precision::Kernel)[0], 0x1p60 + 0x1p37);
  body = "%i = arith.constant dense<-1> : tensor<1xi64>\n"
         "%r = arith.uitofp %i : tensor<1xi64> to tensor<1xf32>";
  EXPECT_EQ(apply(body, {0}, {0}, Precision::Kernel)[0], 0x1p64);
}

TEST(Arith, Bitcasts) {
  EXPECT_EQ(apply("%i = arith.bitcast %x : tensor<2xf32> to tensor<2xi32>\n"
                  "%one = arith.constant dense<1> : tensor<2xi32>\n"
                  "%j = arith.addi %i, %one : tensor<2xi32>\n"
                  "%r = arith.bitcast %j : tensor<2xi32> to tensor<2xf32>",
                  {1, -2}, {0, 0}, Precision::Kernel),
            (V{1 + 0x1p-23, -2 - 0x1p-22}));
}

TEST(Arith, SelectByTileAndByScalar) {
  EXPECT_EQ(apply("%c = arith.cmpf ogt, %x, %y : tensor<2xf32>\n"
                  "%r = arith.select %c, %x, %y : tensor<2xi1>, tensor<2xf32>",
                  {1, 4}, {3, 2}, Precision::Kernel),
            (V{3, 4}));
  EXPECT_EQ(apply("%c = arith.constant false\n"
                  "%r = arith.select %c, %x, %y : tensor<2xf32>",
                  {1, 4}, {3, 2}, Precision::Kernel),
            (V{3, 2}));
}

TEST(Arith, NarrowArithmeticRoundsPerOperation) {
  // In f16 2048 + 1 = 2048 (to even), twice; the exact sum is 2050.
  std::string body = "%a = arith.truncf %x : tensor<1xf32> to tensor<1xf16>\n"
                     "%b = arith.truncf %y : tensor<1xf32> to tensor<1xf16>\n"
                     "%c = arith.addf %a, %b : tensor<1xf16>\n"
                     "%d = arith.addf %c, %b : tensor<1xf16>\n"
                     "%r = arith.extf %d : tensor<1xf16> to tensor<1xf32>";
  EXPECT_EQ(apply(body, {2048}, {1}, Precision::Kernel)[0], 2048);
  EXPECT_EQ(apply(body, {2048}, {1}, Precision::Exact)[0], 2050);
}

/// The diagnostic of an i8 operation on scalars.
static std::string explain(const char *op, int x, int y) {
  std::string text = llvm::formatv("tile.kernel @k(%v: !tile.view<[N], f32>) grid(%i = 1) {{\n"
                                   "  %x = arith.constant {0} : i8\n"
                                   "  %y = arith.constant {1} : i8\n"
                                   "  %z = {2} %x, %y : i8\n"
                                   "}",
                                   x, y, op);
  HostTensor tensor = HostTensor::contiguous({1});
  return runText(text, {&tensor});
}

TEST(Arith, UndefinedDivisionsAreErrors) {
  for (const char *op :
       {"divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi"})
    EXPECT_EQ(explain(("arith." + std::string(op)).c_str(), 7, 0), "4:8: divides 7 by 0\n") << op;
  EXPECT_EQ(explain("arith.divsi", -128, -1), "4:8: divides -128 by -1, which overflows 8 bits\n");
  EXPECT_EQ(explain("arith.divui", -128, -1), "");
  EXPECT_EQ(explain("math.ipowi", 0, -1), "4:8: raises 0 to the power -1\n");
}

TEST(Arith, DirectedRoundingIsRefused) {
  HostTensor tensor = HostTensor::contiguous({1});
  EXPECT_EQ(runText("tile.kernel @k(%v: !tile.view<[N], f32>) grid(%i = 1) {\n"
                    "  %x = arith.constant 1.0 : f32\n"
                    "  %z = arith.truncf %x upward : f32 to f16\n"
                    "}",
                    {&tensor}),
            "3:8: the interpreter rounds to nearest even; remove the rounding mode\n");
}
