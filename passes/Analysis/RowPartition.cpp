//===- RowPartition.cpp - Which tiles are divided among warpgroups --------===//

#include "passes/Analysis/RowPartition.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

static bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

FailureOr<RowPartition> RowPartition::get(tile::KernelOp kernel, int64_t parts) {
  // Without products warpgroups share tiles by their layout, in rows or in columns.
  bool multiplies =
      kernel.walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
  RowPartition result(multiplies ? parts : 1);
  result.byLayout = !multiplies;
  if (result.parts > 1 && failed(result.run(kernel)))
    return failure();
  return result;
}

bool RowPartition::isRematerializable(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp>(op);
}

Type RowPartition::shareOf(Type type) const {
  auto tile = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tile.getShape());
  shape[0] /= parts;
  return RankedTensorType::get(shape, tile.getElementType());
}

LogicalResult RowPartition::run(tile::KernelOp kernel) {
  do {
    changed = false;
    WalkResult walk = kernel.walk(
        [&](Operation *op) { return WalkResult(failed(visit(op)) ? failure() : success()); });
    if (walk.wasInterrupted())
      return failure();
  } while (changed);
  for (auto [value, state] : partitioned) {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t rows = type.getRank() == 0 ? 1 : type.getDimSize(0);
    if (state == State::Partitioned && rows % parts != 0)
      return indivisible(value.getLoc(), rows);
  }
  WalkResult walk = kernel.walk(
      [&](Operation *op) { return WalkResult(failed(checkShares(op)) ? failure() : success()); });
  return failure(walk.wasInterrupted());
}

bool RowPartition::divides(Operation *op, int64_t parts) {
  auto boxIsDivisible = [&](auto access, Value tile) {
    auto type = dyn_cast<RankedTensorType>(tile.getType());
    return !type || tile::TileBox(access.getView().getType(), type, access.getBox())
                        .slice(parts)
                        .has_value();
  };
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](tile::LoadOp load) { return boxIsDivisible(load, load.getResult()); })
      .Case([&](tile::StoreOp store) { return boxIsDivisible(store, store.getValue()); })
      .Case([&](tile::IotaOp iota) {
        int64_t rows = cast<RankedTensorType>(iota.getType()).getDimSize(0);
        int64_t share = rows / parts, period = iota.getPeriodOrExtent();
        return iota.getAxis() != 0 ||
               (rows % parts == 0 && (share % period == 0 || period % share == 0));
      })
      .Default([](Operation *) { return true; });
}

/// Refuses an access or an iota whose shares would be neither whole parts of its box nor made up of
/// them.
LogicalResult RowPartition::checkShares(Operation *op) {
  bool isDivided = isa<tile::StoreOp>(op);
  // The operands of a dot come through shared memory; where it begins is in registers.
  auto isOperand = [](OpOperand &use) {
    auto dot = dyn_cast<tile::DotOp>(use.getOwner());
    return dot && (&use == &dot.getAMutable() || &use == &dot.getBMutable());
  };
  if (isa<tile::LoadOp>(op))
    isDivided = isPartitioned(op->getResult(0)) && llvm::none_of(op->getUses(), isOperand);
  if (isa<tile::IotaOp>(op))
    isDivided = llvm::any_of(op->getUses(), [&](OpOperand &use) { return wantsPartitioned(use); });
  if (!isDivided || divides(op, parts))
    return success();
  int64_t extent = cast<RankedTensorType>(isa<tile::StoreOp>(op) ? op->getOperand(0).getType()
                                                                 : op->getResult(0).getType())
                       .getDimSize(0);
  return op->emitError("has rows that ")
         << parts << " consumer warpgroups cannot divide: the " << extent / parts
         << " of each would cut a dimension of the "
         << (isa<tile::IotaOp>(op) ? "tile that it repeats along" : "box")
         << " unevenly; choose extents that divide or are divided by them, or other consumers";
}

LogicalResult RowPartition::indivisible(Location loc, int64_t rows) {
  return emitError(loc) << "a tile of " << rows << " rows cannot be divided among " << parts
                        << " consumer warpgroups; choose consumers that divide it";
}

LogicalResult RowPartition::set(Operation *op, Value value, State state) {
  if (state == State::Unknown || isRematerializable(value))
    return success();
  State &current = partitioned[value];
  if (current == state)
    return success();
  if (current != State::Unknown)
    return op->emitError(
        "needs a tile both divided by rows among the consumer warpgroups and whole in "
        "each of them; use consumers = 1, or compute it twice");
  current = state;
  changed = true;
  return success();
}

LogicalResult RowPartition::unify(Operation *op, ArrayRef<Value> values) {
  State state = State::Unknown;
  for (Value value : values)
    if (!isRematerializable(value) && partitioned.lookup(value) != State::Unknown)
      state = partitioned.lookup(value);
  for (Value value : values)
    if (failed(set(op, value, state)))
      return failure();
  return success();
}

LogicalResult RowPartition::visitElementwise(Operation *op) {
  SmallVector<Value> tiles;
  llvm::copy_if(op->getOperands(), std::back_inserter(tiles), isTile);
  llvm::copy_if(op->getResults(), std::back_inserter(tiles), isTile);
  return unify(op, tiles);
}

LogicalResult RowPartition::visit(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::DotOp dot) {
        SmallVector<Value> rows = {dot.getResult(), dot.getA()};
        if (dot.getAcc())
          rows.push_back(dot.getAcc());
        for (Value value : rows)
          if (failed(set(op, value, State::Partitioned)))
            return failure();
        return set(op, dot.getB(), State::Whole);
      })
      .Case([&](tile::BroadcastOp broadcast) {
        if (broadcast.getAxis() == 0)
          return set(op, broadcast.getSource(), State::Whole);
        return unify(op, {broadcast.getSource(), broadcast.getResult()});
      })
      .Case([&](tile::ReduceOp reduce) {
        if (reduce.getAxis() == 1)
          return unify(op, {reduce.getSource(), reduce.getResult()});
        if (partitioned.lookup(reduce.getSource()) == State::Partitioned)
          return LogicalResult(op->emitError("reduces along rows that are divided among the "
                                             "consumer warpgroups; use consumers = 1"));
        return set(op, reduce.getResult(), State::Whole);
      })
      .Case([&](tile::TransposeOp transpose) {
        if (partitioned.lookup(transpose.getResult()) == State::Partitioned)
          return LogicalResult(op->emitError(
              "is the first operand of a dot whose rows are divided among the consumer warpgroups: "
              "these would be columns of the stored tile; use consumers = 1"));
        return set(op, transpose.getSource(), State::Whole);
      })
      .Case([&](scf::ForOp loop) {
        for (auto [init, argument, yielded, result] :
             llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(),
                       loop.getResults()))
          if (isTile(result) && failed(unify(op, {init, argument, yielded, result})))
            return failure();
        return success();
      })
      .Case([&](scf::IfOp conditional) {
        for (auto [i, result] : llvm::enumerate(conditional.getResults()))
          if (isTile(result) && failed(unify(op, {result, conditional.thenYield().getOperand(i),
                                                  conditional.elseYield().getOperand(i)})))
            return failure();
        return success();
      })
      .Case([&](tile::StoreOp store) -> LogicalResult {
        auto type = cast<RankedTensorType>(store.getValue().getType());
        if (isRematerializable(store.getValue()) && type.getDimSize(0) % parts != 0)
          return indivisible(store.getLoc(), type.getDimSize(0));
        return set(op, store.getValue(), State::Partitioned);
      })
      .Case<tile::KernelOp, tile::SpeculateOp, tile::LoadOp, tile::SplatOp, tile::IotaOp,
            scf::YieldOp, arith::ConstantOp>([](auto) { return success(); })
      .Default([&](Operation *) { return visitElementwise(op); });
}

bool RowPartition::wantsPartitioned(OpOperand &operand) const {
  if (parts == 1)
    return false;
  Operation *op = operand.getOwner();
  unsigned index = operand.getOperandNumber();
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](tile::DotOp) { return index != 1; })
      .Case([&](tile::BroadcastOp broadcast) {
        return broadcast.getAxis() == 1 && isPartitioned(broadcast.getResult());
      })
      .Case([&](tile::StoreOp) { return true; })
      .Case([&](scf::ForOp loop) {
        return isPartitioned(loop.getResult(index - loop.getNumControlOperands()));
      })
      .Case(
          [&](scf::YieldOp yield) { return isPartitioned(yield->getParentOp()->getResult(index)); })
      .Default(
          [&](Operation *) { return op->getNumResults() > 0 && isPartitioned(op->getResult(0)); });
}
