//===- MapElements.cpp - A function of scalars on tiles -------------------===//

#include "passes/Tile/MapElements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Tile/LinearForm.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Operations between an index and iotas, splats and constants; beyond that it is taken to differ
/// along both axes.
constexpr unsigned kMostVectorDepth = 16;

/// Bulk stores write 16 bytes at a time, as many numbers of f32.
constexpr int64_t kColumnsOfUnit = 4;

namespace {
/// The index of an element along an axis, from `start` on.
struct AxisIndex {
  int64_t axis;
  Value start;
};

/// Where the elements of an access lie.
struct ElementPlace {
  enum class Kind {
    Scalar, ///< at one place
    Vector, ///< side by side along `axis`
    Tile,   ///< side by side along both axes
    Rows,   ///< anywhere, the same along the other axis than `axis`
    Anywhere
  };
  Kind kind;
  int64_t axis = 0;
  /// Of the first element; of Rows and Anywhere tiles of them too.
  SmallVector<Value> indices;
};

/// What a function adds to memory: elements, before those that go to one place are summed.
struct Addition {
  StoreOp store;
  ElementPlace place;
  Value value;
};

class ElementMapper {
public:
  ElementMapper(MapOp map, func::FuncOp callee)
      : map(map), callee(callee), builder(map.getLoc(), map) {}

  LogicalResult run();

private:
  LogicalResult checkTypes();
  LogicalResult mapOperation(Operation &op);
  LogicalResult mapElementwise(Operation &op);
  bool mapLinear(Operation &op);
  std::optional<LinearForm> combine(Operation &op);
  LinearForm multiply(Value a, Value b);
  LinearForm getForm(Value original);
  Value get(Value original);
  void hoist(Operation *before);
  LogicalResult mapLoad(LoadOp load);
  LogicalResult mapAddition(StoreOp store);
  void emitAddition(const Addition &addition, Value sum);
  void emitAdditions();
  std::optional<ElementPlace> findNeighbours(OperandRange indices, ViewType view);
  ElementPlace findSingle(OperandRange indices);
  Value sumAlong(Value tile, int64_t axis);
  bool isAlong(Value tile, int64_t axis, unsigned depth = 0);
  Value toVectorAlong(Value tile, int64_t axis);
  template <typename AccessOp>
  LogicalResult checkInside(AccessOp access);
  std::optional<AxisIndex> findAxisIndex(Value tile);
  std::optional<AxisIndex> findMovedIndex(Value tile, Value amount, bool forwards);
  Value getScalar(Value tile);
  Value toTile(Value value);
  Value toVector(Value vector, int64_t axis);

  bool isTile(Value original) {
    return indices.contains(original) || forms.contains(original) ||
           isa<ShapedType>(mapping.lookup(original).getType());
  }
  RankedTensorType getTileType(Type element) {
    return RankedTensorType::get(map.getShape(), element);
  }

  MapOp map;
  func::FuncOp callee;
  ImplicitLocOpBuilder builder;
  /// From values of the function to scalars or tiles.
  IRMapping mapping;
  /// The tiles of i32 that were cast to indices: of the elements, hence of no use but to a load.
  llvm::DenseMap<Value, Value> indices;
  SmallVector<Addition> additions;
  /// Sums of products with scalars, which are not computed before they are needed.
  llvm::DenseMap<Value, std::pair<Location, LinearForm>> forms;
};
} // namespace

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult ElementMapper::checkTypes() {
  auto describe = [&](ValueRange values) {
    return llvm::map_to_vector(values, [](Value value) { return getElementTypeOrSelf(value); });
  };
  FunctionType type = callee.getFunctionType();
  SmallVector<Type> inputs = describe(map.getOperands()), results = describe(map.getResults());
  if (type.getInputs() == ArrayRef(inputs) && type.getResults() == ArrayRef(results))
    return success();
  InFlightDiagnostic error = map.emitOpError("applies '")
                             << callee.getSymName() << "' to elements of "
                             << FunctionType::get(map.getContext(), inputs, results)
                             << "; the function is " << type;
  error.attachNote(callee.getLoc()) << "it takes and returns one scalar for each tile or scalar";
  return error;
}

/// Repeats `vector` along `axis`.
Value ElementMapper::toVector(Value vector, int64_t axis) {
  return BroadcastOp::create(builder, getTileType(getElementTypeOrSelf(vector)), vector, axis);
}

Value ElementMapper::toTile(Value value) {
  if (isa<ShapedType>(value.getType()))
    return value;
  return makeUniform(value, getTileType(value.getType()), builder);
}

/// The scalar or tile that a value of the function is.
Value ElementMapper::get(Value original) {
  auto form = forms.find(original);
  if (form != forms.end()) {
    ImplicitLocOpBuilder there(form->second.first, builder);
    mapping.map(original, form->second.second.materialize(getTileType(original.getType()), there));
    forms.erase(form);
  }
  return mapping.lookup(original);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

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
  return ReduceOp::create(builder, sums, ReduceKind::sum, tile, axis);
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
  additions.push_back(
      {store, neighbours ? *neighbours : findSingle(store.getIndices()), get(store.getValue())});
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
  }
  for (auto [addition, sum] : llvm::zip_equal(additions, sums))
    emitAddition(addition, sum);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// The form of an operand; a sum that others use too is computed once.
LinearForm ElementMapper::getForm(Value original) {
  auto form = forms.find(original);
  if (form != forms.end() && (original.hasOneUse() || form->second.second.isSingle()))
    return form->second.second;
  return LinearForm(get(original));
}

/// The product of two operands, of which one at least is a tile.
LinearForm ElementMapper::multiply(Value a, Value b) {
  if (!isTile(a))
    std::swap(a, b);
  LinearForm product = getForm(a);
  if (isTile(b))
    return LinearForm::multiply(product, getForm(b), getTileType(a.getType()), builder);
  product.scale(get(b), builder);
  return product;
}

/// The form of a sum, a product, or a quotient by a scalar.
std::optional<LinearForm> ElementMapper::combine(Operation &op) {
  if (op.getNumResults() != 1 || !op.getResult(0).getType().isF32())
    return std::nullopt;
  if (isa<arith::MulFOp>(op))
    return multiply(op.getOperand(0), op.getOperand(1));
  if (isa<math::FmaOp>(op)) {
    if (!isTile(op.getOperand(0)) && !isTile(op.getOperand(1)))
      return std::nullopt;
    LinearForm sum = multiply(op.getOperand(0), op.getOperand(1));
    sum.add(getForm(op.getOperand(2)), builder);
    return sum;
  }
  if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    LinearForm sum = getForm(op.getOperand(0)), other = getForm(op.getOperand(1));
    if (isa<arith::SubFOp>(op))
      other.negate(builder);
    sum.add(other, builder);
    return sum;
  }
  if (isa<arith::DivFOp>(op) && !isTile(op.getOperand(1))) {
    Value one = arith::ConstantOp::create(builder, builder.getF32FloatAttr(1.0f));
    LinearForm quotient = getForm(op.getOperand(0));
    quotient.scale(arith::DivFOp::create(builder, one, get(op.getOperand(1))), builder);
    return quotient;
  }
  if (!isa<arith::NegFOp>(op))
    return std::nullopt;
  LinearForm opposite = getForm(op.getOperand(0));
  opposite.negate(builder);
  return opposite;
}

bool ElementMapper::mapLinear(Operation &op) {
  std::optional<LinearForm> form = combine(op);
  if (!form)
    return false;
  for (Value operand : op.getOperands())
    if (operand.hasOneUse())
      forms.erase(operand);
  forms.try_emplace(op.getResult(0), op.getLoc(), std::move(*form));
  return true;
}

LogicalResult ElementMapper::mapElementwise(Operation &op) {
  if (mapLinear(op))
    return success();
  if (auto cast = dyn_cast<arith::IndexCastOp>(op); cast && cast.getType().isIndex()) {
    indices[cast.getResult()] = get(cast.getIn());
    return success();
  }
  // Elements of 16 bits are extended before they are repeated.
  if (auto extend = dyn_cast<arith::ExtFOp>(op))
    if (auto repeated = get(extend.getIn()).getDefiningOp<BroadcastOp>()) {
      Value vector = repeated.getSource();
      auto type = cast<RankedTensorType>(vector.getType()).clone(extend.getType());
      Value extended = arith::ExtFOp::create(builder, type, vector);
      mapping.map(extend.getResult(), toVector(extended, repeated.getAxis()));
      return success();
    }
  SmallVector<Value> operands;
  for (OpOperand &operand : op.getOpOperands()) {
    if (indices.contains(operand.get()))
      return op.emitOpError("computes with the index of an element, which only a tile.load takes; "
                            "compute in i32 and cast at the load");
    Value value = get(operand.get());
    // The condition of a select may stay scalar.
    bool isCondition = isa<arith::SelectOp>(op) && operand.getOperandNumber() == 0;
    operands.push_back(isCondition ? value : toTile(value));
  }
  SmallVector<Type> types = llvm::map_to_vector(
      op.getResultTypes(), [&](Type type) -> Type { return getTileType(type); });
  OperationState state(op.getLoc(), op.getName(), operands, types, op.getAttrs());
  Operation *mapped = builder.OpBuilder::create(state);
  mapping.map(op.getResults(), mapped->getResults());
  return success();
}

LogicalResult ElementMapper::mapOperation(Operation &op) {
  builder.setLoc(op.getLoc());
  if (op.getNumRegions() != 0)
    return op.emitOpError("is a loop or a condition in a function of elements, which tile.map "
                          "applies to all elements at once; choose between values by arith.select");
  if (auto store = dyn_cast<StoreOp>(op))
    return mapAddition(store);
  if (auto load = dyn_cast<LoadOp>(op))
    return mapLoad(load);
  if (llvm::none_of(op.getOperands(), [&](Value operand) { return isTile(operand); })) {
    if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<ShapedType>))
      return op.emitOpError("makes a tile in a function of elements, whose values are scalars");
    builder.clone(op, mapping);
    return success();
  }
  if (!OpTrait::hasElementwiseMappableTraits(&op))
    return op.emitOpError(
        "is not available in a function of elements; there are operations of "
        "arith and math on scalars, tile.argument, tile.dim and loads of elements");
  return mapElementwise(op);
}

/// Whether a load of `view` sees the same wherever in the kernel it stands.
static bool isNeverStored(Value view, KernelOp kernel) {
  // An argument of the kernel or a request for one, by name.
  auto nameOf = [&](Value value) {
    if (auto request = value.getDefiningOp<ArgumentOp>())
      return request.getName();
    return kernel.getArgumentName(cast<BlockArgument>(value).getArgNumber());
  };
  WalkResult walk = kernel.walk([&](StoreOp store) {
    return nameOf(store.getView()) == nameOf(view) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
  });
  return !walk.wasInterrupted();
}

/// Whether `op` gives the same wherever in `kernel` its operands are known, and costs few registers
/// to keep.
static bool canStandEarlier(Operation *op, KernelOp kernel) {
  if (auto load = dyn_cast<LoadOp>(op))
    return kernel && isNeverStored(load.getView(), kernel);
  bool isSmall = llvm::all_of(op->getResultTypes(), [](Type type) {
    auto tile = dyn_cast<ShapedType>(type);
    return !tile || tile.getRank() < 2;
  });
  return isSmall && (isa<GatherElementsOp>(op) || (isMemoryEffectFree(op) && isSpeculatable(op)));
}

/// Moves the scalars, the vectors and the loads that stand between `before` and the map out of the
/// loops, and of what says which iterations these visit, in which their operands do not change.
void ElementMapper::hoist(Operation *before) {
  Operation *op = before ? before->getNextNode() : &map->getBlock()->front();
  auto kernel = map->getParentOfType<KernelOp>();
  while (op != map) {
    Operation *next = op->getNextNode();
    bool canMove = canStandEarlier(op, kernel);
    while (canMove && isa<scf::ForOp, VisitsOp>(op->getParentOp())) {
      Region &body = *op->getParentRegion();
      if (llvm::any_of(op->getOperands(),
                       [&](Value operand) { return body.isAncestor(operand.getParentRegion()); }))
        break;
      op->moveBefore(op->getParentOp());
    }
    op = next;
  }
}

LogicalResult ElementMapper::run() {
  if (failed(checkTypes()))
    return failure();
  Operation *before = map->getPrevNode();
  Block &body = callee.getBody().front();
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    Value operand = map.getOperand(i);
    std::optional<int64_t> axis = map.getAxis(i);
    mapping.map(argument, axis ? toVector(operand, *axis) : operand);
  }
  for (Operation &op : body.without_terminator())
    if (failed(mapOperation(op)))
      return failure();
  for (auto [result, value] :
       llvm::zip_equal(map.getResults(), body.getTerminator()->getOperands())) {
    if (indices.contains(value))
      return body.getTerminator()->emitOpError("returns the index of an element, which only a "
                                               "tile.load takes; return it as i32");
    result.replaceAllUsesWith(toTile(get(value)));
  }
  emitAdditions();
  hoist(before);
  map.erase();
  return success();
}

LogicalResult tessera::expandMap(MapOp map, func::FuncOp callee) {
  return ElementMapper(map, callee).run();
}
