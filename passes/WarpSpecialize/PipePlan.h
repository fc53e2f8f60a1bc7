//===- PipePlan.h - Which loads and stores share which pipe -----------------===//
//
// The pipes that join the roles of a kernel: the loads that fill them, the stores that a
// role of its own makes of what others fill in, and the computed tiles that a reducer multiplies or
// that a converter makes for products.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_WARPSPECIALIZE_PIPEPLAN_H
#define TESSERA_PASSES_WARPSPECIALIZE_PIPEPLAN_H

#include "dialects/Hop/Hop.h"
#include "dialects/Tile/Tile.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/DotDivision.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Schedule/Helpers.h"
#include "llvm/ADT/MapVector.h"

namespace tessera {

/// The pipe that a load and the copies that earlier passes made of it share, or the stores of tiles
/// of one type to one view, or the operands of the dots whose results such stores add.
struct PipeInfo {
  std::string label;
  mlir::RankedTensorType tile;
  bool inLoop = false;
  /// Which of the tiles that are loaded in loops it is, or of those that are not, by number.
  size_t index = 0;
  /// Who makes its tiles: loads them, computes results or operands, sums, converts, finds bounds.
  RoleTask maker = RoleTask::Load;
  /// Which of several such roles.
  unsigned part = 0;
  /// A writer takes them; of all others who needs them.
  bool isStored = false;
  /// A transposer takes them, and hands them on through another pipe.
  bool isTransposed = false;
  mlir::Value transposed;
  /// Each of its slots has the tiles of both blocks of a cluster, this one's first.
  bool isExchanged = false;
  /// What this block multiplies of the other block's tile; it comes through a pipe beside. And that
  /// of its own tile, through another one, where it is no part of a slot.
  mlir::RankedTensorType theirTile;
  bool loadsOwnHalf = false;
  mlir::Value theirs, ownHalf;
  /// Tiles are loaded a step before they are taken (`ahead` of tile.load).
  bool isAhead = false;
  /// Slots, where the schedule does not say.
  std::optional<int64_t> slots;
  mlir::Value pipe;

  /// Whether a role hands on to others what it has in registers.
  bool isComputed() const { return !isStored && maker != RoleTask::Load; }
};
/// The number that tile-choose-schedule gave the load; or the load itself, or the first store, or
/// the operation that makes the first operand. Of pipes that take parts in turn, with their number.
using PipeKey = std::pair<mlir::Operation *, int64_t>;

/// Which loads and stores of a kernel go through which pipe.
struct PipePlan {
  llvm::MapVector<PipeKey, PipeInfo> pipes;
  llvm::DenseMap<mlir::Operation *, PipeKey> accesses;
  /// The loads whose tiles the roles that read them take into registers. Others of their pipes may
  /// be multiplied as they are.
  llvm::DenseSet<mlir::Operation *> fetched;
  /// What a role of its own multiplies and adds to memory.
  llvm::SmallVector<ReducerSum> sums;
  /// How they leave.
  tile::ScheduleFields schedule;
  /// The blocks of a cluster make these together.
  bool exchanges = false;
  /// The operands of sums are handed over behind the other dots that read them, and under these.
  bool handsOverLate = false;
  /// What a role of its own converts, by the last operation of each.
  llvm::DenseMap<mlir::Operation *, Conversion> conversions;
  /// How the dots are divided among consumers of different programs.
  std::optional<DotDivision> division;

  PipeInfo &pipeOf(mlir::Operation *op) { return pipes.find(accesses.lookup(op))->second; }
  bool isPiped(mlir::Operation *op) const { return accesses.contains(op); }
  /// Whether `op` makes a tile that another role multiplies.
  bool isHandedOver(mlir::Operation *op) { return isPiped(op) && pipeOf(op).isComputed(); }
  /// Whether the dot of a sum hands over its operand `op`, which is made in the same block.
  bool isHandedOverLate(mlir::Operation *op) const {
    return handsOverLate && llvm::any_of(sums, [&](const ReducerSum &sum) {
             return sum.operand == op && sum.dot->getBlock() == op->getBlock();
           });
  }
  /// The sum that `op`, its dot or its store, belongs to; null for others.
  const ReducerSum *sumOf(mlir::Operation *op) const {
    auto found = llvm::find_if(
        sums, [&](const ReducerSum &sum) { return op == sum.store || op == sum.dot; });
    return found == sums.end() ? nullptr : &*found;
  }
  SumParts partsOf(const ReducerSum &sum) const { return tessera::partsOf(sum, schedule); }
  /// A name for another pipe of tiles of `view`.
  std::string makeLabel(tile::KernelOp kernel, mlir::Value view);
  bool gathers() const {
    return llvm::any_of(accesses,
                        [](auto &access) { return mlir::isa<tile::GatherOp>(access.first); });
  }
  /// How many pipes have tiles whose rows come in runs.
  size_t countOfRuns() const {
    llvm::SmallPtrSet<const PipeInfo *, 4> found;
    for (auto &[access, key] : accesses)
      if (mlir::isa<tile::GatherRunsOp>(access))
        found.insert(&pipes.find(key)->second);
    return found.size();
  }
  /// The bounds of a block that are handed on.
  llvm::SmallVector<tile::ReduceRangeOp> boundsIn(mlir::Block *block) const {
    return llvm::filter_to_vector(block->getOps<tile::ReduceRangeOp>(),
                                  [&](tile::ReduceRangeOp bound) { return isPiped(bound); });
  }
  /// Whether there is work for a role of `task` beside the producer and the consumers.
  bool needs(RoleTask task) const {
    return task == RoleTask::Sum ? !sums.empty() : llvm::any_of(pipes, [=](auto &pipe) {
      return task == RoleTask::Store       ? pipe.second.isStored
             : task == RoleTask::Transpose ? pipe.second.isTransposed
                                           : pipe.second.maker == task;
    });
  }
  /// The first role of each task, by number, once there are roles.
  unsigned &roleOf(RoleTask task) { return firstRoles[static_cast<size_t>(task)]; }
  unsigned fillerOf(const PipeInfo &pipe) { return roleOf(pipe.maker) + pipe.part; }

private:
  llvm::DenseMap<mlir::Value, unsigned> labels;
  std::array<unsigned, static_cast<size_t>(RoleTask::Compute) + 1> firstRoles = {};
};

/// The pipes of a kernel's loads that feed dots, and of those that feed arithmetic where
/// `producer` says so; reports uses that shared memory cannot serve.
mlir::FailureOr<PipePlan> planPipes(tile::KernelOp kernel, tile::ProducerKind producer);

/// Loads tiles again that are used behind a loop which goes round their pipe, or in it: equal loads
/// became one after the pipes were numbered.
void reloadTiles(tile::KernelOp kernel, PipePlan &plan);

/// Adds the pipes of the results that a role of its own stores in bulk; reports stores that none
/// can make.
mlir::LogicalResult planStores(tile::KernelOp kernel, PipePlan &plan);

/// Marks the pipes whose tiles a role of its own transposes.
void planTransposes(tile::KernelOp kernel, PipePlan &plan);

/// Adds the pipes of the operands that a role of its own converts.
void planConversions(tile::KernelOp kernel, PipePlan &plan);

/// Adds the pipe of the bounds that a role of its own finds.
void planBounds(llvm::ArrayRef<tile::ReduceRangeOp> bounds, PipePlan &plan);

/// Divides the dots among `consumers` of different programs, and adds the pipes of the tiles that
/// one makes and another needs; reports what cannot be divided.
mlir::LogicalResult planDivision(tile::KernelOp kernel, unsigned consumers, PipePlan &plan);

/// Adds the pipes of the operands of the sums that a role of its own makes.
mlir::LogicalResult planSums(tile::KernelOp kernel, PipePlan &plan);

/// Adds the pipes of the parts of these sums, which another role stores in bulk; reports sums of
/// which none can.
mlir::LogicalResult planSumStores(tile::KernelOp kernel, PipePlan &plan);

} // namespace tessera

#endif // TESSERA_PASSES_WARPSPECIALIZE_PIPEPLAN_H
