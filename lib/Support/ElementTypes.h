//===- ElementTypes.h - What arguments may be -----------------------------===//
//
// The one table of the types of arguments, which are elements of views, numbers or both: their
// names in sources and bundles, in the C interface, in DLPack, in the CUDA driver, in XLA, NumPy
// and PyTorch. `./dev docs` writes Python's, python/tessera/_core/_types.py, from it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SUPPORT_ELEMENTTYPES_H
#define TESSERA_LIB_SUPPORT_ELEMENTTYPES_H

#include "tessera-c/Runtime.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstring>
#include <limits>

namespace tessera {

struct ElementType {
  llvm::StringLiteral name; ///< as in a source and a bundle
  int32_t type;             ///< the tessera_type of elements of views; 0 where they have none
  int32_t scalar;           ///< that of numbers; 0 where none is passed by value
  unsigned bytes;
  int tensorMapType;             ///< CUtensorMapDataType
  uint8_t dlpackCode;            ///< DLDataTypeCode
  int32_t xlaType;               ///< PrimitiveType of XLA
  llvm::StringLiteral npyDescr;  ///< of NumPy's files; empty where NumPy has no such type
  llvm::StringLiteral torchName; ///< also that of JAX
  /// The format of floating-point numbers; null for integers, which have a sign.
  const llvm::fltSemantics &(*semantics)();

  /// Doubles do not hold all of them.
  bool isWideInteger() const { return !semantics && bytes == sizeof(int64_t); }
};

inline constexpr ElementType elementTypes[] = {
    {"f16", TESSERA_TYPE_F16, 0, 2, 6, 2, 10, "<f2", "float16", llvm::APFloat::IEEEhalf},
    {"bf16", TESSERA_TYPE_BF16, 0, 2, 9, 4, 16, "", "bfloat16", llvm::APFloat::BFloat},
    {"f32", TESSERA_TYPE_F32, TESSERA_TYPE_SCALAR_F32, 4, 7, 2, 11, "<f4", "float32",
     llvm::APFloat::IEEEsingle},
    // In tensor maps those of 8 bits are UINT8: copies of bytes.
    {"f8E4M3FN", TESSERA_TYPE_F8E4M3FN, 0, 1, 0, 10, 20, "", "float8_e4m3fn",
     llvm::APFloat::Float8E4M3FN},
    {"f8E5M2", TESSERA_TYPE_F8E5M2, 0, 1, 0, 12, 19, "", "float8_e5m2", llvm::APFloat::Float8E5M2},
    {"i8", TESSERA_TYPE_I8, 0, 1, 0, 0, 2, "|i1", "int8", nullptr},
    {"i32", TESSERA_TYPE_I32, TESSERA_TYPE_SCALAR_I32, 4, 3, 0, 4, "<i4", "int32", nullptr},
    {"i64", TESSERA_TYPE_I64, TESSERA_TYPE_SCALAR_I64, 8, 5, 0, 5, "<i8", "int64", nullptr},
};

/// The first of the table for which `predicate` holds; null when there is none.
template <typename Predicate>
const ElementType *findType(Predicate predicate) {
  const ElementType *found = llvm::find_if(elementTypes, predicate);
  return found == std::end(elementTypes) ? nullptr : found;
}
/// That of elements, by name or tessera_type; null when there is none.
inline const ElementType *getElementType(llvm::StringRef name) {
  return findType([&](const ElementType &type) { return type.type && type.name == name; });
}
inline const ElementType *getElementType(int32_t code) {
  return findType([&](const ElementType &type) { return code && type.type == code; });
}
/// That of numbers, in the same way.
inline const ElementType *getScalarType(llvm::StringRef name) {
  return findType([&](const ElementType &type) { return type.scalar && type.name == name; });
}
inline const ElementType *getScalarType(int32_t code) {
  return findType([&](const ElementType &type) { return code && type.scalar == code; });
}

/// The names of those of which `member`, `type` or `scalar`, is not 0, with `last` before the last.
std::string listTypes(int32_t ElementType::*member, llvm::StringRef last);

/// The little-endian number of so many bytes, and the same written.
inline uint64_t readBits(const char *at, unsigned bytes) {
  uint64_t bits = 0;
  for (unsigned i = 0; i < bytes; ++i)
    bits |= uint64_t(static_cast<unsigned char>(at[i])) << 8 * i;
  return bits;
}
inline void writeBits(char *at, unsigned bytes, uint64_t bits) {
  for (unsigned i = 0; i < bytes; ++i)
    at[i] = static_cast<char>(bits >> 8 * i);
}

/// The integer at `at`.
inline int64_t readInteger(const ElementType &type, const char *at) {
  return llvm::SignExtend64(readBits(at, type.bytes), 8 * type.bytes);
}

/// Makes an argument of a number; false where it does not fit: an integer beyond those of the type,
/// a double for an integer, or a finite number that would be infinite.
inline bool setScalar(const ElementType &type, double number, tessera_argument &argument) {
  argument.type = type.scalar;
  if (!type.semantics)
    return false;
  if (type.bytes == sizeof(number)) {
    std::memcpy(&argument.scalar, &number, sizeof(number));
    return true;
  }
  argument.scalar.f32 = static_cast<float>(number);
  return !std::isfinite(number) || std::fabs(number) <= std::numeric_limits<float>::max();
}
inline bool setScalar(const ElementType &type, int64_t number, tessera_argument &argument) {
  if (type.semantics)
    return setScalar(type, static_cast<double>(number), argument);
  argument.type = type.scalar;
  writeBits(reinterpret_cast<char *>(&argument.scalar), type.bytes, static_cast<uint64_t>(number));
  return llvm::isIntN(8 * type.bytes, number);
}

/// The largest integer up to which doubles hold all.
constexpr int64_t mostExactInteger = int64_t(1) << 53;

/// The element at `at` as a double: the nearest one of an integer beyond `mostExactInteger`.
double decodeElement(const ElementType &type, const char *at);
/// Writes `value` as the nearest element: floats to nearest even, those of 8
/// bits no further than their largest number; integers as far as they go, 0 for
/// NaN.
void encodeElement(const ElementType &type, double value, char *at);

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_ELEMENTTYPES_H
