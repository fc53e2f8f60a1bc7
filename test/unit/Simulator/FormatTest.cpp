//===- FormatTest.cpp - Small floats, swizzles, descriptors, tensor maps --===//
#include "lib/Simulator/Numeric.h"
#include "lib/Simulator/Wgmma.h"
#include "gtest/gtest.h"
#include <set>

using namespace tessera::sim;
using namespace tessera::sim::detail;

TEST(Numeric, EveryHalfSurvives) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    float f = f16ToFloat(h);
    if (f != f)
      continue;
    EXPECT_EQ(floatToF16(f), h);
    EXPECT_EQ(encodeFloat(f, kF16, Rounding::Nearest, false), h);
    EXPECT_EQ(bitCast<uint32_t>(tessera::sim::detail::decodeFloat(h, kF16)), bitCast<uint32_t>(f));
  }
}

TEST(Numeric, EveryBFloatSurvives) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    float f = bf16ToFloat(h);
    if (f != f)
      continue;
    EXPECT_EQ(floatToBf16(f), h);
    EXPECT_EQ(encodeFloat(f, kBF16, Rounding::Nearest, false), h);
  }
}

TEST(Numeric, FastAndGeneralRoundingAgree) {
  uint64_t state = 1;
  for (int k = 0; k < 200000; ++k) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    float f = bitCast<float>(uint32_t(state >> 32));
    if (f != f)
      continue;
    ASSERT_EQ(floatToF16(f), encodeFloat(f, kF16, Rounding::Nearest, false)) << f;
    ASSERT_EQ(floatToBf16(f), encodeFloat(f, kBF16, Rounding::Nearest, false)) << f;
  }
}

TEST(Numeric, Fp8) {
  EXPECT_EQ(tessera::sim::detail::decodeFloat(0x7e, kE4M3), 448.0f);
  EXPECT_TRUE(std::isnan(tessera::sim::detail::decodeFloat(0x7f, kE4M3)));
  EXPECT_EQ(tessera::sim::detail::decodeFloat(0x01, kE4M3), 0x1p-9f);
  EXPECT_EQ(tessera::sim::detail::decodeFloat(0x7b, kE5M2), 57344.0f);
  EXPECT_TRUE(std::isinf(tessera::sim::detail::decodeFloat(0x7c, kE5M2)));
  EXPECT_EQ(encodeFloat(1e9, kE4M3, Rounding::Nearest, true), 0x7eu);
  EXPECT_EQ(encodeFloat(-1e9, kE5M2, Rounding::Nearest, true), 0xfbu);
  EXPECT_EQ(encodeFloat(464, kE4M3, Rounding::Nearest, true), 0x7eu);
  for (uint32_t b = 0; b < 256; ++b)
    for (const FloatFormat &format : {kE4M3, kE5M2}) {
      float f = tessera::sim::detail::decodeFloat(b, format);
      if (f == f && !std::isinf(f)) {
        EXPECT_EQ(encodeFloat(f, format, Rounding::Nearest, true), b);
      }
    }
}

TEST(Numeric, DirectedRounding) {
  double x = 1 + 0x1p-20;
  EXPECT_EQ(encodeFloat(x, kF16, Rounding::Zero, false), 0x3c00u);
  EXPECT_EQ(encodeFloat(x, kF16, Rounding::Up, false), 0x3c01u);
  EXPECT_EQ(encodeFloat(-x, kF16, Rounding::Up, false), 0xbc00u);
  EXPECT_EQ(encodeFloat(-x, kF16, Rounding::Down, false), 0xbc01u);
  EXPECT_EQ(encodeFloat(1 + 0x1p-11, kTF32, Rounding::NearestAway, false) << 13,
            bitCast<uint32_t>(1 + 0x1p-10f));
}

TEST(Numeric, FmaRoundsOnce) {
  // 1.0009765625^2 - 1 lies next to a midpoint of f16; rounding twice would lose the sticky bit.
  double odd = fmaToOdd(0x1.004p0, 0x1p0, 0x1p-60);
  EXPECT_GT(odd, 0x1.004p0);
}

TEST(Swizzle, IsAPermutationOfUnits) {
  for (unsigned mode = 0; mode < 4; ++mode) {
    std::set<uint32_t> seen;
    for (uint32_t a = 0; a < 1024; a += 16) {
      uint32_t s = swizzleAddress(a, mode);
      EXPECT_EQ(s / 128, a / 128);
      EXPECT_TRUE(seen.insert(s).second);
    }
  }
  EXPECT_EQ(swizzleAddress(128, 3), 144u);
  EXPECT_EQ(swizzleAddress(7 * 128, 3), 7 * 128 + 112u);
  EXPECT_EQ(swizzleAddress(128, 1), 144u);
  EXPECT_EQ(swizzleAddress(256, 1), 256u);
  EXPECT_EQ(swizzleAddress(256, 2), 288u);
}

TEST(Descriptor, Fields) {
  MatrixDescriptor d((uint64_t(1) << 62) | (uint64_t(64) << 32) | (uint64_t(512) << 16) |
                     (0x4000 >> 4));
  EXPECT_EQ(d.start, 0x4000u);
  EXPECT_EQ(d.leading, 8192u);
  EXPECT_EQ(d.stride, 1024u);
  EXPECT_EQ(d.swizzle, 3u);
  // K-major, 128-byte rows: row 9 is row 1 of the second group of eight; units are permuted by the
  // row.
  EXPECT_EQ(d.kMajor(9, 1), 0x4000u + 1024 + 128 + ((1 ^ 1) * 16));
  EXPECT_EQ(d.kMajor(3, 0), 0x4000u + 3 * 128 + 3 * 16);
  // MN-major: 64 elements are contiguous, the next 64 lie `leading` away, eight k further `stride`.
  EXPECT_EQ(d.mnMajor(8, 0), 0x4000u + 8192);
  EXPECT_EQ(d.mnMajor(0, 8), 0x4000u + 1024);
  EXPECT_EQ(d.mnMajor(2, 3), 0x4000u + 3 * 128 + ((2 ^ 3) * 16));
}

TEST(Descriptor, NoSwizzle) {
  MatrixDescriptor d((uint64_t(256 >> 4) << 32) | (uint64_t(128 >> 4) << 16) | (0x800 >> 4));
  EXPECT_EQ(d.swizzle, 0u);
  EXPECT_EQ(d.kMajor(1, 0), 0x810u);
  EXPECT_EQ(d.kMajor(8, 0), 0x900u);
  EXPECT_EQ(d.kMajor(0, 1), 0x880u);
  EXPECT_EQ(d.mnMajor(1, 0), 0x900u);
  EXPECT_EQ(d.mnMajor(0, 9), 0x890u);
}

static std::string encodeError(TensorMapDesc d) {
  auto r = encodeTensorMap(d);
  return r ? "" : llvm::toString(r.takeError());
}

TEST(TensorMap, Rules) {
  TensorMapDesc d;
  d.type = TensorElement::BF16;
  d.globalAddress = 0x1000;
  d.dims = {64, 100};
  d.strides = {128};
  d.box = {64, 8};
  d.swizzle = 3;
  EXPECT_EQ(encodeError(d), "");
  TensorMapDesc e = d;
  e.globalAddress += 8;
  EXPECT_NE(encodeError(e).find("multiple of 16"), std::string::npos);
  e = d;
  e.strides = {120};
  EXPECT_NE(encodeError(e), "");
  e = d;
  e.swizzle = 2;
  EXPECT_NE(encodeError(e).find("swizzle's 64"), std::string::npos);
  e = d;
  e.box = {257, 8};
  EXPECT_NE(encodeError(e), "");
  e = d;
  e.box = {4, 8};
  EXPECT_NE(encodeError(e).find("inner box"), std::string::npos);
}
