//===- MemoryDependenceAnalysis.cpp - Which accesses of a grid point meet -===//

#include "passes/Analysis/MemoryDependenceAnalysis.h"
#include "dialects/Hop/Hop.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "passes/Analysis/IndexDependence.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include <array>
#include <map>

using namespace mlir;
using namespace tessera;
using llvm::DynamicAPInt;
using presburger::IntegerPolyhedron;

template <typename AccessOp>
static MemoryAccess makeAccess(AccessOp op, Type moved, bool stores, bool adds) {
  auto view = cast<tile::ViewType>(op.getView().getType());
  auto tile = dyn_cast<RankedTensorType>(moved);
  MemoryAccess access{op, op.getView(), op.getIndices(), {}, tile, stores, adds};
  if (!tile)
    access.extents.assign(view.getRank(), 1);
  else
    llvm::append_range(access.extents, tile::TileBox(view, tile, op.getBox()).getExtents());
  return access;
}

/// Rows of `tile` that numbers name.
template <typename AccessOp>
static MemoryAccess makeAccess(AccessOp op, Type tile, bool stores) {
  auto view = cast<tile::ViewType>(op.getView().getType());
  auto moved = cast<RankedTensorType>(tile);
  MemoryAccess access{op,    op.getView(), op.getIndices(), {},
                      moved, stores,       /*adds=*/false,  op.getFirstNumberedDim()};
  llvm::append_range(access.extents, tile::TileBox(view, moved, std::nullopt).getExtents());
  return access;
}

std::optional<MemoryAccess> MemoryAccess::get(Operation *op) {
  return TypeSwitch<Operation *, std::optional<MemoryAccess>>(op)
      .Case([](tile::LoadOp load) { return makeAccess(load, load.getType(), false, false); })
      .Case<tile::GatherOp, tile::GatherRunsOp>(
          [](auto gather) { return makeAccess(gather, gather.getType(), false); })
      .Case([](tile::ScatterOp scatter) {
        return makeAccess(scatter, scatter.getValue().getType(), true);
      })
      .Case([](tile::StoreOp store) {
        return makeAccess(store, store.getValue().getType(), true, store.getAdd());
      })
      .Case([](hop::BulkStoreOp store) {
        return makeAccess(store, store.getSource().getType().getTile(), true, store.getAdd());
      })
      .Default([](Operation *) { return std::nullopt; });
}

namespace {
/// A sum of multiples of variables, by number, and a constant.
struct Linear {
  std::map<unsigned, DynamicAPInt> factors;
  DynamicAPInt constant = DynamicAPInt(0);

  Linear &add(const Linear &other, const DynamicAPInt &times) {
    for (const auto &[variable, factor] : other.factors)
      if ((factors[variable] += factor * times) == 0)
        factors.erase(variable);
    constant += other.constant * times;
    return *this;
  }
  friend Linear operator+(Linear a, const Linear &b) { return a.add(b, DynamicAPInt(1)); }
  friend Linear operator-(Linear a, const Linear &b) { return a.add(b, DynamicAPInt(-1)); }
  friend Linear operator*(const Linear &a, int64_t times) {
    return Linear().add(a, DynamicAPInt(times));
  }
};

/// Which of two accesses a value belongs to; Both where it is the same for them.
enum class Side { Both, Earlier, Later };

/// The conditions under which two accesses meet, as inequalities of integers.
class Meeting {
public:
  Meeting(ValueRange gridIndices, ArrayAttr grid, Value warpgroup, int64_t warpgroups, bool across,
          Operation *loop)
      : gridIndices(gridIndices), grid(grid), warpgroup(warpgroup), warpgroups(warpgroups),
        loop(loop) {
    if (across && warpgroup)
      ofWarpgroup.emplace(warpgroup);
  }

  /// The value of `value` where the access of `side` stands.
  Linear valueOf(Value value, Side side, unsigned depth = 0);

  /// Whether no integers satisfy the conditions, as far as rational numbers tell.
  bool isImpossible(const AccessPair &pair, bool laterWarpgroup);

private:
  /// How far back a value is followed; what is behind may be anything.
  static constexpr unsigned kMostDepth = 64;

  bool isShared(Value value) const;
  Linear variable() {
    Linear result;
    result.factors[variables++] = DynamicAPInt(1);
    return result;
  }
  static Linear number(int64_t value) {
    Linear result;
    result.constant = DynamicAPInt(value);
    return result;
  }
  void requireNonNegative(Linear linear) { conditions.push_back(std::move(linear)); }
  void requireLess(const Linear &a, const Linear &b) { requireNonNegative(b - a - number(1)); }

  Linear extentOf(StringRef name);
  Linear gridIndex(unsigned dim);
  Linear induction(scf::ForOp of, Side side, unsigned depth);
  Linear argument(BlockArgument value, Side side, unsigned depth);
  Linear result(Operation *op, Side side, unsigned depth);
  Linear quotient(Operation *op, Side side, unsigned depth, bool up);
  Linear lesser(Operation *op, Side side, unsigned depth, int64_t sign);
  bool isEmpty() const;
  bool isNeverNegative(const Linear &linear);

  ValueRange gridIndices;
  ArrayAttr grid;
  Value warpgroup;
  int64_t warpgroups;
  Operation *loop;
  /// What differs between warpgroups, when the accesses are of two of them.
  std::optional<IndexDependence> ofWarpgroup;

  unsigned variables = 0;
  SmallVector<Linear> conditions; ///< each at least 0
  std::map<std::pair<void *, Side>, Linear> known;
  llvm::StringMap<Linear> extents;
};
} // namespace

bool Meeting::isShared(Value value) const {
  if (ofWarpgroup && ofWarpgroup->contains(value))
    return false;
  if (!loop)
    return true;
  Operation *op = value.getDefiningOp();
  Operation *around = op ? op->getParentOp() : cast<BlockArgument>(value).getOwner()->getParentOp();
  return !loop->isAncestor(around);
}

Linear Meeting::valueOf(Value value, Side side, unsigned depth) {
  if (isShared(value))
    side = Side::Both;
  std::pair<void *, Side> key(value.getAsOpaquePointer(), side);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  Linear made;
  if (depth >= kMostDepth)
    made = variable();
  else if (auto blockArgument = dyn_cast<BlockArgument>(value))
    made = argument(blockArgument, side, depth + 1);
  else
    made = result(value.getDefiningOp(), side, depth + 1);
  return known[key] = made;
}

/// An extent is 1 to 2^31 - 1.
Linear Meeting::extentOf(StringRef name) {
  auto [entry, isNew] = extents.try_emplace(name);
  if (isNew) {
    entry->second = variable();
    requireLess(number(0), entry->second);
    requireLess(entry->second, number(int64_t(1) << 31));
  }
  return entry->second;
}

Linear Meeting::gridIndex(unsigned dim) {
  auto attr = cast<tile::GridDimAttr>(grid[dim]);
  Linear index = variable();
  requireNonNegative(index);
  auto name = dyn_cast<StringAttr>(attr.getExtent());
  Linear extent = name ? extentOf(name) : number(cast<IntegerAttr>(attr.getExtent()).getInt());
  requireLess(index * attr.getDivisor(), extent);
  return index;
}

Linear Meeting::induction(scf::ForOp of, Side side, unsigned depth) {
  Linear first = valueOf(of.getLowerBound(), side, depth), count = variable();
  requireNonNegative(count);
  Linear value;
  if (std::optional<int64_t> step = getConstantIntValue(of.getStep()); step && *step > 0) {
    value = first + count * *step;
  } else {
    value = variable();
    requireNonNegative(value - first - count);
  }
  requireLess(value, valueOf(of.getUpperBound(), side, depth));
  return value;
}

Linear Meeting::argument(BlockArgument value, Side side, unsigned depth) {
  if (value == warpgroup) {
    Linear index = variable();
    requireNonNegative(index);
    requireLess(index, number(warpgroups));
    return index;
  }
  for (auto [dim, index] : llvm::enumerate(gridIndices))
    if (index == value)
      return gridIndex(dim);
  auto of = dyn_cast<scf::ForOp>(value.getOwner()->getParentOp());
  if (of && value == of.getInductionVar() && !of.getUnsignedCmp())
    return induction(of, side, depth);
  return variable();
}

/// A quotient by a positive constant, rounded up or down.
Linear Meeting::quotient(Operation *op, Side side, unsigned depth, bool up) {
  std::optional<int64_t> divisor = getConstantIntValue(op->getOperand(1));
  if (!divisor || *divisor <= 0)
    return variable();
  Linear dividend = valueOf(op->getOperand(0), side, depth);
  // Division towards zero, and of unsigned numbers, is another thing below zero.
  bool roundsDown = isa<arith::FloorDivSIOp, arith::CeilDivSIOp>(op);
  Linear value = variable();
  if (!roundsDown && !isNeverNegative(dividend))
    return value;
  Linear whole = value * *divisor;
  requireNonNegative(up ? whole - dividend : dividend - whole);
  requireLess(up ? whole - dividend : dividend - whole, number(*divisor));
  return value;
}

/// The minimum of the operands with sign = 1, the maximum with -1.
Linear Meeting::lesser(Operation *op, Side side, unsigned depth, int64_t sign) {
  Linear value = variable();
  for (Value operand : op->getOperands())
    requireNonNegative((valueOf(operand, side, depth) - value) * sign);
  return value;
}

Linear Meeting::result(Operation *op, Side side, unsigned depth) {
  auto of = [&](unsigned i) { return valueOf(op->getOperand(i), side, depth); };
  return TypeSwitch<Operation *, Linear>(op)
      .Case([&](arith::ConstantOp constant) {
        auto value = dyn_cast<IntegerAttr>(constant.getValue());
        return value ? number(value.getInt()) : variable();
      })
      .Case([&](tile::DimOp dim) { return extentOf(dim.getDim()); })
      .Case([&](arith::AddIOp) { return of(0) + of(1); })
      .Case([&](arith::SubIOp) { return of(0) - of(1); })
      .Case([&](arith::MulIOp) {
        for (unsigned i : {0, 1})
          if (std::optional<int64_t> factor = getConstantIntValue(op->getOperand(i)))
            return of(1 - i) * *factor;
        return variable();
      })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(
          [&](auto) { return quotient(op, side, depth, /*up=*/false); })
      .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>(
          [&](auto) { return quotient(op, side, depth, /*up=*/true); })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) {
        std::optional<int64_t> divisor = getConstantIntValue(op->getOperand(1));
        if (!divisor || *divisor <= 0)
          return variable();
        Linear rest = quotient(op, side, depth, /*up=*/false) * -*divisor;
        return of(0) + rest;
      })
      .Case([&](arith::MinSIOp) { return lesser(op, side, depth, 1); })
      .Case([&](arith::MaxSIOp) { return lesser(op, side, depth, -1); })
      .Case<tile::RowOp, arith::IndexCastOp, arith::ExtSIOp>([&](auto) { return of(0); })
      .Default([&](Operation *) { return variable(); });
}

bool Meeting::isEmpty() const {
  IntegerPolyhedron set(presburger::PresburgerSpace::getSetSpace(variables));
  for (const Linear &condition : conditions) {
    SmallVector<DynamicAPInt> row(variables + 1, DynamicAPInt(0));
    for (const auto &[variable, factor] : condition.factors)
      row[variable] = factor;
    row.back() = condition.constant;
    set.addInequality(row);
  }
  return presburger::Simplex(set).isEmpty();
}

bool Meeting::isNeverNegative(const Linear &linear) {
  requireLess(linear, number(0));
  bool never = isEmpty();
  conditions.pop_back();
  return never;
}

bool Meeting::isImpossible(const AccessPair &pair, bool laterWarpgroup) {
  auto view = cast<tile::ViewType>(pair.earlier.view.getType());
  for (int64_t dim = 0; dim < view.getRank(); ++dim) {
    Linear element = variable();
    requireNonNegative(element);
    requireLess(element, view.getStaticDim(dim) == ShapedType::kDynamic
                             ? extentOf(view.getDimName(dim))
                             : number(view.getStaticDim(dim)));
    for (auto [access, side] :
         {std::pair(&pair.earlier, Side::Earlier), std::pair(&pair.later, Side::Later)}) {
      if (access->gathered && *access->gathered <= dim &&
          dim <= view.getRank() - access->tile.getRank())
        continue;
      Linear inTile = element - valueOf(access->indices[dim], side);
      requireNonNegative(inTile);
      requireLess(inTile, number(access->extents[dim]));
    }
  }
  if (auto of = dyn_cast_or_null<scf::ForOp>(loop))
    requireLess(valueOf(of.getInductionVar(), Side::Earlier),
                valueOf(of.getInductionVar(), Side::Later));
  if (ofWarpgroup) {
    Linear apart = valueOf(warpgroup, Side::Later) - valueOf(warpgroup, Side::Earlier);
    requireLess(number(0), laterWarpgroup ? apart : apart * -1);
  }
  return isEmpty();
}

MemoryDependenceAnalysis::MemoryDependenceAnalysis(Region &program, ValueRange gridIndices,
                                                   ArrayAttr grid, Value warpgroup,
                                                   int64_t warpgroups)
    : gridIndices(gridIndices), grid(grid), warpgroup(warpgroup), warpgroups(warpgroups) {
  llvm::DenseSet<Value> stored;
  program.walk([&](Operation *op) {
    if (std::optional<MemoryAccess> access = MemoryAccess::get(op); access && access->stores)
      stored.insert(access->view);
  });
  program.walk([&](Operation *op) {
    if (std::optional<MemoryAccess> access = MemoryAccess::get(op);
        access && stored.contains(access->view))
      accesses.push_back(std::move(*access));
  });
}

LogicalResult MemoryDependenceAnalysis::verify() const {
  llvm::DenseMap<Value, size_t> count;
  for (const MemoryAccess &access : accesses)
    if (++count[access.view] > kMostAccesses)
      return access.op->emitError("is access ")
             << kMostAccesses + 1
             << " to a view that the kernel stores, and the compiler orders at most "
             << kMostAccesses << "; use a loop, or larger tiles";
  return success();
}

/// The loop of which `op` is an iteration's, the next one outwards.
static Operation *loopAround(Operation *op) { return op->getParentOfType<LoopLikeOpInterface>(); }

/// Whether the program comes from `earlier` to `later` without another iteration of a loop.
static bool isBefore(Operation *earlier, Operation *later) {
  Region *common = earlier->getParentRegion();
  while (!common->isAncestor(later->getParentRegion()))
    common = common->getParentRegion();
  Operation *a = common->findAncestorOpInRegion(*earlier),
            *b = common->findAncestorOpInRegion(*later);
  // Two regions of one operation that is no loop exclude each other.
  return a != b && a->isBeforeInBlock(b);
}

void MemoryDependenceAnalysis::relate(const MemoryAccess &a, const MemoryAccess &b,
                                      llvm::function_ref<void(const AccessPair &)> visit) const {
  for (Operation *loop = loopAround(a.op); loop; loop = loopAround(loop))
    if (loop->isAncestor(b.op))
      visit({a, b, loop});
  if (isBefore(a.op, b.op))
    visit({a, b, nullptr});
}

void MemoryDependenceAnalysis::forEachPair(
    llvm::function_ref<void(const AccessPair &)> visit) const {
  for (const MemoryAccess &a : accesses)
    for (const MemoryAccess &b : accesses)
      if (a.view == b.view && (a.stores || b.stores) && !(a.adds && b.adds))
        relate(a, b, visit);
}

bool MemoryDependenceAnalysis::mayMeet(const AccessPair &pair, bool across) const {
  if (!across || !warpgroup)
    return !across && !Meeting(gridIndices, grid, warpgroup, warpgroups, false, pair.loop)
                           .isImpossible(pair, false);
  return llvm::any_of(std::array{false, true}, [&](bool laterWarpgroup) {
    return !Meeting(gridIndices, grid, warpgroup, warpgroups, true, pair.loop)
                .isImpossible(pair, laterWarpgroup);
  });
}

bool MemoryDependenceAnalysis::haveSamePlace(const AccessPair &pair) const {
  if (pair.earlier.extents != pair.later.extents || pair.earlier.gathered || pair.later.gathered)
    return false;
  Meeting meeting(gridIndices, grid, warpgroup, warpgroups, false, pair.loop);
  return llvm::all_of(llvm::zip_equal(pair.earlier.indices, pair.later.indices), [&](auto indices) {
    auto [a, b] = indices;
    Linear apart = meeting.valueOf(a, Side::Earlier) - meeting.valueOf(b, Side::Later);
    return apart.factors.empty() && apart.constant == 0;
  });
}
