//===- Wgmma.h - Matrix descriptors of wgmma --------------------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_WGMMA_H
#define TESSERA_SIMULATOR_WGMMA_H

#include "lib/Simulator/TensorMap.h"

namespace tessera::sim::detail {

enum class WgmmaType : uint8_t { F16, BF16, TF32, E4M3, E5M2 };
constexpr unsigned wgmmaTypeBytes(WgmmaType t) {
  return t == WgmmaType::TF32 ? 4 : t == WgmmaType::F16 || t == WgmmaType::BF16 ? 2 : 1;
}

/// A shared memory matrix descriptor (PTX ISA 9.7.15.5.1). Offsets in bytes.
struct MatrixDescriptor {
  uint32_t start, leading, stride;
  unsigned baseOffset;
  unsigned swizzle; ///< as in tensor maps: 0 none, 1 32 B, 2 64 B, 3 128 B

  explicit MatrixDescriptor(uint64_t d)
      : start(uint32_t(d & 0x3fff) << 4), leading(uint32_t(d >> 16 & 0x3fff) << 4),
        stride(uint32_t(d >> 32 & 0x3fff) << 4), baseOffset(d >> 49 & 7) {
    static constexpr unsigned modes[] = {0, 3, 2, 1};
    swizzle = modes[d >> 62 & 3];
  }

  /// Which row of 128 bytes of the swizzle's pattern the start is in. The pattern repeats after
  /// 1024, 512 or 256 bytes, and the base offset declares where it begins (PTX ISA 9.7.15.5.1.2).
  unsigned patternRow() const { return start >> 7 & ((1u << swizzle) - 1); }

  /// Shared memory address of 16 bytes of a K-major operand: row `mn`, 16-byte unit `unit` (0 or 1)
  /// along K.
  uint32_t kMajor(uint32_t mn, uint32_t unit) const {
    uint32_t row = 16u << swizzle; // bytes between rows of a core matrix
    uint32_t offset = mn % 8 * row + mn / 8 * stride + unit * (swizzle ? 16 : leading);
    return swizzleAddress(start + offset, swizzle);
  }
  /// The same for an MN-major operand: 16-byte unit `unit` along MN, index `k` along K.
  uint32_t mnMajor(uint32_t unit, uint32_t k) const {
    if (!swizzle)
      return start + unit * stride + k % 8 * 16 + k / 8 * leading;
    uint32_t units = 1u << swizzle; // contiguous 16-byte units
    uint32_t offset =
        unit % units * 16 + unit / units * leading + k % 8 * (16 * units) + k / 8 * stride;
    return swizzleAddress(start + offset, swizzle);
  }
};

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_WGMMA_H
