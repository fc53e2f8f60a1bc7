//===- ElementTypes.cpp - What the elements of views may be ---------------===//

#include "lib/Support/ElementTypes.h"
#include <cmath>

using namespace tessera;

double tessera::decodeElement(const ElementType &type, const char *at) {
  uint64_t bits = readBits(at, type.bytes);
  unsigned width = 8 * type.bytes;
  if (!type.semantics)
    return static_cast<double>(llvm::SignExtend64(bits, width));
  llvm::APFloat value(type.semantics(), llvm::APInt(width, bits));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

void tessera::encodeElement(const ElementType &type, double value, char *at) {
  unsigned width = 8 * type.bytes;
  if (!type.semantics) {
    double limit = std::ldexp(1.0, width - 1);
    int64_t integer = value != value    ? 0
                      : value >= limit  ? llvm::maxIntN(width)
                      : value <= -limit ? llvm::minIntN(width)
                                        : static_cast<int64_t>(std::nearbyint(value));
    return writeBits(at, type.bytes, static_cast<uint64_t>(integer));
  }
  if (type.bytes == 1 && value == value) {
    double most = llvm::APFloat::getLargest(type.semantics()).convertToDouble();
    value = std::clamp(value, -most, most);
  }
  llvm::APFloat rounded(value);
  bool losesInfo;
  rounded.convert(type.semantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  writeBits(at, type.bytes, rounded.bitcastToAPInt().getZExtValue());
}
