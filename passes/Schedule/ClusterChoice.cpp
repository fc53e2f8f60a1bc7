//===- ClusterChoice.cpp - What the blocks of a cluster share ---------------===//
//
// The part of ScheduleSearch that decides whether a cluster loads tiles together,
// and what that asks of loops that run longer in some of its blocks.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/IndexDependence.h"
#include "passes/Schedule/EvenLoops.h"
#include "passes/Schedule/ScheduleSearch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Why no tile is the same for the blocks of a cluster; nothing when one is.
std::optional<std::string> ScheduleSearch::rejectCluster(int64_t cluster) {
  IndexDependence dependence(kernel.getGridIndex(0));
  std::string reasons;
  bool any = false, anyWithoutProducer = false;
  SmallVector<scf::ForOp> uneven;
  for (const PipedTile &tile : pipedTiles(kernel)) {
    SharedTile shared = shareTile(kernel, dependence, tile, cluster);
    if (!shared.refusal) {
      any = true;
      anyWithoutProducer |= shared.uneven.empty();
      llvm::append_range(uneven, shared.uneven);
      continue;
    }
    LoadOpInterface first = tile.loads.front();
    auto view = cast<BlockArgument>(first.getView());
    reasons += llvm::formatv("{0}%{1}: {2}", reasons.empty() ? "" : "; ",
                             kernel.getArgumentName(view.getArgNumber()), *shared.refusal);
  }
  sharesByProducer = any && !anyWithoutProducer;
  noteEvened(uneven);
  if (any)
    return std::nullopt;
  return "no tile is the same for neighbours in the first grid dimension (" + reasons +
         "); use cluster = 1";
}

void ScheduleSearch::noteEvened(ArrayRef<scf::ForOp> loops) {
  size_t number = 0;
  for (const PipedTile &tile : pipedTiles(kernel)) {
    if (!tile.inLoop)
      continue;
    if (llvm::any_of(tile.loads, [&](LoadOpInterface load) {
          return llvm::is_contained(loops, dyn_cast<scf::ForOp>(load->getParentOp()));
        }))
      evened.push_back(number);
    ++number;
  }
}

/// Whether the producer can go on while a block of the cluster that has left its loop still waits
/// for tiles of up to `overlap` iterations before.
bool ScheduleSearch::runsAhead(const StageCounts &stages, int64_t overlap) const {
  return llvm::all_of(evened, [&](size_t tile) { return stages.of(tile) >= overlap; });
}
