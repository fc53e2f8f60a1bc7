//===- MaskAnalysis.cpp - Iterations in which a mask is uniform -----------===//

#include "passes/Analysis/MaskAnalysis.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "passes/Analysis/RowBounds.h"
#include "passes/Analysis/TileForm.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
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
  std::optional<TileForm> affine(Value value) {
    auto known = forms.find(value);
    return known != forms.end() ? known->second : forms[value] = computeAffine(value);
  }
  std::optional<TileForm> computeAffine(Value value);
  std::optional<TileForm> computeAffine(Operation *op);
  std::optional<MaskRanges> computeMask(Value value);
  std::optional<TileForm> sum(Value a, Value b, int64_t factor);
  std::optional<TileForm> product(Value a, Value b);
  std::optional<TileForm> quotient(Operation *op);
  std::optional<TileForm> leaf(Value value);
  std::optional<std::optional<MaskRanges>> comparisonOfParts(arith::CmpIPredicate predicate,
                                                             Value lhs, Value rhs);
  std::optional<MaskRanges> comparison(arith::CmpIPredicate predicate, Value lhs, Value rhs);
  std::optional<MaskRanges> comparison(arith::CmpIPredicate predicate, const TileForm &form);
  std::optional<InductionBound> largest(const TileForm &form);
  std::optional<InductionBound> bound(TileForm form, const InductionBound &rest);
  std::optional<InductionBound> bound(const TileForm &form, bool negate, int64_t offset);
  bool isInvariant(Value scalar) { return !loop || loop.isDefinedOutsideOfLoop(scalar); }
  static bool isTile(Value value) { return isa<ShapedType>(value.getType()); }
  std::optional<MaskRanges> joined(std::optional<MaskRanges> x, std::optional<MaskRanges> y,
                                   bool conjunction);

  scf::ForOp loop;
  std::string &reason;
  RowBounds *rows; ///< null where values that are loaded have no bounds
  IntegerRanges ranges;
  llvm::DenseMap<Value, std::optional<TileForm>> forms;
  llvm::DenseMap<Value, std::optional<MaskRanges>> masks;
};

/// More comparisons than this in one condition are not analysed.
constexpr size_t kMaxBounds = 64;
/// Nor are quotients of sums of more quotients, or of more that are in each other: their parts may
/// be shared, so that there are exponentially many ways through them.
constexpr size_t kMostQuotients = 4;
constexpr unsigned kMostNested = 3;
} // namespace

//===----------------------------------------------------------------------===//
// Affine forms
//===----------------------------------------------------------------------===//

std::optional<TileForm> MaskAnalyzer::sum(Value a, Value b, int64_t factor) {
  std::optional<TileForm> x = affine(a), y = affine(b);
  if (!x || !y)
    return std::nullopt;
  if (!x->add(*y, factor))
    return refuse("a coefficient exceeds 64 bits");
  return x;
}

std::optional<TileForm> MaskAnalyzer::product(Value a, Value b) {
  std::optional<TileForm> x = affine(a), y = affine(b);
  if (!x || !y)
    return std::nullopt;
  if (x->isConstant())
    std::swap(x, y);
  if (!y->isConstant())
    return refuse("it multiplies two values that are not constant");
  TileForm scaled;
  if (!scaled.add(*x, y->same.constant))
    return refuse("a coefficient exceeds 64 bits");
  return scaled;
}

/// The divisor of a quotient or remainder that `op` makes by a constant above 0; none elsewhere.
static std::optional<int64_t> divisorOf(Operation *op) {
  DenseIntElementsAttr elements;
  APInt number;
  if (matchPattern(op->getOperand(1), m_Constant(&elements)) && elements.isSplat())
    number = elements.getSplatValue<APInt>();
  else if (!matchPattern(op->getOperand(1), m_ConstantInt(&number)))
    return std::nullopt;
  if (!number.isSignedIntN(32))
    return std::nullopt;
  int64_t value = number.getSExtValue();
  if (isa<arith::ShRSIOp>(op))
    return value >= 0 && value < 31 ? std::optional(int64_t(1) << value) : std::nullopt;
  // The bits from one on are a multiple of what it counts.
  if (isa<arith::AndIOp>(op))
    return value < 0 && llvm::isPowerOf2_64(-value) ? std::optional(-value) : std::nullopt;
  return value > 0 ? std::optional(value) : std::nullopt;
}

/// A quotient by a constant, rounded down or up, or as much as a multiple of one is less. Towards
/// zero is down where nothing is negative.
std::optional<TileForm> MaskAnalyzer::quotient(Operation *op) {
  std::optional<int64_t> divisor = divisorOf(op);
  bool isTruncated = isa<arith::DivSIOp, arith::RemSIOp>(op);
  if (!divisor || (isTruncated && ranges.of(op->getOperand(0)).least < 0))
    return leaf(op->getResult(0));
  std::optional<TileForm> dividend = affine(op->getOperand(0));
  if (!dividend)
    return std::nullopt;
  if (dividend->quotients.size() > kMostQuotients || dividend->nesting == kMostNested)
    return refuse("it compares quotients of too many quotients");
  if (isa<arith::CeilDivSIOp>(op) && !addProduct(dividend->same.constant, *divisor - 1, 1))
    return refuse("a coefficient exceeds 64 bits");
  TileForm form;
  bool isRemainder = isa<arith::RemSIOp>(op);
  if (isRemainder)
    form = *dividend;
  form.nesting = dividend->nesting + 1;
  int64_t coefficient = isRemainder ? -*divisor : isa<arith::AndIOp>(op) ? *divisor : 1;
  form.quotients.push_back(
      {coefficient, std::make_shared<TileForm>(std::move(*dividend)), *divisor});
  return form;
}

/// The induction variable of which `value` is what an iteration works on, or `value` itself.
static Value iterationOf(Value value) {
  auto walk = value.getDefiningOp<WalkOp>();
  return walk ? walk.getStep() : value;
}

/// A constant, the induction variable, or a scalar from outside the loop.
std::optional<TileForm> MaskAnalyzer::leaf(Value value) {
  TileForm form;
  DenseIntElementsAttr elements;
  APInt integer;
  if (matchPattern(value, m_ConstantInt(&integer)) ||
      (matchPattern(value, m_Constant(&elements)) && elements.isSplat())) {
    if (elements)
      integer = elements.getSplatValue<APInt>();
    if (!integer.isSignedIntN(64))
      return refuse("a constant exceeds 64 bits");
    form.same.constant = integer.getSExtValue();
    return form;
  }
  if (isa<ShapedType>(value.getType()) && rows && rows->covers(value)) {
    form.loaded[value] = 1;
    return form;
  }
  if (isa<ShapedType>(value.getType()))
    return refuse("it compares tiles that are not computed from tile.iota, splats and constants");
  if (loop && iterationOf(value) == loop.getInductionVar()) {
    form.same.slope = 1;
    return form;
  }
  if (isInvariant(value)) {
    form.same.symbols[value] = 1;
    return form;
  }
  return refuse("it depends on a value that changes from iteration to iteration and is not affine "
                "in the induction variable");
}

std::optional<TileForm> MaskAnalyzer::computeAffine(Value value) {
  // Scalars from outside are symbols as they are, however they were computed.
  Operation *op = value.getDefiningOp();
  bool isScalar = !isa<ShapedType>(value.getType());
  if (!op || (isScalar && isInvariant(value)))
    return leaf(value);
  std::optional<TileForm> form = computeAffine(op);
  return form && ranges.mayWrap(value) ? refuseWrapped(value) : form;
}

std::optional<TileForm> MaskAnalyzer::computeAffine(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<TileForm>>(op)
      .Case([&](arith::AddIOp add) { return sum(add.getLhs(), add.getRhs(), 1); })
      .Case([&](arith::SubIOp sub) { return sum(sub.getLhs(), sub.getRhs(), -1); })
      .Case([&](arith::MulIOp mul) { return product(mul.getLhs(), mul.getRhs()); })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(
          [&](auto cast) { return affine(cast.getIn()); })
      .Case<arith::FloorDivSIOp, arith::DivSIOp, arith::CeilDivSIOp, arith::RemSIOp, arith::ShRSIOp,
            arith::AndIOp>([&](Operation *division) { return quotient(division); })
      .Case([&](SplatOp splat) { return affine(splat.getSource()); })
      .Case([&](IotaOp iota) -> std::optional<TileForm> {
        std::optional<TileForm> form = affine(iota.getStart());
        if (form)
          form->axes[{iota.getAxis(), iota.getPeriodOrExtent()}] = 1;
        return form;
      })
      .Case([&](BroadcastOp broadcast) {
        std::optional<TileForm> form = affine(broadcast.getSource());
        // The source's only axis becomes the one that is not repeated.
        if (form && broadcast.getAxis() == 0)
          form->exchangeAxes();
        return form;
      })
      .Case([&](TransposeOp transpose) {
        std::optional<TileForm> form = affine(transpose.getSource());
        if (form)
          form->exchangeAxes();
        return form;
      })
      .Default([&](Operation *) { return leaf(op->getResult(0)); });
}

//===----------------------------------------------------------------------===//
// Comparisons and their combinations
//===----------------------------------------------------------------------===//

/// What no element of `form` is above, where no quotient in it moves.
std::optional<InductionBound> MaskAnalyzer::largest(const TileForm &form) {
  InductionBound bound = form.same;
  bool fits = true;
  for (auto [index, coefficient] : form.axes)
    if (coefficient > 0)
      fits = fits && addProduct(bound.constant, coefficient, index.second - 1);
  for (auto [tile, coefficient] : form.loaded)
    if (coefficient != 0)
      bound.symbols[rows->getElement(tile, /*largest=*/coefficient > 0)] += coefficient;
  for (const TileQuotient &quotient : form.quotients) {
    // The least dividend is the opposite of the largest of the opposites.
    int64_t sign = quotient.coefficient > 0 ? 1 : -1;
    TileForm directed;
    auto dividend = std::make_shared<InductionBound>();
    fits = fits && directed.add(*quotient.dividend, sign);
    std::optional<InductionBound> extreme = largest(directed);
    if (!extreme)
      return std::nullopt;
    fits = fits && dividend->add(*extreme, sign);
    bound.quotients.push_back({quotient.coefficient, std::move(dividend), quotient.divisor});
  }
  if (!fits)
    return refuse("a coefficient exceeds 64 bits");
  return bound;
}

/// Bounds the induction variable so that `form + rest <= 0` for every element of the tile, of a
/// `rest` that does not move.
std::optional<InductionBound> MaskAnalyzer::bound(TileForm form, const InductionBound &rest) {
  auto *moving = llvm::find_if(
      form.quotients, [](const TileQuotient &quotient) { return quotient.dividend->moves(); });
  if (moving == form.quotients.end()) {
    std::optional<InductionBound> bound = largest(form);
    if (bound && !bound->add(rest, 1))
      return refuse("a coefficient exceeds 64 bits");
    return bound;
  }
  TileQuotient quotient = *moving;
  form.quotients.erase(moving);
  if (form.moves())
    return refuse("it compares remainders, or several quotients, that change from iteration to "
                  "iteration");
  // c * floor(x / d) + r <= 0 where x - (d - 1) <= d * floor(-r / c); with c < 0 where -x <= d *
  // floor(-r / -c).
  std::optional<InductionBound> others = largest(form);
  auto opposite = std::make_shared<InductionBound>();
  InductionBound limit;
  TileForm dividend;
  bool isBelow = quotient.coefficient > 0;
  int64_t divisor = quotient.divisor, count = std::abs(quotient.coefficient);
  if (!others)
    return std::nullopt;
  bool fits = others->add(rest, 1) && opposite->add(*others, -1) &&
              dividend.add(*quotient.dividend, isBelow ? 1 : -1) &&
              addProduct(limit.constant, isBelow ? 1 - divisor : 0, 1) &&
              (count != 1 || limit.add(*others, divisor));
  if (!fits)
    return refuse("a coefficient exceeds 64 bits");
  if (count != 1)
    limit.quotients.push_back({-divisor, std::move(opposite), count});
  return bound(std::move(dividend), limit);
}

/// Bounds the induction variable so that `form + offset <= 0`, or
/// `-form + offset <= 0` with `negate`, for every element of the tile.
std::optional<InductionBound> MaskAnalyzer::bound(const TileForm &form, bool negate,
                                                  int64_t offset) {
  TileForm worst;
  worst.same.constant = offset;
  if (!worst.add(form, negate ? -1 : 1))
    return refuse("a coefficient exceeds 64 bits");
  std::optional<InductionBound> found = bound(std::move(worst), InductionBound());
  if (!found)
    return std::nullopt;
  found->symbols.remove_if([](const auto &entry) { return entry.second == 0; });
  if (!isRepresentable(*found, ranges))
    return refuse("it compares sums of more than 64 bits");
  return found;
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
  std::optional<TileForm> inner = affine(op->getOperand(0)), bound = affine(rhs);
  if (!inner || !bound)
    return std::optional<MaskRanges>();
  TileForm above, below;
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
  std::optional<TileForm> form = sum(lhs, rhs, -1);
  return form ? comparison(predicate, *form) : std::nullopt;
}

/// The comparison of `form` with 0.
std::optional<MaskRanges> MaskAnalyzer::comparison(arith::CmpIPredicate predicate,
                                                   const TileForm &form) {
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
  std::optional<TileForm> form = sum(lhs, rhs, -1);
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
static bool fillsMask(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (op->hasTrait<OpTrait::ConstantLike>() || isa<SplatOp>(op));
}

std::optional<bool> tessera::getComputedArm(arith::SelectOp select) {
  bool fillsWhereFalse = fillsMask(select.getFalseValue());
  if (fillsMask(select.getTrueValue()) == fillsWhereFalse || !isPositionMask(select.getCondition()))
    return std::nullopt;
  return fillsWhereFalse;
}
