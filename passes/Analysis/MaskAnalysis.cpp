//===- MaskAnalysis.cpp - Iterations in which a mask is uniform -----------===//

#include "passes/Analysis/MaskAnalysis.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "passes/Analysis/RowBounds.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
/// The index along an axis modulo a period, which is the extent of the axis for the index itself.
using AxisIndex = std::pair<int64_t, int64_t>;

/// slope * iv + sum(coefficient * symbol) + constant + sum(coefficient * (index along an axis))
/// + sum(coefficient * (what is loaded for each row or column)).
struct AffineTile : InductionBound {
  llvm::SmallMapVector<AxisIndex, int64_t, 2> axes;
  llvm::SmallMapVector<Value, int64_t, 2> loaded;

  /// Adds `factor * other`; false when a coefficient leaves 64 bits.
  bool add(const AffineTile &other, int64_t factor) {
    auto accumulate = [&](int64_t &into, int64_t value) {
      int64_t product;
      return !llvm::MulOverflow(value, factor, product) && !llvm::AddOverflow(into, product, into);
    };
    bool fits = accumulate(slope, other.slope) && accumulate(constant, other.constant);
    for (auto [symbol, coefficient] : other.symbols)
      fits = fits && accumulate(symbols[symbol], coefficient);
    for (auto [axis, coefficient] : other.axes)
      fits = fits && accumulate(axes[axis], coefficient);
    for (auto [tile, coefficient] : other.loaded)
      fits = fits && accumulate(loaded[tile], coefficient);
    return fits;
  }

  bool isConstant() const {
    auto isZero = [](const auto &entry) { return entry.second == 0; };
    return slope == 0 && llvm::all_of(axes, isZero) && llvm::all_of(symbols, isZero) &&
           llvm::all_of(loaded, isZero);
  }

  /// The same in a tile whose axes are exchanged.
  void exchangeAxes() {
    llvm::SmallMapVector<AxisIndex, int64_t, 2> exchanged;
    for (auto [index, coefficient] : axes)
      exchanged[{1 - index.first, index.second}] = coefficient;
    axes = std::move(exchanged);
  }
};

class MaskAnalyzer {
public:
  MaskAnalyzer(scf::ForOp loop, std::string &reason, RowBounds *rows)
      : loop(loop), reason(reason), rows(rows) {}

  /// Remembers results: conditions share operands, and a chain of them has exponentially many
  /// paths.
  std::optional<MaskRanges> mask(Value value) {
    auto known = masks.find(value);
    return known != masks.end() ? known->second : masks[value] = computeMask(value);
  }

  std::optional<InductionBound> whereFalse(arith::CmpIPredicate predicate, Value lhs, Value rhs);

private:
  std::nullopt_t refuse(const Twine &why) {
    if (reason.empty())
      reason = why.str();
    return std::nullopt;
  }
  std::nullopt_t refuseWrapped(Value value) { return refuse(explainWrapped(value)); }
  std::optional<AffineTile> affine(Value value) {
    auto known = forms.find(value);
    return known != forms.end() ? known->second : forms[value] = computeAffine(value);
  }
  std::optional<AffineTile> computeAffine(Value value);
  std::optional<AffineTile> computeAffine(Operation *op);
  std::optional<MaskRanges> computeMask(Value value);
  std::optional<AffineTile> sum(Value a, Value b, int64_t factor);
  std::optional<AffineTile> product(Value a, Value b);
  std::optional<AffineTile> leaf(Value value);
  std::optional<std::optional<MaskRanges>> comparisonOfParts(arith::CmpIPredicate predicate,
                                                             Value lhs, Value rhs);
  std::optional<MaskRanges> comparison(arith::CmpIPredicate predicate, Value lhs, Value rhs);
  std::optional<MaskRanges> comparison(arith::CmpIPredicate predicate, const AffineTile &form);
  std::optional<InductionBound> bound(const AffineTile &form, bool negate, int64_t offset);
  bool isInvariant(Value scalar) { return !loop || loop.isDefinedOutsideOfLoop(scalar); }
  static bool isTile(Value value) { return isa<ShapedType>(value.getType()); }
  std::optional<MaskRanges> joined(std::optional<MaskRanges> x, std::optional<MaskRanges> y,
                                   bool conjunction);

  scf::ForOp loop;
  std::string &reason;
  RowBounds *rows; ///< null where values that are loaded have no bounds
  IntegerRanges ranges;
  llvm::DenseMap<Value, std::optional<AffineTile>> forms;
  llvm::DenseMap<Value, std::optional<MaskRanges>> masks;
};

/// More comparisons than this in one condition are not analysed.
constexpr size_t kMaxBounds = 64;
} // namespace

//===----------------------------------------------------------------------===//
// Affine forms
//===----------------------------------------------------------------------===//

std::optional<AffineTile> MaskAnalyzer::sum(Value a, Value b, int64_t factor) {
  std::optional<AffineTile> x = affine(a), y = affine(b);
  if (!x || !y)
    return std::nullopt;
  if (!x->add(*y, factor))
    return refuse("a coefficient exceeds 64 bits");
  return x;
}

std::optional<AffineTile> MaskAnalyzer::product(Value a, Value b) {
  std::optional<AffineTile> x = affine(a), y = affine(b);
  if (!x || !y)
    return std::nullopt;
  if (x->isConstant())
    std::swap(x, y);
  if (!y->isConstant())
    return refuse("it multiplies two values that are not constant");
  AffineTile scaled;
  if (!scaled.add(*x, y->constant))
    return refuse("a coefficient exceeds 64 bits");
  return scaled;
}

/// The induction variable of which `value` is what an iteration works on, or `value` itself.
static Value iterationOf(Value value) {
  auto walk = value.getDefiningOp<WalkOp>();
  return walk ? walk.getStep() : value;
}

/// A constant, the induction variable, or a scalar from outside the loop.
std::optional<AffineTile> MaskAnalyzer::leaf(Value value) {
  AffineTile form;
  DenseIntElementsAttr elements;
  APInt integer;
  if (matchPattern(value, m_ConstantInt(&integer)) ||
      (matchPattern(value, m_Constant(&elements)) && elements.isSplat())) {
    if (elements)
      integer = elements.getSplatValue<APInt>();
    if (!integer.isSignedIntN(64))
      return refuse("a constant exceeds 64 bits");
    form.constant = integer.getSExtValue();
    return form;
  }
  if (isa<ShapedType>(value.getType()) && rows && rows->covers(value)) {
    form.loaded[value] = 1;
    return form;
  }
  if (isa<ShapedType>(value.getType()))
    return refuse("it compares tiles that are not computed from tile.iota, splats and constants");
  if (loop && iterationOf(value) == loop.getInductionVar()) {
    form.slope = 1;
    return form;
  }
  if (isInvariant(value)) {
    form.symbols[value] = 1;
    return form;
  }
  return refuse("it depends on a value that changes from iteration to iteration and is not affine "
                "in the induction variable");
}

std::optional<AffineTile> MaskAnalyzer::computeAffine(Value value) {
  // Scalars from outside are symbols as they are, however they were computed.
  Operation *op = value.getDefiningOp();
  bool isScalar = !isa<ShapedType>(value.getType());
  if (!op || (isScalar && isInvariant(value)))
    return leaf(value);
  std::optional<AffineTile> form = computeAffine(op);
  return form && ranges.mayWrap(value) ? refuseWrapped(value) : form;
}

std::optional<AffineTile> MaskAnalyzer::computeAffine(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<AffineTile>>(op)
      .Case([&](arith::AddIOp add) { return sum(add.getLhs(), add.getRhs(), 1); })
      .Case([&](arith::SubIOp sub) { return sum(sub.getLhs(), sub.getRhs(), -1); })
      .Case([&](arith::MulIOp mul) { return product(mul.getLhs(), mul.getRhs()); })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(
          [&](auto cast) { return affine(cast.getIn()); })
      .Case([&](SplatOp splat) { return affine(splat.getSource()); })
      .Case([&](IotaOp iota) -> std::optional<AffineTile> {
        std::optional<AffineTile> form = affine(iota.getStart());
        if (form)
          form->axes[{iota.getAxis(), iota.getPeriodOrExtent()}] = 1;
        return form;
      })
      .Case([&](BroadcastOp broadcast) {
        std::optional<AffineTile> form = affine(broadcast.getSource());
        // The source's only axis becomes the one that is not repeated.
        if (form && broadcast.getAxis() == 0)
          form->exchangeAxes();
        return form;
      })
      .Case([&](TransposeOp transpose) {
        std::optional<AffineTile> form = affine(transpose.getSource());
        if (form)
          form->exchangeAxes();
        return form;
      })
      .Default([&](Operation *) { return leaf(op->getResult(0)); });
}

//===----------------------------------------------------------------------===//
// Comparisons and their combinations
//===----------------------------------------------------------------------===//

/// Bounds the induction variable so that `form + offset <= 0`, or
/// `-form + offset <= 0` with `negate`, for every element of the tile.
std::optional<InductionBound> MaskAnalyzer::bound(const AffineTile &form, bool negate,
                                                  int64_t offset) {
  AffineTile worst;
  worst.constant = offset;
  if (!worst.add(form, negate ? -1 : 1))
    return refuse("a coefficient exceeds 64 bits");
  for (auto [index, coefficient] : worst.axes) {
    int64_t reach;
    if (coefficient > 0 && (llvm::MulOverflow(coefficient, index.second - 1, reach) ||
                            llvm::AddOverflow(worst.constant, reach, worst.constant)))
      return refuse("a coefficient exceeds 64 bits");
  }
  for (auto [tile, coefficient] : worst.loaded)
    if (coefficient != 0)
      worst.symbols[rows->getElement(tile, /*largest=*/coefficient > 0)] += coefficient;
  worst.symbols.remove_if([](const auto &entry) { return entry.second == 0; });
  if (!isRepresentable(worst, ranges))
    return refuse("it compares sums of more than 64 bits");
  return static_cast<InductionBound>(worst);
}

/// A comparison with a minimum, a maximum or an absolute value on the left, as two comparisons:
/// |x| < r is x < r and -x < r. Nothing where there is none of these.
std::optional<std::optional<MaskRanges>>
MaskAnalyzer::comparisonOfParts(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
  Operation *op = lhs.getDefiningOp();
  bool isLess = predicate == arith::CmpIPredicate::slt || predicate == arith::CmpIPredicate::sle;
  bool isGreater = predicate == arith::CmpIPredicate::sgt || predicate == arith::CmpIPredicate::sge;
  if (!isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp, math::AbsIOp>(op) || !isTile(lhs) ||
      (!isLess && !isGreater))
    return std::nullopt;
  if (!isa<math::AbsIOp>(op))
    return joined(comparison(predicate, op->getOperand(0), rhs),
                  comparison(predicate, op->getOperand(1), rhs),
                  /*conjunction=*/isa<arith::MaxSIOp>(op) == isLess);
  if (ranges.mayWrap(lhs))
    return std::optional<MaskRanges>(refuseWrapped(lhs));
  std::optional<AffineTile> inner = affine(op->getOperand(0)), bound = affine(rhs);
  if (!inner || !bound)
    return std::optional<MaskRanges>();
  AffineTile above, below;
  if (!above.add(*inner, 1) || !above.add(*bound, -1) || !below.add(*inner, -1) ||
      !below.add(*bound, -1))
    return std::optional<MaskRanges>(refuse("a coefficient exceeds 64 bits"));
  return joined(comparison(predicate, above), comparison(predicate, below),
                /*conjunction=*/isLess);
}

/// The predicate that holds of b and a where `predicate` does of a and b.
arith::CmpIPredicate tessera::mirrorPredicate(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    return arith::CmpIPredicate::sgt;
  case arith::CmpIPredicate::sle:
    return arith::CmpIPredicate::sge;
  case arith::CmpIPredicate::sgt:
    return arith::CmpIPredicate::slt;
  case arith::CmpIPredicate::sge:
    return arith::CmpIPredicate::sle;
  default:
    return predicate;
  }
}

std::optional<MaskRanges> MaskAnalyzer::comparison(arith::CmpIPredicate predicate, Value lhs,
                                                   Value rhs) {
  if (auto ranges = comparisonOfParts(predicate, lhs, rhs))
    return *ranges;
  if (auto ranges = comparisonOfParts(mirrorPredicate(predicate), rhs, lhs))
    return *ranges;
  std::optional<AffineTile> form = sum(lhs, rhs, -1);
  return form ? comparison(predicate, *form) : std::nullopt;
}

/// The comparison of `form` with 0.
std::optional<MaskRanges> MaskAnalyzer::comparison(arith::CmpIPredicate predicate,
                                                   const AffineTile &form) {
  using Bounds = SmallVector<InductionBound>;
  auto all = [&](std::initializer_list<std::pair<bool, int64_t>> parts) -> std::optional<Bounds> {
    Bounds bounds;
    for (auto [negate, offset] : parts) {
      std::optional<InductionBound> part = bound(form, negate, offset);
      if (!part)
        return std::nullopt;
      bounds.push_back(*part);
    }
    return bounds;
  };
  // With d = lhs - rhs: less is d + 1 <= 0, its opposite -d <= 0, and so on.
  auto less = [&] { return all({{false, 1}}); };
  auto lessEqual = [&] { return all({{false, 0}}); };
  auto greater = [&] { return all({{true, 1}}); };
  auto greaterEqual = [&] { return all({{true, 0}}); };
  auto equal = [&] { return all({{false, 0}, {true, 0}}); };
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    return MaskRanges{less(), greaterEqual()};
  case arith::CmpIPredicate::sle:
    return MaskRanges{lessEqual(), greater()};
  case arith::CmpIPredicate::sgt:
    return MaskRanges{greater(), lessEqual()};
  case arith::CmpIPredicate::sge:
    return MaskRanges{greaterEqual(), less()};
  case arith::CmpIPredicate::eq:
    return MaskRanges{equal(), std::nullopt};
  case arith::CmpIPredicate::ne:
    return MaskRanges{std::nullopt, equal()};
  default:
    return refuse("it compares without sign; use slt, sle, sgt or sge");
  }
}

std::optional<InductionBound> MaskAnalyzer::whereFalse(arith::CmpIPredicate predicate, Value lhs,
                                                       Value rhs) {
  std::optional<AffineTile> form = sum(lhs, rhs, -1);
  if (!form)
    return std::nullopt;
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    return bound(*form, /*negate=*/true, 0);
  case arith::CmpIPredicate::sle:
    return bound(*form, /*negate=*/true, 1);
  case arith::CmpIPredicate::sgt:
    return bound(*form, /*negate=*/false, 0);
  case arith::CmpIPredicate::sge:
    return bound(*form, /*negate=*/false, 1);
  default:
    return refuse("it compares without sign; use slt, sle, sgt or sge");
  }
}

std::optional<MaskRanges> MaskAnalyzer::joined(std::optional<MaskRanges> x,
                                               std::optional<MaskRanges> y, bool conjunction) {
  MaskRanges none, result;
  // One side alone decides a conjunction that is false and a disjunction that is true.
  auto both = [](auto &p, auto &q) {
    if (p && q)
      llvm::append_range(*p, *q);
    return p && q ? p : std::nullopt;
  };
  auto either = [](auto &p, auto &q) { return p ? p : q; };
  MaskRanges &p = x ? *x : none, &q = y ? *y : none;
  result.allTrue = conjunction ? both(p.allTrue, q.allTrue) : either(p.allTrue, q.allTrue);
  result.allFalse = conjunction ? either(p.allFalse, q.allFalse) : both(p.allFalse, q.allFalse);
  if (!result.allTrue && !result.allFalse)
    return std::nullopt;
  if ((result.allTrue && result.allTrue->size() > kMaxBounds) ||
      (result.allFalse && result.allFalse->size() > kMaxBounds))
    return refuse("it combines too many comparisons");
  return result;
}

std::optional<MaskRanges> MaskAnalyzer::computeMask(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto cmp = dyn_cast_or_null<arith::CmpIOp>(op))
    return comparison(cmp.getPredicate(), cmp.getLhs(), cmp.getRhs());
  if (auto conjunction = dyn_cast_or_null<arith::AndIOp>(op))
    return joined(mask(conjunction.getLhs()), mask(conjunction.getRhs()), /*conjunction=*/true);
  if (auto disjunction = dyn_cast_or_null<arith::OrIOp>(op))
    return joined(mask(disjunction.getLhs()), mask(disjunction.getRhs()), /*conjunction=*/false);
  if (auto exclusive = dyn_cast_or_null<arith::XOrIOp>(op)) {
    if (!matchPattern(exclusive.getRhs(), m_One()))
      return refuse("it combines comparisons by an exclusive or");
    std::optional<MaskRanges> opposite = mask(exclusive.getLhs());
    if (opposite)
      std::swap(opposite->allTrue, opposite->allFalse);
    return opposite;
  }
  if (isa_and_nonnull<BroadcastOp, TransposeOp, SplatOp>(op))
    return mask(op->getOperand(0));
  return refuse("it holds values that are not comparisons of integers");
}

std::string tessera::explainWrapped(Value value) {
  return ("it compares integers that may have wrapped in " +
          Twine(bitsOfIntegers(value.getType())) + " bits")
      .str();
}

bool tessera::isPositionMask(Value condition) {
  llvm::SetVector<Value> parts;
  parts.insert(condition);
  for (size_t i = 0; i < parts.size(); ++i) {
    Operation *op = parts[i].getDefiningOp();
    if (!op || !isa<ShapedType>(parts[i].getType()))
      continue;
    if (isa<arith::CmpIOp>(op))
      return true;
    if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, BroadcastOp, TransposeOp>(op))
      parts.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

std::optional<MaskRanges> tessera::analyzeMask(Value condition, scf::ForOp loop,
                                               std::string &reason, RowBounds *rows) {
  return MaskAnalyzer(loop, reason, rows).mask(condition);
}

std::optional<InductionBound> tessera::boundWhereFalse(arith::CmpIPredicate predicate, Value lhs,
                                                       Value rhs, scf::ForOp loop,
                                                       std::string &reason, RowBounds *rows) {
  return MaskAnalyzer(loop, reason, rows).whereFalse(predicate, lhs, rhs);
}

void tessera::hoistInvariantScalars(scf::ForOp loop) {
  moveLoopInvariantCode(
      loop.getLoopRegions(),
      [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
      [](Operation *op, Region *) {
        return isMemoryEffectFree(op) && isSpeculatable(op) && op->getNumRegions() == 0 &&
               llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndex(); });
      },
      [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
}

SmallVector<Value> tessera::getMaskTerms(Value condition, bool byAnd) {
  Operation *op = condition.getDefiningOp();
  if (!op || !(byAnd ? isa<arith::AndIOp>(op) : isa<arith::OrIOp>(op)))
    return {condition};
  SmallVector<Value> terms = getMaskTerms(op->getOperand(0), byAnd);
  llvm::append_range(terms, getMaskTerms(op->getOperand(1), byAnd));
  return terms;
}

Value tessera::combineMaskTerms(ArrayRef<Value> terms, bool byAnd, ImplicitLocOpBuilder &builder) {
  Value combined = terms.front();
  for (Value term : terms.drop_front()) {
    if (byAnd)
      combined = arith::AndIOp::create(builder, combined, term);
    else
      combined = arith::OrIOp::create(builder, combined, term);
  }
  return combined;
}

/// True for a value that costs nothing to make: the arm that a mask puts in.
static bool isFill(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (op->hasTrait<OpTrait::ConstantLike>() || isa<SplatOp>(op));
}

std::optional<bool> tessera::getComputedArm(arith::SelectOp select) {
  bool fillsWhereFalse = isFill(select.getFalseValue());
  if (isFill(select.getTrueValue()) == fillsWhereFalse || !isPositionMask(select.getCondition()))
    return std::nullopt;
  return fillsWhereFalse;
}
