//===- TensorMap.h - Tensor maps and swizzles -------------------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_TENSORMAP_H
#define TESSERA_SIMULATOR_TENSORMAP_H

#include "lib/Simulator/Simulator.h"
#include "llvm/Support/MathExtras.h"

namespace tessera::sim::detail {

/// The simulator's record in place of a CUtensorMap.
struct TensorMapRecord {
  static constexpr uint32_t kMagic = 0x4d534554; // "TESM"
  uint32_t magic = kMagic;
  uint8_t type = 0, rank = 0, swizzle = 0, oobNan = 0;
  uint64_t address = 0;
  uint64_t dims[5] = {};
  uint64_t strides[4] = {};
  uint16_t box[5] = {};
  uint8_t elementStrides[5] = {};
  uint8_t unused = 0;
  uint64_t unused2[3] = {};

  uint32_t elementSize() const { return elementBytes(TensorElement(type)); }
  /// Elements of the box along a dimension that reach shared memory.
  uint32_t extent(unsigned d) const { return (box[d] + elementStrides[d] - 1) / elementStrides[d]; }
  uint32_t boxBytes() const;
  /// Bytes of shared memory that the box may touch: a swizzle permutes whole rows of 128 bytes.
  uint32_t boxFootprint() const { return llvm::alignTo(boxBytes(), swizzle ? 128 : 16); }
  /// Holds the driver's rules. A kernel may write a record's bytes itself, so each is checked again
  /// where it is used. Places of elements are sums of addresses, which wrap modulo 2^64.
  llvm::Error check() const;
};
static_assert(sizeof(TensorMapRecord) == 128, "a CUtensorMap has 128 bytes");

/// Permutes 16-byte units inside of rows of 128 bytes. The pattern is a function of the shared
/// memory address: bits 4-6 (5, 4) are xored with bits 7-9 (8, 7). `mode`: 0 none, 1 32 B, 2 64 B,
/// 3 128 B.
inline uint32_t swizzleAddress(uint32_t address, unsigned mode) {
  uint32_t mask = (1u << mode) - 1;
  return address ^ ((address >> 7 & mask) << 4);
}

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_TENSORMAP_H
