//===- IndexFacts.cpp - What index arithmetic says of its result ----------===//

#include "passes/Analysis/IndexFacts.h"
#include "dialects/Hop/Hop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/ScfFlow.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

namespace {
/// Values that are multiples of a factor. What a loop carries is taken for one, and then held
/// against what enters the loop and what its body hands on.
class Multiples {
public:
  explicit Multiples(int64_t factor) : factor(factor) {}

  bool prove(Value index);

private:
  bool holds(Value value);
  bool derive(Value value);
  bool isHandedOn(const Handover &handover);
  bool refuteOne();

  int64_t factor;
  /// Expressions share parts, so that their number of paths has no bound.
  llvm::DenseMap<Value, bool> known;
  /// Arguments of loops.
  llvm::SetVector<Value> assumed;
  llvm::DenseSet<Value> refuted;
};
} // namespace

bool Multiples::prove(Value index) {
  bool result;
  do {
    known.clear();
    assumed.clear();
    result = holds(index);
  } while (result && refuteOne());
  return result;
}

/// Whether an assumption that was made does not hold; it is not made again.
bool Multiples::refuteOne() {
  for (size_t i = 0; i < assumed.size(); ++i) // holds() adds to them
    if (!llvm::all_of(findHandoverTo(assumed[i])->from, [&](Value value) { return holds(value); }))
      return refuted.insert(assumed[i]).second;
  return false;
}

bool Multiples::isHandedOn(const Handover &handover) {
  Value place = handover.to.front();
  if (!isa<BlockArgument>(place)) // by a conditional, which comes back to nothing
    return llvm::all_of(handover.from, [&](Value value) { return holds(value); });
  if (refuted.contains(place))
    return false;
  assumed.insert(place);
  return true;
}

bool Multiples::holds(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  bool result = derive(value);
  known[value] = result;
  return result;
}

bool Multiples::derive(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % factor == 0;
  auto both = [&](Value other) { return holds(other); };
  if (std::optional<Handover> handover = findHandoverTo(value))
    return isHandedOn(*handover);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && holds(loop.getLowerBound()) && holds(loop.getStep());
  }
  return TypeSwitch<Operation *, bool>(value.getDefiningOp())
      .Case([&](arith::MulIOp mul) { return llvm::any_of(mul->getOperands(), both); })
      .Case([&](arith::ShLIOp shift) {
        std::optional<int64_t> amount = getConstantIntValue(shift.getRhs());
        return holds(shift.getLhs()) || (amount && *amount >= llvm::Log2_64(factor));
      })
      .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp,
            arith::MaxUIOp, arith::RemSIOp, arith::RemUIOp, arith::IndexCastOp,
            arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(
          [&](Operation *all) { return llvm::all_of(all->getOperands(), both); })
      .Case([&](arith::SelectOp select) {
        return holds(select.getTrueValue()) && holds(select.getFalseValue());
      })
      .Case([&](tile::RowOp row) { return holds(row.getRow()); })
      .Default(false);
}

bool tessera::isMultipleOf(Value index, int64_t factor) { return Multiples(factor).prove(index); }

/// Extents of one name are one value.
static Value findSame(const IndexTerms &terms, Value value) {
  auto extent = value.getDefiningOp<tile::DimOp>();
  if (!extent)
    return value;
  const auto *same = llvm::find_if(terms.of, [&](auto &term) {
    auto other = term.first.template getDefiningOp<tile::DimOp>();
    return other && other.getDim() == extent.getDim();
  });
  return same == terms.of.end() ? value : same->first;
}

IndexTerms &IndexTerms::add(Value value, int64_t times) {
  Operation *op = value.getDefiningOp();
  if (std::optional<int64_t> number = getConstantIntValue(value)) {
    constant += times * *number;
    return *this;
  }
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    add(op->getOperand(0), times);
    return add(op->getOperand(1), isa<arith::AddIOp>(op) ? times : -times);
  }
  if (auto product = dyn_cast_or_null<arith::MulIOp>(op)) {
    std::optional<int64_t> factor = getConstantIntValue(product.getRhs());
    if (int64_t both; factor && !llvm::MulOverflow(times, *factor, both))
      return add(product.getLhs(), both);
  }
  Value term = findSame(*this, value);
  if (int64_t &sum = of[term]; (sum += times) == 0)
    of.erase(term);
  return *this;
}

/// The loop of which `value` is the iteration, if it ends as signed numbers do.
static scf::ForOp loopOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop =
      argument ? dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  return loop && !loop.getUnsignedCmp() && argument == loop.getInductionVar() ? loop : scf::ForOp();
}

/// A bound of a loop as far as it counts where there are iterations: the least of something and the
/// end is no first one, nor is the greatest of something and the first one an end.
template <typename BoundOp>
static Value boundOfSome(Value bound, Value opposite) {
  auto either = bound.getDefiningOp<BoundOp>();
  if (!either)
    return bound;
  if (isEqualConstantIntOrValue(either.getLhs(), opposite))
    return either.getRhs();
  return isEqualConstantIntOrValue(either.getRhs(), opposite) ? either.getLhs() : bound;
}

namespace {
/// A quotient by a constant above 0: of any number, or of one that is at least 0.
struct ConstantQuotient {
  Value dividend;
  int64_t divisor;
  bool roundsUp;
};
} // namespace

static std::optional<ConstantQuotient> quotientOf(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp, arith::DivSIOp,
                       arith::DivUIOp>(op))
    return std::nullopt;
  std::optional<int64_t> divisor = getConstantIntValue(op->getOperand(1));
  bool ofAny = isa<arith::CeilDivSIOp, arith::FloorDivSIOp>(op);
  if (!divisor || *divisor <= 0 || (!ofAny && !isNonNegative(op->getOperand(0), depth)))
    return std::nullopt;
  return ConstantQuotient{op->getOperand(0), *divisor,
                          isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(op)};
}

/// The dimension of the grid that `value` is an index of.
static tile::GridDimAttr gridDimOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto kernel = argument ? dyn_cast_or_null<tile::KernelOp>(argument.getOwner()->getParentOp())
                         : tile::KernelOp();
  if (!kernel || argument.getArgNumber() < kernel.getNumArguments())
    return {};
  return kernel.getGridDim(argument.getArgNumber() - kernel.getNumArguments());
}

namespace {
/// A sum, one term of which is replaced by a bound.
class BoundedSum {
public:
  BoundedSum(const IndexTerms &terms, Value value, unsigned depth)
      : terms(terms), value(value), times(terms.of.lookup(value)), depth(depth) {}

  /// Whether the sum is at least 0 with what an iteration is at most, where it is subtracted, or at
  /// least.
  bool holdsFor(scf::ForOp loop) const;
  /// The same of another number that is subtracted.
  bool holds() const;

private:
  bool holdsFrom(Value first) const;
  bool holdsWith(Value bound, int64_t offset = 0, int64_t divisor = 1) const;
  bool holdsWith(tile::GridDimAttr dim) const;
  bool holdsForProduct(Value factor, Value quotient) const;

  const IndexTerms &terms;
  Value value;
  int64_t times;
  unsigned depth;
};
} // namespace

/// The term is at most, or at least, (`bound` + `offset`) / `divisor`.
bool BoundedSum::holdsWith(Value bound, int64_t offset, int64_t divisor) const {
  IndexTerms others = terms;
  others.of.erase(value);
  others.add(bound, times / divisor).constant += times / divisor * offset;
  return isNonNegative(others, depth - 1);
}

/// An iteration is no less than each of what the first one is the greatest of.
bool BoundedSum::holdsFrom(Value first) const {
  if (auto greatest = first.getDefiningOp<arith::MaxSIOp>())
    return holdsFrom(greatest.getLhs()) || holdsFrom(greatest.getRhs());
  auto quotient = first.getDefiningOp<arith::CeilDivSIOp>();
  std::optional<int64_t> divisor = quotient ? getConstantIntValue(quotient.getRhs()) : std::nullopt;
  bool isWhole = divisor && *divisor > 0 && times % *divisor == 0;
  return isWhole ? holdsWith(quotient.getLhs(), 0, *divisor) : holdsWith(first);
}

/// A grid index times the divisor is less than the extent, which only counts where the sum has it.
bool BoundedSum::holdsWith(tile::GridDimAttr dim) const {
  int64_t divisor = dim.getDivisor();
  if (auto extent = dyn_cast<IntegerAttr>(dim.getExtent())) {
    IndexTerms others = terms;
    others.of.erase(value);
    others.constant += times * ((extent.getInt() - 1) / divisor);
    return isNonNegative(others, depth - 1);
  }
  const auto *extent = llvm::find_if(terms.of, [&](auto &term) {
    auto named = term.first.template getDefiningOp<tile::DimOp>();
    return named && named.getDimAttr() == dim.getExtent();
  });
  return extent != terms.of.end() && times % divisor == 0 && holdsWith(extent->first, -1, divisor);
}

/// a times e / n, of an a from 0 up to n, is at most e less e / n.
bool BoundedSum::holdsForProduct(Value factor, Value quotient) const {
  auto division = quotient.getDefiningOp<arith::DivUIOp>();
  if (!division || !isNonNegative(division.getLhs(), depth - 1) ||
      !isNonNegative(factor, depth - 1))
    return false;
  IndexTerms left;
  left.constant = -1;
  left.add(division.getRhs(), 1).add(factor, -1);
  IndexTerms others = terms;
  others.of.erase(value);
  others.add(division.getLhs(), times).add(quotient, -times);
  return isNonNegative(left, depth - 1) && isNonNegative(others, depth - 1);
}

bool BoundedSum::holdsFor(scf::ForOp loop) const {
  Value first = loop.getLowerBound(), end = loop.getUpperBound();
  return times > 0 ? holdsFrom(boundOfSome<arith::MinSIOp>(first, end))
                   : holdsWith(boundOfSome<arith::MaxSIOp>(end, first), -1);
}

bool BoundedSum::holds() const {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::MinSIOp>(op))
    return holdsWith(op->getOperand(0)) || holdsWith(op->getOperand(1));
  if (isa_and_nonnull<arith::MaxSIOp>(op))
    return holdsWith(op->getOperand(0)) && holdsWith(op->getOperand(1));
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op))
    return holdsWith(select.getTrueValue()) && holdsWith(select.getFalseValue());
  if (auto product = dyn_cast_or_null<arith::MulIOp>(op))
    return holdsForProduct(product.getLhs(), product.getRhs()) ||
           holdsForProduct(product.getRhs(), product.getLhs());
  if (tile::GridDimAttr dim = gridDimOf(value))
    return holdsWith(dim);
  std::optional<ConstantQuotient> quotient = quotientOf(value, depth - 1);
  // On hop loads keep the checks with which kernels were measured.
  if (!isa_and_nonnull<arith::FloorDivSIOp>(op) &&
      !Value(value).getParentRegion()->getParentOfType<tile::KernelOp>())
    return false;
  return quotient && times % quotient->divisor == 0 &&
         holdsWith(quotient->dividend, quotient->roundsUp ? quotient->divisor - 1 : 0,
                   quotient->divisor);
}

/// Iterations first: what bounds their loops may be among the other terms.
bool tessera::isNonNegative(const IndexTerms &terms, unsigned depth) {
  const auto *subtracted = llvm::find_if(terms.of, [](auto &term) { return term.second < 0; });
  if (subtracted == terms.of.end() && terms.constant >= 0 &&
      llvm::all_of(terms.of, [&](auto &term) { return isNonNegative(term.first, depth); }))
    return true;
  if (depth == 0)
    return false;
  for (auto &term : terms.of)
    if (scf::ForOp loop = loopOf(term.first))
      return BoundedSum(terms, term.first, depth).holdsFor(loop);
  return subtracted != terms.of.end() && BoundedSum(terms, subtracted->first, depth).holds();
}

bool tessera::isNonNegative(Value index, unsigned depth) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant >= 0;
  if (depth == 0)
    return false;
  auto holds = [&](Value value) { return isNonNegative(value, depth - 1); };
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument == loop.getInductionVar())
      return holds(loop.getLowerBound());
    // Grid indices and the index of a warpgroup; a kernel's own arguments may be anything.
    Operation *owner = argument.getOwner()->getParentOp();
    auto isGridIndex = [&](auto kernel) {
      return kernel && argument.getArgNumber() >= kernel.getNumArguments();
    };
    return isa_and_nonnull<hop::RoleOp>(owner) ||
           isGridIndex(dyn_cast_or_null<hop::KernelOp>(owner)) ||
           isGridIndex(dyn_cast_or_null<tile::KernelOp>(owner));
  }
  return TypeSwitch<Operation *, bool>(index.getDefiningOp())
      .Case<tile::DimOp, tile::RowOp, hop::BlockIndexOp, hop::BlockCountOp, hop::ClusterRankOp>(
          [](Operation *) { return true; })
      .Case<arith::AddIOp, arith::MulIOp, arith::DivUIOp, arith::DivSIOp, arith::CeilDivUIOp,
            arith::CeilDivSIOp, arith::MinSIOp>(
          [&](Operation *op) { return llvm::all_of(op->getOperands(), holds); })
      .Case<arith::MaxSIOp, arith::MinUIOp>(
          [&](Operation *op) { return llvm::any_of(op->getOperands(), holds); })
      .Case([&](arith::SubIOp difference) {
        return isNonNegative(IndexTerms().add(difference, 1), depth - 1);
      })
      .Case([&](arith::RemUIOp rem) { return holds(rem.getRhs()); })
      .Case([&](arith::RemSIOp rem) { return holds(rem.getLhs()); })
      .Case([&](arith::SelectOp select) {
        return holds(select.getTrueValue()) && holds(select.getFalseValue());
      })
      .Default(false);
}

bool tessera::liesInside(Operation *op, tile::ViewType view, int64_t dim, Value index,
                         int64_t count) {
  IndexTerms left;
  left.constant = -count;
  if (int64_t extent = view.getStaticDim(dim); extent != ShapedType::kDynamic) {
    left.constant += extent;
  } else {
    Operation *kernel = op->getParentOfType<hop::KernelOp>();
    if (!kernel)
      kernel = op->getParentOfType<tile::KernelOp>();
    tile::DimOp known;
    kernel->walk([&](tile::DimOp other) {
      known = other.getDim() == view.getDimName(dim) ? other : tile::DimOp();
      return known ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (!known)
      return false;
    left.add(known, 1);
  }
  return isNonNegative(index) && isNonNegative(left.add(index, -1));
}

LogicalResult tessera::checkDivisor(Operation *op) {
  if (!isa<arith::DivSIOp, arith::DivUIOp, arith::CeilDivSIOp, arith::CeilDivUIOp,
           arith::FloorDivSIOp, arith::RemSIOp, arith::RemUIOp>(op) ||
      !matchPattern(op->getOperand(1), m_Zero()))
    return success();
  return op->emitError("divides by 0; give the parameters values with which it does not, or leave "
                       "it out where they have these with $if");
}
