//===- ElementTypesTest.cpp - Elements as doubles and back ----------------===//
//
// Against APFloat: every element of 16 bits, and doubles that lie at, beside and between elements.
//
//===----------------------------------------------------------------------===//

#include "lib/Support/ElementTypes.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace tessera;

namespace {

uint64_t encode(const ElementType &type, double value) {
  char at[8];
  encodeElement(type, value, at);
  return readBits(at, type.bytes);
}

uint64_t encodeByAPFloat(const ElementType &type, double value) {
  llvm::APFloat rounded(value);
  bool losesInfo;
  rounded.convert(type.semantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded.bitcastToAPInt().getZExtValue();
}

double decode(const ElementType &type, uint64_t bits) {
  char at[8];
  writeBits(at, type.bytes, bits);
  return decodeElement(type, at);
}

double decodeByAPFloat(const ElementType &type, uint64_t bits) {
  llvm::APFloat value(type.semantics(), llvm::APInt(8 * type.bytes, bits));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

/// Both, with the same payload where they are NaN.
void expectSame(const ElementType &type, uint64_t bits) {
  double value = decode(type, bits), expected = decodeByAPFloat(type, bits);
  ASSERT_EQ(llvm::bit_cast<uint64_t>(value), llvm::bit_cast<uint64_t>(expected))
      << type.name.str() << " " << bits;
  double next = std::nextafter(value, INFINITY), previous = std::nextafter(value, -INFINITY);
  double halfway = (value + decodeByAPFloat(type, bits ^ 1)) / 2;
  for (double near : {value, next, previous, halfway, std::nextafter(halfway, 0.0),
                      std::nextafter(halfway, INFINITY), value * 1e300})
    ASSERT_EQ(encode(type, near), encodeByAPFloat(type, near)) << type.name.str() << " " << near;
}

TEST(ElementTypes, ElementsOf16Bits) {
  for (llvm::StringRef name : {"f16", "bf16"})
    for (uint64_t bits = 0; bits < 1 << 16; ++bits)
      expectSame(*getElementType(name), bits);
}

TEST(ElementTypes, ElementsOf32Bits) {
  const ElementType &type = *getElementType("f32");
  // Every exponent and sign, with few mantissas.
  for (uint64_t high = 0; high < 512; ++high)
    for (uint64_t mantissa : {0x0, 0x1, 0x2, 0x400000, 0x7ffffe, 0x7fffff})
      expectSame(type, high << 23 | mantissa);
}

TEST(ElementTypes, Numbers) {
  const ElementType &i32 = *getScalarType("i32"), &i64 = *getScalarType(TESSERA_TYPE_SCALAR_I64),
                    &f32 = *getScalarType("f32");
  EXPECT_EQ(getScalarType("bf16"), nullptr);
  EXPECT_EQ(getElementType(0), nullptr);
  tessera_argument argument = {};
  EXPECT_TRUE(setScalar(i32, int64_t(INT32_MIN), argument));
  EXPECT_EQ(argument.type, TESSERA_TYPE_SCALAR_I32);
  EXPECT_EQ(argument.scalar.i32, INT32_MIN);
  EXPECT_EQ(readInteger(i32, reinterpret_cast<const char *>(&argument.scalar)), INT32_MIN);
  EXPECT_FALSE(setScalar(i32, int64_t(INT32_MIN) - 1, argument));
  EXPECT_FALSE(setScalar(i32, 1.0, argument));
  EXPECT_TRUE(setScalar(i64, INT64_MIN, argument));
  EXPECT_EQ(argument.scalar.i64, INT64_MIN);
  EXPECT_TRUE(setScalar(f32, int64_t(3), argument));
  EXPECT_EQ(argument.type, TESSERA_TYPE_SCALAR_F32);
  EXPECT_EQ(argument.scalar.f32, 3.0f);
  EXPECT_TRUE(setScalar(f32, double(INFINITY), argument));
  EXPECT_FALSE(setScalar(f32, 1e39, argument));
}

} // namespace
