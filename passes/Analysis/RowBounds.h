//===- RowBounds.h - The least and the largest value of a tile's rows -----===//
//
// Scalars that bound the elements of a tile that are loaded for each row, or for
// each column: so masks that compare with them bound loops.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_ROWBOUNDS_H
#define TESSERA_PASSES_ANALYSIS_ROWBOUNDS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <optional>

namespace tessera {

/// Whether a kernel only reads elements of a view, so that a load of one may stand anywhere.
bool isNeverStored(mlir::Value view);

class RowBounds {
public:
  /// What is bounded must be known before `user`, which is a loop or has the tile as an operand.
  explicit RowBounds(mlir::Operation *user)
      : user(user), loop(llvm::dyn_cast<mlir::scf::ForOp>(user)) {}

  /// Whether the integers of `tile` come from memory, differ along one axis at most, and are the
  /// same in all iterations of the loop, if it is one.
  bool covers(mlir::Value tile);

  /// The largest element of `tile`, which is covered, or with `largest` false the least: a
  /// tile.reduce_range before the user. Rows past the end of the grid count as the last one that is
  /// there.
  mlir::Value getElement(mlir::Value tile, bool largest);

  /// Whether any bound has been asked for.
  bool areUsed() const { return !elements.empty(); }

private:
  struct Found {
    std::optional<int64_t> axis; ///< along which elements differ
    bool loads = false;
    llvm::SmallVector<mlir::Value> scalars; ///< from outside of the tile's own computation
  };
  bool isKnown(mlir::Value value) { return !loop || loop.isDefinedOutsideOfLoop(value); }
  bool look(mlir::Value tile, Found &found, unsigned depth);
  bool lookAtAccess(mlir::Value view, mlir::ValueRange indices, Found &found);
  bool differsAlong(int64_t axis, mlir::Value tile, Found &found);

  mlir::Value slice(mlir::Value tile, mlir::Value number, mlir::OpBuilder &builder);
  mlir::Value loadAt(mlir::Location loc, mlir::Value view, mlir::ArrayRef<mlir::Value> places,
                     mlir::Value number, mlir::Type type, mlir::OpBuilder &builder);
  mlir::OpBuilder builderBehind(llvm::ArrayRef<mlir::Value> scalars);

  using Bounds = llvm::DenseMap<mlir::Value, std::array<mlir::Value, 2>>; ///< least, largest

  mlir::Operation *user;
  mlir::scf::ForOp loop; ///< null where the user is none
  Bounds elements;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_ROWBOUNDS_H
