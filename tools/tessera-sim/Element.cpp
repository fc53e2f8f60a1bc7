//===- Element.cpp - Elements of a launch's buffers -----------------------===//
#include "Element.h"
#include "lib/Simulator/Numeric.h"
#include "llvm/ADT/StringSwitch.h"

using namespace tessera::sim;

ElementType tessera::sim::findElementType(llvm::StringRef name) {
  return llvm::StringSwitch<ElementType>(name)
      .Cases({"u8", "b8"}, {1, "u1", Coding::Unsigned, TensorElement::U8})
      .Cases({"e4m3", "f8E4M3FN"}, {1, "u1", Coding::E4M3, TensorElement::U8})
      .Cases({"e5m2", "f8E5M2"}, {1, "u1", Coding::E5M2, TensorElement::U8})
      .Cases({"s8", "i8"}, {1, "i1", Coding::Signed, TensorElement::U8})
      .Cases({"u16", "b16"}, {2, "u2", Coding::Unsigned, TensorElement::U16})
      .Case("bf16", {2, "u2", Coding::BF16, TensorElement::BF16})
      .Cases({"s16", "i16"}, {2, "i2", Coding::Signed, TensorElement::U16})
      .Case("f16", {2, "f2", Coding::F16, TensorElement::F16})
      .Cases({"u32", "b32"}, {4, "u4", Coding::Unsigned, TensorElement::U32})
      .Cases({"s32", "i32"}, {4, "i4", Coding::Signed, TensorElement::S32})
      .Case("f32", {4, "f4", Coding::F32, TensorElement::F32})
      .Case("tf32", {4, "f4", Coding::F32, TensorElement::TF32})
      .Cases({"u64", "b64"}, {8, "u8", Coding::Unsigned, TensorElement::U64})
      .Cases({"s64", "i64"}, {8, "i8", Coding::Signed, TensorElement::S64})
      .Case("f64", {8, "f8", Coding::F64, TensorElement::F64})
      .Default({0, "", Coding::Unknown, std::nullopt});
}

double tessera::sim::decodeElement(const uint8_t *bytes, ElementType type) {
  uint64_t bits = 0;
  memcpy(&bits, bytes, type.bytes);
  using namespace detail;
  switch (type.coding) {
  case Coding::F32:
    return bitCast<float>(uint32_t(bits));
  case Coding::F64:
    return bitCast<double>(bits);
  case Coding::F16:
    return f16ToFloat(bits);
  case Coding::BF16:
    return bf16ToFloat(bits);
  case Coding::E4M3:
    return decodeFloat(bits, kE4M3);
  case Coding::E5M2:
    return decodeFloat(bits, kE5M2);
  case Coding::Signed:
    return double(int64_t(bits << (64 - 8 * type.bytes)) >> (64 - 8 * type.bytes));
  default:
    return double(bits);
  }
}

uint64_t tessera::sim::encodeElement(double value, ElementType type) {
  using namespace detail;
  switch (type.coding) {
  case Coding::F32:
    return bitCast<uint32_t>(float(value));
  case Coding::F64:
    return bitCast<uint64_t>(value);
  case Coding::F16:
    return floatToF16(float(value));
  case Coding::BF16:
    return floatToBf16(float(value));
  case Coding::E4M3:
    return encodeFloat(value, kE4M3, Rounding::Nearest, true);
  case Coding::E5M2:
    return encodeFloat(value, kE5M2, Rounding::Nearest, true);
  default:
    // What 64 bits do not hold becomes the nearest that they do; the cast would be undefined.
    if (value != value)
      return 0;
    return uint64_t(value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : int64_t(value));
  }
}
