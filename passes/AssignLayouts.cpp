//===- AssignLayouts.cpp - Register layouts of a consumer's tiles ---------===//
//
// Implements hop-assign-layouts. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/HopPasses.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "passes/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using hop::LayoutKind;

namespace {

bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }
bool isVector(Value value) {
  return isTile(value) && cast<RankedTensorType>(value.getType()).getRank() == 1;
}

bool isRematerializable(Operation *op) {
  return isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp>(op) && op->getNumResults() == 1 &&
         isTile(op->getResult(0));
}

/// Values of an op that have one layout: groups of tiles that must agree.
/// Calls `group` once for each.
void forEachGroup(Operation *op, function_ref<void(SmallVector<Value>)> group) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [init, argument, yielded, result] :
         llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(),
                   loop.getResults()))
      if (isTile(result))
        group({init, argument, yielded, result});
    return;
  }
  if (auto conditional = dyn_cast<scf::IfOp>(op)) {
    for (auto [i, result] : llvm::enumerate(conditional.getResults()))
      if (isTile(result))
        group(
            {result, conditional.thenYield().getOperand(i), conditional.elseYield().getOperand(i)});
    return;
  }
  if (isa<scf::YieldOp, tile::BroadcastOp, tile::ReduceOp, tile::LoadOp, tile::StoreOp, hop::MmaOp>(
          op))
    return;
  SmallVector<Value> tiles;
  llvm::copy_if(op->getOperands(), std::back_inserter(tiles), isTile);
  llvm::copy_if(op->getResults(), std::back_inserter(tiles), isTile);
  if (!tiles.empty())
    group(tiles);
}

/// Whether each rank-1 tile follows rows or columns.
class VectorAxes {
public:
  LogicalResult run(hop::RoleOp role) {
    do {
      changed = false;
      WalkResult walk = role.walk([&](Operation *op) {
        return failed(visit(op)) ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (walk.wasInterrupted())
        return failure();
    } while (changed);
    return success();
  }

  LayoutKind lookup(Value value) const {
    auto found = axes.find(value);
    return found == axes.end() ? LayoutKind::Row : found->second;
  }

private:
  LogicalResult set(Operation *op, Value value, LayoutKind kind) {
    auto [entry, inserted] = axes.try_emplace(value, kind);
    changed |= inserted;
    if (entry->second == kind)
      return success();
    return op->emitError(
        "needs a rank-1 tile both along rows and along columns; there is no cheap way "
        "to turn one into the other, so load or compute it twice");
  }

  LogicalResult visit(Operation *op) {
    if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
      return set(op, broadcast.getSource(),
                 broadcast.getAxis() == 1 ? LayoutKind::Row : LayoutKind::Column);
    if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
      if (reduce.getAxis() == 0)
        return op->emitError(
            "reduces along the rows, which are spread over the warps of a warpgroup; "
            "reduce along axis 1, or transpose the dot that makes this tile");
      return set(op, reduce.getResult(), LayoutKind::Row);
    }
    LogicalResult result = success();
    forEachGroup(op, [&](SmallVector<Value> values) {
      const auto *known =
          llvm::find_if(values, [&](Value v) { return isVector(v) && axes.contains(v); });
      if (known == values.end())
        return;
      LayoutKind kind = axes.lookup(*known);
      for (Value value : values)
        if (isVector(value) && succeeded(result))
          result = set(op, value, kind);
    });
    return result;
  }

  bool changed = false;
  DenseMap<Value, LayoutKind> axes;
};

/// Which row tiles may stay sums over their quad: see the pass description.
class PartialSums {
public:
  PartialSums(hop::RoleOp role, const VectorAxes &axes) {
    role.walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (mayBePartial(result) && axes.lookup(result) == LayoutKind::Row &&
            isa<tile::ReduceOp, arith::AddFOp, arith::MulFOp, scf::ForOp, scf::IfOp>(op))
          partial.insert(result);
      if (auto loop = dyn_cast<scf::ForOp>(op))
        for (Value argument : loop.getRegionIterArgs())
          if (mayBePartial(argument) && axes.lookup(argument) == LayoutKind::Row)
            partial.insert(argument);
    });
    bool changed;
    do {
      changed = false;
      for (Value value : llvm::to_vector(partial.getArrayRef()))
        if (!staysPartial(value)) {
          partial.remove(value);
          changed = true;
        }
    } while (changed);
  }

  bool contains(Value value) const { return partial.contains(value); }

private:
  static bool mayBePartial(Value value) {
    return isVector(value) && cast<RankedTensorType>(value.getType()).getElementType().isF32();
  }

  bool staysPartial(Value value) const {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
      return partial.contains(loop.getYieldedValues()[argument.getArgNumber() - 1]);
    }
    Operation *op = value.getDefiningOp();
    unsigned i = cast<OpResult>(value).getResultNumber();
    return TypeSwitch<Operation *, bool>(op)
        .Case([](tile::ReduceOp reduce) { return reduce.getKind() == tile::ReduceKind::sum; })
        // A sum is partial as soon as one side is; the other side is then spread too.
        .Case([&](arith::AddFOp add) {
          return partial.contains(add.getLhs()) || partial.contains(add.getRhs());
        })
        .Case([&](arith::MulFOp mul) {
          return partial.contains(mul.getLhs()) != partial.contains(mul.getRhs());
        })
        .Case([&](scf::ForOp loop) { return partial.contains(loop.getYieldedValues()[i]); })
        .Case([&](scf::IfOp conditional) {
          return partial.contains(conditional.thenYield().getOperand(i)) ||
                 partial.contains(conditional.elseYield().getOperand(i));
        })
        .Default([](Operation *) { return false; });
  }

  llvm::SetVector<Value> partial;
};

class LayoutAssigner {
public:
  LayoutAssigner(hop::RoleOp role, const VectorAxes &axes, const PartialSums &sums)
      : role(role), axes(axes), sums(sums) {}

  void run() {
    SmallVector<Operation *> ops;
    role.walk<WalkOrder::PreOrder>([&](Operation *op) {
      ops.push_back(op);
      for (Value result : op->getResults())
        retype(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            retype(argument);
    });
    for (Operation *op : ops)
      convertOperands(op);
  }

private:
  void retype(Value value) {
    if (!isTile(value))
      return;
    auto type = cast<RankedTensorType>(value.getType());
    LayoutKind kind = type.getRank() == 2    ? LayoutKind::Accumulator
                      : sums.contains(value) ? LayoutKind::RowPartial
                                             : axes.lookup(value);
    RankedTensorType laidOut = hop::withLayout(type, kind);
    value.setType(laidOut);
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
        constant.setValueAttr(dense.reshape(laidOut));
  }

  /// The layout in which `operand`'s owner takes a row tile.
  LayoutKind wanted(OpOperand &operand) {
    Operation *op = operand.getOwner();
    unsigned index = operand.getOperandNumber();
    auto layoutOf = [](Value value) { return *hop::getLayout(value.getType()); };
    return TypeSwitch<Operation *, LayoutKind>(op)
        .Case([&](arith::AddFOp add) { return layoutOf(add.getResult()); })
        .Case([&](arith::MulFOp mul) {
          // The factor that is itself partial stays so, the other one is whole.
          bool keeps =
              layoutOf(mul.getResult()) == LayoutKind::RowPartial && sums.contains(operand.get());
          return keeps ? LayoutKind::RowPartial : LayoutKind::Row;
        })
        .Case([&](scf::ForOp loop) {
          return layoutOf(loop.getRegionIterArg(index - loop.getNumControlOperands()));
        })
        .Case([&](scf::YieldOp yield) { return layoutOf(yield->getParentOp()->getResult(index)); })
        .Default([](Operation *) { return LayoutKind::Row; });
  }

  void convertOperands(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      auto kind = hop::getLayout(value.getType());
      if (!kind || (*kind != LayoutKind::Row && *kind != LayoutKind::RowPartial))
        continue;
      LayoutKind target = wanted(operand);
      if (target == *kind)
        continue;
      OpBuilder builder(op);
      operand.set(convert(builder, value, target));
    }
    // A product by a row value keeps its result's type; only MulF mixes layouts.
    if (auto mul = dyn_cast<arith::MulFOp>(op); mul && isVector(mul.getResult()))
      makeProduct(mul);
  }

  Value convert(OpBuilder &builder, Value value, LayoutKind target) {
    auto type = hop::withLayout(cast<RankedTensorType>(value.getType()), target);
    // Zero is its own partial sum.
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
          dense && dense.isSplat() && dense.getSplatValue<APFloat>().isZero())
        return arith::ConstantOp::create(builder, constant.getLoc(), dense.reshape(type));
    return hop::ConvertLayoutOp::create(builder, value.getLoc(), type, value);
  }

  /// partial * row: the operands' types differ, so say that the row value is taken as it is.
  void makeProduct(arith::MulFOp mul) {
    if (*hop::getLayout(mul.getType()) != LayoutKind::RowPartial)
      return;
    OpBuilder builder(mul);
    auto type = cast<RankedTensorType>(mul.getType());
    for (OpOperand &operand : mul->getOpOperands())
      if (*hop::getLayout(operand.get().getType()) == LayoutKind::Row)
        operand.set(hop::RowFactorOp::create(builder, mul.getLoc(), type, operand.get()));
  }

  hop::RoleOp role;
  const VectorAxes &axes;
  const PartialSums &sums;
};

struct AssignLayoutsPass : tessera::impl::AssignLayoutsBase<AssignLayoutsPass> {
  void runOnOperation() override {
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      if (role.getKind() == hop::RoleKind::Consumer && failed(assign(role)))
        return signalPassFailure();
  }

  LogicalResult assign(hop::RoleOp role) {
    rematerialize(role);
    VectorAxes axes;
    if (failed(checkRanks(role)) || failed(axes.run(role)))
      return failure();
    if (failed(checkVectors(role, axes)))
      return failure();
    PartialSums sums(role, axes);
    LayoutAssigner(role, axes, sums).run();
    return success();
  }

  /// A constant, splat or iota costs nothing, so each use has its own: uses may want
  /// different layouts. Constants may stand outside the role.
  void rematerialize(hop::RoleOp role) {
    SmallVector<OpOperand *> uses;
    role.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (Operation *def = operand.get().getDefiningOp(); def && isRematerializable(def))
          uses.push_back(&operand);
    });
    for (OpOperand *use : uses) {
      Operation *def = use->get().getDefiningOp();
      OpBuilder builder(use->getOwner());
      Operation *copy = builder.clone(*def);
      // Folding makes constants without a place; that of the use serves in errors.
      if (isa<UnknownLoc>(copy->getLoc()))
        copy->setLoc(use->getOwner()->getLoc());
      use->set(copy->getResult(0));
      if (def->use_empty())
        def->erase();
    }
  }

  /// Rows are spread in blocks of 64 and columns of 8, for rank 1 as for rank 2.
  LogicalResult checkVectors(hop::RoleOp role, const VectorAxes &axes) {
    WalkResult walk = role.walk([&](Operation *op) -> WalkResult {
      for (Value result : op->getResults()) {
        if (!isVector(result))
          continue;
        bool isColumn = axes.lookup(result) == LayoutKind::Column;
        int64_t extent = cast<RankedTensorType>(result.getType()).getDimSize(0),
                unit = isColumn ? 8 : 64;
        if (extent < 1 || extent % unit != 0)
          return op->emitError("makes a tile of ")
                 << extent << (isColumn ? " columns" : " rows")
                 << " for each warpgroup; registers hold multiples of " << unit;
      }
      return success();
    });
    return failure(walk.wasInterrupted());
  }

  static bool fitsRegisters(Type element) {
    return element.isF32() || element.isF16() || element.isBF16() || element.isInteger(1) ||
           element.isInteger(32) || element.isInteger(64);
  }

  LogicalResult checkRanks(hop::RoleOp role) {
    WalkResult walk = role.walk([](Operation *op) -> WalkResult {
      for (Value result : op->getResults()) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        if (!type)
          continue;
        if (!type.hasStaticShape() || !fitsRegisters(type.getElementType()))
          return op->emitError("makes a tile ")
                 << type
                 << "; tiles in registers have a static shape and elements f32, f16, bf16, i1, "
                    "i32 or i64";
        if (type.getRank() < 1 || type.getRank() > 2)
          return op->emitError("makes a tile of rank ") << type.getRank()
                                                        << "; tiles in registers have rank "
                                                           "1 or 2";
        if (type.getRank() == 2 && (type.getNumElements() == 0 || type.getDimSize(0) % 64 != 0 ||
                                    type.getDimSize(1) % 8 != 0))
          return op->emitError("makes a tile of ")
                 << type.getDimSize(0) << "x" << type.getDimSize(1)
                 << " for each warpgroup; registers hold multiples of 64 rows and 8 columns";
      }
      return success();
    });
    return failure(walk.wasInterrupted());
  }
};

} // namespace
