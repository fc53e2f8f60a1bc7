//===- LinearForm.h - Sums of tiles times scalars -------------------------===//

#ifndef TESSERA_PASSES_TILE_LINEARFORM_H
#define TESSERA_PASSES_TILE_LINEARFORM_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Value.h"

namespace tessera {

/// The tile of `type` whose elements are all `scalar`: a constant where it is one.
mlir::Value makeUniform(mlir::Value scalar, mlir::RankedTensorType type,
                        mlir::ImplicitLocOpBuilder &builder);

/// A sum of tiles of f32, each times a scalar. Scalars are combined before they meet a tile, so
/// that each term costs one multiply-add, and a term without a factor an addition or none.
class LinearForm {
public:
  /// One tile.
  explicit LinearForm(mlir::Value tile) : terms{{tile, {}, false}} {}

  void scale(mlir::Value factor, mlir::ImplicitLocOpBuilder &builder);
  void negate();
  void add(const LinearForm &other) { terms.append(other.terms.begin(), other.terms.end()); }

  /// The tile of `type` that the form is.
  mlir::Value materialize(mlir::RankedTensorType type, mlir::ImplicitLocOpBuilder &builder) const;

private:
  struct Term {
    mlir::Value tile;
    /// A scalar; null for 1.
    mlir::Value factor;
    bool isNegative;
  };

  llvm::SmallVector<Term, 4> terms;
};

} // namespace tessera

#endif // TESSERA_PASSES_TILE_LINEARFORM_H
