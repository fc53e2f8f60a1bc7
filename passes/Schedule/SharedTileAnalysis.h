//===- SharedTileAnalysis.h - Loops whose loads are made alike in a cluster -===//
//
// Which tiles the thread blocks of a cluster can load together when loops that run longer
// in some of them load as many tiles in all.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_SHAREDTILEANALYSIS_H
#define TESSERA_PASSES_SCHEDULE_SHAREDTILEANALYSIS_H

#include "passes/Analysis/IndexDependence.h"
#include "passes/Schedule/ResourceModel.h"

namespace tessera {

/// A tile that the blocks of a cluster can load together, or the reason why they cannot.
struct SharedTile {
  /// Loops around the loads that first have to load as many tiles in all blocks.
  llvm::SmallVector<mlir::scf::ForOp> uneven;
  std::optional<std::string> refusal;
};

/// What the blocks of a cluster of `blocks`, neighbours in the first grid dimension of `kernel`,
/// can do about `tile`. The loads that feed dots have the numbers of their pipes.
SharedTile shareTile(tile::KernelOp kernel, const IndexDependence &dependence,
                     const PipedTile &tile, int64_t blocks);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SHAREDTILEANALYSIS_H
