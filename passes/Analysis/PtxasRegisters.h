//===- PtxasRegisters.h - Registers that ptxas leaves -----------*- C++ -*-===//
//
// What ptxas does with registers, whatever the card: counted in its output.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_PTXASREGISTERS_H
#define TESSERA_PASSES_ANALYSIS_PTXASREGISTERS_H

#include <cstdint>

namespace tessera {

/// Registers of a thread below its accumulators, which ptxas begins at R24: nvdisasm of the
/// gradients of attention.
inline constexpr int64_t kBelowAccumulators = 24;
/// Registers that ptxas wants at entry beside the accumulators of the widest wgmma (C7602): of
/// 64x160 and 64x256 with both operands in shared memory.
inline constexpr int64_t kBesideAccumulators = 26;
/// Elements that a thread converts at a time by numbers of their rows. With helper_registers = 40
/// ptxas 12.8 and 13.5 spill none of a tile of 96x128, and 32 bytes of one of 128x128:
/// test/Passes/tile-choose-schedule/converted-rows.tile, with rows that its BN does not allow.
inline constexpr int64_t kMostConverted = 96;

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_PTXASREGISTERS_H
