//===- ResourceModel.h - What a kernel needs of shared memory -------------===//
//
// Half of the feasibility model behind tile-choose-schedule: which tiles of a
// kernel are in shared memory, and what they take. RegisterModel.h is the other.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_RESOURCEMODEL_H
#define TESSERA_PASSES_SCHEDULE_RESOURCEMODEL_H

#include "dialects/Hop/Hop.h"
#include "dialects/Tile/ScheduleFields.h"
#include "dialects/Tile/Tile.h"
#include "passes/Analysis/DotDivision.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/Analysis/PipeSlots.h"

namespace tessera {

/// Bytes of a tile, elements packed; with what fills its chunks, where it has an encoding.
int64_t tileBytes(mlir::Type type);

/// A load whose tile lives in shared memory because a dot reads it there, with
/// the copies of it that have the same pipe.
struct PipedTile {
  llvm::SmallVector<tile::LoadOpInterface, 2> loads;
  /// Bytes of one slot, a multiple of hopper::tileAlignment.
  int64_t bytes = 0;
  /// True when a copy loads in a loop: then there is one slot per stage.
  bool inLoop = false;
  /// One load outside of loops that is the same for all tiles of the grid: a thread block that
  /// walks over tiles keeps it (hop-load-once), in one slot.
  bool isKept = false;
};

/// Slots of tiles that are gone over in the order of the program.
class SlotCounter {
public:
  /// `stages` are those of tiles that are loaded in loops, and `outerStages` of each other one.
  SlotCounter(const tile::NumberList &stages, const tile::NumberList &outerStages)
      : stages(stages), outerStages(outerStages) {}

  /// Slots of the next one.
  int64_t next(const PipedTile &tile) {
    return tile.inLoop ? nextInLoop() : tile.isKept ? 1 : outerStages.of(outerTiles++);
  }
  int64_t nextInLoop() { return stages.of(loopTiles++); }
  /// Those of rows of values, which are not counted.
  int64_t ofRows() const { return stages.of(0); }

private:
  tile::NumberList stages, outerStages;
  size_t loopTiles = 0, outerTiles = 0;
};

/// Whether the tile of `load` is one that a thread block keeps: see PipedTile.
bool isKeptTile(tile::LoadOpInterface load);

/// The tiles of `kernel` that are loaded into shared memory for dots, in program order.
llvm::SmallVector<PipedTile> pipedTiles(tile::KernelOp kernel);

/// The tiles that loops with dots of `kernel` load for arithmetic and that can come through a pipe
/// (producer = all), in program order: of rank 2, with loads of the same tiles outside of loops;
/// and of rank 1 for all rows of their tiles.
llvm::SmallVector<tile::LoadOp> fetchedLoads(tile::KernelOp kernel);

/// The number of pipes that tiles of rank 2 of `fetchedLoads` take.
size_t countFetchedMatrices(tile::KernelOp kernel);

/// Stores of tiles of one type to one view, which share a pipe to the role that makes them
/// (store = writer).
struct StoredTile {
  llvm::SmallVector<tile::StoreOp, 2> stores;
  mlir::RankedTensorType type;
};

/// The tiles that `kernel` stores and that can leave in bulk, in program order.
llvm::SmallVector<StoredTile> storedTiles(tile::KernelOp kernel);

/// Bytes of shared memory, by purpose.
struct SharedMemoryUse {
  int64_t tiles = 0;
  /// Computed tiles that dots read from shared memory.
  int64_t operands = 0;
  /// Tiles of rank 2 on their way to a bulk tensor store.
  int64_t staging = 0;
  /// A full and an empty mbarrier of 8 bytes for each slot.
  int64_t barriers = 0;
  /// The list of the grid points that a speculation runs again, with its mbarrier.
  int64_t retries = 0;
  /// The numbers of tiles that the roles get (persistent = dynamic), with their mbarriers.
  int64_t numbers = 0;
  /// The bounds that a role of its own finds, with their mbarriers.
  int64_t bounds = 0;
  /// What warps hand each other of reductions and scans.
  int64_t exchanges = 0;
  int64_t total() const {
    return tiles + operands + staging + barriers + retries + numbers + bounds + exchanges;
  }
};

/// What warps hand each other that have other rows of a kernel with dots: the parts of a reduction
/// along these, or of all elements, and the sums of a scan of 16 rows each.
int64_t exchangeBytes(tile::KernelOp kernel, int64_t consumers);

/// The loads of tiles of 8-bit elements, stored KxN, that dots of `kernel` read as b beside a
/// computed a: these have to be transposed.
llvm::SmallVector<tile::LoadOpInterface> loadsToTranspose(tile::KernelOp kernel);
/// What reads a tile of their pipes as it is loaded, which a transposer would hand on; null where
/// nothing does.
mlir::Operation *findReadAsLoaded(tile::KernelOp kernel);

/// Whether a role of its own transposes and has warps of the producer's warpgroup.
bool sharesTransposer(const tile::ScheduleFields &fields);
/// Whether it leaves one of them for a writer.
bool leavesWriter(const tile::ScheduleFields &fields);

/// The operations that find bounds for all other roles, in a role of its own (tile.reduce_range);
/// none where each role finds them for itself, as it has no producer or the producer's warpgroup no
/// warp for that role. Not those that only others of them are computed from.
llvm::SmallVector<tile::ReduceRangeOp> boundsOfFinder(tile::KernelOp kernel,
                                                      const tile::ScheduleFields &fields);

/// How many values of 32 bits these bounds are.
int64_t countWords(llvm::ArrayRef<tile::ReduceRangeOp> bounds);

/// Shared memory in which loaded operands of 8 bits are transposed: by each of `consumers`
/// warpgroups for itself, or on their way from a role of its own.
int64_t transposedBytes(tile::KernelOp kernel, int64_t consumers, bool isApart);

/// Shared memory of what a converter hands on.
int64_t convertedBytes(tile::KernelOp kernel);

/// The slots of each of their pipes: one where two leave no room for what is loaded.
int64_t slotsOfConverted(tile::KernelOp kernel);

/// Shared memory of what consumers with different dots hand on to each other, without the operands
/// of sums.
int64_t crossingBytes(tile::KernelOp kernel, const DotDivision &division);

/// The computed first operands of the dots of `kernel` that are in shared memory; dots of `apart`
/// are of another role.
llvm::SmallVector<mlir::OpOperand *> stagedOperands(tile::KernelOp kernel,
                                                    const llvm::DenseSet<mlir::Operation *> &apart);

/// Operands of dots that consumers compute, which are in shared memory: whether they can be there,
/// and their bytes.
struct ComputedOperands {
  int64_t bytes = 0;
  /// Why they cannot be in shared memory, or nothing.
  std::optional<std::string> refusal;
};
ComputedOperands computedFirstOperands(tile::KernelOp kernel, tile::PlacementKind placement);
ComputedOperands computedSecondOperands(tile::KernelOp kernel);

/// Shared memory of `kernel` without computed operands, with the slots that `stages` gives to the
/// tiles that are loaded in loops, and `outerStages` to the others.
/// Of `fields` those count that say what else lies in shared memory.
SharedMemoryUse sharedMemoryUse(tile::KernelOp kernel, const tile::NumberList &stages,
                                const tile::NumberList &outerStages,
                                const tile::ScheduleFields &fields);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_RESOURCEMODEL_H
