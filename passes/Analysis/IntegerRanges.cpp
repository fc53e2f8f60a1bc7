#include "passes/Analysis/IntegerRanges.h"
#include "dialects/Hop/Hop.h"
#include "dialects/Tile/LoadedIndex.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/ScfFlow.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Longer chains of operations are not looked through.
constexpr unsigned kMostDepth = 256;
/// Products of two numbers of 64 bits do not wrap.
constexpr unsigned kWideBits = 128;

unsigned tessera::bitsOfIntegers(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIndex() ? 32 : element.getIntOrFloatBitWidth();
}

IntegerRange IntegerRange::ofBits(unsigned bits) {
  return {llvm::minIntN(std::min(bits, 64u)), llvm::maxIntN(std::min(bits, 64u)),
          /*isFarBelow=*/true, /*isFarAbove=*/true};
}

bool IntegerRange::fits(unsigned bits) const {
  return bits >= 64 || (llvm::isIntN(bits, least) && llvm::isIntN(bits, most));
}

bool IntegerRange::lessFits(const IntegerRange &other, unsigned bits) const {
  int64_t below, above;
  return !llvm::SubOverflow(least, other.most, below) &&
         !llvm::SubOverflow(most, other.least, above) && below > llvm::minIntN(bits) &&
         IntegerRange(below, above).fits(bits);
}

IntegerRange IntegerRanges::of(Value value) {
  if (auto known = ranges.find(value); known != ranges.end())
    return known->second;
  ++depth;
  IntegerRange range = depth > kMostDepth ? ofUnknown(value) : compute(value);
  --depth;
  ranges.try_emplace(value, range);
  return range;
}

/// A number that is not loaded and no argument is a place if it is an index.
IntegerRange IntegerRanges::ofUnknown(Value value) {
  if (!getElementTypeOrSelf(value).isIndex() || comesFromOutside(value))
    return IntegerRange::ofBits(bitsOfIntegers(value.getType()));
  return {isNonNegative(value) ? 0 : -kFarthestPlace, kFarthestPlace};
}

/// The range of `value`, which is `whole` where that fits its type.
IntegerRange IntegerRanges::kept(Value value, IntegerRange whole) {
  // What is computed of places alone is one, as the author says.
  if (getElementTypeOrSelf(value).isIndex()) {
    if (!whole.isFarBelow)
      whole.least = std::max(whole.least, -kFarthestPlace);
    if (!whole.isFarAbove)
      whole.most = std::min(whole.most, kFarthestPlace);
  }
  unsigned bits = bitsOfIntegers(value.getType());
  if (whole.fits(bits))
    return whole;
  wrapping.insert(value);
  return IntegerRange::ofBits(bits);
}

IntegerRange IntegerRanges::compute(Value value) {
  DenseIntElementsAttr elements;
  APInt integer;
  bool isTile = matchPattern(value, m_Constant(&elements)) && elements.isSplat();
  if (isTile || matchPattern(value, m_ConstantInt(&integer))) {
    if (isTile)
      integer = elements.getSplatValue<APInt>();
    if (integer.isSignedIntN(64))
      return {integer.getSExtValue(), integer.getSExtValue()};
    return ofUnknown(value);
  }
  if (auto argument = dyn_cast<BlockArgument>(value))
    return ofArgument(argument);
  return compute(value.getDefiningOp(), value);
}

/// From the first of `lower` to the last of `upper`, less `behind`.
IntegerRange IntegerRanges::ofIterations(Value lower, Value upper, int64_t behind) {
  IntegerRange first = of(lower), past = of(upper);
  return {first.least, std::max(first.least, past.most - behind), first.isFarBelow,
          past.isFarAbove};
}

IntegerRange IntegerRanges::ofArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent);
      loop && argument == loop.getInductionVar() && !loop.getUnsignedCmp())
    return kept(argument, ofIterations(loop.getLowerBound(), loop.getUpperBound(), 1));
  if (auto visits = dyn_cast<VisitsOp>(parent))
    return kept(argument, ofIterations(visits.getLower(), visits.getUpper(), 1));
  if (auto reduce = dyn_cast<ReduceRangeOp>(parent))
    return {0, static_cast<int64_t>(reduce.getCount()) - 1};
  if (auto role = dyn_cast<hop::RoleOp>(parent))
    return {0, role.getNumWarpgroups() - 1};
  return ofUnknown(argument);
}

/// Marks the ends of `range` that follow from numbers which may be any: of sums, differences, and
/// products and quotients by what is not negative the one or the other, of minima and maxima those
/// that are left. Of anything else both are where some operand is.
static void markFar(Operation *op, ArrayRef<IntegerRange> operands, IntegerRange &range) {
  const IntegerRange &a = operands.front(), &b = operands.back();
  bool isAny = llvm::any_of(operands, [](const IntegerRange &operand) { return operand.isFar(); });
  bool isScaled = b.least >= 0 && !b.isFar();
  auto mark = [&](bool below, bool above) {
    range.isFarBelow = below;
    range.isFarAbove = above;
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case(
          [&](arith::MinSIOp) { mark(a.isFarBelow || b.isFarBelow, a.isFarAbove && b.isFarAbove); })
      .Case(
          [&](arith::MaxSIOp) { mark(a.isFarBelow && b.isFarBelow, a.isFarAbove || b.isFarAbove); })
      .Case([&](arith::MinUIOp) {
        // Without sign one that is negative is the larger one.
        auto bounds = [](const IntegerRange &x) { return x.least >= 0 && !x.isFarAbove; };
        mark(range.least < 0, !bounds(a) && !bounds(b) && isAny);
      })
      .Case(
          [&](arith::AddIOp) { mark(a.isFarBelow || b.isFarBelow, a.isFarAbove || b.isFarAbove); })
      .Case(
          [&](arith::SubIOp) { mark(a.isFarBelow || b.isFarAbove, a.isFarAbove || b.isFarBelow); })
      .Case<arith::MulIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, arith::ShRSIOp>(
          [&](auto) { mark(isScaled ? a.isFarBelow : isAny, isScaled ? a.isFarAbove : isAny); })
      .Default([&](Operation *) { mark(isAny, isAny); });
}

/// The range in whole numbers of an operation of arith.
IntegerRange IntegerRanges::ofArithmetic(Operation *op) {
  Value result = op->getResult(0);
  unsigned bits = bitsOfIntegers(result.getType());
  auto inference = dyn_cast<InferIntRangeInterface>(op);
  auto isInteger = [](Type type) { return getElementTypeOrSelf(type).isIntOrIndex(); };
  if (!inference || !isa<arith::ArithDialect>(op->getDialect()) || op->getNumResults() != 1 ||
      !llvm::all_of(op->getOperandTypes(), isInteger))
    return ofUnknown(result);
  SmallVector<IntegerRange> operands;
  SmallVector<ConstantIntRanges> wide;
  for (Value operand : op->getOperands()) {
    if (getElementTypeOrSelf(operand).isInteger(1)) {
      wide.push_back(ConstantIntRanges::maxRange(1));
      continue;
    }
    operands.push_back(of(operand));
    wide.push_back(
        ConstantIntRanges::fromSigned(APInt(kWideBits, operands.back().least, /*isSigned=*/true),
                                      APInt(kWideBits, operands.back().most, /*isSigned=*/true)));
  }
  std::optional<ConstantIntRanges> found;
  if (!operands.empty())
    inference.inferResultRanges(wide,
                                [&](Value, const ConstantIntRanges &range) { found = range; });
  // The quotient of the least number and -1 is one more than the largest.
  bool isQuotient = isa<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(op) &&
                    operands.front().least == IntegerRange::ofBits(bits).least &&
                    operands.back().least <= -1 && operands.back().most >= -1;
  bool wraps = isQuotient || isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp>(op);
  if (!found || found->smin().getBitWidth() != kWideBits || !found->smin().isSignedIntN(64) ||
      !found->smax().isSignedIntN(64)) {
    if (wraps)
      wrapping.insert(result);
    return ofUnknown(result);
  }
  IntegerRange range(found->smin().getSExtValue(), found->smax().getSExtValue());
  markFar(op, operands, range);
  return wraps || range.fits(bits) ? kept(result, range) : IntegerRange::ofBits(bits);
}

/// What has no sign any more, of what may have had one.
static IntegerRange withoutSign(IntegerRange range, unsigned bits) {
  if (range.least >= 0 || bits >= 64)
    return range.least >= 0 ? range : IntegerRange::ofBits(64);
  return {0, static_cast<int64_t>(llvm::maxUIntN(bits)), false, bits > 1};
}

IntegerRange IntegerRanges::compute(Operation *op, Value result) {
  if (!getElementTypeOrSelf(result).isIntOrIndex())
    return IntegerRange::ofBits(64);
  return llvm::TypeSwitch<Operation *, IntegerRange>(op)
      .Case([&](DimOp) { return IntegerRange(1, kFarthestPlace); })
      .Case([&](VisitsOp visits) {
        return kept(result, ofIterations(visits.getLower(), visits.getUpper(), 0));
      })
      .Case([&](WalkOp walk) {
        return kept(result, ofIterations(walk.getLower(), walk.getUpper(), 1));
      })
      .Case([&](CommonBoundOp bound) { return of(bound.getOwn()); })
      .Case([&](ReduceRangeOp reduce) { return of(reduce.getYielded()); })
      .Case([&](scf::IfOp) {
        std::optional<Handover> handover = findHandoverTo(result);
        IntegerRange a = of(handover->from.front()), b = of(handover->from.back());
        return kept(result, {std::min(a.least, b.least), std::max(a.most, b.most),
                             a.isFarBelow || b.isFarBelow, a.isFarAbove || b.isFarAbove});
      })
      .Case<SplatOp, BroadcastOp, TransposeOp>(
          [&](Operation *same) { return of(same->getOperand(0)); })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
          [&](Operation *cast) { return kept(result, of(cast->getOperand(0))); })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](Operation *cast) {
        Value from = cast->getOperand(0);
        return kept(result, withoutSign(of(from), bitsOfIntegers(from.getType())));
      })
      .Case([&](IotaOp iota) {
        IntegerRange range = of(iota.getStart());
        range.most += iota.getPeriodOrExtent() - 1;
        return kept(result, range);
      })
      .Case([&](math::AbsIOp abs) {
        IntegerRange range = of(abs.getOperand());
        if (range.least == std::numeric_limits<int64_t>::min())
          return wrapping.insert(result), IntegerRange::ofBits(64);
        return kept(result, {std::max<int64_t>({0, range.least, -range.most}),
                             std::max(-range.least, range.most), false, range.isFar()});
      })
      .Default([&](Operation *) { return ofArithmetic(op); });
}
