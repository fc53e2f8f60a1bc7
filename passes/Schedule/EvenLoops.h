//===- EvenLoops.h - Loops whose loads are made alike in a cluster --------===//
//
// Which tiles the thread blocks of a cluster can load together when loops that run longer
// in some of them load as many tiles in all.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_EVENLOOPS_H
#define TESSERA_PASSES_SCHEDULE_EVENLOOPS_H

#include "passes/Analysis/IndexDependence.h"
#include "passes/Schedule/ResourceModel.h"

namespace tessera {

/// The attribute of a load, of either dialect, whose pipe gets the same tiles in the same order in
/// all blocks of a cluster: set by tile-even-loops on the loads of the program of a grid point, and
/// kept by the passes that copy and move them within the order of their pipe.
constexpr llvm::StringLiteral kAlikeAttrName = "tile.alike";

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

/// The loads of the body of `loop` that go through pipes, in their order.
llvm::SmallVector<tile::LoadOp> pipedLoads(mlir::scf::ForOp loop);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_EVENLOOPS_H
