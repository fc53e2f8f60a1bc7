//===- OtherLayouts.cpp - Tiles that are no accumulators of a role --------===//

#include "passes/Hop/Staged/OtherLayouts.h"
#include "passes/Analysis/RowPartition.h"
#include "passes/Analysis/ScfFlow.h"
#include "passes/Analysis/VectorAxes.h"

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

/// The tiles of rank 2 of `op` that have the same rows as `tile`.
static SmallVector<Value> alikeIn(Operation *op, Value tile) {
  SmallVector<Value> alike;
  if (auto mma = dyn_cast<hop::MmaOp>(op)) {
    if (tile != mma.getB())
      alike = {mma.getA(), mma.getResult()};
    if (tile != mma.getB() && mma.getAcc())
      alike.push_back(mma.getAcc());
  } else if (OpTrait::hasElementwiseMappableTraits(op)) {
    llvm::append_range(alike, op->getOperands());
    llvm::append_range(alike, op->getResults());
  }
  return alike;
}

PairedRows::PairedRows(hop::RoleOp role) {
  role.walk([&](hop::FetchOp fetch) {
    if (fetch.getTransposed())
      tiles.insert(fetch.getTile());
  });
  for (size_t i = 0; i < tiles.size(); ++i) {
    Value tile = tiles[i];
    if (Operation *op = tile.getDefiningOp())
      addAll(alikeIn(op, tile));
    if (std::optional<Handover> handover = findHandoverTo(tile))
      addAll(handover->values());
    for (OpOperand &use : tile.getUses()) {
      if (std::optional<Handover> handover = findHandoverOf(use))
        addAll(handover->values());
      else
        addAll(alikeIn(use.getOwner(), tile));
    }
  }
}

/// Whether `op` makes or takes a number for each row, or has rows of a tile in shared memory, whose
/// order is fixed.
static bool namesRows(Operation *op) {
  if (auto mma = dyn_cast<hop::MmaOp>(op))
    return isa<hop::SharedType>(mma.getA().getType());
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return broadcast.getAxis() == 1;
  auto reduce = dyn_cast<tile::ReduceOp>(op);
  return reduce && reduce.getAxis() == 1;
}

LogicalResult PairedRows::verify() const {
  auto refuse = [](Operation *op) {
    return op->emitError("takes rows of a product whose first operand is extended from 8 bits and "
                         "transposed, and these are in another order; store the product, and go "
                         "on in a kernel of its own");
  };
  for (Value tile : tiles) {
    if (Operation *op = tile.getDefiningOp(); op && namesRows(op))
      return refuse(op);
    for (OpOperand &use : tile.getUses()) {
      Operation *user = use.getOwner();
      bool isB = isa<hop::MmaOp>(user) && use.getOperandNumber() == 1;
      if (isB || isa<hop::StageOp, hop::ColumnsOp>(user) || namesRows(user))
        return refuse(user);
    }
  }
  return success();
}

void PairedRows::addAll(ArrayRef<Value> values) {
  for (Value value : values)
    if (isTile(value) && cast<RankedTensorType>(value.getType()).getRank() == 2)
      tiles.insert(value);
}
