//===- ElementTypes.h - What the elements of views may be -----------------===//
//
// The one table of element types: their names in sources and bundles, in the C
// interface, in DLPack, in the CUDA driver and in NumPy.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SUPPORT_ELEMENTTYPES_H
#define TESSERA_LIB_SUPPORT_ELEMENTTYPES_H

#include "tessera-c/Runtime.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

namespace tessera {

struct ElementType {
  llvm::StringLiteral name; ///< as in a source and a bundle
  tessera_type type;
  unsigned bytes;
  int tensorMapType;            ///< CUtensorMapDataType
  uint8_t dlpackCode;           ///< DLDataTypeCode
  llvm::StringLiteral npyDescr; ///< of NumPy's files; empty where NumPy has no such type
  /// The format of floating-point numbers; null for integers, which have a sign.
  const llvm::fltSemantics &(*semantics)();
};

inline constexpr ElementType elementTypes[] = {
    {"f16", TESSERA_TYPE_F16, 2, 6, 2, "<f2", llvm::APFloat::IEEEhalf},
    {"bf16", TESSERA_TYPE_BF16, 2, 9, 4, "", llvm::APFloat::BFloat},
    {"f32", TESSERA_TYPE_F32, 4, 7, 2, "<f4", llvm::APFloat::IEEEsingle},
    {"f8E4M3FN", TESSERA_TYPE_F8E4M3FN, 1, 0, 10, "", llvm::APFloat::Float8E4M3FN}, // as UINT8
    {"f8E5M2", TESSERA_TYPE_F8E5M2, 1, 0, 12, "", llvm::APFloat::Float8E5M2},
    {"i8", TESSERA_TYPE_I8, 1, 0, 0, "|i1", nullptr}, // as UINT8: copies of bytes
    {"i32", TESSERA_TYPE_I32, 4, 3, 0, "<i4", nullptr},
    {"i64", TESSERA_TYPE_I64, 8, 5, 0, "<i8", nullptr},
};

/// The first of the table for which `predicate` holds; null when there is none.
template <typename Predicate>
const ElementType *findElementType(Predicate predicate) {
  const ElementType *found = llvm::find_if(elementTypes, predicate);
  return found == std::end(elementTypes) ? nullptr : found;
}
/// By name, null when there is none.
inline const ElementType *getElementType(llvm::StringRef name) {
  return findElementType([&](const ElementType &type) { return type.name == name; });
}

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
