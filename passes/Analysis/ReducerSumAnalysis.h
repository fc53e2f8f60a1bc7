//===- ReducerSumAnalysis.h - Dots that can run in a role of their own ----===//
//
// A sum over grid points: a dot of a computed tile, in a loop with other dots, whose result only
// leaves by a store that adds it to memory. Nothing in the grid point waits for it, so that
// another role than that of the other dots can make it (placement = apart).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_REDUCERSUMANALYSIS_H
#define TESSERA_PASSES_ANALYSIS_REDUCERSUMANALYSIS_H

#include "dialects/Tile/ScheduleFields.h"
#include "dialects/Tile/Tile.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera {

/// The blocks of a cluster that exchange operands, and add half of the columns of a sum each.
constexpr int64_t exchangingBlocks = 2;

/// Whether a schedule of `fields` asks for such sums.
inline bool exchangesSums(const tile::ScheduleFields &fields) {
  return fields.cluster == tile::ClusterKind::Exchange;
}

struct ReducerSum {
  tile::StoreOp store;
  tile::DotOp dot;
  /// The store, the dot, what stands between them, and the transpose of the computed operand:
  /// nothing else needs any of them.
  llvm::SmallVector<mlir::Operation *> operations;
  /// What makes the computed operand, which other operations may need too.
  mlir::Operation *operand;

  /// Nothing but the store reads what the dot makes.
  bool isDotStored() const {
    return tile::DotOp(dot).getResult() == tile::StoreOp(store).getValue();
  }
};

/// The parts of a sum that the role makes one after the other, so that it gets by with fewer
/// registers: rows of the result, or columns. Of an exchanged sum it makes half of the columns, for
/// both blocks of a cluster.
struct SumParts {
  int64_t count;
  bool ofRows;
  mlir::RankedTensorType tile;
  /// What leaves at a time: a part, or a piece of its columns. Pieces of an exchanged sum leave
  /// room in shared memory for the operands of two blocks, and of a part without another one that
  /// waits for tickets a copy reads one while the next is written.
  mlir::RankedTensorType stored;

  int64_t pieces() const { return tile.getDimSize(1) / stored.getDimSize(1); }

  /// Tiles of `stored` that leave in a step, part by part.
  int64_t stores() const { return count * pieces(); }

  /// Parts of the columns that the role makes.
  int64_t ofColumns() const { return ofRows ? 1 : count; }
};
SumParts partsOf(const ReducerSum &sum, const tile::ScheduleFields &schedule);

/// The places in shared memory that `count` tiles of one type take in turns which a step adds to
/// memory, so that a copy reads one while another is written. Those of pieces are small.
int64_t placesOfSums(int64_t count, bool ofPieces);

/// Slots in which the role hands what leaves of a sum to a writer.
int64_t slotsForWriter(const ReducerSum &sum, const tile::ScheduleFields &schedule);

/// Whether another thread than the writer passes tickets on (`hop-schedule-tickets`).
bool hasTicketPasser(llvm::ArrayRef<ReducerSum> sums, const tile::ScheduleFields &schedule);

/// Tickets of a tile of a sum in a fixed order: one for each block that adds to it.
int64_t ticketsOf(const tile::ScheduleFields &schedule);

/// Whether a tile of the sum can have several: they are counted as tiles of fewer columns.
bool dividesTickets(const ReducerSum &sum, int64_t tickets);

/// The sums of `kernel` that a role of its own can make, in program order. Empty where no other dot
/// would be left.
llvm::SmallVector<ReducerSum> findReducerSums(tile::KernelOp kernel);

/// The operations of all sums of `kernel`, where `placement` puts them in a role of their own.
llvm::DenseSet<mlir::Operation *> reducerOperations(tile::KernelOp kernel,
                                                    tile::PlacementKind placement);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_REDUCERSUMANALYSIS_H
