//===- OtherLayouts.h - Tiles that are no accumulators of a role ----------===//
//
// Which tiles of rank 2 of a role with products are laid out otherwise than the others. For
// hop-assign-layouts.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_STAGED_OTHERLAYOUTS_H
#define TESSERA_PASSES_HOP_STAGED_OTHERLAYOUTS_H

#include "dialects/Hop/Hop.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

/// Whether `tile` has the axes of the other tiles exchanged: it is loaded to be transposed, or
/// transposed to be stored.
bool isExchanged(mlir::Value tile);

/// `layout` with its axes exchanged.
hop::LayoutAttr exchangeAxes(hop::LayoutAttr layout);

/// The tiles of rank 2 that have the rows of an operand which is read transposed: what products
/// make with it, and what goes with that element by element.
class PairedRows {
public:
  explicit PairedRows(hop::RoleOp role);

  bool contains(mlir::Value tile) const { return tiles.contains(tile); }

  /// Refuses what has rows in another order.
  mlir::LogicalResult verify() const;

private:
  void addAll(llvm::ArrayRef<mlir::Value> values);

  llvm::SetVector<mlir::Value> tiles;
};

} // namespace tessera

#endif // TESSERA_PASSES_HOP_STAGED_OTHERLAYOUTS_H
