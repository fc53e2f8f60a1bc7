//===- GridOrder.cpp - How the work of a tile depends on its place --------===//

#include "passes/Analysis/GridOrder.h"
#include "dialects/Hop/Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/IndexFacts.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

Value tessera::countTiles(tile::GridDimAttr dim, OpBuilder &builder, Location loc) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto name = dyn_cast<StringAttr>(dim.getExtent());
  Value extent = name ? Value(tile::DimOp::create(builder, loc, builder.getIndexType(), name))
                      : constant(cast<IntegerAttr>(dim.getExtent()).getInt());
  if (dim.getDivisor() == 1)
    return extent;
  return arith::CeilDivUIOp::create(builder, loc, extent, constant(dim.getDivisor()));
}

bool tessera::mayLaunchFlat(hop::KernelOp kernel) {
  auto mayBeMany = [](Attribute attribute) {
    auto dim = cast<tile::GridDimAttr>(attribute);
    auto extent = dyn_cast<IntegerAttr>(dim.getExtent());
    return !extent || llvm::divideCeil(extent.getInt(), dim.getDivisor()) > hopper::mostBlocksInYZ;
  };
  return kernel.getSchedule().getPersistent() == tile::PersistentKind::None &&
         !kernel.sharesPoint() && !kernel.getGrid().empty() &&
         llvm::any_of(kernel.getGrid().getValue().drop_front(), mayBeMany);
}

static Trend combine(Trend a, Trend b) {
  if (a == Trend::Constant || a == b)
    return b;
  return b == Trend::Constant ? a : Trend::Unknown;
}

static Trend flip(Trend trend) {
  if (trend == Trend::Increasing)
    return Trend::Decreasing;
  return trend == Trend::Decreasing ? Trend::Increasing : trend;
}

/// The trend of a value less another.
static Trend difference(Trend a, Trend b) {
  bool slides = a == b && (a == Trend::Increasing || a == Trend::Decreasing);
  return slides ? Trend::Sliding : combine(a, flip(b));
}

/// Whether `value` is a constant of at least 0, or an extent.
static bool isCountOrExtent(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isNonNegative();
  return value.getDefiningOp<tile::DimOp>() != nullptr;
}

Trend tessera::trendOf(Value value, Value index) {
  if (value == index)
    return Trend::Increasing;
  Operation *op = value.getDefiningOp();
  if (!op)
    return Trend::Constant;
  auto of = [&](unsigned operand) { return trendOf(op->getOperand(operand), index); };
  return TypeSwitch<Operation *, Trend>(op)
      .Case<arith::AddIOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(
          [&](auto) { return combine(of(0), of(1)); })
      .Case([&](arith::SubIOp) { return difference(of(0), of(1)); })
      .Case([&](arith::MulIOp) {
        for (unsigned factor : {0, 1})
          if (isCountOrExtent(op->getOperand(factor)))
            return of(1 - factor);
        return combine(of(0), of(1)) == Trend::Constant ? Trend::Constant : Trend::Unknown;
      })
      .Case<arith::CeilDivSIOp, arith::FloorDivSIOp, arith::DivSIOp, arith::CeilDivUIOp,
            arith::DivUIOp>(
          [&](auto) { return isCountOrExtent(op->getOperand(1)) ? of(0) : Trend::Unknown; })
      .Case([&](arith::SelectOp) {
        return of(0) == Trend::Constant ? combine(of(1), of(2)) : Trend::Unknown;
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp>(
          [&](auto) { return of(0); })
      .Default([&](Operation *) {
        for (unsigned i = 0; i < op->getNumOperands(); ++i)
          if (of(i) != Trend::Constant)
            return Trend::Unknown;
        return Trend::Constant;
      });
}

template <typename Op>
static Value varyingLimit(Value bound, const IndexDependence &dependence) {
  while (auto op = bound.getDefiningOp<Op>()) {
    bool left = dependence.contains(op.getLhs());
    if (left && dependence.contains(op.getRhs()))
      break;
    bound = left ? op.getLhs() : op.getRhs();
  }
  return bound;
}

/// Whether `value` is `bound`, or one of those of which it is the greatest.
static bool isOneOf(Value value, Value bound) {
  auto greater = bound.getDefiningOp<arith::MaxSIOp>();
  return value == bound ||
         (greater && (isOneOf(value, greater.getLhs()) || isOneOf(value, greater.getRhs())));
}

Value tessera::varyingBegin(scf::ForOp loop, const IndexDependence &dependence) {
  return varyingLimit<arith::MaxSIOp>(loop.getLowerBound(), dependence);
}

Value tessera::varyingEnd(scf::ForOp loop, const IndexDependence &dependence) {
  Value end = varyingLimit<arith::MinSIOp>(loop.getUpperBound(), dependence);
  if (auto greater = end.getDefiningOp<arith::MaxSIOp>())
    for (unsigned begin : {0, 1})
      if (isOneOf(greater->getOperand(begin), loop.getLowerBound()))
        return greater->getOperand(1 - begin);
  return end;
}

Trend tessera::workTrend(tile::KernelOp kernel, unsigned dim) {
  Trend trend = Trend::Constant;
  Value index = kernel.getGridIndex(dim);
  IndexDependence dependence(index);
  kernel.walk([&](scf::ForOp loop) {
    Trend upper = trendOf(varyingEnd(loop, dependence), index);
    Trend lower = trendOf(loop.getLowerBound(), index);
    trend = combine(trend, difference(upper, lower));
  });
  return trend;
}

/// What the varying part of `bound` counts blocks of, and how many elements a block has.
static std::pair<IndexTerms, int64_t> elementsOf(Value bound, const IndexDependence &dependence) {
  Value limit;
  while (limit != bound) {
    limit = bound;
    bound =
        varyingLimit<arith::MaxSIOp>(varyingLimit<arith::MinSIOp>(bound, dependence), dependence);
  }
  auto quotient = bound.getDefiningOp<arith::CeilDivSIOp>();
  std::optional<int64_t> divisor = quotient ? getConstantIntValue(quotient.getRhs()) : std::nullopt;
  return {IndexTerms().add(divisor ? quotient.getLhs() : bound, 1), divisor.value_or(1)};
}

bool tessera::endsAreCutOff(tile::KernelOp kernel, unsigned dim) {
  Value index = kernel.getGridIndex(dim);
  IndexDependence dependence(index);
  auto found = kernel.walk([&](scf::ForOp loop) {
    Value end = varyingEnd(loop, dependence);
    if (difference(trendOf(end, index), trendOf(loop.getLowerBound(), index)) != Trend::Sliding)
      return WalkResult::advance();
    auto [first, block] = elementsOf(loop.getLowerBound(), dependence);
    IndexTerms past = elementsOf(end, dependence).first;
    int64_t before = 1 - block - first.constant, after = past.constant - past.of.lookup(index);
    return after > before ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

bool tessera::sharesAlongBoth(tile::KernelOp kernel) {
  SmallVector<IndexDependence> indices;
  for (unsigned dim = 0; dim < kernel.getGrid().size(); ++dim)
    indices.emplace_back(kernel.getGridIndex(dim));
  bool byFirst = false, byOthers = false;
  kernel.walk([&](tile::LoadOp load) {
    auto type = dyn_cast<RankedTensorType>(load.getType());
    if (!type || type.getRank() != 2 || !load->getParentOfType<scf::ForOp>())
      return;
    auto dependsOn = [&](const IndexDependence &index) {
      return llvm::any_of(load.getIndices(), [&](Value v) { return index.contains(v); });
    };
    bool ofFirst = dependsOn(indices.front()),
         ofOthers = llvm::any_of(ArrayRef(indices).drop_front(), dependsOn);
    byFirst |= ofFirst && !ofOthers;
    byOthers |= ofOthers && !ofFirst;
  });
  return byFirst && byOthers;
}
