//===- ScheduleFacts.h - What the choice of a schedule rests on -----------===//
//
// What a kernel has that schedules are chosen by, found once and handed to those who ask what is
// legal (ScheduleLegality.h), what it costs (ScheduleCost.h) and what is preferred
// (SchedulePreference.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_SCHEDULEFACTS_H
#define TESSERA_PASSES_SCHEDULE_SCHEDULEFACTS_H

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/Analysis/DotDivision.h"
#include "passes/Analysis/SumOrderAnalysis.h"
#include "passes/Schedule/Exponentials.h"
#include "passes/Schedule/Helpers.h"
#include "passes/Schedule/LoopOverlap.h"
#include "passes/Schedule/RegisterModel.h"
#include <map>

namespace tessera {

/// Whether `kernel` multiplies tiles. Orders of work differ between products alone.
bool hasDots(tile::KernelOp kernel);

/// The blocks of a cluster.
inline int64_t blocksOf(const tile::ScheduleFields &fields) {
  return tile::countBlocks(fields.cluster.value_or(tile::ClusterKind::One));
}

/// What the blocks of a cluster share.
struct ClusterSharing {
  /// Why no tile is the same for them.
  std::optional<std::string> refusal;
  /// What they share takes a producer.
  bool takesProducer = false;
  /// Which of the tiles that are loaded in loops are loaded for other blocks too.
  llvm::SmallVector<size_t> evened;

  /// Whether the producer can go on while a block that has left its loop still waits for tiles of
  /// up to `overlap` iterations before.
  bool runsAhead(const tile::NumberList &stages, int64_t overlap) const;
};

/// Facts about a kernel. Those that depend on a field are found when they are first asked for.
class ScheduleFacts {
public:
  ScheduleFacts(tile::KernelOp kernel, const CostModel &model);

  tile::KernelOp getKernel() const { return kernel; }
  /// The kernel with its loops in a shape, and why it has none such.
  tile::KernelOp rotated(const OverlapShape &shape) const;
  std::optional<std::string> whyNotRotated(const OverlapShape &shape) const;
  /// The division of the dots among `consumers` with different programs, and why there is none.
  const std::optional<DotDivision> &divide(int64_t consumers) const;
  const std::string &whyNotDivided(int64_t consumers) const;
  /// Why `consumers` warpgroups cannot each have a share of the tiles, as tile-warp-specialize will
  /// find it: some tile is needed whole, or divided in another way.
  const std::optional<std::string> &whyNoShares(int64_t consumers,
                                                tile::PlacementKind placement) const;
  const ClusterSharing &shareInCluster(int64_t cluster) const;
  /// The tiles that come through pipes in loops.
  size_t pipesInLoops(const tile::ScheduleFields &fields) const {
    return tilesInLoops + (fields.producer == tile::ProducerKind::All ? fetchedMatrices : 0);
  }

private:
  tile::KernelOp kernel;

public:
  const CostModel &model;
  bool multiplies = false, multipliesInLoops = false, worksBetweenDots = false,
       canTakeTurns = false, turnsPay = false, leadPays = false, severalDots = false,
       countsFromMemory = false, findsBounds = false;
  bool scalesWideTiles = false;
  /// Registers that a thread of the producer needs at least.
  int64_t leastOfProducer = hopper::leastRoleRegisters;
  /// Accumulators that could each be of another consumer.
  unsigned accumulators = 0;
  /// What roles of their own can do.
  HelperWork work;
  /// What can have a fixed order, and whether the kernel asks for it.
  OrderedSums ordered;
  bool ordersSums = false;
  /// Of the loops that run first.
  CycleBudget budget;
  /// Cycles of the first dot of an iteration.
  double firstDot = 0;
  size_t tilesInLoops = 0;
  /// The tiles that may have slots for each stage, those of the innermost loops first.
  llvm::SmallVector<size_t> deepestFirst;
  /// Tiles that are loaded once for each tile of the grid, and whether any is outside of loops.
  size_t outerTiles = 0;
  bool loadsOutside = false;
  /// Pipes of tiles of rank 2 that arithmetic reads (producer = all).
  size_t fetchedMatrices = 0;

private:
  /// The kernel with its loops rotated, or none and the reason.
  struct Copy {
    mlir::OwningOpRef<tile::KernelOp> kernel;
    std::string refusal;
  };
  const Copy &overlap(const OverlapShape &shape) const;

  mutable std::map<tile::OverlapKind, Copy> copies;
  mutable std::map<std::pair<int64_t, tile::PlacementKind>, std::optional<std::string>> shares;
  mutable std::map<int64_t, std::pair<std::optional<DotDivision>, std::string>> divisions;
  mutable std::map<int64_t, ClusterSharing> sharings;
};

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SCHEDULEFACTS_H
