//===- ElementAccesses.cpp - Loads and additions of elements --------------===//
//
// The part of ElementMapper that says how elements of a function move between memory and tiles.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/Tile/ElementMapper.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Operations between an index and iotas, splats and constants; beyond that it is taken to differ
/// along both axes.
constexpr unsigned kMostVectorDepth = 16;

/// Bulk stores write 16 bytes at a time, as many numbers of f32.
constexpr int64_t kColumnsOfUnit = 4;

/// The scalar that all elements of `tile` are; null where they differ.
Value ElementMapper::getScalar(Value tile) {
  if (auto splat = tile.getDefiningOp<SplatOp>())
    return splat.getSource();
  DenseIntElementsAttr elements;
  if (!matchPattern(tile, m_Constant(&elements)) || !elements.isSplat())
    return {};
  return arith::ConstantOp::create(
      builder, builder.getIntegerAttr(elements.getElementType(), elements.getSplatValue<APInt>()));
}

/// The index of `tile` plus or less `amount`.
std::optional<AxisIndex> ElementMapper::findMovedIndex(Value tile, Value amount, bool forwards) {
  Value scalar = getScalar(amount);
  std::optional<AxisIndex> index = scalar ? findAxisIndex(tile) : std::nullopt;
  if (!index)
    return std::nullopt;
  scalar = arith::IndexCastOp::create(builder, builder.getIndexType(), scalar);
  if (forwards)
    index->start = arith::AddIOp::create(builder, index->start, scalar);
  else
    index->start = arith::SubIOp::create(builder, index->start, scalar);
  return index;
}

std::optional<AxisIndex> ElementMapper::findAxisIndex(Value tile) {
  if (auto iota = tile.getDefiningOp<IotaOp>(); iota && !iota.getPeriod())
    return AxisIndex{static_cast<int64_t>(iota.getAxis()), iota.getStart()};
  if (auto broadcast = tile.getDefiningOp<BroadcastOp>()) {
    std::optional<AxisIndex> index = findAxisIndex(broadcast.getSource());
    if (index)
      index->axis = 1 - broadcast.getAxis();
    return index;
  }
  if (auto sum = tile.getDefiningOp<arith::AddIOp>()) {
    std::optional<AxisIndex> index = findMovedIndex(sum.getLhs(), sum.getRhs(), /*forwards=*/true);
    return index ? index : findMovedIndex(sum.getRhs(), sum.getLhs(), /*forwards=*/true);
  }
  if (auto difference = tile.getDefiningOp<arith::SubIOp>())
    return findMovedIndex(difference.getLhs(), difference.getRhs(), /*forwards=*/false);
  return std::nullopt;
}

/// Refuses constant indices outside of dimensions of constant extent.
template <typename AccessOp>
LogicalResult ElementMapper::checkInside(AccessOp access) {
  auto view = cast<ViewType>(access.getView().getType());
  for (auto [i, index] : llvm::enumerate(access.getIndices())) {
    if (isTile(index))
      continue;
    APInt value;
    Value scalar = mapping.lookup(index);
    if (auto cast = scalar.getDefiningOp<arith::IndexCastOp>())
      scalar = cast.getIn();
    if (!matchPattern(scalar, m_ConstantInt(&value)))
      continue;
    int64_t extent = view.getStaticDim(i);
    if (value.isNegative() || (!ShapedType::isDynamic(extent) && value.sge(extent)))
      return access.emitOpError("has the index ")
             << value.getSExtValue() << " in dimension " << i << " of " << view
             << ", which lies outside for every element";
  }
  return success();
}

/// Whether the elements of `tile` differ along `axis` only.
bool ElementMapper::isAlong(Value tile, int64_t axis, unsigned depth) {
  Operation *op = tile.getDefiningOp();
  if (!op || depth == kMostVectorDepth)
    return false;
  if (auto iota = dyn_cast<IotaOp>(op))
    return static_cast<int64_t>(iota.getAxis()) == axis && !iota.getPeriod();
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return static_cast<int64_t>(broadcast.getAxis()) == 1 - axis;
  if (DenseElementsAttr elements; matchPattern(tile, m_Constant(&elements)))
    return elements.isSplat();
  return isa<SplatOp>(op) ||
         (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1 &&
          llvm::all_of(op->getOperands(), [&](Value operand) {
            return !isa<ShapedType>(operand.getType()) || isAlong(operand, axis, depth + 1);
          }));
}

/// The elements along `axis` of a tile that has no others.
Value ElementMapper::toVectorAlong(Value tile, int64_t axis) {
  Operation *op = tile.getDefiningOp();
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return broadcast.getSource();
  auto type = RankedTensorType::get({map.getShape()[axis]}, getElementTypeOrSelf(tile));
  if (auto iota = dyn_cast<IotaOp>(op))
    return IotaOp::create(builder, type, iota.getStart(), /*axis=*/0, /*period=*/IntegerAttr());
  if (auto splat = dyn_cast<SplatOp>(op))
    return SplatOp::create(builder, type, splat.getSource());
  if (DenseElementsAttr elements; matchPattern(tile, m_Constant(&elements)))
    return arith::ConstantOp::create(builder, elements.resizeSplat(type));
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isa<ShapedType>(operand.getType()) ? toVectorAlong(operand, axis) : operand);
  OperationState state(op->getLoc(), op->getName(), operands, type, op->getAttrs());
  return builder.OpBuilder::create(state)->getResult(0);
}

/// The place of elements whose indices are scalars and those of rows and of columns, plus or less a
/// number; nothing for other indices.
std::optional<ElementPlace> ElementMapper::findNeighbours(OperandRange indices, ViewType view) {
  ElementPlace place{ElementPlace::Kind::Scalar, 0, {}};
  SmallVector<int64_t> axes, dims;
  for (auto [i, index] : llvm::enumerate(indices)) {
    Value tile = this->indices.lookup(index);
    if (!tile) {
      place.indices.push_back(mapping.lookup(index));
      continue;
    }
    std::optional<AxisIndex> found = findAxisIndex(tile);
    if (!found)
      return std::nullopt;
    place.indices.push_back(found->start);
    axes.push_back(found->axis);
    dims.push_back(i);
  }
  int64_t rank = view.getRank();
  if (axes.empty())
    return place;
  place.axis = axes[0];
  if (axes.size() == 1 && dims[0] == rank - 1)
    place.kind = ElementPlace::Kind::Vector;
  else if (axes.size() == 2 && axes[0] == 0 && axes[1] == 1 && dims[0] == rank - 2)
    place.kind = ElementPlace::Kind::Tile;
  else
    return std::nullopt;
  return place;
}

/// Elements that are no neighbours: one for each row or column where the indices allow, else one
/// for each element of the tile.
ElementPlace ElementMapper::findSingle(OperandRange indices) {
  ElementPlace place{ElementPlace::Kind::Anywhere, 0, {}};
  auto isAlongAxis = [&](Value index) {
    Value tile = this->indices.lookup(index);
    return !tile || isAlong(tile, place.axis);
  };
  for (int64_t axis = 0; map.getShape().size() == 2 && axis < 2; ++axis) {
    place.axis = axis;
    if (!llvm::all_of(indices, isAlongAxis))
      continue;
    place.kind = ElementPlace::Kind::Rows;
    break;
  }
  for (Value index : indices) {
    Value tile = this->indices.lookup(index);
    bool isRows = place.kind == ElementPlace::Kind::Rows;
    place.indices.push_back(!tile    ? mapping.lookup(index)
                            : isRows ? toVectorAlong(tile, place.axis)
                                     : tile);
  }
  return place;
}

/// What a remark says of the way to memory of single elements.
static void describeSingle(InFlightDiagnostic remark, const ElementPlace &place) {
  remark << ", one by one: an element for each "
         << (place.kind != ElementPlace::Kind::Rows ? "score"
             : place.axis == 0                      ? "row"
                                                    : "column")
         << ", as the indices are not those of a row and of a column, plus or less a number";
}

LogicalResult ElementMapper::mapLoad(LoadOp load) {
  if (isa<ShapedType>(load.getType()))
    return load.emitOpError("loads a tile in a function of elements; it loads one element");
  if (failed(checkInside(load)))
    return failure();
  using Kind = ElementPlace::Kind;
  std::optional<ElementPlace> neighbours =
      findNeighbours(load.getIndices(), cast<ViewType>(load.getView().getType()));
  const ElementPlace place = neighbours ? *neighbours : findSingle(load.getIndices());
  ArrayRef<int64_t> shape = map.getShape();
  Value view = mapping.lookup(load.getView());
  bool isVector = place.kind == Kind::Vector || place.kind == Kind::Rows;
  Type element = load.getType(), type = element;
  if (isVector)
    type = RankedTensorType::get({shape[place.axis]}, element);
  else if (place.kind != Kind::Scalar)
    type = getTileType(element);
  Value value;
  if (place.kind == Kind::Rows || place.kind == Kind::Anywhere) {
    auto gathered = GatherElementsOp::create(builder, type, view, place.indices);
    describeSingle(gathered.emitRemark("gathered"), place);
    value = gathered;
  } else {
    SmallVector<Value> operands = {view};
    operands.append(place.indices);
    auto loaded = LoadOp::create(builder, TypeRange{type}, operands, load->getAttrs());
    loaded.emitRemark("loaded as ")
        << (place.kind == Kind::Tile ? "a tile: the indices are those of row and column"
            : !isVector              ? "a scalar: the indices are the same for all elements"
            : place.axis == 0        ? "a vector, an element for each row"
                                     : "a vector, an element for each column");
    value = loaded;
  }
  if (isVector && shape.size() == 2)
    value = toVector(value, 1 - place.axis);
  mapping.map(load.getResult(), value);
  return success();
}

/// The sums of a tile of rank 2 along an axis; a vector as it is.
Value ElementMapper::sumAlong(Value tile, int64_t axis) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getRank() == 1)
    return tile;
  auto sums = RankedTensorType::get({type.getDimSize(1 - axis)}, type.getElementType());
  return ReduceOp::create(builder, sums, ReduceKind::sum, tile, axis, /*limit=*/FloatAttr());
}

/// An addition of elements to memory, which is emitted behind all else.
LogicalResult ElementMapper::mapAddition(StoreOp store) {
  if (!store.getAdd() || isa<ShapedType>(store.getValue().getType()))
    return store.emitOpError("stores in a function of elements, which computes, and adds elements "
                             "to memory (tile.store ... add); store the tile that tile.map gives");
  if (!isTile(store.getValue()))
    return store.emitOpError("adds a number that is the same for all elements; let it depend on "
                             "one, or add it in the kernel");
  if (failed(checkInside(store)))
    return failure();
  auto viewType = cast<ViewType>(store.getView().getType());
  std::optional<ElementPlace> neighbours = findNeighbours(store.getIndices(), viewType);
  // A bulk store would write beyond the end of other rows.
  int64_t columns = viewType.getStaticDim(viewType.getRank() - 1);
  bool isInUnits = !ShapedType::isDynamic(columns) && columns % kColumnsOfUnit == 0;
  if (neighbours && neighbours->kind == ElementPlace::Kind::Tile && !isInUnits)
    neighbours.reset();
  const ElementPlace place = neighbours ? *neighbours : findSingle(store.getIndices());
  using Kind = ElementPlace::Kind;
  if (place.kind == Kind::Tile || place.kind == Kind::Anywhere) {
    additions.push_back({store, place, get(store.getValue()), {}});
    return success();
  }
  LinearForm form = getForm(store.getValue());
  Value factor = form.takeFactor(builder);
  additions.push_back(
      {store, place, form.materialize(getTileType(builder.getF32Type()), builder), factor});
  return success();
}

/// Adds `sum` to memory: elements of which those that go to one place are summed.
void ElementMapper::emitAddition(const Addition &addition, Value sum) {
  using Kind = ElementPlace::Kind;
  const ElementPlace &place = addition.place;
  builder.setLoc(StoreOp(addition.store).getLoc());
  Value view = mapping.lookup(StoreOp(addition.store).getView());
  if (place.kind == Kind::Vector || place.kind == Kind::Tile) {
    StoreOp::create(builder, sum, view, place.indices, /*box=*/DenseI64ArrayAttr(), /*add=*/true)
            .emitRemark("added as ")
        << (place.kind == Kind::Tile ? "a tile"
            : place.axis == 0        ? "a vector, the sums of the rows"
                                     : "a vector, the sums of the columns");
    return;
  }
  auto scattered = ScatterAddOp::create(builder, sum, view, place.indices);
  if (place.kind == Kind::Scalar)
    scattered.emitRemark("added as a scalar, the sum of all elements");
  else
    describeSingle(scattered.emitRemark("added"), place);
}

/// Sums and adds what the function adds: the sums are made side by side, and what each takes can be
/// computed where it is made.
void ElementMapper::emitAdditions() {
  using Kind = ElementPlace::Kind;
  SmallVector<Value> sums;
  for (const Addition &addition : additions) {
    Kind kind = addition.place.kind;
    bool isVector = kind == Kind::Vector || kind == Kind::Rows;
    builder.setLoc(StoreOp(addition.store).getLoc());
    sums.push_back(isVector               ? sumAlong(addition.value, 1 - addition.place.axis)
                   : kind == Kind::Scalar ? sumAlong(addition.value, /*axis=*/1)
                                          : addition.value);
    if (addition.factor)
      sums.back() = arith::MulFOp::create(
          builder, sums.back(),
          makeUniform(addition.factor, cast<RankedTensorType>(sums.back().getType()), builder));
  }
  for (auto [addition, sum] : llvm::zip_equal(additions, sums))
    emitAddition(addition, sum);
}
