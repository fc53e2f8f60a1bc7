//===- VectorAxes.h - Along which axis the tiles of rank 1 lie ------------===//
//
// A tile of rank 1 has a number for each row of the tiles of rank 2 that it goes
// with, or one for each column. Reductions and broadcasts say which, and what is
// computed element by element, or handed on by loops and conditionals, follows.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_VECTORAXES_H
#define TESSERA_PASSES_ANALYSIS_VECTORAXES_H

#include "dialects/Tile/Tile.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera {

inline bool isTile(mlir::Value value) { return mlir::isa<mlir::RankedTensorType>(value.getType()); }
inline bool isVector(mlir::Value value) {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type && type.getRank() == 1;
}

/// A constant, splat or iota with several uses, which can be made anew for each of them: it says
/// nothing of an axis, and lies along that of each use.
bool isMadeForEachUse(mlir::Value value);

class VectorAxes {
public:
  /// Tiles of which nothing says otherwise lie along `usual`: 0, the rows, where products have the
  /// rows of a tile divided among threads; else 1, so that neighbours are neighbours in memory.
  explicit VectorAxes(int64_t usual) : usual(usual) {}

  /// Looks at the operations in `program`; reports tiles that are needed along both axes.
  mlir::LogicalResult run(mlir::Operation *program);

  /// 0 for a number for each row, 1 for one for each column.
  int64_t lookup(mlir::Value value) const {
    auto found = axes.find(value);
    return found == axes.end() ? usual : found->second;
  }

private:
  mlir::LogicalResult set(mlir::Operation *op, mlir::Value value, int64_t axis);
  mlir::LogicalResult setAll(mlir::Operation *op, mlir::ValueRange values, int64_t axis);
  mlir::LogicalResult visit(mlir::Operation *op);

  int64_t usual;
  bool changed = false;
  llvm::DenseMap<mlir::Value, int64_t> axes;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_VECTORAXES_H
