//===- ControlTest.cpp - scf and what is refused --------------------------===//

#include "RunKernelText.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace tessera;
using namespace tessera::test;

/// Runs operations that compute %r : i32 from the argument %n : i32.
static double compute(const std::string &operations, int64_t n) {
  HostTensor result = HostTensor::contiguous({1});
  std::string text = llvm::formatv(R"(
    tile.kernel @k(%v: !tile.view<[1], f32>, %n: i32) grid(%g = 1) {{
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      {0}
      %f = arith.sitofp %r : i32 to f32
      %t = tile.splat %f : f32 -> tensor<1xf32>
      tile.store %t, %v[%c0] : tensor<1xf32>, !tile.view<[1], f32>
    })",
                                   operations);
  EXPECT_EQ(runText(text, {&result, n}), "") << text;
  return result.data[0];
}

TEST(Control, ForWithAnyTripCount) {
  std::string body =
      "%r = scf.for %j = %zero to %n step %one iter_args(%a = %zero) -> (i32) : i32 {\n"
      "  %b = arith.addi %a, %j : i32\n"
      "  scf.yield %b : i32\n"
      "}";
  for (int n : {0, 1, 2, 3, 10})
    EXPECT_EQ(compute(body, n), n * (n - 1) / 2);
  EXPECT_EQ(compute(body, -5), 0);
}

/// What a speculation gives whose predicate is `valid`.
static double speculate(llvm::StringRef schedule, llvm::StringRef valid) {
  HostTensor result = HostTensor::contiguous({1});
  std::string text = llvm::formatv(R"(
    tile.kernel @k(%v: !tile.view<[1], f32>) grid(%g = 1) {0} {{
      %c0 = arith.constant 0 : index
      %x = tile.speculate -> tensor<1xf32> {{
        %valid = arith.constant dense<{1}> : tensor<1xi1>
        %fast = arith.constant dense<1.0> : tensor<1xf32>
        tile.yield_if %valid, %fast : tensor<1xi1>, tensor<1xf32>
      } exact {{
        %exact = arith.constant dense<2.0> : tensor<1xf32>
        tile.yield %exact : tensor<1xf32>
      }
      tile.store %x, %v[%c0] : tensor<1xf32>, !tile.view<[1], f32>
    })",
                                   schedule, valid);
  EXPECT_EQ(runText(text, {&result}), "") << text;
  return result.data[0];
}

TEST(Control, SpeculatesUnlessTheScheduleSaysOtherwise) {
  EXPECT_EQ(speculate("", "true"), 1);
  EXPECT_EQ(speculate("", "false"), 2);
  EXPECT_EQ(speculate("schedule #tile.schedule<speculate = true>", "true"), 1);
  EXPECT_EQ(speculate("schedule #tile.schedule<speculate = false>", "true"), 2);
}

TEST(Control, YieldAssignsAtOnce) {
  // Fibonacci: each value moves to the other's place.
  EXPECT_EQ(compute("%r, %s = scf.for %j = %zero to %n step %one iter_args(%a = %zero, %b = %one) "
                    "-> (i32, i32) : i32 {\n"
                    "  %c = arith.addi %a, %b : i32\n"
                    "  scf.yield %b, %c : i32, i32\n"
                    "}",
                    10),
            55);
}

TEST(Control, StepsThatOverflowEndTheLoop) {
  EXPECT_EQ(compute("%big = arith.constant 9223372036854775807 : index\n"
                    "%step = arith.constant 4611686018427387904 : index\n"
                    "%r = scf.for %j = %c0 to %big step %step iter_args(%a = %zero) -> (i32) {\n"
                    "  %b = arith.addi %a, %one : i32\n"
                    "  scf.yield %b : i32\n"
                    "}",
                    0),
            2);
}

TEST(Control, UnsignedFor) {
  // From 2^31 - 1 to 2^31 + 2, which is negative as a signed number.
  EXPECT_EQ(compute("%low = arith.constant 2147483647 : i32\n"
                    "%high = arith.constant -2147483646 : i32\n"
                    "%r = scf.for unsigned %j = %low to %high step %one iter_args(%a = %zero) "
                    "-> (i32) : i32 {\n"
                    "  %b = arith.addi %a, %one : i32\n"
                    "  scf.yield %b : i32\n"
                    "}",
                    0),
            3);
}

TEST(Control, If) {
  std::string body = "%c = arith.cmpi sgt, %n, %zero : i32\n"
                     "%r = scf.if %c -> (i32) {\n"
                     "  scf.yield %n : i32\n"
                     "} else {\n"
                     "  %m = arith.subi %zero, %n : i32\n"
                     "  scf.yield %m : i32\n"
                     "}";
  EXPECT_EQ(compute(body, 7), 7);
  EXPECT_EQ(compute(body, -7), 7);
}

TEST(Control, While) {
  // The smallest power of two above n.
  std::string body = "%r = scf.while (%a = %one) : (i32) -> i32 {\n"
                     "  %c = arith.cmpi sle, %a, %n : i32\n"
                     "  scf.condition(%c) %a : i32\n"
                     "} do {\n"
                     "^bb0(%a: i32):\n"
                     "  %b = arith.addi %a, %a : i32\n"
                     "  scf.yield %b : i32\n"
                     "}";
  EXPECT_EQ(compute(body, 0), 1);
  EXPECT_EQ(compute(body, 100), 128);
}

/// The diagnostics of a kernel over one view of a single element; lines count from the body.
static std::string explain(const std::string &body) {
  HostTensor tensor = HostTensor::contiguous({1});
  return runText("tile.kernel @k(%v: !tile.view<[1], f32>) grid(%i = 1) {\n" + body + "\n}",
                 {&tensor});
}

TEST(Control, BadStepsAreErrors) {
  EXPECT_EQ(explain("%c0 = arith.constant 0 : index\n"
                    "scf.for %j = %c0 to %c0 step %c0 {\n"
                    "}"),
            "3:1: the step of a loop is at least 1, got 0\n");
}

TEST(Control, UnknownOperationsAreErrorsEvenWhenNotReached) {
  EXPECT_EQ(explain("%c = arith.constant false\n"
                    "scf.if %c {\n"
                    "  scf.execute_region {\n"
                    "    scf.yield\n"
                    "  }\n"
                    "}"),
            "4:3: the interpreter does not know 'scf.execute_region'; it runs the tile, arith and "
            "math dialects and scf.for, scf.if and scf.while\n");
}

TEST(Control, TypesWithoutAMeaningAreErrors) {
  EXPECT_EQ(explain("%c = arith.constant 0 : i128"),
            "2:6: has a value of type 'i128'; the interpreter takes index, integers of at most 64 "
            "bits, floating-point types of at most 64 bits, and tiles of these\n");
  EXPECT_NE(explain("%c = arith.constant dense<0.0> : tensor<100000x100000xf32>")
                .find("at most 16777216 elements"),
            std::string::npos);
  EXPECT_NE(explain("%c = arith.constant dense<0> : vector<4xi32>").find("'vector<4xi32>'"),
            std::string::npos);
}
