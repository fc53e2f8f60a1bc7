//===- SplitLoops.cpp - Loops without masks for full iterations ----------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/HiddenElements.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/MaskAnalysis.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/Analysis/RowBounds.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILESPLITLOOPS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
/// Iterations of the loop: those in the middle need no mask.
enum class Part { Start, Middle, End };

/// Of a condition that is combined with others by andi, or by ori: whether it is true, or false, as
/// long as no mask of the end is needed, and from where on no mask of the start is.
struct Term {
  bool atStart, atEnd;
};

/// A select that becomes its true or its false value where `bounds` hold.
struct FoldableSelect {
  arith::SelectOp op;
  bool arm;
  SmallVector<InductionBound> bounds;
  /// Of the condition: of its conjunction when the select becomes its true value, else of its
  /// disjunction.
  SmallVector<Term> terms;
};

/// Splits one loop in up to three.
class LoopSplitter {
public:
  explicit LoopSplitter(scf::ForOp loop)
      : loop(loop), builder(loop.getLoc(), loop), rows(loop),
        unitStep(matchPattern(loop.getStep(), m_One())) {
    for (WalkOp op : loop.getBody()->getOps<WalkOp>())
      if (op.getStep() == loop.getInductionVar())
        walk = op;
  }

  void run();

private:
  void findSelects();
  /// Operands of dots, and how each comes as long as no mask is folded.
  using Ways = SmallVector<std::pair<OpOperand *, OperandWay>, 6>;
  void findKept(Part part, const Ways &ways, const llvm::SmallDenseSet<Attribute> &pipes,
                llvm::SmallDenseSet<Operation *> &kept);
  void keepWays();
  void findEnds();
  Value toIndex(Value value);
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, value); }
  void narrow(const InductionBound &bound);
  Value none();
  Value toGrid(Value position);
  SmallVector<Term> findTerms(Value condition, bool arm);
  bool isKnown(const Term &term, Part part);
  void turnRound();
  void appendLoop(Value from, Value to, Part part);
  void foldSelects(scf::ForOp copy, Part part);
  void foldSelect(arith::SelectOp select, const FoldableSelect &original, Part part);

  scf::ForOp loop;
  ImplicitLocOpBuilder builder;
  RowBounds rows;
  bool unitStep;
  WalkOp walk; ///< where the loop may begin at its end; null elsewhere
  SmallVector<FoldableSelect> selects;
  /// Whether some select needs its mask at the start, or at the end.
  bool maskedStart = false, maskedEnd = false;
  /// The part beside the middle whose masks are reduced to those that it needs. It is the other one
  /// that runs where masks of the start and of the end overlap.
  Part reduced = Part::End;
  /// As indices: the loop's own bounds and the part in which all selects fold.
  Value lower, upper, step, first, past;
  SmallVector<Value> carried;
};
} // namespace

static SmallVector<arith::SelectOp> selectsOf(scf::ForOp loop);

static void dropDead(scf::ForOp loop) {
  IRRewriter rewriter(loop.getContext());
  // Fails when nothing was dead.
  (void)runRegionDCE(rewriter, loop->getRegions());
}

/// Whether the masks of `loop` are those of the loop around it, which consists of it: they are the
/// same in all of its own iterations, and uniform in a range of those of the other one.
static bool leavesMasks(scf::ForOp loop) {
  auto outer = dyn_cast<scf::ForOp>(loop->getParentOp());
  if (!outer || loop->getNextNode() != outer.getBody()->getTerminator() ||
      !llvm::hasSingleElement(outer.getBody()->getOps<scf::ForOp>()))
    return false;
  IndexDependence own(loop.getInductionVar()), others(outer.getInductionVar());
  bool varies = false;
  for (arith::SelectOp select : selectsOf(loop)) {
    Value condition = select.getCondition();
    if (!isPositionMask(condition))
      continue;
    std::string reason;
    if (own.contains(condition) || !analyzeMask(condition, outer, reason))
      return false;
    varies |= others.contains(condition);
  }
  return varies;
}

/// The selects of the body of `loop`, and those that a loop nested in it leaves to it.
static SmallVector<arith::SelectOp> selectsOf(scf::ForOp loop) {
  SmallVector<arith::SelectOp> selects;
  loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto select = dyn_cast<arith::SelectOp>(op))
      selects.push_back(select);
    auto nested = dyn_cast<scf::ForOp>(op);
    bool isOther = nested ? !leavesMasks(nested) : isa<LoopLikeOpInterface>(op);
    return isOther ? WalkResult::skip() : WalkResult::advance();
  });
  return selects;
}

SmallVector<Term> LoopSplitter::findTerms(Value condition, bool arm) {
  return llvm::map_to_vector(getMaskTerms(condition, arm), [&](Value value) -> Term {
    std::string reason;
    std::optional<MaskRanges> ranges = analyzeMask(value, loop, reason, &rows);
    if (!ranges || !(arm ? ranges->allTrue : ranges->allFalse))
      return {false, false};
    ArrayRef<InductionBound> bounds = arm ? *ranges->allTrue : *ranges->allFalse;
    // What holds from some iteration on is known at the end, what holds up to one at the start.
    auto isOfStart = [](const InductionBound &bound) { return bound.slope < 0; };
    return {llvm::none_of(bounds, isOfStart), llvm::all_of(bounds, isOfStart)};
  });
}

/// Fills `selects` and explains each mask that cannot be folded.
void LoopSplitter::findSelects() {
  llvm::DenseSet<Value> explained;
  for (arith::SelectOp select : selectsOf(loop)) {
    Value condition = select.getCondition();
    if (!isPositionMask(condition))
      continue;
    auto keep = [&](const Twine &reason) {
      if (explained.insert(condition).second)
        select.emitRemark("mask kept in every iteration: ") << reason;
    };
    std::string reason;
    std::optional<MaskRanges> ranges = analyzeMask(condition, loop, reason, &rows);
    if (!ranges) {
      keep(reason);
      continue;
    }
    bool wantsTrue = getComputedArm(select).value_or(ranges->allTrue.has_value());
    std::optional<SmallVector<InductionBound>> &bounds =
        wantsTrue ? ranges->allTrue : ranges->allFalse;
    if (bounds)
      selects.push_back({select, wantsTrue, std::move(*bounds), findTerms(condition, wantsTrue)});
    else
      keep(reason.empty() ? "the iterations that do not need it are not consecutive" : reason);
  }
}

/// Finds which ends need masks.
void LoopSplitter::findEnds() {
  int64_t numAtStart = 0, numAtEnd = 0;
  for (const FoldableSelect &select : selects) {
    for (const InductionBound &bound : select.bounds)
      (bound.slope < 0 ? maskedStart : maskedEnd) = true;
    for (const Term &term : select.terms) {
      numAtStart += term.atStart;
      numAtEnd += term.atEnd;
    }
  }
  if (maskedStart && maskedEnd && numAtStart > numAtEnd)
    reduced = Part::Start;
}

/// The numbers of the pipes that the schedule of `kernel` has slots for.
static llvm::SmallDenseSet<Attribute> findPipes(KernelOp kernel) {
  llvm::SmallDenseSet<Attribute> pipes;
  bool fetches = kernel.getScheduleAttr() &&
                 kernel.getScheduleAttr().getProducer() == ProducerKind::All;
  kernel.walk([&](LoadOpInterface load) {
    if (load.getPipeAttr() && (fetches || isLoadedForDots(load)))
      pipes.insert(load.getPipeAttr());
  });
  return pipes;
}

/// Whether `operand`, of a dot without masks, asks for other roles or copies than it did with them,
/// for which the schedule was chosen. What one of `pipes` carries anyway may be multiplied as it
/// was loaded.
static bool changesWay(OperandWay before, OpOperand &operand,
                       const llvm::SmallDenseSet<Attribute> &pipes) {
  OperandWay after = wayOf(operand);
  if (before == after)
    return false;
  LoadOpInterface load = loadedOperand(operand.get());
  return before == OperandWay::Converted || after != OperandWay::Loaded ||
         !pipes.contains(load.getPipeAttr()) || isByteFloat(getElementTypeOrSelf(load.getType()));
}

/// Adds what `tile` is computed of, element by element.
static void collectElementwise(Value tile, llvm::SmallDenseSet<Operation *> &operations) {
  Operation *op = tile.getDefiningOp();
  if (!op || !(isa<TransposeOp>(op) || OpTrait::hasElementwiseMappableTraits(op)) ||
      !operations.insert(op).second)
    return;
  for (Value operand : op->getOperands())
    collectElementwise(operand, operations);
}

/// Replaces operations of `loop` by values that they are, as what is extended and rounded again.
static void foldValues(scf::ForOp loop) {
  loop.getBody()->walk([](Operation *op) {
    SmallVector<OpFoldResult> results;
    if (op->getNumResults() != 1 || failed(op->fold(results)) || results.size() != 1)
      return;
    if (auto value = dyn_cast<Value>(results.front()))
      op->getResult(0).replaceAllUsesWith(value);
  });
  dropDead(loop);
}

/// Adds to `kept` what operands of dots are computed of that come another way in `part`, as a copy
/// of the loop shows.
void LoopSplitter::findKept(Part part, const Ways &ways,
                            const llvm::SmallDenseSet<Attribute> &pipes,
                            llvm::SmallDenseSet<Operation *> &kept) {
  reduced = part;
  IRMapping mapping;
  auto copy = cast<scf::ForOp>(builder.clone(*loop, mapping));
  foldSelects(copy, part);
  foldValues(copy);
  llvm::SmallDenseSet<Operation *> live;
  copy->walk([&](DotOp dot) { live.insert(dot); });
  for (auto [operand, way] : ways) {
    Operation *dot = mapping.lookup(operand->getOwner());
    if (live.contains(dot) &&
        changesWay(way, dot->getOpOperand(operand->getOperandNumber()), pipes))
      collectElementwise(operand->get(), kept);
  }
  copy->erase();
}

/// Leaves masks alone that decide how an operand of a dot comes: the schedule is chosen, and all
/// loops that are made of this one have the same roles.
void LoopSplitter::keepWays() {
  llvm::SmallDenseSet<Operation *> ofOperands, kept;
  SmallVector<OpOperand *> operands;
  loop->walk([&](DotOp dot) {
    for (unsigned i : {0, 1}) {
      operands.push_back(&dot->getOpOperand(i));
      collectElementwise(dot->getOperand(i), ofOperands);
    }
  });
  if (llvm::none_of(selects,
                    [&](const FoldableSelect &select) { return ofOperands.contains(select.op); }))
    return;
  Ways ways = llvm::map_to_vector<6>(
      operands, [](OpOperand *operand) { return std::pair(operand, wayOf(*operand)); });
  llvm::SmallDenseSet<Attribute> pipes = findPipes(loop->getParentOfType<KernelOp>());
  for (Part part : {Part::Start, Part::Middle, Part::End})
    findKept(part, ways, pipes, kept);
  reduced = Part::End;
  llvm::erase_if(selects, [&](const FoldableSelect &select) {
    if (!kept.contains(select.op))
      return false;
    arith::SelectOp(select.op).emitRemark(
        "mask kept in every iteration: without it an operand of a dot comes another way than the "
        "schedule was chosen for");
    return true;
  });
}

Value LoopSplitter::toIndex(Value value) {
  if (value.getType().isIndex())
    return value;
  return arith::IndexCastOp::create(builder, builder.getIndexType(), value);
}

/// Cuts [first, past) to where `bound` holds: slope * iv + rest <= 0.
void LoopSplitter::narrow(const InductionBound &bound) {
  int64_t slope = bound.slope;
  if (slope > 0) {
    // iv <= floor(-rest / slope), that is iv < floor((-rest + slope) / slope).
    Value end = writeQuotient(bound, -1, slope, slope, /*roundsUp=*/false, builder);
    past = arith::MinSIOp::create(builder, past, end);
  } else if (slope < 0) {
    Value start = writeQuotient(bound, 1, 0, -slope, /*roundsUp=*/true, builder);
    first = arith::MaxSIOp::create(builder, first, start);
  } else {
    Value holds = writeComparison(bound, arith::CmpIPredicate::sle, 0, builder);
    past = arith::SelectOp::create(builder, holds, past, none());
  }
}

/// Behind no iteration, and not behind the loop's end, where what is masked at its start may begin.
Value LoopSplitter::none() {
  APInt least;
  bool isRun = matchPattern(lower, m_ConstantInt(&least)) && least.isZero() && isNonNegative(upper);
  return !maskedStart || isRun ? lower : arith::MinSIOp::create(builder, lower, upper).getResult();
}

/// The first induction value of the loop that is `position` or greater.
Value LoopSplitter::toGrid(Value position) {
  if (unitStep)
    return position;
  Value distance = arith::SubIOp::create(builder, position, lower);
  Value steps = arith::CeilDivSIOp::create(builder, distance, step);
  return arith::AddIOp::create(builder, lower, arith::MulIOp::create(builder, steps, step));
}

bool LoopSplitter::isKnown(const Term &term, Part part) {
  return part == Part::Middle ||
         (part == reduced && !walk && (part == Part::Start ? term.atStart : term.atEnd));
}

/// Leaves of the condition of `select`, a copy of `original`, what is not known in `part`, or
/// replaces the select by its value.
void LoopSplitter::foldSelect(arith::SelectOp select, const FoldableSelect &original, Part part) {
  if (llvm::none_of(original.terms, [&](const Term &term) { return isKnown(term, part); }))
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(select);
  SmallVector<Value> values = getMaskTerms(select.getCondition(), original.arm), unknown;
  for (auto [value, term] : llvm::zip_equal(values, original.terms))
    if (!isKnown(term, part))
      unknown.push_back(value);
  if (!unknown.empty())
    return select.getConditionMutable().assign(combineMaskTerms(unknown, original.arm, builder));
  select.replaceAllUsesWith(original.arm ? select.getTrueValue() : select.getFalseValue());
  select.erase();
}

/// Folds the selects of `copy`, a clone of the loop, as far as they are known in `part`.
void LoopSplitter::foldSelects(scf::ForOp copy, Part part) {
  llvm::DenseMap<Operation *, const FoldableSelect *> originals;
  for (const FoldableSelect &select : selects)
    originals[select.op] = &select;
  for (auto [original, select] : llvm::zip_equal(selectsOf(loop), selectsOf(copy)))
    if (auto found = originals.find(original); found != originals.end())
      foldSelect(select, *found->second, part);
  dropDead(copy);
}

/// Where the loop is walked down, what was to be at its start is at its end. Both parts have the
/// masks of both.
void LoopSplitter::turnRound() {
  Value total = arith::AddIOp::create(builder, lower, upper);
  // No part begins before the one in front of it: hop-schedule-tickets and bulk stores want to know
  // that.
  auto either = [&](Value up, Value other, Value least) -> Value {
    Value down = arith::SubIOp::create(builder, total, other);
    Value bound = arith::SelectOp::create(builder, walk.getDown(), down, up);
    return arith::MaxSIOp::create(builder, bound, least);
  };
  Value up = first;
  first = either(first, past, lower);
  past = either(past, up, first);
  maskedStart = maskedEnd = true;
}

/// Adds a copy of the loop over [from, to) that goes on from the last one.
void LoopSplitter::appendLoop(Value from, Value to, Part part) {
  Type type = loop.getInductionVar().getType();
  auto fromIndex = [&](Value value) -> Value {
    if (type.isIndex())
      return value;
    return arith::IndexCastOp::create(builder, type, value);
  };
  Value start = fromIndex(from), end = fromIndex(to);
  auto copy = cast<scf::ForOp>(builder.clone(*loop));
  copy.setLowerBound(start);
  copy.setUpperBound(end);
  copy.getInitArgsMutable().assign(carried);
  foldSelects(copy, part);
  if (part != Part::Middle)
    TileDialect::BoundaryAttrHelper(builder.getContext()).setAttr(copy, builder.getUnitAttr());
  carried.assign(copy.result_begin(), copy.result_end());
}

void LoopSplitter::run() {
  findSelects();
  keepWays();
  if (selects.empty())
    return;
  findEnds();
  lower = toIndex(loop.getLowerBound());
  upper = toIndex(loop.getUpperBound());
  step = toIndex(loop.getStep());
  first = lower;
  past = upper;
  for (FoldableSelect &select : selects)
    for (const InductionBound &bound : select.bounds)
      narrow(bound);
  // lower <= first <= upper and first <= past, whatever the bounds say.
  if (reduced == Part::Start)
    first = arith::MinSIOp::create(builder, first, arith::MaxSIOp::create(builder, past, lower));
  if (maskedStart)
    first = toGrid(arith::MinSIOp::create(builder, first, upper));
  if (maskedEnd)
    past = toGrid(arith::MaxSIOp::create(builder, past, first));
  if (walk)
    turnRound();
  auto upTo = [&](Value position) -> Value {
    // The next multiple of a step may lie past the end.
    return unitStep ? position : arith::MinSIOp::create(builder, position, upper).getResult();
  };

  loop.emitRemark("loop split: iterations in which ")
      << selects.size() << (selects.size() == 1 ? " mask is" : " masks are")
      << " uniform run without " << (selects.size() == 1 ? "it" : "them");
  carried.assign(loop.getInitArgs().begin(), loop.getInitArgs().end());
  if (maskedStart)
    appendLoop(lower, upTo(first), Part::Start);
  appendLoop(first, maskedEnd ? upTo(past) : upper, Part::Middle);
  if (maskedEnd)
    appendLoop(past, upper, Part::End);
  loop.replaceAllUsesWith(carried);
  loop.erase();
}

/// Whether `term` leaves each element in the arm that is computed, as a scalar that is known before
/// `select`; null where only indices decide, as hop-guard-masks finds by itself, or more than the
/// least and the largest of what is loaded for each row.
static Value findScalar(Value term, bool arm, arith::SelectOp select) {
  std::string reason;
  auto boundsOf = [&](RowBounds *rows) -> std::optional<SmallVector<InductionBound>> {
    std::optional<MaskRanges> ranges = analyzeMask(term, /*loop=*/nullptr, reason, rows);
    return !ranges ? std::nullopt : arm ? ranges->allTrue : ranges->allFalse;
  };
  RowBounds rows(select);
  std::optional<SmallVector<InductionBound>> bounds;
  if (boundsOf(nullptr) || !(bounds = boundsOf(&rows)))
    return {};
  ImplicitLocOpBuilder builder(select.getLoc(), select);
  SmallVector<Value> holds = llvm::map_to_vector(*bounds, [&](const InductionBound &bound) {
    return writeComparison(bound, arith::CmpIPredicate::sle, 0, builder);
  });
  return combineMaskTerms(holds, /*byAnd=*/true, builder);
}

/// Lets a mask outside of loops say by a scalar where it is not needed.
static void addBounds(arith::SelectOp select) {
  std::optional<bool> arm = getComputedArm(select);
  if (!arm)
    return;
  ImplicitLocOpBuilder builder(select.getLoc(), select);
  SmallVector<Value> terms = getMaskTerms(select.getCondition(), *arm);
  bool isChanged = false;
  for (Value &term : terms) {
    Value holds = findScalar(term, *arm, select);
    if (!holds)
      continue;
    isChanged = true;
    if (!*arm) {
      Value one = arith::ConstantOp::create(builder, builder.getBoolAttr(true));
      holds = arith::XOrIOp::create(builder, holds, one);
    }
    Value all = SplatOp::create(builder, term.getType(), holds);
    term = combineMaskTerms({all, term}, /*byAnd=*/!*arm, builder);
  }
  if (isChanged)
    select.getConditionMutable().assign(combineMaskTerms(terms, *arm, builder));
}

namespace {
class TileSplitLoopsPass : public tessera::impl::TileSplitLoopsBase<TileSplitLoopsPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (split)
      splitAll(kernel);
    SmallVector<WalkOp> walks;
    SmallVector<MaskedMaxOp> maxima;
    kernel.walk([&](WalkOp walk) { walks.push_back(walk); });
    kernel.walk([&](MaskedMaxOp max) { maxima.push_back(max); });
    llvm::for_each(walks, writeWalk);
    llvm::for_each(maxima, writeMaskedMax);
  }

private:
  static void writeWalk(WalkOp walk) {
    ImplicitLocOpBuilder builder(walk.getLoc(), walk);
    Value one = arith::ConstantIndexOp::create(builder, 1);
    Value total = arith::AddIOp::create(builder, walk.getLower(), walk.getUpper());
    Value last = arith::SubIOp::create(builder, total, one);
    Value fromEnd = arith::SubIOp::create(builder, last, walk.getStep());
    // Where a loop begins is not negative, which bulk stores want to know of each step.
    fromEnd = arith::MaxSIOp::create(builder, fromEnd, arith::ConstantIndexOp::create(builder, 0));
    walk.replaceAllUsesWith(
        arith::SelectOp::create(builder, walk.getDown(), fromEnd, walk.getStep()).getResult());
    walk.erase();
  }

  /// What is left of a mask, if anything, says whether elements are looked at.
  static void writeMaskedMax(MaskedMaxOp max) {
    Value largest = max.getOld();
    if (mayHideElements(max.getSource())) {
      ImplicitLocOpBuilder builder(max.getLoc(), max);
      Value own = ReduceOp::create(builder, max.getType(), ReduceKind::maximum, max.getSource(),
                                   /*axis=*/1, /*limit=*/FloatAttr());
      largest = arith::MaximumFOp::create(builder, largest, own);
    }
    max.replaceAllUsesWith(largest);
    max.erase();
  }

  static void splitAll(KernelOp kernel) {
    SmallVector<scf::ForOp> loops;
    kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      splitLoop(loop);
    SmallVector<arith::SelectOp> outside;
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto select = dyn_cast<arith::SelectOp>(op))
        outside.push_back(select);
      return isa<LoopLikeOpInterface>(op) ? WalkResult::skip() : WalkResult::advance();
    });
    for (arith::SelectOp select : outside)
      addBounds(select);
  }

  static void splitLoop(scf::ForOp loop) {
    bool hasMask = llvm::any_of(selectsOf(loop), [](arith::SelectOp select) {
      return isPositionMask(select.getCondition());
    });
    if (!hasMask || leavesMasks(loop))
      return;
    if (loop.getUnsignedCmp()) {
      loop.emitRemark("loop not split: it compares its bounds without sign");
      return;
    }
    hoistInvariantScalars(loop);
    LoopSplitter(loop).run();
  }
};
} // namespace
