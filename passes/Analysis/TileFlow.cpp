//===- TileFlow.cpp - Tiles that have one form ----------------------------===//

#include "passes/Analysis/TileFlow.h"
#include "dialects/Tile/Tile.h"

using namespace mlir;
using namespace tessera;

static Handover handoverOf(tile::SpeculateOp speculation, unsigned number) {
  return {speculation,
          {speculation.getFastYield().getValues()[number],
           speculation.getExactYield().getValues()[number]},
          {speculation.getResult(number)}};
}

std::optional<Handover> tessera::findTileHandoverTo(Value value) {
  if (auto speculation = value.getDefiningOp<tile::SpeculateOp>())
    return handoverOf(speculation, cast<OpResult>(value).getResultNumber());
  return findHandoverTo(value);
}

std::optional<Handover> tessera::findTileHandoverOf(OpOperand &use) {
  Operation *op = use.getOwner();
  auto speculation = dyn_cast<tile::SpeculateOp>(op->getParentOp());
  if (!speculation || !isa<tile::YieldOp, tile::YieldIfOp>(op))
    return findHandoverOf(use);
  // The first operand of a tile.yield_if decides.
  unsigned before = isa<tile::YieldIfOp>(op), operand = use.getOperandNumber();
  return operand < before ? std::nullopt : std::optional(handoverOf(speculation, operand - before));
}

SmallVector<Handover> tessera::findTileHandovers(Value value) {
  SmallVector<Handover> handovers;
  if (std::optional<Handover> to = findTileHandoverTo(value))
    handovers.push_back(*to);
  for (OpOperand &use : value.getUses())
    if (std::optional<Handover> of = findTileHandoverOf(use))
      handovers.push_back(*of);
  return handovers;
}

bool tessera::keepsForm(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) || isa<tile::ScanOp>(op);
}

void tessera::closeOverAlike(llvm::SetVector<Value> &tiles,
                             function_ref<SmallVector<Value>(Operation *op, Value tile)> alikeIn,
                             function_ref<bool(Value)> belongs) {
  for (size_t i = 0; i < tiles.size(); ++i) {
    Value tile = tiles[i];
    auto add = [&](ArrayRef<Value> values) {
      tiles.insert_range(llvm::make_filter_range(values, belongs));
    };
    for (const Handover &handover : findTileHandovers(tile))
      add(handover.values());
    if (Operation *op = tile.getDefiningOp())
      add(alikeIn(op, tile));
    for (Operation *user : tile.getUsers())
      add(alikeIn(user, tile));
  }
}
