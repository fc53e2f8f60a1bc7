//===- AssignLayouts.cpp - Register layouts of a consumer's tiles ---------===//
//
// Implements hop-assign-layouts. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using hop::LayoutKind;
using tile::ReduceKind;

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
        "to turn one into the other, so load it a second time for one of the two");
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

/// Which row tiles may stay what each thread combined of its own elements: see the pass
/// description.
class PartialReductions {
public:
  PartialReductions(hop::RoleOp role, const VectorAxes &axes) {
    SmallVector<Value> rows;
    auto addRow = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (isVector(value) && type.getElementType().isF32() && axes.lookup(value) == LayoutKind::Row)
        rows.push_back(value);
    };
    role.walk([&](Operation *op) {
      llvm::for_each(op->getResults(), addRow);
      if (auto loop = dyn_cast<scf::ForOp>(op))
        llvm::for_each(loop.getRegionIterArgs(), addRow);
    });
    for (ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min, ReduceKind::maximum,
                            ReduceKind::minimum}) {
      llvm::erase_if(rows, [&](Value row) { return kinds.contains(row); });
      findPartial(kind, rows);
    }
  }

  /// How the quad's parts are combined; nothing for what each thread has whole.
  std::optional<ReduceKind> lookup(Value value) const {
    auto found = kinds.find(value);
    return found == kinds.end() ? std::nullopt : std::optional(found->second);
  }

  /// The value by whose parts `use` goes on, if those of its operand are parts.
  static Value continuation(OpOperand &use) {
    Operation *op = use.getOwner();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return loop.getTiedLoopRegionIterArg(&use);
    if (isa<scf::YieldOp>(op))
      return isa<scf::ForOp, scf::IfOp>(op->getParentOp())
                 ? op->getParentOp()->getResult(use.getOperandNumber())
                 : Value();
    return combinedKind(op) || isa<arith::MulFOp>(op) ? op->getResult(0) : Value();
  }

private:
  /// The kind of reduction that `op` continues, of two parts.
  static std::optional<ReduceKind> combinedKind(Operation *op) {
    return TypeSwitch<Operation *, std::optional<ReduceKind>>(op)
        .Case([](arith::AddFOp) { return ReduceKind::sum; })
        .Case([](arith::MaxNumFOp) { return ReduceKind::max; })
        .Case([](arith::MinNumFOp) { return ReduceKind::min; })
        .Case([](arith::MaximumFOp) { return ReduceKind::maximum; })
        .Case([](arith::MinimumFOp) { return ReduceKind::minimum; })
        .Default([](Operation *) { return std::nullopt; });
  }

  void findPartial(ReduceKind kind, ArrayRef<Value> rows) {
    llvm::SetVector<Value> partial(rows.begin(), rows.end());
    bool changed;
    do {
      changed = false;
      for (Value value : llvm::to_vector(partial.getArrayRef()))
        if (!staysPartial(value, kind, partial) || isNeededWhole(value, partial)) {
          partial.remove(value);
          changed = true;
        }
    } while (changed);
    for (Value value : partial)
      kinds[value] = kind;
  }

  /// True for a reduction with which nothing goes on by parts, and when a loop that carries rows
  /// would have to combine the parts in every iteration, for something else than the reduction it
  /// carries.
  static bool isNeededWhole(Value value, const llvm::SetVector<Value> &partial) {
    auto goesOn = [&](OpOperand &use) { return partial.contains(continuation(use)); };
    if (value.getDefiningOp<tile::ReduceOp>() && llvm::none_of(value.getUses(), goesOn))
      return true;
    Operation *parent = value.getParentBlock()->getParentOp();
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop)
      loop = parent->getParentOfType<scf::ForOp>();
    if (!loop || llvm::none_of(loop.getRegionIterArgs(), isVector))
      return false;
    return !llvm::all_of(value.getUses(), goesOn);
  }

  static bool staysPartial(Value value, ReduceKind kind, const llvm::SetVector<Value> &partial) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
      return partial.contains(loop.getYieldedValues()[argument.getArgNumber() - 1]);
    }
    Operation *op = value.getDefiningOp();
    unsigned i = cast<OpResult>(value).getResultNumber();
    return TypeSwitch<Operation *, bool>(op)
        .Case([&](tile::ReduceOp reduce) { return reduce.getKind() == kind; })
        .Case([&](arith::MulFOp mul) {
          return kind == ReduceKind::sum &&
                 partial.contains(mul.getLhs()) != partial.contains(mul.getRhs());
        })
        .Case([&](scf::ForOp loop) { return partial.contains(loop.getRegionIterArg(i)); })
        .Case([&](scf::IfOp conditional) {
          return partial.contains(conditional.thenYield().getOperand(i)) ||
                 partial.contains(conditional.elseYield().getOperand(i));
        })
        // Partial as soon as one side is; the other side is then spread too.
        .Default([&](Operation *op) {
          return combinedKind(op) == kind && llvm::any_of(op->getOperands(), [&](Value operand) {
                   return partial.contains(operand);
                 });
        });
  }

  DenseMap<Value, ReduceKind> kinds;
};

class LayoutAssigner {
public:
  LayoutAssigner(hop::RoleOp role, const VectorAxes &axes, const PartialReductions &partial)
      : role(role), axes(axes), partial(partial) {}

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
    LayoutKind kind = type.getRank() == 2     ? LayoutKind::Accumulator
                      : partial.lookup(value) ? LayoutKind::RowPartial
                                              : axes.lookup(value);
    RankedTensorType laidOut = hop::withLayout(type, kind);
    value.setType(laidOut);
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
        constant.setValueAttr(dense.reshape(laidOut));
  }

  /// How the parts that `operand`'s owner takes are combined; nothing where it takes whole rows.
  std::optional<ReduceKind> wanted(OpOperand &operand) {
    Value next = PartialReductions::continuation(operand);
    std::optional<ReduceKind> kind = next ? partial.lookup(next) : std::nullopt;
    // The factor that is itself partial stays so, the other one is whole.
    if (isa<arith::MulFOp>(operand.getOwner()) && kind != partial.lookup(operand.get()))
      return std::nullopt;
    return kind;
  }

  void convertOperands(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      auto kind = hop::getLayout(value.getType());
      if (!kind || (*kind != LayoutKind::Row && *kind != LayoutKind::RowPartial))
        continue;
      std::optional<ReduceKind> given = partial.lookup(value), target = wanted(operand);
      if (given == target)
        continue;
      OpBuilder builder(op);
      if (given)
        value = combine(builder, value, *given);
      operand.set(target ? spread(builder, value, *target) : value);
    }
    // A product by a row value keeps its result's type; only MulF mixes layouts.
    if (auto mul = dyn_cast<arith::MulFOp>(op); mul && isVector(mul.getResult()))
      makeProduct(mul);
  }

  /// Parts of whole rows.
  Value spread(OpBuilder &builder, Value value, ReduceKind kind) {
    auto type = hop::withLayout(cast<RankedTensorType>(value.getType()), LayoutKind::RowPartial);
    // Zero is its own partial sum, and every number its own maximum and minimum.
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
          dense && dense.isSplat() &&
          (kind != ReduceKind::sum || dense.getSplatValue<APFloat>().isZero()))
        return arith::ConstantOp::create(builder, constant.getLoc(), dense.reshape(type));
    return hop::ConvertLayoutOp::create(builder, value.getLoc(), type, kind, value);
  }

  /// Whole rows of their parts.
  Value combine(OpBuilder &builder, Value value, ReduceKind kind) {
    auto type = hop::withLayout(cast<RankedTensorType>(value.getType()), LayoutKind::Row);
    return hop::ConvertLayoutOp::create(builder, value.getLoc(), type, kind, value);
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
  const PartialReductions &partial;
};

struct AssignLayoutsPass : tessera::impl::AssignLayoutsBase<AssignLayoutsPass> {
  void runOnOperation() override {
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      if (!role.isElected() && failed(assign(role)))
        return signalPassFailure();
  }

  LogicalResult assign(hop::RoleOp role) {
    rematerialize(role);
    VectorAxes axes;
    if (failed(checkRanks(role)) || failed(axes.run(role)))
      return failure();
    if (failed(checkVectors(role, axes)))
      return failure();
    PartialReductions partial(role, axes);
    LayoutAssigner(role, axes, partial).run();
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
                unit = isColumn ? hopper::mmaColumns : hopper::mmaRows;
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
        if (type.getRank() == 2 &&
            (type.getNumElements() == 0 || type.getDimSize(0) % hopper::mmaRows != 0 ||
             type.getDimSize(1) % hopper::mmaColumns != 0))
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
