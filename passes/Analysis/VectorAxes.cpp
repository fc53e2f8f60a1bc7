//===- VectorAxes.cpp - Along which axis the tiles of rank 1 lie ----------===//

#include "passes/Analysis/VectorAxes.h"
#include "dialects/Hop/Hop.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/RowPartition.h"
#include "passes/Analysis/ScfFlow.h"

using namespace mlir;
using namespace tessera;

/// Values of an op that have one layout: groups of tiles that must agree.
/// Calls `group` once for each.
static void forEachGroup(Operation *op, function_ref<void(ArrayRef<Value>)> group) {
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op)) {
    for (const Handover &handover : getHandovers(op))
      if (isTile(handover.to.front()))
        group(handover.values());
    return;
  }
  if (isa<scf::YieldOp, scf::ConditionOp, tile::BroadcastOp, tile::ReduceOp, tile::LoadOp,
          tile::StoreOp, tile::DotOp, tile::TransposeOp, hop::MmaOp>(op))
    return;
  SmallVector<Value> tiles;
  llvm::copy_if(op->getOperands(), std::back_inserter(tiles), isTile);
  llvm::copy_if(op->getResults(), std::back_inserter(tiles), isTile);
  if (!tiles.empty())
    group(tiles);
}

LogicalResult VectorAxes::run(Operation *program) {
  do {
    changed = false;
    WalkResult walk = program->walk([&](Operation *op) {
      return failed(visit(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
  } while (changed);
  return success();
}

bool tessera::isMadeForEachUse(Value value) {
  return RowPartition::isRematerializable(value) && !value.hasOneUse();
}

LogicalResult VectorAxes::set(Operation *op, Value value, int64_t axis) {
  if (isMadeForEachUse(value))
    return success();
  auto [entry, inserted] = axes.try_emplace(value, axis);
  changed |= inserted;
  if (entry->second == axis)
    return success();
  return op->emitError(
      "needs a rank-1 tile both along rows and along columns; there is no cheap way "
      "to turn one into the other, so load it a second time for one of the two");
}

LogicalResult VectorAxes::setAll(Operation *op, ValueRange values, int64_t axis) {
  for (Value value : values)
    if (failed(set(op, value, axis)))
      return failure();
  return success();
}

LogicalResult VectorAxes::visit(Operation *op) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return set(op, broadcast.getSource(), 1 - broadcast.getAxis());
  if (auto gather = dyn_cast<tile::GatherOp>(op); gather && !isVector(gather.getResult()))
    return setAll(op, gather.getRows(), 0);
  if (auto gather = dyn_cast<hop::GatherOp>(op))
    return setAll(op, gather.getRows(), 0);
  if (auto scatter = dyn_cast<tile::ScatterOp>(op); scatter && !isVector(scatter.getValue()))
    return setAll(op, scatter.getRows(), 0);
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return set(op, reduce.getResult(), 1 - reduce.getAxis());
  LogicalResult result = success();
  forEachGroup(op, [&](ArrayRef<Value> values) {
    const auto *known =
        llvm::find_if(values, [&](Value v) { return isVector(v) && axes.contains(v); });
    if (known == values.end())
      return;
    int64_t axis = lookup(*known);
    for (Value value : values)
      if (isVector(value) && succeeded(result))
        result = set(op, value, axis);
  });
  return result;
}
