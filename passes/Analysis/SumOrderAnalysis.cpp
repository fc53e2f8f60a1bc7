//===- SumOrderAnalysis.cpp - Grid points that add to one tile ------------===//

#include "passes/Analysis/SumOrderAnalysis.h"
#include "dialects/Tile/Entries.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/IndexFacts.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

namespace {

/// Finds the grid indices and iterations that a place determines.
class Place {
public:
  explicit Place(tile::KernelOp kernel) : kernel(kernel), arguments(kernel.getNumArguments()) {}

  /// Whether different values of what `index` is made of make different indices.
  bool add(Value index);
  /// Adds the loops that say over which iterations `loop` goes, where two of theirs leave it no
  /// iteration in common: it goes over a part of s iterations, those from s c on, and what c is
  /// made of follows from c.
  void addPartOf(scf::ForOp loop, const IndexDependence &others);
  bool determines(Value variable) const { return variables.contains(variable); }

private:
  bool addSum(Value a, Value b);
  bool isVariable(Value value) const;
  bool isFixed(Value value) const;

  Operation *kernel;
  unsigned arguments; ///< behind them come the grid indices
  llvm::SmallSetVector<Value, 8> variables;
};

} // namespace

/// A grid index or the iteration of a loop.
bool Place::isVariable(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(owner))
    return argument == loop.getInductionVar();
  return owner == kernel && argument.getArgNumber() >= arguments;
}

/// Whether `value` is the same everywhere in the grid.
bool Place::isFixed(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return cast<BlockArgument>(value).getOwner()->getParentOp() == kernel && !isVariable(value);
  return isa<tile::DimOp>(op) ||
         (isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
          llvm::all_of(op->getOperands(), [&](Value operand) { return isFixed(operand); }));
}

bool Place::add(Value index) {
  if (isVariable(index))
    return variables.insert(index), true;
  if (isFixed(index))
    return true;
  Operation *op = index.getDefiningOp();
  if (isa_and_nonnull<arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return add(op->getOperand(0));
  if (auto sum = dyn_cast_or_null<arith::AddIOp>(op))
    return addSum(sum.getLhs(), sum.getRhs());
  if (auto difference = dyn_cast_or_null<arith::SubIOp>(op)) {
    Value a = difference.getLhs(), b = difference.getRhs();
    return isFixed(b) ? add(a) : isFixed(a) && add(b);
  }
  if (auto product = dyn_cast_or_null<arith::MulIOp>(op))
    for (unsigned factor : {0, 1}) {
      APInt constant;
      if (matchPattern(product->getOperand(factor), m_ConstantInt(&constant)) &&
          constant.isStrictlyPositive())
        return add(product->getOperand(1 - factor));
    }
  return false;
}

/// A sum with what is fixed, or of two digits: n times a number, and an iteration from 0 up to n.
bool Place::addSum(Value a, Value b) {
  for (auto [moved, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (isFixed(other))
      return add(moved);
    auto argument = dyn_cast<BlockArgument>(other);
    auto product = moved.getDefiningOp<arith::MulIOp>();
    if (!argument || !product || !isVariable(argument))
      continue;
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || !matchPattern(loop.getLowerBound(), m_Zero()))
      continue;
    for (unsigned factor : {0, 1})
      if (product->getOperand(factor) == loop.getUpperBound() && isFixed(loop.getUpperBound()))
        return variables.insert(other), add(product->getOperand(1 - factor));
  }
  return false;
}

/// The values of which `bound` is the greatest, or the least.
template <typename Op>
static SmallVector<Value> listLimits(Value bound) {
  SmallVector<Value> limits = {bound};
  for (size_t i = 0; i < limits.size(); ++i) // which grow
    if (auto op = limits[i].getDefiningOp<Op>())
      limits.append({op.getLhs(), op.getRhs()});
  return limits;
}

/// The c of which `value` is `factor` times.
static Value divideBy(Value value, int64_t factor) {
  if (factor == 1)
    return value;
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    for (unsigned i : {0, 1})
      if (getConstantIntValue(product->getOperand(i)) == factor)
        return product->getOperand(1 - i);
  return Value();
}

/// Whether `value` is `dividend` divided by `divisor`, rounded down.
static bool isQuotient(Value value, Value dividend, int64_t divisor) {
  if (divisor == 1)
    return value == dividend;
  auto quotient = value.getDefiningOp<arith::DivUIOp>();
  return quotient && quotient.getLhs() == dividend &&
         getConstantIntValue(quotient.getRhs()) == divisor && isNonNegative(dividend);
}

namespace {
/// The part of a loop's iterations that its bounds leave: `extent` of them, from `extent` times
/// `number` on.
struct LoopPart {
  Value number;
  int64_t extent;
};
} // namespace

/// The parts within which `loop` stays, for all that its bounds say.
static SmallVector<LoopPart> listParts(scf::ForOp loop) {
  SmallVector<LoopPart> parts;
  SmallVector<Value> begins = listLimits<arith::MaxSIOp>(loop.getLowerBound());
  for (Value end : listLimits<arith::MinSIOp>(loop.getUpperBound()))
    for (Value begin : begins) {
      IndexTerms extent;
      extent.add(end, 1).add(begin, -1);
      Value number =
          extent.of.empty() && extent.constant > 0 ? divideBy(begin, extent.constant) : Value();
      if (number)
        parts.push_back({number, extent.constant});
    }
  return parts;
}

void Place::addPartOf(scf::ForOp loop, const IndexDependence &others) {
  for (const LoopPart &part : listParts(loop)) {
    Place place(cast<tile::KernelOp>(kernel));
    if (!others.contains(part.number) && place.add(part.number))
      variables.insert_range(place.variables);
  }
}

//===----------------------------------------------------------------------===//
// Sums of a kernel
//===----------------------------------------------------------------------===//

/// Why the tiles that `store` adds are no tiles of a grid over the view, each added as a whole.
static std::optional<std::string> whyNoTiles(tile::StoreOp store) {
  auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
  if (!type || type.getRank() != 2)
    return "adds no tile of rank 2, and a ticket is for a tile that one copy adds";
  if (store.getBox())
    return "adds a tile whose rows run over several dimensions of the view, and a ticket is for "
           "rows and columns of the last two";
  ValueRange indices = store.getIndices().take_back(2);
  for (auto [i, extent] : llvm::enumerate(type.getShape()))
    if (!matchPattern(indices[i], m_Zero()) && !isMultipleOf(indices[i], extent))
      return llvm::formatv("adds tiles that are not known to begin at multiples of their {0} {1}, "
                           "so that two may overlap",
                           extent, i == 0 ? "rows" : "columns")
          .str();
  unsigned stores = llvm::range_size(store.getView().getUsers());
  if (stores > 1)
    return "is not the only store to its view, and a tile has one ticket";
  return std::nullopt;
}

/// Whether a bound moves with `index` in one direction or not at all, and can be computed for
/// another one.
static bool isMonotone(Value bound, Value index, const IndexDependence &dependence) {
  if (!dependence.contains(bound))
    return true;
  if (!dependence.isArithmetic(bound))
    return false;
  Trend trend = trendOf(bound, index);
  return trend == Trend::Increasing || trend == Trend::Decreasing;
}

/// Whether bounds of loops in `loop` follow from its iteration.
static bool setsBounds(scf::ForOp loop) {
  IndexDependence iteration(loop.getInductionVar());
  return loop
      .walk([&](scf::ForOp inner) {
        bool follows = inner != loop && (iteration.contains(inner.getLowerBound()) ||
                                         iteration.contains(inner.getUpperBound()));
        return follows ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Adds the loops around the sum that decide who adds; returns why they do not leave grid points
/// without a gap between them.
static std::optional<std::string> findLoops(tile::KernelOp kernel, Place &place, OrderedSum &sum) {
  Value index = kernel.getGridIndex(sum.dim);
  IndexDependence dependence(index);
  for (Operation *op = sum.store->getParentOp(); op != kernel; op = op->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop) {
      auto conditional = dyn_cast<scf::IfOp>(op);
      if (!conditional || dependence.contains(conditional.getCondition()))
        return "stands where a condition decides which grid points add; move the sum out, or let "
               "the bounds of a loop decide";
      continue;
    }
    if (!place.determines(loop.getInductionVar()))
      return setsBounds(loop) ? "stands in a loop that sets the bounds of another one, and two of "
                                "its iterations are not known to come to different tiles: bounds "
                                "within s c and s c + s, for an s that is constant and a c that is "
                                "another one for each iteration and the same one for all grid "
                                "points"
                              : "adds to the same tile in each iteration of a loop around it; add "
                                "up there, and store the sum behind the loop";
    place.addPartOf(loop, dependence);
    Value end = varyingEnd(loop, dependence);
    if (!dependence.contains(loop.getLowerBound()) && !dependence.contains(end))
      continue;
    if (!isMonotone(loop.getLowerBound(), index, dependence) || !isMonotone(end, index, dependence))
      return "stands in a loop whose bounds are not known to move in one direction as the grid "
             "index grows, so that the grid point before another at a tile is not known";
    if (dependence.contains(loop.getLowerBound()) && !matchPattern(loop.getStep(), m_One()))
      return "stands in a loop that begins elsewhere for each grid point and has another step than "
             "1, so that the grid point before another at a tile is not known";
    sum.loops.push_back(loop);
  }
  return std::nullopt;
}

/// Adds `store` to `found`; returns why there is no order for it.
static std::optional<std::string> addSum(tile::KernelOp kernel, tile::StoreOp store,
                                         OrderedSums &found) {
  if (std::optional<std::string> why = whyNoTiles(store))
    return why;
  Place place(kernel);
  for (Value index : store.getIndices())
    if (!place.add(index))
      return "adds at an index that is not known to be another one for each grid point and "
             "iteration: a sum of those times constants, or n a + b with b from 0 up to n";
  SmallVector<unsigned> free;
  for (unsigned dim = 0; dim < kernel.getGridRank(); ++dim)
    if (!place.determines(kernel.getGridIndex(dim)))
      free.push_back(dim);
  if (free.size() > 1)
    return "is added to by grid points that differ in several grid indices, and an order follows "
           "one";
  OrderedSum sum{store, free.empty() ? 0 : free.front(), {}};
  if (std::optional<std::string> why = findLoops(kernel, place, sum))
    return why;
  if (!free.empty())
    found.sums.push_back(std::move(sum));
  return std::nullopt;
}

OrderedSums tessera::findOrderedSums(tile::KernelOp kernel) {
  OrderedSums found;
  kernel.walk([&](Operation *op) -> WalkResult {
    std::optional<std::string> why;
    if (isa<tile::ScatterAddOp>(op))
      why = "adds element by element, and a ticket is for a tile that one copy adds";
    else if (auto store = dyn_cast<tile::StoreOp>(op); store && store.getAdd())
      why = addSum(kernel, store, found);
    if (!why)
      return success();
    found.refused = op;
    found.refusal = *why;
    return failure();
  });
  return found;
}

bool tessera::followsFromWithin(scf::ForOp loop, ArrayRef<scf::ForOp> within) {
  auto end = loop.getUpperBound().getDefiningOp<arith::SubIOp>();
  if (!end)
    return false;
  return llvm::any_of(within, [&](scf::ForOp inner) {
    SmallVector<Value> begins = listLimits<arith::MaxSIOp>(inner.getLowerBound());
    return llvm::any_of(listParts(inner), [&](const LoopPart &part) {
      IndexTerms ahead;
      ahead.add(end.getLhs(), 1).add(loop.getInductionVar(), -1).add(part.number, -1);
      bool isLast = ahead.of.empty() && ahead.constant == 1;
      return isLast && llvm::any_of(begins, [&](Value begin) {
               return isQuotient(end.getRhs(), begin, part.extent);
             });
    });
  });
}

Trend tessera::beginTrend(tile::KernelOp kernel, const OrderedSum &sum) {
  scf::ForOp outermost = sum.loops.empty() ? scf::ForOp() : sum.loops.back();
  return outermost ? trendOf(outermost.getLowerBound(), kernel.getGridIndex(sum.dim))
                   : Trend::Constant;
}

int64_t tessera::tilesApart(tile::KernelOp kernel, const OrderedSum &sum) {
  tile::StoreOp store = sum.store;
  int64_t rows = cast<RankedTensorType>(store.getValue().getType()).getDimSize(0);
  return kernel.getGridDim(sum.dim).getDivisor() / rows;
}

/// Whether `value`, which a loop hands on, is `argument` and something added to it, and nothing
/// else reads what it was in between.
static bool isSumOnto(Value value, BlockArgument argument) {
  if (!argument.hasOneUse())
    return false;
  while (value != argument) {
    Operation *op = value.getDefiningOp();
    if (auto dot = dyn_cast_or_null<tile::DotOp>(op)) {
      value = dot.getAcc();
    } else if (auto loop = dyn_cast_or_null<scf::ForOp>(op)) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      if (!isSumOnto(loop.getYieldedValues()[number], loop.getRegionIterArg(number)))
        return false;
      value = loop.getInitArgs()[number];
    } else {
      return false;
    }
    if (!value || !value.hasOneUse())
      return false;
  }
  return true;
}

/// Why the iterations of `loop` have an order.
static std::optional<TurnRefusal> whyOrdered(tile::KernelOp kernel, scf::ForOp loop) {
  for (auto [value, argument] : llvm::zip_equal(loop.getYieldedValues(), loop.getRegionIterArgs()))
    if (!isSumOnto(value, argument))
      return TurnRefusal{loop,
                         "hands on a value to which an iteration does more than add a product"};
  std::optional<TurnRefusal> refusal;
  loop.walk([&](Operation *op) {
    auto store = dyn_cast<tile::StoreOp>(op);
    bool loadsStored =
        tile::loadsFromView(op) && llvm::any_of(op->getOperand(0).getUsers(), tile::storesToView);
    if (!loadsStored && (!tile::storesToView(op) || (store && store.getAdd())))
      return;
    refusal = TurnRefusal{op, "may be of elements that another iteration stores"};
  });
  return refusal;
}

std::optional<TurnRefusal> tessera::whyNoTurns(tile::KernelOp kernel, ArrayRef<OrderedSum> sums) {
  for (const OrderedSum &sum : sums) {
    tile::StoreOp store = sum.store;
    Value index = kernel.getGridIndex(sum.dim);
    scf::ForOp loop = sum.loops.size() == 1 ? sum.loops.front() : scf::ForOp();
    if (sum.dim != 0 || !loop || trendOf(loop.getLowerBound(), index) != Trend::Increasing ||
        trendOf(varyingEnd(loop, IndexDependence(index)), index) != Trend::Constant)
      return TurnRefusal{store, "adds in no loop that begins later as the first grid index grows "
                                "and ends at the same step"};
    if (std::optional<TurnRefusal> refusal = whyOrdered(kernel, loop))
      return refusal;
  }
  return std::nullopt;
}
