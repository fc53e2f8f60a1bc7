// Tiles of integers as sums: of what all elements have in common, of what they have along an axis,
// and of quotients of such sums.

#ifndef TESSERA_PASSES_ANALYSIS_TILEFORM_H
#define TESSERA_PASSES_ANALYSIS_TILEFORM_H

#include "passes/Analysis/InductionBounds.h"

namespace tessera {

/// The index along an axis modulo a period, which is the extent of the axis for the index itself.
using AxisIndex = std::pair<int64_t, int64_t>;

struct TileForm;

/// coefficient * floor(dividend / divisor), of a divisor above 0.
struct TileQuotient {
  int64_t coefficient;
  std::shared_ptr<const TileForm> dividend;
  int64_t divisor;
};

/// slope * iv + sum(coefficient * symbol) + constant + sum(coefficient * (index along an axis))
/// + sum(coefficient * (what is loaded for each row or column)) + sum(quotient).
struct TileForm {
  InductionBound same; ///< what all elements have in common, without quotients
  llvm::SmallMapVector<AxisIndex, int64_t, 2> axes;
  llvm::SmallMapVector<mlir::Value, int64_t, 2> loaded;
  llvm::SmallVector<TileQuotient> quotients;
  unsigned nesting = 0; ///< of quotients

  /// Adds `factor * other`; false when a coefficient leaves 64 bits.
  bool add(const TileForm &other, int64_t factor);
  bool isConstant() const;
  /// Whether it changes from iteration to iteration.
  bool moves() const;
  /// The same in a tile whose axes are exchanged.
  void exchangeAxes();
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_TILEFORM_H
