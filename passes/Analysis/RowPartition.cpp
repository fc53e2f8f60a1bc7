//===- RowPartition.cpp - Which tiles are divided among warpgroups --------===//

#include "passes/Analysis/RowPartition.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/Analysis/ScfFlow.h"
#include "passes/Analysis/VectorAxes.h"
#include "passes/Analysis/WidenedOperands.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

FailureOr<RowPartition> RowPartition::get(tile::KernelOp kernel, int64_t parts,
                                          const DenseSet<Operation *> &elsewhere) {
  // Without products warpgroups share tiles by their layout, in rows or in columns.
  bool multiplies =
      kernel.walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
  RowPartition result(multiplies ? parts : 1);
  result.byLayout = !multiplies;
  if (result.parts > 1 && failed(result.run(kernel, elsewhere)))
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

LogicalResult RowPartition::run(tile::KernelOp kernel, const DenseSet<Operation *> &elsewhere) {
  auto forEach = [&](function_ref<LogicalResult(Operation *)> check) {
    WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
      return elsewhere.contains(op) ? success() : check(op);
    });
    return failure(walk.wasInterrupted());
  };
  do {
    changed = false;
    if (failed(forEach([&](Operation *op) { return visit(op); })))
      return failure();
  } while (changed);
  for (auto [value, state] : partitioned) {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t rows = type.getRank() == 0 ? 1 : type.getDimSize(0);
    if (state == State::Partitioned && rows % parts != 0)
      return indivisible(value.getLoc(), rows);
  }
  return forEach([&](Operation *op) {
    return success(succeeded(checkShares(op)) && succeeded(checkPartialSum(op)));
  });
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
      .Case([&](tile::StoreOp store) {
        // What is transposed on its way is no warpgroup's part of the rows.
        bool isWhole = parts > 1 && store.getValue().getDefiningOp<tile::TransposeOp>();
        return !isWhole && boxIsDivisible(store, store.getValue());
      })
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
  auto store = dyn_cast<tile::StoreOp>(op);
  bool isDivided = store && !isPartialSum(store.getValue());
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
  if (current == State::PartialSum || (state == State::PartialSum && current != State::Unknown))
    return op->emitError("takes a partial sum, of which each of the ")
           << parts
           << " consumer warpgroups has the part of its rows: it may be scaled by a number, "
           << "added to another partial sum, or carried by a loop, and only a store that adds it "
              "to "
           << "memory (tile.store ... add) resolves it; use one, or consumers = 1";
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

/// The contraction of a transposed computed tile runs over its divided rows.
LogicalResult RowPartition::visitDot(tile::DotOp dot) {
  tile::TransposeOp transpose = computedTranspose(dot.getA());
  State ofResult = transpose ? State::PartialSum : State::Partitioned;
  if (failed(set(dot, dot.getA(), transpose ? State::Columns : State::Partitioned)) ||
      failed(set(dot, dot.getResult(), ofResult)) ||
      (dot.getAcc() && failed(set(dot, dot.getAcc(), ofResult))))
    return failure();
  // Each warpgroup writes its rows of a computed operand to shared memory, and reads all.
  State ofB = !computedB(dot)                                 ? State::Whole
              : dot.getB().getDefiningOp<tile::TransposeOp>() ? State::Columns
                                                              : State::Partitioned;
  return set(dot, dot.getB(), ofB);
}

LogicalResult RowPartition::visitReduce(tile::ReduceOp reduce) {
  if (partitioned.lookup(reduce.getSource()) == State::PartialSum)
    return reduce.getKind() == tile::ReduceKind::sum
               ? set(reduce, reduce.getResult(), State::PartialSum)
               : set(reduce, reduce.getSource(), State::Whole);
  if (reduce.getAxis() == 1)
    return unify(reduce, {reduce.getSource(), reduce.getResult()});
  if (partitioned.lookup(reduce.getSource()) != State::Partitioned)
    return set(reduce, reduce.getResult(), State::Whole);
  if (reduce.getKind() == tile::ReduceKind::sum)
    return set(reduce, reduce.getResult(), State::PartialSum);
  return reduce.emitError("reduces along rows that are divided among the consumer warpgroups; use "
                          "consumers = 1");
}

/// Each warpgroup brings what it has: of a sum every element once.
LogicalResult RowPartition::visitReduceAll(tile::ReduceAllOp reduce) {
  bool isSum = reduce.getKind() == tile::ReduceKind::sum;
  if (partitioned.lookup(reduce.getSource()) == State::PartialSum)
    return isSum ? success() : set(reduce, reduce.getSource(), State::Whole);
  return isSum ? set(reduce, reduce.getSource(), State::Partitioned) : success();
}

/// Along its rows a warpgroup scans what it has, which is all of them or refused.
LogicalResult RowPartition::visitScan(tile::ScanOp scan) {
  if (scan.getAxis() == 0 && partitioned.lookup(scan.getSource()) == State::Partitioned)
    return scan.emitError("scans along rows that are divided among the consumer warpgroups; use "
                          "consumers = 1, or scan in a kernel without a tile.dot");
  return unify(scan, {scan.getSource(), scan.getResult()});
}

/// A loaded tile is transposed by how a dot reads it: rows that a warpgroup has of the result are
/// columns of the tile in shared memory, which all of them have.
LogicalResult RowPartition::visitTranspose(tile::TransposeOp transpose) {
  if (loadedOperand(transpose.getResult()) || widenedLoad(transpose.getResult()))
    return set(transpose, transpose.getSource(), State::Whole);
  State state = partitioned.lookup(transpose.getResult());
  return set(transpose, transpose.getSource(),
             state == State::Columns ? State::Partitioned : state);
}

LogicalResult RowPartition::visitStore(tile::StoreOp store) {
  Value value = store.getValue();
  if (!isTile(value))
    return success();
  if (store.getAdd() && partitioned.lookup(value) == State::PartialSum)
    return success();
  auto type = cast<RankedTensorType>(value.getType());
  if (isRematerializable(value) && type.getDimSize(0) % parts != 0)
    return indivisible(store.getLoc(), type.getDimSize(0));
  return set(store, value, State::Partitioned);
}

/// Of a partial sum each warpgroup adds its part of every element.
LogicalResult RowPartition::visitScatter(tile::ScatterAddOp scatter) {
  bool isPart = partitioned.lookup(scatter.getValue()) == State::PartialSum;
  for (Value operand : scatter->getOperands())
    if (isTile(operand) && !(isPart && operand == scatter.getValue()) &&
        failed(set(scatter, operand, isPart ? State::Whole : State::Partitioned)))
      return failure();
  return success();
}

/// Refuses what no partial sum can be: the sum of all parts would be another number.
LogicalResult RowPartition::checkPartialSum(Operation *op) {
  if (isa<tile::DotOp, scf::ForOp, scf::YieldOp>(op)) {
    for (OpOperand &operand : op->getOpOperands())
      if (failed(checkStart(operand)))
        return failure();
    return success();
  }
  if (op->getNumResults() != 1 || !isPartialSum(op->getResult(0)) ||
      isa<tile::ReduceOp, scf::IfOp>(op))
    return success();
  auto isPart = [&](Value value) { return isPartialSum(value); };
  bool isLinear = isa<arith::MulFOp>(op) ? llvm::count_if(op->getOperands(), isPart) == 1
                  : isa<arith::AddFOp, arith::SubFOp, arith::NegFOp>(op)
                      ? llvm::all_of(op->getOperands(), isPart)
                      : false;
  return isLinear
             ? success()
             : LogicalResult(op->emitError("computes with a partial sum, of which each of the ")
                             << parts << " consumer warpgroups has a part: it may be scaled by a "
                             << "number or added to another one; add it to memory (tile.store "
                             << "... add) and go on in a kernel of its own, or use consumers = 1");
}

/// Refuses a partial sum that starts with another tile than zero, which every warpgroup would add.
LogicalResult RowPartition::checkStart(OpOperand &operand) {
  Value value = operand.get();
  if (!isTile(value) || !isRematerializable(value))
    return success();
  Operation *op = operand.getOwner();
  unsigned index = operand.getOperandNumber();
  bool starts = false;
  if (auto dot = dyn_cast<tile::DotOp>(op))
    starts = index == 2 && isPartialSum(dot.getResult());
  else if (std::optional<Handover> handover = findHandoverOf(operand))
    starts = isPartialSum(handover->to.back());
  if (!starts || matchPattern(value, m_AnyZeroFloat()))
    return success();
  return op->emitError("starts a partial sum with a tile that is not zero, and each of the ")
         << parts
         << " consumer warpgroups would add it; start with zero and add the tile to memory "
         << "by itself, or use consumers = 1";
}

LogicalResult RowPartition::visit(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::DotOp dot) { return visitDot(dot); })
      .Case([&](tile::BroadcastOp broadcast) {
        if (broadcast.getAxis() == 0)
          return set(op, broadcast.getSource(), State::Whole);
        return unify(op, {broadcast.getSource(), broadcast.getResult()});
      })
      .Case([&](tile::ReduceOp reduce) { return visitReduce(reduce); })
      .Case([&](tile::ReduceAllOp reduce) { return visitReduceAll(reduce); })
      .Case([&](tile::ScanOp scan) { return visitScan(scan); })
      .Case([&](tile::TransposeOp transpose) { return visitTranspose(transpose); })
      .Case<scf::ForOp, scf::IfOp>([&](Operation *op) {
        for (const Handover &handover : getHandovers(op))
          if (isTile(handover.to.back()) && failed(unify(op, handover.values())))
            return failure();
        return success();
      })
      .Case([&](tile::StoreOp store) { return visitStore(store); })
      .Case([&](tile::GatherRunsOp) { return success(); })
      .Case([&](tile::GatherOp gather) {
        // What goes through a pipe is divided there, and the numbers are of another role.
        return isLoadedForDots(gather) ? success() : visitElementwise(gather);
      })
      .Case([&](tile::ScatterOp) {
        for (Value operand : op->getOperands())
          if (isTile(operand) && failed(set(op, operand, State::Partitioned)))
            return failure();
        return success();
      })
      .Case([&](tile::ScatterAddOp scatter) { return visitScatter(scatter); })
      .Case<tile::KernelOp, tile::SpeculateOp, tile::LoadOp, tile::SplatOp, tile::IotaOp,
            scf::YieldOp, arith::ConstantOp>([](auto) { return success(); })
      .Default([&](Operation *) { return visitElementwise(op); });
}

bool RowPartition::wantsPartitioned(OpOperand &operand) const {
  if (parts == 1)
    return false;
  if (std::optional<Handover> handover = findHandoverOf(operand))
    return isPartitioned(handover->to.back());
  Operation *op = operand.getOwner();
  unsigned index = operand.getOperandNumber();
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](tile::DotOp dot) { return index != 2 || isPartitioned(dot.getResult()); })
      .Case([&](tile::BroadcastOp broadcast) {
        return broadcast.getAxis() == 1 && isPartitioned(broadcast.getResult());
      })
      .Case<tile::StoreOp, tile::ScatterOp>([&](auto) { return true; })
      .Case([&](tile::ReduceAllOp reduce) {
        return reduce.getKind() == tile::ReduceKind::sum && !isPartialSum(reduce.getSource());
      })
      .Case([&](tile::ScatterAddOp scatter) { return !isPartialSum(scatter.getValue()); })
      .Case([&](tile::TransposeOp transpose) {
        return partitioned.lookup(transpose.getResult()) == State::Columns;
      })
      .Default(
          [&](Operation *) { return op->getNumResults() > 0 && isPartitioned(op->getResult(0)); });
}
