//===- RowPartition.h - Which tiles are divided among warpgroups ----------===//
//
// The rows of a dot's result belong to one consumer warpgroup each. This analysis
// says which tiles of a kernel follow those rows (partitioned: a warpgroup holds
// its share) and which every warpgroup holds whole. A dot that contracts the divided
// rows, of a computed tile that is transposed, makes a partial sum: each warpgroup has
// a tile of the whole shape, and the result is the sum of all. So does a sum along
// divided rows. Only an addition to memory resolves it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_ROWPARTITION_H
#define TESSERA_PASSES_ANALYSIS_ROWPARTITION_H

#include "dialects/Tile/Tile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera {

class RowPartition {
public:
  /// Analyses `kernel` for `parts` consumers; reports what cannot be divided. They do not run the
  /// operations `elsewhere`.
  static mlir::FailureOr<RowPartition> get(tile::KernelOp kernel, int64_t parts,
                                           const llvm::DenseSet<mlir::Operation *> &elsewhere = {});

  int64_t getParts() const { return parts; }

  /// Whether all warpgroups run the same program on whole tiles, which their layout divides: a
  /// kernel without products.
  bool isByLayout() const { return byLayout; }

  /// Whether a warpgroup holds only its share of the rows of `value`.
  bool isPartitioned(mlir::Value value) const {
    return parts > 1 && partitioned.lookup(value) == State::Partitioned;
  }
  /// Whether each warpgroup holds a part of every element of `value`.
  bool isPartialSum(mlir::Value value) const {
    return parts > 1 && partitioned.lookup(value) == State::PartialSum;
  }
  /// Whether a warpgroup's share is what `operand`'s owner wants of it. Differs from the value's
  /// own state for tiles that are made anew for each use.
  bool wantsPartitioned(mlir::OpOperand &operand) const;

  /// `type` of a warpgroup's share.
  mlir::Type shareOf(mlir::Type type) const;

  /// Whether `parts` warpgroups can have equal shares of what `op` loads, stores or counts along
  /// rows: each share of a box is a box, and shares and periods of an iota make up each other.
  static bool divides(mlir::Operation *op, int64_t parts);

  /// Constants, splats and iotas: made anew in the form that each use wants.
  static bool isRematerializable(mlir::Value value);

private:
  /// Columns: the transpose of a partitioned tile.
  enum class State { Unknown, Whole, Partitioned, Columns, PartialSum };

  RowPartition(int64_t parts) : parts(parts) {}
  mlir::LogicalResult run(tile::KernelOp kernel,
                          const llvm::DenseSet<mlir::Operation *> &elsewhere);
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult visitDot(tile::DotOp dot);
  mlir::LogicalResult visitReduce(tile::ReduceOp reduce);
  mlir::LogicalResult visitReduceAll(tile::ReduceAllOp reduce);
  mlir::LogicalResult visitScan(tile::ScanOp scan);
  mlir::LogicalResult visitTranspose(tile::TransposeOp transpose);
  mlir::LogicalResult visitStore(tile::StoreOp store);
  mlir::LogicalResult visitScatter(tile::ScatterAddOp scatter);
  mlir::LogicalResult visitElementwise(mlir::Operation *op);
  mlir::LogicalResult checkPartialSum(mlir::Operation *op);
  mlir::LogicalResult checkStart(mlir::OpOperand &operand);
  mlir::LogicalResult set(mlir::Operation *op, mlir::Value value, State state);
  mlir::LogicalResult unify(mlir::Operation *op, llvm::ArrayRef<mlir::Value> values);
  mlir::LogicalResult indivisible(mlir::Location loc, int64_t rows);
  mlir::LogicalResult checkShares(mlir::Operation *op);

  int64_t parts;
  bool byLayout = false, changed = false;
  llvm::DenseMap<mlir::Value, State> partitioned;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_ROWPARTITION_H
