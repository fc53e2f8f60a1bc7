//===- FindVisits.cpp - The iterations that a mask leaves -----------------===//
//
// Implements tile-find-visits. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/Tile/FindVisits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/MaskAnalysis.h"
#include "passes/Analysis/RowBounds.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_TILEFINDVISITS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;
using Predicate = arith::CmpIPredicate;

namespace {
/// The iterations from `first` up to `past`; a null end is that of the loop.
struct Hull {
  Value first, past;
};

/// Finds the hull of the iterations in which some element of a mask has a value.
class HullFinder {
public:
  HullFinder(VisitsOp visits, scf::ForOp loop)
      : visits(visits), loop(loop), builder(visits.getLoc(), visits), rows(loop) {}

  /// The iterations in which an element of `mask` may be `wanted`.
  Hull find(Value mask, bool wanted);
  /// Why some part of the mask is taken to hold everywhere; empty where none is.
  StringRef getReason() const { return reason; }
  /// Whether the mask has parts between which there may be iterations that it leaves out.
  bool hasGaps() const { return gaps; }
  /// Whether values that are loaded for each row bound it.
  bool takesRows() const { return rows.areUsed(); }

private:
  Hull refuse(const Twine &why) {
    if (reason.empty())
      reason = why.str();
    return {};
  }
  Hull compare(Predicate predicate, Value lhs, Value rhs);
  std::optional<Hull> compareParts(Predicate predicate, Value lhs, Value rhs);
  std::optional<Hull> compareElements(Predicate predicate, Value lhs, Value rhs);
  bool isAlike(Value tile);
  Value findElement(Value tile, bool largest);
  Hull bounded(const InductionBound &whereFalse);
  Hull onlyIf(Value condition, bool wanted);
  Hull intersect(Hull a, Hull b);
  Hull unite(Hull a, Hull b);
  Hull choose(Value condition, Hull a, Hull b);
  bool isNone(const Hull &hull);
  Value isEmpty(const Hull &hull);
  Value lowest(const Hull &hull) { return hull.first ? hull.first : visits.getLower(); }
  Value highest(const Hull &hull) { return hull.past ? hull.past : visits.getUpper(); }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, value); }
  Value minimum(Value a, Value b) { return arith::MinSIOp::create(builder, a, b); }
  Value maximum(Value a, Value b) { return arith::MaxSIOp::create(builder, a, b); }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, condition, a, b);
  }

  VisitsOp visits;
  scf::ForOp loop;
  ImplicitLocOpBuilder builder;
  RowBounds rows;
  IntegerRanges ranges;
  std::string reason;
  bool gaps = false;
  /// Comparisons may share operands, so that a chain of them has exponentially many paths.
  unsigned looks = 0;
};

/// Looks at more parts of one mask than this are not taken.
constexpr unsigned kMaxLooks = 256;
} // namespace

//===----------------------------------------------------------------------===//
// Sets of iterations
//===----------------------------------------------------------------------===//

Hull HullFinder::intersect(Hull a, Hull b) {
  auto both = [](Value x, Value y, auto combine) { return x && y ? combine(x, y) : x ? x : y; };
  return {both(a.first, b.first, [&](Value x, Value y) { return maximum(x, y); }),
          both(a.past, b.past, [&](Value x, Value y) { return minimum(x, y); })};
}

Value HullFinder::isEmpty(const Hull &hull) {
  Value first = maximum(lowest(hull), visits.getLower());
  Value past = minimum(highest(hull), visits.getUpper());
  return arith::CmpIOp::create(builder, Predicate::sge, first, past);
}

/// Whether no iteration is in it, whatever the operands are.
bool HullFinder::isNone(const Hull &hull) { return !hull.first && hull.past == visits.getLower(); }

/// The hull of both. Of two that begin with the loop, or end with it, an empty one does no harm;
/// the ends of another would count although it has no iteration.
Hull HullFinder::unite(Hull a, Hull b) {
  if (isNone(a) || isNone(b))
    return isNone(a) ? b : a;
  if (!a.first && !b.first)
    return {{}, a.past && b.past ? maximum(a.past, b.past) : Value()};
  if (!a.past && !b.past)
    return {a.first && b.first ? minimum(a.first, b.first) : Value(), {}};
  gaps = true;
  Value emptyA = isEmpty(a), emptyB = isEmpty(b);
  Value first = minimum(lowest(a), lowest(b)), past = maximum(highest(a), highest(b));
  return {select(emptyA, lowest(b), select(emptyB, lowest(a), first)),
          select(emptyA, highest(b), select(emptyB, highest(a), past))};
}

Hull HullFinder::choose(Value condition, Hull a, Hull b) {
  Hull chosen;
  if (a.first || b.first)
    chosen.first = select(condition, lowest(a), lowest(b));
  if (a.past || b.past)
    chosen.past = select(condition, highest(a), highest(b));
  return chosen;
}

/// All iterations where the scalar `condition` is `wanted`, else none.
Hull HullFinder::onlyIf(Value condition, bool wanted) {
  if (!loop.isDefinedOutsideOfLoop(condition))
    return refuse("a condition changes from iteration to iteration");
  Hull none{{}, visits.getLower()};
  return wanted ? choose(condition, {}, none) : choose(condition, none, {});
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

/// Whether the part of `bound` without the induction variable is above 0 at each point of the grid:
/// of an extent there is an element behind those of the tiles before one.
static bool isPositive(const InductionBound &bound, KernelOp kernel) {
  IndexTerms terms;
  for (auto [symbol, coefficient] : bound.symbols) {
    auto cast = symbol.getDefiningOp<arith::IndexCastOp>(); // extents have 31 bits
    terms.add(cast ? cast.getIn() : symbol, coefficient);
  }
  if (!bound.quotients.empty() || terms.of.size() != 2 || bound.constant + terms.constant < 0)
    return false;
  for (unsigned i = 0; i < kernel.getGridRank(); ++i) {
    tile::GridDimAttr dim = kernel.getGridDim(i);
    bool isOfGrid = terms.of.lookup(kernel.getGridIndex(i)) == -dim.getDivisor();
    for (auto [value, times] : terms.of) {
      auto extent = value.getDefiningOp<DimOp>();
      if (isOfGrid && times == 1 && extent && extent.getDimAttr() == dim.getExtent())
        return true;
    }
  }
  return false;
}

/// The iterations in which slope * iteration + rest <= 0, where no element compares so, does not
/// hold.
Hull HullFinder::bounded(const InductionBound &whereFalse) {
  int64_t slope = whereFalse.slope;
  if (slope > 0)
    // iteration >= ceil((1 - rest) / slope)
    return {writeQuotient(whereFalse, -1, 1, slope, /*roundsUp=*/true, builder), {}};
  if (slope < 0)
    // iteration < ceil(rest / -slope), as loops over blocks have their ends
    return {{}, writeQuotient(whereFalse, 1, 0, -slope, /*roundsUp=*/true, builder)};
  if (isPositive(whereFalse, visits->getParentOfType<KernelOp>()))
    return {};
  return onlyIf(writeComparison(whereFalse, Predicate::sge, 1, builder), /*wanted=*/true);
}

/// Whether `tile` is the same in all iterations and differs along one axis at most.
bool HullFinder::isAlike(Value tile) {
  DenseIntElementsAttr elements;
  if (matchPattern(tile, m_Constant(&elements)))
    return elements.isSplat();
  if (auto splat = tile.getDefiningOp<SplatOp>())
    return loop.isDefinedOutsideOfLoop(splat.getSource());
  return rows.covers(tile);
}

/// The least or the largest element of `tile`, which is alike.
Value HullFinder::findElement(Value tile, bool largest) {
  DenseIntElementsAttr elements;
  if (matchPattern(tile, m_Constant(&elements)))
    return arith::ConstantOp::create(builder, elements.getSplatValue<IntegerAttr>());
  if (auto splat = tile.getDefiningOp<SplatOp>())
    return splat.getSource();
  return rows.getElement(tile, largest);
}

/// A comparison with what is loaded, alike in all iterations: the least and the largest of either
/// side say whether it holds anywhere, whatever numbers these are.
std::optional<Hull> HullFinder::compareElements(Predicate predicate, Value lhs, Value rhs) {
  bool isLess = predicate == Predicate::slt || predicate == Predicate::sle;
  if ((!isLess && predicate != Predicate::sgt && predicate != Predicate::sge) ||
      (!rows.covers(lhs) && !rows.covers(rhs)))
    return std::nullopt;
  // Nothing is made of the one side where the other one is not alike in all iterations.
  if (!isAlike(lhs) || !isAlike(rhs))
    return std::nullopt;
  Value a = findElement(lhs, /*largest=*/!isLess), b = findElement(rhs, isLess);
  return onlyIf(arith::CmpIOp::create(builder, predicate, a, b), /*wanted=*/true);
}

/// A comparison with a minimum, a maximum or an absolute value on the left, as two comparisons.
std::optional<Hull> HullFinder::compareParts(Predicate predicate, Value lhs, Value rhs) {
  bool isLess = predicate == Predicate::slt || predicate == Predicate::sle;
  Operation *op = lhs.getDefiningOp();
  if (isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(op)) {
    Hull a = compare(predicate, op->getOperand(0), rhs),
         b = compare(predicate, op->getOperand(1), rhs);
    // A minimum is less where one operand is, a maximum where both are.
    return isa<arith::MinSIOp>(op) == isLess ? unite(a, b) : intersect(a, b);
  }
  if (isa_and_nonnull<math::AbsIOp>(op)) {
    if (ranges.mayWrap(lhs))
      return refuse(explainWrapped(lhs));
    // |x| < r is x < r and x > -r, in whole numbers.
    ImplicitLocOpBuilder inside(op->getLoc(), loop.getBody()->getTerminator());
    auto type = cast<RankedTensorType>(rhs.getType()).clone(inside.getI64Type());
    auto extend = [&](Value value) {
      return value.getType() == type ? value : inside.createOrFold<arith::ExtSIOp>(type, value);
    };
    Value inner = extend(op->getOperand(0)), limit = extend(rhs);
    Value zero = arith::ConstantOp::create(inside, inside.getZeroAttr(type));
    Value opposite = arith::SubIOp::create(inside, zero, limit);
    Hull a = compare(predicate, inner, limit),
         b = compare(mirrorPredicate(predicate), inner, opposite);
    return isLess ? intersect(a, b) : unite(a, b);
  }
  return std::nullopt;
}

Hull HullFinder::compare(Predicate predicate, Value lhs, Value rhs) {
  if (++looks > kMaxLooks)
    return refuse("it combines too many comparisons");
  if (predicate == Predicate::eq)
    return intersect(compare(Predicate::sle, lhs, rhs), compare(Predicate::sge, lhs, rhs));
  if (predicate == Predicate::ne)
    return unite(compare(Predicate::slt, lhs, rhs), compare(Predicate::sgt, lhs, rhs));
  if (std::optional<Hull> hull = compareElements(predicate, lhs, rhs))
    return *hull;
  if (std::optional<Hull> hull = compareParts(predicate, lhs, rhs))
    return *hull;
  if (std::optional<Hull> hull = compareParts(mirrorPredicate(predicate), rhs, lhs))
    return *hull;
  std::string why;
  std::optional<InductionBound> whereFalse = boundWhereFalse(predicate, lhs, rhs, loop, why, &rows);
  return whereFalse ? bounded(*whereFalse) : refuse(why);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

Hull HullFinder::find(Value mask, bool wanted) {
  if (++looks > kMaxLooks)
    return refuse("it combines too many comparisons");
  DenseIntElementsAttr elements;
  if (matchPattern(mask, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<bool>() == wanted ? Hull() : Hull{{}, visits.getLower()};
  Operation *op = mask.getDefiningOp();
  if (auto comparison = dyn_cast_or_null<arith::CmpIOp>(op)) {
    Predicate predicate = comparison.getPredicate();
    return compare(wanted ? predicate : arith::invertPredicate(predicate), comparison.getLhs(),
                   comparison.getRhs());
  }
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op)) {
    Hull a = find(op->getOperand(0), wanted), b = find(op->getOperand(1), wanted);
    return isa<arith::AndIOp>(op) == wanted ? intersect(a, b) : unite(a, b);
  }
  if (isa_and_nonnull<arith::XOrIOp>(op) && matchPattern(op->getOperand(1), m_One()))
    return find(op->getOperand(0), !wanted);
  if (auto splat = dyn_cast_or_null<SplatOp>(op))
    return onlyIf(splat.getSource(), wanted);
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    Value condition = select.getCondition();
    Hull a = find(select.getTrueValue(), wanted), b = find(select.getFalseValue(), wanted);
    if (isa<ShapedType>(condition.getType()))
      return unite(intersect(find(condition, true), a), intersect(find(condition, false), b));
    if (loop.isDefinedOutsideOfLoop(condition))
      return choose(condition, a, b);
    return refuse("a condition changes from iteration to iteration");
  }
  if (isa_and_nonnull<BroadcastOp, TransposeOp>(op))
    return find(op->getOperand(0), wanted);
  return refuse("it holds values that are not comparisons of integers");
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The region of `visits` as a loop, which the analysis takes.
static scf::ForOp makeLoop(VisitsOp visits) {
  OpBuilder builder(visits);
  Value one = arith::ConstantIndexOp::create(builder, visits.getLoc(), 1);
  auto loop =
      scf::ForOp::create(builder, visits.getLoc(), visits.getLower(), visits.getUpper(), one);
  Block &from = visits.getBody().front(), &to = *loop.getBody();
  to.getOperations().splice(to.getTerminator()->getIterator(), from.getOperations(), from.begin(),
                            std::prev(from.end()));
  visits.getInductionVar().replaceAllUsesWith(loop.getInductionVar());
  return loop;
}

/// The indices of grid and loops that `value` is computed of by arithmetic alone. What conditions
/// choose is looked at, and not the conditions.
static void findIndices(Value value, llvm::SmallPtrSetImpl<Value> &indices) {
  llvm::SmallSetVector<Value, 16> open;
  open.insert(value);
  for (size_t i = 0; i < open.size(); ++i) {
    Operation *op = open[i].getDefiningOp();
    if (!op)
      indices.insert(open[i]);
    else if (isa<arith::SelectOp>(op))
      open.insert(op->operand_begin() + 1, op->operand_end());
    else if (isa<arith::ArithDialect>(op->getDialect()) && !isa<arith::CmpIOp>(op))
      open.insert(op->operand_begin(), op->operand_end());
  }
}

/// Whether `end` is computed of what places the rows of a tile in `loop`: the last iteration has
/// the columns next to the rows, as under a diagonal.
static bool followsRows(Value end, scf::ForOp loop) {
  llvm::SmallPtrSet<Value, 8> ofEnd, ofRows;
  if (end)
    findIndices(end, ofEnd);
  loop.walk([&](IotaOp iota) {
    if (loop.isDefinedOutsideOfLoop(iota.getStart()))
      findIndices(iota.getStart(), ofRows);
  });
  return llvm::any_of(ofEnd, [&](Value index) { return ofRows.contains(index); });
}

/// Which iterations `visits` is taken to have, and why it may have others than the mask leaves.
static void explainVisits(VisitsOp visits, const Hull &hull, const HullFinder &finder,
                          bool endMoves) {
  InFlightDiagnostic remark = visits.emitRemark();
  StringRef basis = finder.takesRows() ? "comparisons with the least and the largest of what is "
                                         "loaded for each row"
                                       : "comparisons";
  if (hull.first && hull.past)
    remark << "the mask leaves out iterations at both ends, as its " << basis << " say";
  else if (hull.first || hull.past)
    remark << "the mask leaves out iterations at the " << (hull.first ? "start" : "end")
           << ", as its " << basis << " say";
  else
    remark << "every iteration is visited";
  bool bounds = hull.first || hull.past;
  if (!finder.getReason().empty())
    remark << (bounds ? "; a part of it is taken to hold everywhere: " : ": ")
           << finder.getReason();
  if (finder.hasGaps())
    remark << "; iterations between its parts are visited too";
  if (endMoves)
    remark << "; the end moves with the rows";
}

static SmallVector<VisitsOp> visitsOf(KernelOp kernel) {
  SmallVector<VisitsOp> all;
  kernel.walk([&](VisitsOp visits) { all.push_back(visits); });
  return all;
}

VisitInterval tessera::resolveVisits(VisitsOp visits) {
  scf::ForOp loop = makeLoop(visits);
  hoistInvariantScalars(loop);
  HullFinder finder(visits, loop);
  Hull hull = finder.find(visits.getMask(), /*wanted=*/true);
  bool endMoves = followsRows(hull.past, loop);
  explainVisits(visits, hull, finder, endMoves);
  OpBuilder builder(visits);
  Value first = visits.getLower(), past = visits.getUpper();
  if (hull.first)
    first = arith::MaxSIOp::create(builder, visits.getLoc(), first, hull.first);
  // Of numbers that may be any, so that the place of an iteration is no multiple of such a one.
  if (IntegerRanges().of(first).isFarAbove)
    first = arith::MinSIOp::create(builder, visits.getLoc(), first, visits.getUpper());
  if (hull.past)
    past = arith::MinSIOp::create(builder, visits.getLoc(), past, hull.past);
  // An empty interval ends where it begins, so that no part of a loop over it begins below `lower`.
  if (hull.first && hull.past)
    past = arith::MaxSIOp::create(builder, visits.getLoc(), past, first);
  visits.replaceAllUsesWith(ValueRange{first, past});
  visits.erase();
  loop.erase();
  std::string loose = finder.getReason().str();
  if (loose.empty() && finder.hasGaps())
    loose = "it has parts with iterations between them";
  return {first, past, std::move(loose), endMoves};
}

VisitFacts tessera::describeVisits(KernelOp kernel) {
  OwningOpRef<KernelOp> copy = kernel.clone();
  ScopedDiagnosticHandler quiet(kernel.getContext(), [](Diagnostic &) { return success(); });
  VisitFacts facts;
  for (VisitsOp visits : visitsOf(*copy)) {
    VisitInterval interval = resolveVisits(visits);
    if (facts.loose.empty())
      facts.loose = std::move(interval.loose);
    facts.endMoves |= interval.endMoves;
  }
  facts.work = workTrend(*copy, /*dim=*/0);
  return facts;
}

/// Loops of more iterations than this stay as they are.
constexpr uint64_t kMaxUnrolled = 16;

/// The iterations of `loop` one behind the other, where they are few and their number is known.
static void unrollShort(scf::ForOp loop) {
  std::optional<llvm::APInt> trips = loop.getStaticTripCount();
  if (trips && trips->ule(kMaxUnrolled))
    (void)loopUnrollFull(loop);
}

namespace {
struct TileFindVisitsPass : tessera::impl::TileFindVisitsBase<TileFindVisitsPass> {
  void runOnOperation() override {
    llvm::SetVector<scf::ForOp> around;
    for (VisitsOp visits : visitsOf(getOperation())) {
      if (auto loop = dyn_cast<scf::ForOp>(visits->getParentOp()))
        around.insert(loop);
      resolveVisits(visits);
    }
    llvm::for_each(around, unrollShort);
  }
};
} // namespace
