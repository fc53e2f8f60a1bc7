// Implements tile-widen-comparisons. See FunctionPasses.td.

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/IntegerRanges.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILEWIDENCOMPARISONS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Indices, and integers that are as wide as indices or wider. Narrower ones wrap.
static bool isWideEnough(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIndex() || element.isInteger(32) || element.isInteger(64);
}

/// The integer that all elements of a constant are.
static std::optional<int64_t> getSplatInteger(Value value) {
  DenseIntElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<APInt>().trySExtValue();
  return getConstantIntValue(value);
}

/// Whether `op` makes an integer that is as exact as its operands where it has 64 bits: sums and
/// what is made of them on the way to a comparison.
static bool isArithmetic(Operation *op) {
  if (op->getNumResults() != 1 || !isWideEnough(op->getResult(0).getType()))
    return false;
  if (isa<arith::ShLIOp, arith::ShRSIOp>(op)) {
    std::optional<int64_t> places = getSplatInteger(op->getOperand(1));
    return places && *places >= 0 && *places < 32;
  }
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MinSIOp, arith::MaxSIOp,
             arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
             arith::SelectOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::ShLIOp,
             arith::ShRSIOp, arith::ExtSIOp, arith::IndexCastOp, math::AbsIOp, SplatOp, BroadcastOp,
             TransposeOp, IotaOp>(op);
}

/// Whether `op` makes of sums that are equal modulo 2^32 something else: it asks which is larger.
static bool compares(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return isWideEnough(compare.getLhs().getType()) &&
           compare.getPredicate() <= arith::CmpIPredicate::sge;
  return isArithmetic(op) &&
         isa<arith::MinSIOp, arith::MaxSIOp, arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
             arith::CeilDivSIOp, arith::ShRSIOp, math::AbsIOp>(op);
}

namespace {
/// Rewrites the comparisons of one kernel.
class ComparisonWidener {
public:
  void run(KernelOp kernel);

private:
  bool isExact(Value value) { return !inexact.contains(value); }
  void visit(Operation *op);
  void widenBounds(MutableArrayRef<OpOperand> bounds);
  void widenComparison(Operation *op);
  Value widen(Value value);
  Value makeWide(Value value);
  bool isMadeOfWide(Value value);
  Value narrow(Value wide, Type type, OpBuilder &builder);
  Operation *cloneWide(Operation *op, OpBuilder &builder);

  IntegerRanges ranges;
  /// What may not be what it is in whole numbers.
  llvm::DenseSet<Value> inexact;
  llvm::DenseMap<Value, Value> wide;
};
} // namespace

static Type toWide(Type type) {
  Type i64 = IntegerType::get(type.getContext(), 64);
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? Type(tile.clone(i64)) : i64;
}

/// An exact number in 64 bits.
static Value extend(Value exact) {
  ImplicitLocOpBuilder builder(exact.getLoc(), exact.getContext());
  builder.setInsertionPointAfterValue(exact);
  Type type = toWide(exact.getType());
  if (exact.getType() == type)
    return exact;
  if (exact.getType().isIndex())
    return builder.createOrFold<arith::IndexCastOp>(type, exact);
  return builder.createOrFold<arith::ExtSIOp>(type, exact);
}

/// `op`, whose operands have been widened, in 64 bits.
Operation *ComparisonWidener::cloneWide(Operation *op, OpBuilder &builder) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isWideEnough(operand.getType()) ? wide.lookup(operand) : operand);
  SmallVector<Type> types;
  for (Type type : op->getResultTypes())
    types.push_back(isWideEnough(type) ? toWide(type) : type);
  // Flags that say that nothing wraps would say it of the narrow operation.
  NamedAttrList attributes = op->getAttrs();
  attributes.erase("overflowFlags");
  OperationState state(op->getLoc(), op->getName(), operands, types, attributes);
  return builder.create(state);
}

/// Whether `value` in 64 bits is made of its operands in 64 bits: where it is not exact, and what
/// repeats a few numbers.
bool ComparisonWidener::isMadeOfWide(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isArithmetic(op) && (!isExact(value) || isa<SplatOp, BroadcastOp>(op));
}

/// What `value` is in whole numbers; those that it is made of are there.
Value ComparisonWidener::makeWide(Value value) {
  if (!isMadeOfWide(value))
    return extend(value);
  Operation *op = value.getDefiningOp();
  ImplicitLocOpBuilder builder(op->getLoc(), op->getContext());
  builder.setInsertionPointAfter(op);
  // A cast to 64 bits is what it casts.
  if (isa<arith::ExtSIOp, arith::IndexCastOp>(op))
    return wide.lookup(op->getOperand(0));
  auto iota = dyn_cast<IotaOp>(op);
  if (!iota)
    return cloneWide(op, builder)->getResult(0);
  Value zero = arith::ConstantIndexOp::create(builder, 0);
  auto type = cast<RankedTensorType>(iota.getType());
  Value steps = IotaOp::create(builder, type, zero, iota.getAxisAttr(), iota.getPeriodAttr());
  Value extended = arith::ExtSIOp::create(builder, toWide(type), steps);
  Value start = SplatOp::create(builder, toWide(type), wide.lookup(iota.getStart()));
  return arith::AddIOp::create(builder, start, extended);
}

Value ComparisonWidener::widen(Value value) {
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Value next = open.back();
    Operation *op = next.getDefiningOp();
    size_t count = open.size();
    if (!wide.contains(next) && isMadeOfWide(next))
      for (Value operand : op->getOperands())
        if (isWideEnough(operand.getType()) && !wide.contains(operand))
          open.push_back(operand);
    if (open.size() != count)
      continue;
    if (!wide.contains(next)) {
      Value made = makeWide(next);
      wide[next] = made;
    }
    open.pop_back();
  }
  return wide.lookup(value);
}

/// A number of 64 bits as one of `type`: the nearest index, or the low bits of another integer.
Value ComparisonWidener::narrow(Value value, Type type, OpBuilder &builder) {
  Location loc = value.getLoc();
  if (value.getType() == type)
    return value;
  if (!type.isIndex())
    return arith::TruncIOp::create(builder, loc, type, value);
  if (IntegerRange range = ranges.of(value); !range.fits(bitsOfIntegers(type))) {
    IntegerRange all = IntegerRange::ofBits(bitsOfIntegers(type));
    auto limit = [&](int64_t number) -> Value {
      return arith::ConstantIntOp::create(builder, loc, value.getType(), number);
    };
    value = arith::MaxSIOp::create(builder, loc, value, limit(all.least));
    value = arith::MinSIOp::create(builder, loc, value, limit(all.most));
  }
  return arith::IndexCastOp::create(builder, loc, type, value);
}

void ComparisonWidener::widenComparison(Operation *op) {
  for (Value operand : op->getOperands())
    widen(operand);
  OpBuilder builder(op);
  Operation *widened = cloneWide(op, builder);
  Value result = widened->getResult(0), old = op->getResult(0);
  if (old.getType() != result.getType()) {
    Value narrowed = narrow(result, old.getType(), builder);
    wide[narrowed] = result;
    if (!ranges.of(result).fits(bitsOfIntegers(old.getType())))
      inexact.insert(narrowed);
    result = narrowed;
  }
  old.replaceAllUsesWith(result);
}

/// Bounds of iterations are indices that are compared.
void ComparisonWidener::widenBounds(MutableArrayRef<OpOperand> bounds) {
  for (OpOperand &bound : bounds) {
    if (isExact(bound.get()) || !bound.get().getType().isIndex())
      continue;
    OpBuilder builder(bound.getOwner());
    bound.set(narrow(widen(bound.get()), bound.get().getType(), builder));
  }
}

void ComparisonWidener::visit(Operation *op) {
  if (isa<scf::ForOp, VisitsOp>(op))
    return widenBounds(op->getOpOperands().take_front(2));
  auto isInexact = [&](Value operand) { return !isExact(operand); };
  bool fromInexact = llvm::any_of(op->getOperands(), isInexact);
  if (fromInexact && compares(op))
    return widenComparison(op);
  if (isArithmetic(op) && (fromInexact || ranges.mayWrap(op->getResult(0))))
    inexact.insert(op->getResult(0));
}

void ComparisonWidener::run(KernelOp kernel) {
  // What is added on the way is exact already.
  SmallVector<Operation *> all;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) { all.push_back(op); });
  for (Operation *op : all)
    visit(op);
  // Only then, as values are known by where they are in memory.
  bool isChanged = !wide.empty();
  for (Operation *op : llvm::reverse(all))
    if (isChanged && (compares(op) || isArithmetic(op)) && isOpTriviallyDead(op))
      op->erase();
}

namespace {
struct TileWidenComparisonsPass
    : tessera::impl::TileWidenComparisonsBase<TileWidenComparisonsPass> {
  void runOnOperation() override { ComparisonWidener().run(getOperation()); }
};
} // namespace
