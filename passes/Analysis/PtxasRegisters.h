//===- PtxasRegisters.h - Registers that accumulators leave -----*- C++ -*-===//
//
// What ptxas does with the registers of products, whatever the card: counted in its output.
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

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_PTXASREGISTERS_H
