//===- TensorMap.cpp - Checks and encodes tensor maps ---------------------===//
//
// The rules are those of cuTensorMapEncodeTiled in the CUDA driver API.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/TensorMap.h"
#include <cstring>

using namespace tessera::sim;
using namespace tessera::sim::detail;

unsigned tessera::sim::elementBytes(TensorElement type) {
  switch (type) {
  case TensorElement::U8:
    return 1;
  case TensorElement::U16:
  case TensorElement::F16:
  case TensorElement::BF16:
    return 2;
  case TensorElement::U64:
  case TensorElement::S64:
  case TensorElement::F64:
    return 8;
  default:
    return 4;
  }
}

uint32_t TensorMapRecord::boxBytes() const {
  uint32_t n = elementSize();
  for (unsigned d = 0; d < rank; ++d)
    n *= extent(d);
  return n;
}

template <class... Args>
static llvm::Error bad(const char *format, Args... args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 (std::string("tensor map: ") + format).c_str(), args...);
}

llvm::Error TensorMapRecord::check() const {
  if (rank < 1 || rank > 5)
    return bad("rank %u is not in 1..5", rank);
  if (swizzle > 3)
    return bad("swizzle mode %u is unknown", swizzle);
  if (type > uint8_t(TensorElement::TF32Ftz))
    return bad("element type %u is unknown", type);
  if (address % 16)
    return bad("the global address is not a multiple of 16");
  if (address >= 1ull << 62)
    return bad("the global address is beyond 2^62");
  uint64_t bytes = elementSize();
  for (unsigned d = 0; d < rank; ++d) {
    if (dims[d] == 0 || dims[d] > (1ull << 32))
      return bad("dimension %u has size %llu", d, static_cast<unsigned long long>(dims[d]));
    if (box[d] == 0 || box[d] > 256)
      return bad("box size %u of dimension %u is not in 1..256", box[d], d);
    if (elementStrides[d] == 0 || elementStrides[d] > 8)
      return bad("element stride %u of dimension %u is not in 1..8", elementStrides[d], d);
    bytes *= extent(d);
    if (d + 1 < rank && (strides[d] % 16 || strides[d] >= (1ull << 40)))
      return bad("stride %llu is not a multiple of 16 below 2^40",
                 static_cast<unsigned long long>(strides[d]));
  }
  uint32_t inner = extent(0) * elementSize();
  if (inner % 16)
    return bad("the inner box has %u bytes, not a multiple of 16", inner);
  if (swizzle && inner > (16u << swizzle))
    return bad("the inner box has %u bytes, more than the swizzle's %u", inner, 16u << swizzle);
  if (bytes > kMaxSharedBytes)
    return bad("the box has %llu bytes, more than the %llu of shared memory",
               static_cast<unsigned long long>(bytes),
               static_cast<unsigned long long>(kMaxSharedBytes));
  return llvm::Error::success();
}

llvm::Expected<std::array<uint8_t, 128>> tessera::sim::encodeTensorMap(const TensorMapDesc &desc) {
  size_t rank = desc.dims.size();
  if (rank < 1 || rank > 5)
    return bad("rank %zu is not in 1..5", rank);
  if (desc.strides.size() != rank - 1 || desc.box.size() != rank ||
      (!desc.elementStrides.empty() && desc.elementStrides.size() != rank))
    return bad("strides, box and element strides do not fit rank %zu", rank);
  if (desc.interleave != 0)
    return bad("interleaved layouts are not modelled");
  if (desc.swizzle > 3)
    return bad("swizzle mode %u is unknown", desc.swizzle);
  if (desc.oobNan && (desc.type == TensorElement::U8 || desc.type == TensorElement::U16 ||
                      desc.type == TensorElement::U32 || desc.type == TensorElement::S32 ||
                      desc.type == TensorElement::U64 || desc.type == TensorElement::S64))
    return bad("NaN fill needs a floating-point type");
  TensorMapRecord r;
  r.type = uint8_t(desc.type);
  r.rank = rank;
  r.swizzle = desc.swizzle;
  r.oobNan = desc.oobNan;
  r.address = desc.globalAddress;
  for (unsigned d = 0; d < rank; ++d) {
    r.dims[d] = desc.dims[d];
    // Too large for the record's field is too large for the rules too.
    r.box[d] = std::min(desc.box[d], 0xffffu);
    r.elementStrides[d] = desc.elementStrides.empty() ? 1 : std::min(desc.elementStrides[d], 0xffu);
    if (d + 1 < rank)
      r.strides[d] = desc.strides[d];
  }
  if (llvm::Error e = r.check())
    return std::move(e);
  std::array<uint8_t, 128> out;
  memcpy(out.data(), &r, 128);
  return out;
}
