//===- ElementTypes.cpp - What arguments may be -----------------------------===//

#include "lib/Support/ElementTypes.h"
#include "lib/Support/Rounding.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace tessera;

std::string tessera::listTypes(int32_t ElementType::*member, llvm::StringRef last) {
  std::vector<llvm::StringRef> names;
  for (const ElementType &type : elementTypes)
    if (type.*member)
      names.push_back(type.name);
  return llvm::join(llvm::ArrayRef(names).drop_back(), ", ") + last.str() + names.back().str();
}

// Most elements are of these three formats, for which APFloat is slow. It keeps the payload of a
// NaN.

static std::optional<float> decodeFast(int32_t type, uint64_t bits) {
  float value;
  switch (type) {
  case TESSERA_TYPE_F32:
    value = llvm::bit_cast<float>(static_cast<uint32_t>(bits));
    break;
  case TESSERA_TYPE_BF16:
    value = llvm::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    break;
  case TESSERA_TYPE_F16: {
    uint32_t magnitude = bits & 0x7fff;
    if (magnitude >= 0x7c00)
      return std::nullopt;
    // The exponent's bias is 112 less than that of f32, which also makes subnormals normal.
    value = llvm::bit_cast<float>(magnitude << 13) * 0x1p112f;
    value = bits & 0x8000 ? -value : value;
    break;
  }
  default:
    return std::nullopt;
  }
  return value == value ? std::optional(value) : std::nullopt;
}

static std::optional<uint64_t> encodeFast(int32_t type, double value) {
  if (value != value)
    return std::nullopt;
  switch (type) {
  case TESSERA_TYPE_F32:
    return llvm::bit_cast<uint32_t>(static_cast<float>(value));
  case TESSERA_TYPE_BF16:
    return llvm::bit_cast<uint32_t>(static_cast<float>(roundToBF16(value))) >> 16;
  case TESSERA_TYPE_F16: {
    float rounded = static_cast<float>(roundToF16(value));
    if (std::isinf(rounded))
      return std::nullopt;
    uint32_t sign = std::signbit(rounded) ? 0x8000 : 0;
    return sign | llvm::bit_cast<uint32_t>(std::fabs(rounded) * 0x1p-112f) >> 13;
  }
  default:
    return std::nullopt;
  }
}

double tessera::decodeElement(const ElementType &type, const char *at) {
  uint64_t bits = readBits(at, type.bytes);
  unsigned width = 8 * type.bytes;
  if (!type.semantics)
    return static_cast<double>(readInteger(type, at));
  if (std::optional<float> value = decodeFast(type.type, bits))
    return *value;
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
  if (std::optional<uint64_t> bits = encodeFast(type.type, value))
    return writeBits(at, type.bytes, *bits);
  if (type.bytes == 1 && value == value) {
    double most = llvm::APFloat::getLargest(type.semantics()).convertToDouble();
    value = std::clamp(value, -most, most);
  }
  llvm::APFloat rounded(value);
  bool losesInfo;
  rounded.convert(type.semantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  writeBits(at, type.bytes, rounded.bitcastToAPInt().getZExtValue());
}
