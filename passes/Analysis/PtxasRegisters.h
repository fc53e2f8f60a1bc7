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
/// Elements that a thread converts at a time by numbers of their rows. With 40 registers
/// ptxas 12.8 and 13.5 spill none of a tile of 96x128, and 32 bytes of one of 128x128:
/// test/Passes/tile-choose-schedule/converted-rows.tile, with rows that its BN does not allow.
inline constexpr int64_t kMostConverted = 96;

/// Registers of a thread of a reducer beside the part of a sum that it makes: descriptors, the
/// places of that part in shared memory, and counters. ptxas keeps 32 accumulators within 72.
inline constexpr int64_t kBesideSums = 40;
/// Of a transposer with a warpgroup: ptxas -v of kernels/attention_fp8.tile.
inline constexpr int64_t kOfTransposer = 48;
/// Of a converter, with parts of 64 elements a thread: none spills within 48.
inline constexpr int64_t kOfConverter = 56;
/// The least of one that extends elements of 8 bits and does nothing else: ptxas -v of
/// kernels/attention_cache.tile, to f16 and to bf16.
inline constexpr int64_t kOfExtender = 40;
/// More of one that multiplies by numbers of rows: 20 bytes spill within 56, none within 64. As
/// much again where several numbers of a row take turns: ptxas 13.5 spills 22 bytes of
/// kernels/mla_sparse.tile over rows of bytes within 64, and none within 72.
inline constexpr int64_t kOfConvertedRows = 8;
/// More of one that reads elements of 32 bits, of which a thread has as many registers as elements:
/// of f32 to bf16 by exp, 128x128, 4 bytes spill with 8 more, none with 16.
inline constexpr int64_t kOfConvertedWords = 16;
/// Of the warpgroup in which the producer and a writer of sums run: with 24 a writer that waits for
/// tickets spills (kernels/attention_bwd.tile with fixed_sums).
inline constexpr int64_t kOfWriter = 32;

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_PTXASREGISTERS_H
