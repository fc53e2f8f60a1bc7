//===- SumOrderAnalysis.h - Grid points that add to one tile --------------===//
//
// Which grid points add to a tile of a view, and which of them is before and behind another when
// they follow each other along a grid index.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_SUMORDERANALYSIS_H
#define TESSERA_PASSES_ANALYSIS_SUMORDERANALYSIS_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/GridOrder.h"

namespace tessera {

/// A store that adds tiles to a view. The grid points that add to one tile differ in grid index
/// `dim` alone, and their numbers follow each other without a gap.
struct OrderedSum {
  tile::StoreOp store;
  unsigned dim;
  /// The loops around the store whose bounds depend on that index, from within: a grid point adds
  /// to the tiles within their bounds. A tile says in which iteration of each it is reached, which
  /// is the same one at all grid points.
  llvm::SmallVector<mlir::scf::ForOp> loops;
};

struct OrderedSums {
  /// Those to which several grid points add.
  llvm::SmallVector<OrderedSum> sums;
  /// Where no order can be found, and why.
  mlir::Operation *refused = nullptr;
  std::string refusal;
};

OrderedSums findOrderedSums(tile::KernelOp kernel);

/// Whether the end of `loop` says nothing of who comes to a tile that loops `within` it do not say.
/// `loop` ends at k - f / s, and in its iteration i one within goes over the part k - i - 1 of s
/// iterations, from f on at least: behind the end of `loop` nothing of that is left.
bool followsFromWithin(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::scf::ForOp> within);

/// What keeps sums from an order in which some sections of the grid go through their loops from
/// their ends, and why.
struct TurnRefusal {
  mlir::Operation *op;
  std::string reason;
};
std::optional<TurnRefusal> whyNoTurns(tile::KernelOp kernel, llvm::ArrayRef<OrderedSum> sums);

/// The side on which the outermost loop that decides begins later as the index grows: of two grid
/// points the one that begins later is to add first, as it is where the other one comes.
Trend beginTrend(tile::KernelOp kernel, const OrderedSum &sum);

/// By how many tiles of `sum` neighbouring grid points lie apart, where both are of one sequence.
int64_t tilesApart(tile::KernelOp kernel, const OrderedSum &sum);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_SUMORDERANALYSIS_H
