//===- RowBounds.cpp - The least and the largest value of a tile's rows ---===//

#include "passes/Analysis/RowBounds.h"
#include "dialects/Tile/LoadedIndex.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// What is computed from memory in more steps than this is not bounded.
constexpr unsigned kMostStepsFromMemory = 16;

//===----------------------------------------------------------------------===//
// What is covered
//===----------------------------------------------------------------------===//

/// The elements of `tile` differ along `axis`, of a tile of rank 2.
bool RowBounds::differsAlong(int64_t axis, Value tile, Found &found) {
  if (cast<RankedTensorType>(tile.getType()).getRank() != 2)
    return true;
  if (found.axis && *found.axis != axis)
    return false;
  found.axis = axis;
  return true;
}

bool tessera::isNeverStored(Value view) {
  return llvm::all_of(view.getUsers(),
                      [](Operation *user) { return isa<LoadOp, GatherElementsOp>(user); });
}

bool RowBounds::lookAtAccess(Value view, ValueRange indices, Found &found) {
  found.loads = true;
  for (Value index : indices) {
    if (isa<ShapedType>(index.getType()))
      continue;
    if (!isKnown(index))
      return false;
    found.scalars.push_back(index);
  }
  return isKnown(view) && isNeverStored(view);
}

bool RowBounds::look(Value tile, Found &found, unsigned depth) {
  Operation *op = tile.getDefiningOp();
  if (!op || depth == kMostStepsFromMemory || !getElementTypeOrSelf(tile).isInteger())
    return false;
  auto lookAtTiles = [&](ValueRange operands) {
    return llvm::all_of(operands, [&](Value operand) {
      return !isa<ShapedType>(operand.getType()) || look(operand, found, depth + 1);
    });
  };
  if (DenseElementsAttr elements; matchPattern(tile, m_Constant(&elements)))
    return elements.isSplat();
  if (auto splat = dyn_cast<SplatOp>(op)) {
    found.scalars.push_back(splat.getSource());
    return isKnown(splat.getSource());
  }
  if (auto iota = dyn_cast<IotaOp>(op)) {
    found.scalars.push_back(iota.getStart());
    return !iota.getPeriod() && isKnown(iota.getStart()) &&
           differsAlong(iota.getAxis(), tile, found);
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return differsAlong(1 - static_cast<int64_t>(broadcast.getAxis()), tile, found) &&
           look(broadcast.getSource(), found, depth + 1);
  if (auto load = dyn_cast<LoadOp>(op))
    return cast<RankedTensorType>(tile.getType()).getRank() == 1 && !load.getBox() &&
           !load.getPipe() && lookAtAccess(load.getView(), load.getIndices(), found);
  if (auto gather = dyn_cast<GatherElementsOp>(op))
    return lookAtAccess(gather.getView(), gather.getIndices(), found) &&
           lookAtTiles(gather.getIndices());
  if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
    return false;
  for (Value operand : op->getOperands())
    if (!isa<ShapedType>(operand.getType())) {
      if (!isKnown(operand))
        return false;
      found.scalars.push_back(operand);
    }
  return lookAtTiles(op->getOperands());
}

bool RowBounds::covers(Value tile) {
  Type element = getElementTypeOrSelf(tile);
  Found found;
  return (element.isInteger(32) || element.isInteger(64)) && look(tile, found, 0) && found.loads &&
         (found.axis || cast<RankedTensorType>(tile.getType()).getRank() == 1);
}

//===----------------------------------------------------------------------===//
// One element
//===----------------------------------------------------------------------===//

namespace {
/// A sum of values and of extents, by their names, each times a factor, and of a number.
struct PlaceSum {
  llvm::SmallMapVector<Value, int64_t, 4> values;
  llvm::SmallMapVector<StringAttr, int64_t, 4> extents;
  int64_t number = 0;
  /// Terms may be shared, so that a chain of them has exponentially many paths.
  unsigned stepsLeft = 64;

  void add(Value value, int64_t factor);
  /// An extent, or how many there are.
  void add(Attribute extent, int64_t factor) {
    if (auto name = dyn_cast<StringAttr>(extent))
      extents[name] += factor;
    else
      number += factor * cast<IntegerAttr>(extent).getInt();
  }
  bool isZero() const {
    auto isNothing = [](const auto &entry) { return entry.second == 0; };
    return number == 0 && llvm::all_of(values, isNothing) && llvm::all_of(extents, isNothing);
  }
};
} // namespace

void PlaceSum::add(Value value, int64_t factor) {
  if (std::optional<int64_t> constant = getConstantIntValue(value)) {
    number += factor * *constant;
    return;
  }
  Operation *op = stepsLeft == 0 ? nullptr : value.getDefiningOp();
  stepsLeft -= op != nullptr;
  if (auto cast = dyn_cast_or_null<arith::IndexCastOp>(op))
    return add(cast.getIn(), factor);
  if (auto dim = dyn_cast_or_null<DimOp>(op))
    return add(Attribute(dim.getDimAttr()), factor);
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    add(op->getOperand(0), factor);
    return add(op->getOperand(1), isa<arith::AddIOp>(op) ? factor : -factor);
  }
  if (auto product = dyn_cast_or_null<arith::MulIOp>(op))
    if (std::optional<int64_t> by = getConstantIntValue(product.getRhs());
        by && llvm::isInt<16>(*by))
      return add(product.getLhs(), factor * *by);
  values[value] += factor;
}

/// Whether the view ends where the rows of the grid do: what is behind it is of no row. The place
/// is that of row `number` of a grid point's.
static bool endsWithGrid(Value view, int64_t dim, Value place, Value number, KernelOp kernel) {
  auto type = cast<ViewType>(view.getType());
  Builder builder(kernel.getContext());
  PlaceSum behind;
  behind.add(place, 1);
  behind.add(number, -1);
  if (int64_t extent = type.getStaticDim(dim); !ShapedType::isDynamic(extent))
    behind.number -= extent;
  else
    behind.add(Attribute(builder.getStringAttr(type.getDimName(dim))), -1);
  for (unsigned i = 0; i < kernel.getGridRank(); ++i) {
    PlaceSum rest = behind;
    rest.add(kernel.getGridIndex(i), -kernel.getGridDim(i).getDivisor());
    rest.add(kernel.getGridDim(i).getExtent(), 1);
    if (rest.isZero())
      return true;
  }
  return false;
}

static Value extentOf(Value view, int64_t dim, OpBuilder &builder) {
  auto type = cast<ViewType>(view.getType());
  if (int64_t extent = type.getStaticDim(dim); !ShapedType::isDynamic(extent))
    return arith::ConstantIndexOp::create(builder, view.getLoc(), extent);
  return DimOp::create(builder, view.getLoc(), builder.getIndexType(),
                       builder.getStringAttr(type.getDimName(dim)));
}

/// The element at `places`, as a tile of them has it: 0 outside of a view. Where the last tile has
/// rows that are not there behind its end, the last element stands for them, so that they do not
/// widen what the others ask for.
Value RowBounds::loadAt(Location loc, Value view, ArrayRef<Value> places, Value number, Type type,
                        OpBuilder &builder) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0),
        one = arith::ConstantIndexOp::create(builder, loc, 1), isOutside;
  auto isOutsideIf = [&](arith::CmpIPredicate predicate, Value place, Value limit) {
    Value holds = arith::CmpIOp::create(builder, loc, predicate, place, limit);
    isOutside = isOutside ? Value(arith::OrIOp::create(builder, loc, isOutside, holds)) : holds;
  };
  SmallVector<Value> inside(places);
  for (auto [dim, place] : llvm::enumerate(inside)) {
    // The same for all rows lies inside; one that comes from memory is compared by the load itself.
    if (place.getParentBlock() != builder.getInsertionBlock() || comesFromMemory(place))
      continue;
    Value last = arith::SubIOp::create(builder, loc, extentOf(view, dim, builder), one);
    isOutsideIf(arith::CmpIPredicate::slt, place, zero);
    if (!endsWithGrid(view, dim, place, number, user->getParentOfType<KernelOp>()))
      isOutsideIf(arith::CmpIPredicate::sgt, place, last);
    place = arith::MaxSIOp::create(builder, loc, arith::MinSIOp::create(builder, loc, place, last),
                                   zero);
  }
  SmallVector<Value> operands = {view};
  operands.append(inside);
  Value loaded = LoadOp::create(builder, loc, TypeRange{type}, operands);
  if (!isOutside)
    return loaded;
  Value nothing = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return arith::SelectOp::create(builder, loc, isOutside, nothing, loaded);
}

/// The element of `tile` in row, or column, `number`.
Value RowBounds::slice(Value tile, Value number, OpBuilder &builder) {
  Operation *op = tile.getDefiningOp();
  Location loc = op->getLoc();
  Type type = getElementTypeOrSelf(tile);
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  };
  if (DenseIntElementsAttr elements; matchPattern(tile, m_Constant(&elements)))
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(type, elements.getSplatValue<APInt>()));
  if (auto splat = dyn_cast<SplatOp>(op))
    return splat.getSource();
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return slice(broadcast.getSource(), number, builder);
  if (auto iota = dyn_cast<IotaOp>(op))
    return arith::IndexCastOp::create(builder, loc, type,
                                      arith::AddIOp::create(builder, loc, iota.getStart(), number));
  if (auto load = dyn_cast<LoadOp>(op)) {
    SmallVector<Value> places(load.getIndices());
    places.back() = arith::AddIOp::create(builder, loc, places.back(), number);
    return loadAt(loc, load.getView(), places, number, type, builder);
  }
  if (auto gather = dyn_cast<GatherElementsOp>(op)) {
    SmallVector<Value> places;
    for (Value index : gather.getIndices())
      places.push_back(isa<ShapedType>(index.getType()) ? toIndex(slice(index, number, builder))
                                                        : index);
    return loadAt(loc, gather.getView(), places, number, type, builder);
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isa<ShapedType>(operand.getType()) ? slice(operand, number, builder)
                                                          : operand);
  OperationState state(loc, op->getName(), operands, type, op->getAttrs());
  return builder.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// As early as all scalars are known, so that loops, first blocks and speculated programs share a
/// bound, and no product is in flight.
OpBuilder RowBounds::builderBehind(ArrayRef<Value> scalars) {
  Block *block = &user->getParentOfType<KernelOp>().getBody().front();
  for (Value scalar : scalars)
    if (block->getParent()->isProperAncestor(scalar.getParentRegion()))
      block = scalar.getParentBlock();
  Operation *last = nullptr;
  for (Value scalar : scalars)
    if (Operation *op = scalar.getDefiningOp();
        op && op->getBlock() == block && (!last || last->isBeforeInBlock(op)))
      last = op;
  if (!last)
    return OpBuilder::atBlockBegin(block);
  OpBuilder builder(last->getContext());
  builder.setInsertionPointAfter(last);
  return builder;
}

Value RowBounds::getElement(Value tile, bool largest) {
  Value &element = elements[tile][largest];
  if (element)
    return element;
  Found found;
  (void)look(tile, found, 0);
  auto type = cast<RankedTensorType>(tile.getType());
  OpBuilder builder = builderBehind(found.scalars);
  auto reduce = ReduceRangeOp::create(builder, tile.getLoc(), type.getElementType(),
                                      largest ? ReduceKind::max : ReduceKind::min,
                                      type.getDimSize(type.getRank() == 2 ? *found.axis : 0));
  Block &body = reduce.getBody().emplaceBlock();
  Value number = body.addArgument(builder.getIndexType(), tile.getLoc());
  OpBuilder inside = OpBuilder::atBlockBegin(&body);
  YieldOp::create(inside, tile.getLoc(), slice(tile, number, inside));
  return element = reduce;
}
