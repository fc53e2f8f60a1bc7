//===- LinearForm.h - Sums of tiles times scalars -------------------------===//

#ifndef TESSERA_PASSES_TILE_LINEARFORM_H
#define TESSERA_PASSES_TILE_LINEARFORM_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Value.h"
#include <memory>
#include <optional>

namespace tessera {

/// The tile of `type` whose elements are all `scalar`: a constant where it is one.
mlir::Value makeUniform(mlir::Value scalar, mlir::RankedTensorType type,
                        mlir::ImplicitLocOpBuilder &builder);

/// A sum of tiles of f32, each times a scalar, and of a scalar. Scalars are combined before they
/// meet a tile, so that each term costs one multiply-add, and a term without a factor an addition
/// or none. A tile may be times what rows or columns have a number of, which takes the scalar. It
/// may be times a sum: a factor of the product is one of the sum's scalars. A choice between
/// scalars is a term too, whose scalars take what it is multiplied with.
class LinearForm {
public:
  /// A tile, or a scalar; of null 0.
  explicit LinearForm(mlir::Value value);
  /// The product of two sums, neither of which is a scalar.
  static LinearForm multiply(const LinearForm &a, const LinearForm &b, mlir::RankedTensorType type,
                             mlir::ImplicitLocOpBuilder &builder);

  /// `a` where the condition holds, a scalar or a tile, and else `b`. What both have in common is
  /// not chosen: (x + 1) or x is x and a choice of 1 and 0, and 2 x or x is x times one of 2 and 1.
  /// None where nothing is in common.
  static std::optional<LinearForm> choose(mlir::Value condition, const LinearForm &a,
                                          const LinearForm &b, mlir::RankedTensorType type,
                                          mlir::ImplicitLocOpBuilder &builder);

  void scale(mlir::Value factor, mlir::ImplicitLocOpBuilder &builder);
  void negate(mlir::ImplicitLocOpBuilder &builder);
  void add(const LinearForm &other, mlir::ImplicitLocOpBuilder &builder);
  /// The scalar that a product has, which is without it then; null for 1.
  mlir::Value takeFactor(mlir::ImplicitLocOpBuilder &builder);

  /// One tile times a scalar: to take it several times costs nothing.
  bool isSingle() const { return isProduct() && !terms.front().vector; }

  /// The tile of `type` that the form is.
  mlir::Value materialize(mlir::RankedTensorType type, mlir::ImplicitLocOpBuilder &builder) const;

private:
  struct Term {
    mlir::Value tile;
    /// A scalar; null for 1.
    mlir::Value factor;
    bool isNegative = false;
    /// What the tile is multiplied with; null for 1.
    std::shared_ptr<const LinearForm> inner;
    /// A tile.broadcast that it is multiplied with; null for 1.
    mlir::Value vector;

    bool isProduct() const { return factor || inner || vector; }
    /// A number for each row, of which a thread has few, with axis 1, for each column with 0.
    bool isOf(int64_t axis) const;
    void multiply(mlir::Value other, mlir::ImplicitLocOpBuilder &builder);
    bool operator==(const Term &other) const {
      return tile == other.tile && factor == other.factor && isNegative == other.isNegative &&
             inner == other.inner && vector == other.vector;
    }
  };
  /// Two scalars, null for 0, by a tile of i1.
  struct Choice {
    mlir::Value condition, first, second;
    bool operator==(const Choice &other) const {
      return condition == other.condition && first == other.first && second == other.second;
    }
  };

  /// A product of tiles and scalars, without a sum in it.
  bool isProduct() const {
    return choices.empty() && terms.size() == 1 && !scalar && !terms.front().inner;
  }
  bool isScalar() const { return terms.empty() && choices.empty(); }
  mlir::Value getScalar(mlir::ImplicitLocOpBuilder &builder) const;
  void addScalar(mlir::Value value, mlir::ImplicitLocOpBuilder &builder);
  mlir::Value materialize(const Term &term, mlir::RankedTensorType type,
                          mlir::ImplicitLocOpBuilder &builder) const;

  /// The same form with one row term of all, the scalar in it, where that saves something.
  LinearForm withRowsJoined(mlir::RankedTensorType type, mlir::ImplicitLocOpBuilder &builder) const;
  /// The same of columns.
  LinearForm withColumnsJoined(mlir::RankedTensorType type,
                               mlir::ImplicitLocOpBuilder &builder) const;
  Term joinVectors(mlir::RankedTensorType type, int64_t axis,
                   mlir::ImplicitLocOpBuilder &builder) const;
  /// The tile that a form without choices is.
  mlir::Value materializeTerms(mlir::RankedTensorType type,
                               mlir::ImplicitLocOpBuilder &builder) const;
  mlir::Value materializeChoices(mlir::RankedTensorType type,
                                 mlir::ImplicitLocOpBuilder &builder) const;

  llvm::SmallVector<Term, 4> terms;
  llvm::SmallVector<Choice, 1> choices;
  /// Null for 0.
  mlir::Value scalar;
};

} // namespace tessera

#endif // TESSERA_PASSES_TILE_LINEARFORM_H
