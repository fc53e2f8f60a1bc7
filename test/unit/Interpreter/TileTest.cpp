//===- TileTest.cpp - The tile dialect in the interpreter -----------------===//

#include "RunKernelText.h"
#include "lib/Interpreter/MatrixProduct.h"
#include "lib/Support/Rounding.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <random>

using namespace tessera;
using namespace tessera::test;
using V = std::vector<double>;

/// Applies operations that turn %a (tensor<2x3xf32>) into %r of the given type.
static V applyToMatrix(const std::string &operations, const char *resultType,
                       std::vector<int64_t> resultShape) {
  HostTensor a = HostTensor::contiguous({2, 3}), r = HostTensor::contiguous(resultShape);
  a.data = {1, -2, 3, 40, 50, -60};
  std::string view = resultShape.size() == 2 ? "[R, S]" : "[R]";
  std::string indices = resultShape.size() == 2 ? "%c0, %c0" : "%c0";
  std::string text = llvm::formatv(R"(
    tile.kernel @k(%va: !tile.view<[M, N], f32>, %vr: !tile.view<{0}, f32>) grid(%g = 1) {{
      %c0 = arith.constant 0 : index
      %a = tile.load %va[%c0, %c0] : !tile.view<[M, N], f32> -> tensor<2x3xf32>
      {1}
      tile.store %r, %vr[{2}] : {3}, !tile.view<{0}, f32>
    })",
                                   view, operations, indices, resultType);
  EXPECT_EQ(runText(text, {&a, &r}), "") << text;
  return r.data;
}

TEST(Tile, Reductions) {
  auto run = [](const char *kind, int axis) {
    std::string type = axis ? "tensor<2xf32>" : "tensor<3xf32>";
    return applyToMatrix(llvm::formatv("%r = tile.reduce {0} %a axis {1} : tensor<2x3xf32> -> {2}",
                                       kind, axis, type),
                         type.c_str(), {axis ? 2 : 3});
  };
  EXPECT_EQ(run("sum", 1), (V{2, 30}));
  EXPECT_EQ(run("sum", 0), (V{41, 48, -57}));
  EXPECT_EQ(run("max", 1), (V{3, 50}));
  EXPECT_EQ(run("max", 0), (V{40, 50, 3}));
  EXPECT_EQ(run("min", 1), (V{-2, -60}));
  EXPECT_EQ(run("min", 0), (V{1, -2, -60}));
}

TEST(Tile, NaNInMaximum) {
  auto run = [](std::string kind) {
    return applyToMatrix(
        "%nan = arith.constant dense<[[0x7FC00000, 1.0], [2.0, 0x7FC00000], [3.0, 4.0]]> : "
        "tensor<3x2xf32>\n"
        "%r = tile.reduce " +
            kind + " %nan axis 1 : tensor<3x2xf32> -> tensor<3xf32>",
        "tensor<3xf32>", {3});
  };
  EXPECT_EQ(run("max"), (V{1, 2, 4}));
  EXPECT_EQ(run("min"), (V{1, 2, 3}));
  for (auto [kind, last] : {std::pair("maximum", 4.0), std::pair("minimum", 3.0)}) {
    V found = run(kind);
    EXPECT_TRUE(std::isnan(found[0]) && std::isnan(found[1])) << kind;
    EXPECT_EQ(found[2], last) << kind;
  }
}

TEST(Tile, SumRoundsInOrder) {
  // 2^24 + 1 + 1 is 2^24 from the left in f32.
  std::string row = "%t = arith.constant dense<[[1.6777216e7, 1.0, 1.0]]> : tensor<1x3xf32>\n"
                    "%r = tile.reduce sum %t axis 1 : tensor<1x3xf32> -> tensor<1xf32>";
  EXPECT_EQ(applyToMatrix(row, "tensor<1xf32>", {1}), V{0x1p24});
  std::string column =
      "%t = arith.constant dense<[[1.0], [1.0], [1.6777216e7]]> : tensor<3x1xf32>\n"
      "%r = tile.reduce sum %t axis 0 : tensor<3x1xf32> -> tensor<1xf32>";
  EXPECT_EQ(applyToMatrix(column, "tensor<1xf32>", {1}), V{0x1p24 + 2});
}

TEST(Tile, Movement) {
  EXPECT_EQ(applyToMatrix("%r = tile.transpose %a : tensor<2x3xf32> -> tensor<3x2xf32>",
                          "tensor<3x2xf32>", {3, 2}),
            (V{1, 40, -2, 50, 3, -60}));
  EXPECT_EQ(applyToMatrix("%m = tile.reduce max %a axis 1 : tensor<2x3xf32> -> tensor<2xf32>\n"
                          "%r = tile.broadcast %m axis 1 : tensor<2xf32> -> tensor<2x3xf32>",
                          "tensor<2x3xf32>", {2, 3}),
            (V{3, 3, 3, 50, 50, 50}));
  EXPECT_EQ(applyToMatrix("%m = tile.reduce max %a axis 0 : tensor<2x3xf32> -> tensor<3xf32>\n"
                          "%r = tile.broadcast %m axis 0 : tensor<3xf32> -> tensor<2x3xf32>",
                          "tensor<2x3xf32>", {2, 3}),
            (V{40, 50, 3, 40, 50, 3}));
  EXPECT_EQ(applyToMatrix("%s = arith.constant 7.0 : f32\n"
                          "%r = tile.splat %s : f32 -> tensor<2xf32>",
                          "tensor<2xf32>", {2}),
            (V{7, 7}));
}

TEST(Tile, IotaAlongBothAxes) {
  auto run = [](int axis) {
    return applyToMatrix(llvm::formatv("%s = arith.constant -1 : index\n"
                                       "%i = tile.iota %s axis {0} : tensor<2x3xi32>\n"
                                       "%r = arith.sitofp %i : tensor<2x3xi32> to tensor<2x3xf32>",
                                       axis),
                         "tensor<2x3xf32>", {2, 3});
  };
  EXPECT_EQ(run(0), (V{-1, -1, -1, 0, 0, 0}));
  EXPECT_EQ(run(1), (V{-1, 0, 1, -1, 0, 1}));
  EXPECT_EQ(applyToMatrix("%s = arith.constant 5 : index\n"
                          "%i = tile.iota %s axis 0 : tensor<2xi32>\n"
                          "%r = arith.sitofp %i : tensor<2xi32> to tensor<2xf32>",
                          "tensor<2xf32>", {2}),
            (V{5, 6}));
}

TEST(Tile, DimIsTheExtent) {
  EXPECT_EQ(applyToMatrix("%n = tile.dim \"N\"\n"
                          "%i = tile.iota %n axis 0 : tensor<1xi32>\n"
                          "%r = arith.sitofp %i : tensor<1xi32> to tensor<1xf32>",
                          "tensor<1xf32>", {1}),
            V{3});
}

TEST(Tile, MatrixProductsOfEveryShapeSumInOrder) {
  std::mt19937 generator(5);
  auto draw = [&](size_t count) {
    V values(count);
    for (double &value : values)
      value = roundToBF16(static_cast<int>(generator() % 2001 - 1000) / 64.0);
    return values;
  };
  for (int64_t m : {1, 3, 4, 9})
    for (int64_t n : {1, 7, 8, 17})
      for (int64_t k : {1, 5, 16}) {
        V a = draw(m * k), b = draw(k * n), c = draw(m * n), inFloat = c, inDouble = c;
        interp::multiplyInFloat(a.data(), b.data(), inFloat.data(), m, n, k);
        interp::multiplyInDouble(a.data(), b.data(), inDouble.data(), m, n, k);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            float sum = c[i * n + j];
            double exact = c[i * n + j];
            for (int64_t l = 0; l < k; ++l) {
              sum += static_cast<float>(a[i * k + l] * b[l * n + j]);
              exact += a[i * k + l] * b[l * n + j];
            }
            ASSERT_EQ(inFloat[i * n + j], sum);
            ASSERT_EQ(inDouble[i * n + j], exact);
          }
      }
}

TEST(Tile, DotAccumulatesInF32) {
  // 2^24 + 1 * 1 stays 2^24 in f32, is more in double.
  std::string text = R"(
    tile.kernel @k(%v: !tile.view<[1, 1], f32>) grid(%i = 1) {
      %c0 = arith.constant 0 : index
      %a = arith.constant dense<1.0> : tensor<1x2xf16>
      %b = arith.constant dense<1.0> : tensor<2x1xf16>
      %c = arith.constant dense<1.6777216e7> : tensor<1x1xf32>
      %d = tile.dot %a, %b, %c : tensor<1x2xf16>, tensor<2x1xf16> -> tensor<1x1xf32>
      tile.store %d, %v[%c0, %c0] : tensor<1x1xf32>, !tile.view<[1, 1], f32>
    })";
  HostTensor result = HostTensor::contiguous({1, 1});
  InterpreterOptions options;
  ASSERT_EQ(runText(text, {&result}, options), "");
  EXPECT_EQ(result.data[0], 0x1p24);
  options.precision = Precision::Exact;
  ASSERT_EQ(runText(text, {&result}, options), "");
  EXPECT_EQ(result.data[0], 0x1p24 + 2);
}
