//===- AttentionTest.cpp - Online softmax against the direct one ----------===//

#include "RunKernelText.h"
#include "lib/Support/Gaussian.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace tessera;
using namespace tessera::test;

namespace {
struct Shape {
  int64_t b, h, hk, sq, sk, d;
  bool causal;
};
} // namespace

/// Attention by online softmax over tiles of 16 rows and 16 columns; %1 is the condition under
/// which column c of row r is seen.
static std::string attentionKernel(const Shape &shape) {
  return llvm::formatv(
      R"(
!Q = !tile.view<[B, H, SQ, {0}], f16>
!K = !tile.view<[B, HK, SK, {0}], f16>
!L = !tile.view<[B, H, SQ], f32>
!R = tensor<16xf32>
!S = tensor<16x16xf32>
!A = tensor<16x{0}xf32>
!T = tensor<16x{0}xf16>
tile.kernel @attention(%q: !Q, %k: !K, %v: !K, %o: !Q, %lse: !L, %scale: f32)
    grid(%m = SQ ceildiv 16, %h = H, %b = B) requires(HK divides H) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %sq = tile.dim "SQ"
  %sk = tile.dim "SK"
  %nh = tile.dim "H"
  %nk = tile.dim "HK"
  %group = arith.divui %nh, %nk : index
  %hk = arith.divui %h, %group : index
  %row = arith.muli %m, %c16 : index
  %shift = arith.subi %sk, %sq : index
  %diagonal = arith.addi %row, %shift : index
  %zero = arith.constant dense<0.0> : !R
  %ninf = arith.constant dense<0xFF800000> : !R
  %ninfs = arith.constant dense<0xFF800000> : !S
  %acc0 = arith.constant dense<0.0> : !A
  %scales = tile.splat %scale : f32 -> !S
  %qt = tile.load %q[%b, %h, %row, %c0] : !Q -> !T
  %n = arith.ceildivui %sk, %c16 : index
  %max, %sum, %acc = scf.for %j = %c0 to %n step %c1 iter_args(%mi = %ninf, %l = %zero, %a = %acc0) -> (!R, !R, !A) {{
    %col = arith.muli %j, %c16 : index
    %kt = tile.load %k[%b, %hk, %col, %c0] : !K -> !T
    %ktt = tile.transpose %kt : !T -> tensor<{0}x16xf16>
    %s = tile.dot %qt, %ktt : !T, tensor<{0}x16xf16> -> !S
    %x = arith.mulf %s, %scales : !S
    %cols = tile.iota %col axis 1 : tensor<16x16xi32>
    %ski = arith.index_cast %sk : index to i32
    %end = tile.splat %ski : i32 -> tensor<16x16xi32>
    %in = arith.cmpi slt, %cols, %end : tensor<16x16xi32>
    %last = tile.iota %diagonal axis 0 : tensor<16x16xi32>
    %notafter = arith.cmpi sle, %cols, %last : tensor<16x16xi32>
    %both = arith.andi %in, %notafter : tensor<16x16xi1>
    %xm = arith.select %{1}, %x, %ninfs : tensor<16x16xi1>, !S
    %rm = tile.reduce max %xm axis 1 : !S -> !R
    %mn = arith.maxnumf %mi, %rm : !R
    %blind = arith.cmpf oeq, %mn, %ninf : !R
    %ref = arith.select %blind, %zero, %mn : tensor<16xi1>, !R
    %refs = tile.broadcast %ref axis 1 : !R -> !S
    %y = arith.subf %xm, %refs : !S
    %p = math.exp %y : !S
    %dm = arith.subf %mi, %ref : !R
    %alpha = math.exp %dm : !R
    %ps = tile.reduce sum %p axis 1 : !S -> !R
    %l1 = arith.mulf %l, %alpha : !R
    %l2 = arith.addf %l1, %ps : !R
    %al = tile.broadcast %alpha axis 1 : !R -> !A
    %a1 = arith.mulf %a, %al : !A
    %pt = arith.truncf %p : !S to tensor<16x16xf16>
    %vt = tile.load %v[%b, %hk, %col, %c0] : !K -> !T
    %a2 = tile.dot %pt, %vt, %a1 : tensor<16x16xf16>, !T -> !A
    scf.yield %mn, %l2, %a2 : !R, !R, !A
  }
  %one = arith.constant dense<1.0> : !R
  %empty = arith.cmpf oeq, %sum, %zero : !R
  %div = arith.select %empty, %one, %sum : tensor<16xi1>, !R
  %dvs = tile.broadcast %div axis 1 : !R -> !A
  %on = arith.divf %acc, %dvs : !A
  %ot = arith.truncf %on : !A to !T
  tile.store %ot, %o[%b, %h, %row, %c0] : !T, !Q
  %log = math.log %sum : !R
  %ls = arith.addf %max, %log : !R
  tile.store %ls, %lse[%b, %h, %row] : !R, !L
})",
      shape.d, shape.causal ? "both" : "in");
}

namespace {
struct Attention {
  HostTensor q, k, v, o, lse;
};
} // namespace

static HostTensor draw(const char *name, std::vector<int64_t> shape, std::vector<int64_t> order) {
  HostTensor tensor = HostTensor::ordered(std::move(shape), order);
  Gaussian gaussian(0, name);
  mlir::MLIRContext context;
  mlir::Type f16 = mlir::Float16Type::get(&context);
  tensor.forEach(
      [&](int64_t, int64_t offset) { tensor.data[offset] = roundToType(f16, gaussian.next()); });
  return tensor;
}

/// BSHD storage for q and BHSD for the rest, so that strides matter.
static Attention makeInputs(const Shape &s) {
  double nan = std::nan("");
  return {draw("q", {s.b, s.h, s.sq, s.d}, {0, 2, 1, 3}),
          draw("k", {s.b, s.hk, s.sk, s.d}, {0, 1, 2, 3}),
          draw("v", {s.b, s.hk, s.sk, s.d}, {0, 1, 2, 3}),
          HostTensor::ordered({s.b, s.h, s.sq, s.d}, {0, 2, 1, 3}, nan),
          HostTensor::contiguous({s.b, s.h, s.sq}, nan)};
}

static double at(const HostTensor &tensor, std::initializer_list<int64_t> index) {
  int64_t offset = 0;
  for (auto [i, stride] : llvm::zip_equal(index, tensor.strides))
    offset += i * stride;
  return tensor.data[offset];
}

/// softmax(scale * q k^T) v by its definition, for one row; returns its logarithmic sum.
static double attendRow(const Shape &s, const Attention &in, double scale, int64_t b, int64_t h,
                        int64_t row, std::vector<double> &out) {
  int64_t hk = h / (s.h / s.hk);
  int64_t seen = s.causal ? std::min(s.sk, row + s.sk - s.sq + 1) : s.sk;
  std::vector<double> scores;
  double largest = -HUGE_VAL, sum = 0;
  for (int64_t c = 0; c < seen; ++c) {
    double score = 0;
    for (int64_t i = 0; i < s.d; ++i)
      score += at(in.q, {b, h, row, i}) * at(in.k, {b, hk, c, i});
    scores.push_back(score * scale);
    largest = std::max(largest, scores.back());
  }
  out.assign(s.d, 0);
  for (int64_t c = 0; c < seen; ++c) {
    double weight = std::exp(scores[c] - largest);
    sum += weight;
    for (int64_t i = 0; i < s.d; ++i)
      out[i] += weight * at(in.v, {b, hk, c, i});
  }
  for (double &x : out)
    x = sum > 0 ? x / sum : 0;
  return largest + std::log(sum);
}

/// Checks every element of o and lse; -inf must be -inf.
static void checkAttention(const Shape &s, Precision precision, double tolerance) {
  Attention attention = makeInputs(s);
  double scale = 0.125;
  InterpreterOptions options;
  options.precision = precision;
  ASSERT_EQ(runText(attentionKernel(s),
                    {&attention.q, &attention.k, &attention.v, &attention.o, &attention.lse, scale},
                    options),
            "");
  std::vector<double> expected;
  for (int64_t b = 0; b < s.b; ++b)
    for (int64_t h = 0; h < s.h; ++h)
      for (int64_t row = 0; row < s.sq; ++row) {
        double lse = attendRow(s, attention, scale, b, h, row, expected);
        double got = at(attention.lse, {b, h, row});
        if (std::isinf(lse))
          ASSERT_EQ(got, -HUGE_VAL) << "row " << row;
        else
          ASSERT_NEAR(got, lse, tolerance) << "row " << row;
        for (int64_t i = 0; i < s.d; ++i)
          ASSERT_NEAR(at(attention.o, {b, h, row, i}), expected[i], tolerance)
              << "row " << row << ", column " << i;
      }
}

static const Shape shapes[] = {
    {2, 2, 2, 32, 32, 16, false}, // whole tiles
    {1, 4, 2, 33, 47, 32, false}, // grouped queries, odd lengths
    {1, 4, 1, 17, 1, 16, false},  // one key
    {1, 1, 1, 1, 50, 16, false},  // one query
    {1, 2, 2, 48, 48, 16, true},  // causal
    {1, 4, 2, 19, 53, 16, true},  // causal, more keys than queries
    {1, 2, 1, 53, 19, 16, true},  // causal, rows that see nothing
    {1, 1, 1, 80, 3, 16, true},   // causal, whole tiles that see nothing
};

TEST(Attention, ExactAgreesWithDirectSoftmax) {
  for (const Shape &shape : shapes)
    checkAttention(shape, Precision::Exact, 1e-13);
}

TEST(Attention, KernelPrecisionIsThatOfF16) {
  // P and O are rounded to f16 (2^-11); O is a mean of values below 5.
  for (const Shape &shape : shapes)
    checkAttention(shape, Precision::Kernel, 5e-3);
}
