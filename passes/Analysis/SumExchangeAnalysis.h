//===- SumExchangeAnalysis.h - Sums that the blocks of a cluster add up ---===//
//
// A sum in a role of its own (ReducerSumAnalysis.h) whose place is the same in both blocks of a
// cluster of two. The blocks exchange the computed operands of its dot, and each makes half of the
// columns for both (cluster = exchange).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_SUMEXCHANGEANALYSIS_H
#define TESSERA_PASSES_ANALYSIS_SUMEXCHANGEANALYSIS_H

#include "dialects/Tile/ScheduleFields.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include <string>

namespace tessera {

struct ExchangedSums {
  llvm::SmallVector<ReducerSum> sums;
  /// The first one that the blocks cannot make together, or the kernel, and why.
  mlir::Operation *refused = nullptr;
  std::string refusal;
};

/// All sums of `kernel` that a role of its own can make, if blocks can make each of them together.
ExchangedSums findExchangedSums(tile::KernelOp kernel);

/// The half of the columns of what the dot of `sum` multiplies that a block takes of the other's.
mlir::RankedTensorType theirHalf(const ReducerSum &sum);

/// Whether a block loads that half of its own tile once more, as the whole tile has no halves of
/// whole chunks: 192 columns of 16 bits lie in chunks of 64.
bool loadsOwnHalf(const ReducerSum &sum);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_SUMEXCHANGEANALYSIS_H
