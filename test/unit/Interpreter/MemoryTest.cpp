//===- MemoryTest.cpp - Views, bounds, conflicts and launches -------------===//

#include "lib/Interpreter/Memory.h"
#include "RunKernelText.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace tessera;
using namespace tessera::test;
using V = std::vector<double>;

TEST(Memory, ClipTakesAnyIndex) {
  auto expectClip = [](int64_t start, int64_t size, int64_t extent, int64_t first, int64_t last) {
    interp::Clip result = interp::clip(start, size, extent);
    EXPECT_EQ(std::pair(result.first, result.last), std::pair(first, last));
  };
  expectClip(0, 4, 10, 0, 4);
  expectClip(8, 4, 10, 0, 2);
  expectClip(-1, 4, 10, 1, 4);
  expectClip(-1, 12, 10, 1, 11);
  expectClip(10, 4, 10, 0, 0);
  expectClip(-4, 4, 10, 0, 0);
  expectClip(INT64_MAX, 4, 10, 0, 0);
  expectClip(INT64_MIN, 4, 10, 0, 0);
  expectClip(0, 4, 0, 0, 0);
}

/// Copies 2x2 tiles of `in` to `out` at the index (row, column) = (2m + dr, 2n + dc).
static std::string copyKernel(int dr, int dc) {
  return llvm::formatv(R"(
    !T = !tile.view<[B, M, N], f32>
    tile.kernel @k(%in: !T, %out: !T) grid(%n = N ceildiv 2, %m = M ceildiv 2, %b = B) {{
      %c2 = arith.constant 2 : index
      %dr = arith.constant {0} : index
      %dc = arith.constant {1} : index
      %r0 = arith.muli %m, %c2 : index
      %s0 = arith.muli %n, %c2 : index
      %r = arith.addi %r0, %dr : index
      %s = arith.addi %s0, %dc : index
      %t = tile.load %in[%b, %r, %s] : !T -> tensor<2x2xf32>
      tile.store %t, %out[%b, %r0, %s0] : tensor<2x2xf32>, !T
    })",
                       dr, dc);
}

TEST(Memory, LoadsOutsideAreZeroAndStoresOutsideAreDropped) {
  HostTensor in = HostTensor::ordered({2, 3, 5}, {1, 0, 2}),
             out = HostTensor::ordered({2, 3, 5}, {0, 1, 2}, -1);
  in.forEach([&](int64_t linear, int64_t offset) { in.data[offset] = linear + 1; });
  for (int dr : {-5, -1, 0, 1, 7})
    for (int dc : {-9, -1, 0, 1, 4}) {
      ASSERT_EQ(runText(copyKernel(dr, dc), {&in, &out}), "");
      for (int b = 0; b < 2; ++b)
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 5; ++j) {
            int r = i + dr, s = j + dc;
            bool inside = r >= 0 && r < 3 && s >= 0 && s < 5;
            ASSERT_EQ(out.data[(b * 3 + i) * 5 + j], inside ? (b * 3 + r) * 5 + s + 1 : 0);
          }
    }
}

TEST(Memory, OuterIndicesLieInside) {
  std::string text = "!T = !tile.view<[B, N], f32>\n"
                     "tile.kernel @k(%x: !T) grid(%i = 3) {\n"
                     "  %c0 = arith.constant 0 : index\n"
                     "  %t = tile.load %x[%i, %c0] : !T -> tensor<2xf32>\n"
                     "}";
  HostTensor x = HostTensor::contiguous({2, 2});
  EXPECT_EQ(runText(text, {&x}),
            "4:8: index 0 is 2 at grid point (2), outside the extent 2 of dimension 0; only the "
            "tile's own dimensions may reach outside the view\n");
}

TEST(Memory, BoxesRunOverSeveralDimensions) {
  // Rows h, m of the box [2, 3] from (1, 1), of 2 columns each, in a tile of 6 rows, and back as
  // elements.
  std::string text = "!T = !tile.view<[H, M, N], f32>\n"
                     "tile.kernel @k(%x: !T, %y: !T, %l: !tile.view<[H, M], f32>) grid(%i = 1) {\n"
                     "  %c0 = arith.constant 0 : index\n"
                     "  %c1 = arith.constant 1 : index\n"
                     "  %t = tile.load %x[%c1, %c1, %c0] box [2, 3, 2] : !T -> tensor<6x2xf32>\n"
                     "  tile.store %t, %y[%c0, %c1, %c0] box [2, 3, 2] : tensor<6x2xf32>, !T\n"
                     "  %s = tile.reduce sum %t axis 1 : tensor<6x2xf32> -> tensor<6xf32>\n"
                     "  tile.store %s, %l[%c1, %c0] box [2, 3] : tensor<6xf32>, "
                     "!tile.view<[H, M], f32>\n"
                     "}";
  HostTensor x = HostTensor::contiguous({3, 3, 2}), y = HostTensor::contiguous({3, 3, 2}, -1),
             l = HostTensor::contiguous({3, 3}, -1);
  x.forEach([&](int64_t linear, int64_t offset) { x.data[offset] = linear; });
  ASSERT_EQ(runText(text, {&x, &y, &l}), "");
  // Row 3 of each head is outside: 0 when it is loaded, dropped when it is stored.
  EXPECT_EQ(y.data, (V{-1, -1, 8, 9, 10, 11, -1, -1, 14, 15, 16, 17, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(l.data, (V{-1, -1, -1, 17, 21, 0, 29, 33, 0}));
  HostTensor fewer = HostTensor::contiguous({2, 3, 2}), y2 = fewer,
             l2 = HostTensor::contiguous({2, 3});
  EXPECT_EQ(
      runText(text, {&fewer, &y2, &l2}),
      "5:8: the box covers 2 elements from index 1 of dimension 0 at grid point (0), past its "
      "extent 2; only the innermost two may reach outside the view\n");
}

TEST(Memory, IotasRepeat) {
  std::string text = "tile.kernel @k(%x: !tile.view<[6], f32>) grid(%i = 1) {\n"
                     "  %c0 = arith.constant 0 : index\n"
                     "  %c5 = arith.constant 5 : index\n"
                     "  %i3 = tile.iota %c5 axis 0 period 3 : tensor<6xi32>\n"
                     "  %t = arith.sitofp %i3 : tensor<6xi32> to tensor<6xf32>\n"
                     "  tile.store %t, %x[%c0] : tensor<6xf32>, !tile.view<[6], f32>\n"
                     "}";
  HostTensor x = HostTensor::contiguous({6});
  ASSERT_EQ(runText(text, {&x}), "");
  EXPECT_EQ(x.data, (V{5, 6, 7, 5, 6, 7}));
}

TEST(Memory, ScalarsLieInside) {
  std::string text = "!T = !tile.view<[M, N], f32>\n"
                     "tile.kernel @k(%x: !T, %y: !T) grid(%i = 3) {\n"
                     "  %c1 = arith.constant 1 : index\n"
                     "  %c0 = arith.constant 0 : index\n"
                     "  %e = tile.load %x[%c1, %i] : !T -> f32\n"
                     "  %t = tile.splat %e : f32 -> tensor<1xf32>\n"
                     "  tile.store %t, %y[%c0, %i] : tensor<1xf32>, !T\n"
                     "}";
  HostTensor x = HostTensor::contiguous({2, 3}), y = x;
  x.forEach([&](int64_t linear, int64_t offset) { x.data[offset] = linear; });
  EXPECT_EQ(runText(text, {&x, &y}), "");
  EXPECT_EQ(y.data, (V{3, 4, 5, 0, 0, 0}));
  HostTensor narrow = HostTensor::contiguous({2, 2}), out = HostTensor::contiguous({2, 2});
  EXPECT_EQ(runText(text, {&narrow, &out}),
            "5:8: index 1 is 2 at grid point (2), outside the extent 2 of dimension 1; only the "
            "tile's own dimensions may reach outside the view\n");
}

/// A kernel of 3 points whose tile of 4 is stored at 4i + shift(i).
static std::string conflict(const char *body) {
  std::string text = llvm::formatv("!T = !tile.view<[N], f32>\n"
                                   "tile.kernel @k(%x: !T, %y: !T) grid(%i = 3) {{\n"
                                   "  %c3 = arith.constant 3 : index\n"
                                   "  %c4 = arith.constant 4 : index\n"
                                   "  %one = arith.constant dense<1.0> : tensor<4xf32>\n"
                                   "  {0}\n"
                                   "}",
                                   body);
  HostTensor x = HostTensor::contiguous({12}), y = x;
  std::string first;
  for (unsigned threads : {1, 2, 4, 1, 4, 4}) {
    InterpreterOptions options;
    options.threads = threads;
    std::string message = runText(text, {&x, &y}, options);
    if (first.empty())
      first = message;
    EXPECT_EQ(message, first) << threads << " threads";
  }
  return first;
}

TEST(Memory, TwoPointsMustNotStoreOneElement) {
  EXPECT_EQ(conflict("%j = arith.muli %i, %c3 : index\n"
                     "tile.store %one, %y[%j] : tensor<4xf32>, !T"),
            "7:1: grid points (0) and (1) both store element [3] of 'y'; grid points run in no "
            "particular order and may not communicate\n");
  EXPECT_EQ(conflict("%j = arith.muli %i, %c4 : index\n"
                     "tile.store %one, %y[%j] : tensor<4xf32>, !T"),
            "");
  // One point may store an element twice.
  EXPECT_EQ(conflict("%j = arith.muli %i, %c4 : index\n"
                     "tile.store %one, %y[%j] : tensor<4xf32>, !T\n"
                     "tile.store %one, %y[%j] : tensor<4xf32>, !T"),
            "");
}

TEST(Memory, PointsMustNotReadWhatOthersStore) {
  EXPECT_EQ(conflict("%j = arith.muli %i, %c4 : index\n"
                     "%k = arith.subi %j, %c4 : index\n"
                     "%t = tile.load %y[%k] : !T -> tensor<4xf32>\n"
                     "tile.store %t, %y[%j] : tensor<4xf32>, !T"),
            "8:6: grid point (1) loads element [0] of 'y', which (0) stores; grid points run in no "
            "particular order and may not communicate\n");
  EXPECT_EQ(conflict("%j = arith.muli %i, %c4 : index\n"
                     "%k = arith.addi %j, %c4 : index\n"
                     "%t = tile.load %y[%k] : !T -> tensor<4xf32>\n"
                     "tile.store %t, %y[%j] : tensor<4xf32>, !T"),
            "9:1: grid point (1) stores element [4] of 'y', which (0) loaded; grid points run in "
            "no particular order and may not communicate\n");
  // In place, each point its own elements.
  EXPECT_EQ(conflict("%j = arith.muli %i, %c4 : index\n"
                     "%t = tile.load %y[%j] : !T -> tensor<4xf32>\n"
                     "tile.store %t, %y[%j] : tensor<4xf32>, !T"),
            "");
}

TEST(Memory, LoadsRoundToTheElementTypeInKernelPrecision) {
  std::string text =
      "tile.kernel @k(%x: !tile.view<[1], bf16>, %y: !tile.view<[1], f32>) grid(%i = 1) {\n"
      "  %c0 = arith.constant 0 : index\n"
      "  %t = tile.load %x[%c0] : !tile.view<[1], bf16> -> tensor<1xbf16>\n"
      "  %f = arith.extf %t : tensor<1xbf16> to tensor<1xf32>\n"
      "  tile.store %f, %y[%c0] : tensor<1xf32>, !tile.view<[1], f32>\n"
      "}";
  HostTensor x = HostTensor::contiguous({1}, 1 + 0x1p-9), y = HostTensor::contiguous({1});
  InterpreterOptions options;
  ASSERT_EQ(runText(text, {&x, &y}, options), "");
  EXPECT_EQ(y.data[0], 1);
  options.precision = Precision::Exact;
  ASSERT_EQ(runText(text, {&x, &y}, options), "");
  EXPECT_EQ(y.data[0], 1 + 0x1p-9);
}

TEST(Launch, RefusesWhatDoesNotFit) {
  std::string text = "tile.kernel @k(%x: !tile.view<[M, 4], f32>, %y: !tile.view<[M, N], f32>,\n"
                     "    %a: f32, %n: i32) grid(%i = M) requires(N divides M) {\n"
                     "}";
  HostTensor x = HostTensor::contiguous({6, 4}), y = HostTensor::contiguous({6, 3});
  KernelArgument a = 1.0, n = int64_t(1);
  EXPECT_EQ(runText(text, {&x, &y, a, n}), "");
  EXPECT_EQ(runText(text, {&x, &y, a}), "1:1: takes 4 arguments, got 3\n");
  EXPECT_EQ(runText(text, {&x, a, a, n}), "1:1: argument 'y' is a view and takes a tensor\n");
  EXPECT_EQ(runText(text, {&x, &y, n, n}),
            "1:1: argument 'a' is 'f32' and takes a floating-point scalar\n");
  EXPECT_EQ(runText(text, {&x, &y, a, &x}),
            "1:1: argument 'n' is 'i32' and takes an integer scalar\n");
  HostTensor other = HostTensor::contiguous({5, 3});
  EXPECT_EQ(runText(text, {&x, &other, a, n}),
            "1:1: dimension 0 of the tensor for 'y' is 5; an earlier argument has M = 6\n");
  other = HostTensor::contiguous({6, 5});
  EXPECT_EQ(runText(text, {&other, &y, a, n}),
            "1:1: dimension 1 of the tensor for 'x' is 5; its view has 4\n");
  EXPECT_EQ(runText(text, {&x, &other, a, n}),
            "1:1: requires that N divides M, got N = 5 and M = 6\n");
  std::string twice = text;
  twice.replace(twice.find("N divides"), 1, "2 * N");
  EXPECT_EQ(runText(twice, {&x, &y, a, n}), "");
  other = HostTensor::contiguous({6, 2});
  EXPECT_EQ(runText(twice, {&x, &other, a, n}),
            "1:1: requires that 2 * N divides M, got N = 2 and M = 6\n");
  other = HostTensor::contiguous({6, 0});
  EXPECT_EQ(runText(text, {&x, &other, a, n}),
            "1:1: dimension N is 0; an extent is at least 1 and below 2^31\n");
  other = HostTensor::contiguous({6});
  EXPECT_EQ(runText(text, {&x, &other, a, n}),
            "1:1: the tensor for 'y' has rank 1, its view '!tile.view<[M, N], f32>' rank 2\n");
  other = HostTensor::ordered({6, 3}, {1, 0});
  EXPECT_EQ(runText(text, {&x, &other, a, n}),
            "1:1: the tensor for 'y' has the stride 6 along its innermost dimension, which is "
            "contiguous in a view\n");
  other = HostTensor::contiguous({6, 3});
  other.data.pop_back();
  EXPECT_EQ(runText(text, {&x, &other, a, n}),
            "1:1: the tensor for 'y' reaches element 17 of a buffer of 17\n");
}

TEST(Launch, EmptyGridsRunNothing) {
  std::string text = "!T = !tile.view<[N], f32>\n"
                     "tile.kernel @k(%x: !T) grid(%i = N ceildiv 4) {\n"
                     "  %t = tile.load %x[%i] : !T -> tensor<4xf32>\n"
                     "}";
  HostTensor x = HostTensor::contiguous({0});
  EXPECT_EQ(runText(text, {&x}), "");
}

TEST(Launch, GridsAreCounted) {
  std::string text = "tile.kernel @k(%x: !tile.view<[N], f32>) grid(%i = 100000, %j = 100000) {\n}";
  HostTensor x = HostTensor::contiguous({1});
  EXPECT_EQ(runText(text, {&x}),
            "1:1: the interpreter runs grids of at most 2147483647 points; this one has more\n");
}
