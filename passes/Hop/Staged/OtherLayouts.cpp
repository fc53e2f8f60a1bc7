//===- OtherLayouts.cpp - Tiles that are no accumulators of a role --------===//

#include "passes/Hop/Staged/OtherLayouts.h"

using namespace mlir;
using namespace tessera;
using hop::LayoutAttr;

bool tessera::isExchanged(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (isa_and_nonnull<tile::LoadOp>(op))
    return !op->use_empty() && llvm::all_of(op->getUsers(), llvm::IsaPred<tile::TransposeOp>);
  auto transpose = dyn_cast_or_null<tile::TransposeOp>(op);
  return transpose && !transpose.getSource().getDefiningOp<tile::LoadOp>();
}

LayoutAttr tessera::exchangeAxes(LayoutAttr layout) {
  auto exchange = [](ArrayRef<hop::LayoutDigit> digits) {
    return llvm::map_to_vector(digits, [](const hop::LayoutDigit &digit) {
      return hop::LayoutDigit{digit.extent, {digit.steps[1], digit.steps[0]}};
    });
  };
  return LayoutAttr::get(layout.getContext(), 2, exchange(layout.getRegisters()),
                         exchange(layout.getLanes()), exchange(layout.getWarps()),
                         exchange(layout.getWarpgroups()), /*partial=*/false);
}
