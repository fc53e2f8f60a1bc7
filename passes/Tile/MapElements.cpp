//===- MapElements.cpp - A function of scalars on tiles -------------------===//

#include "passes/Tile/MapElements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Schedule/CostModel.h"
#include "passes/Tile/ElementMapper.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

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
// Operations
//===----------------------------------------------------------------------===//

/// Whether one operation that computes takes `original`: what is shown changes no computation.
static bool hasOneUse(Value original) {
  return llvm::hasSingleElement(llvm::make_filter_range(
      original.getUses(), [](OpOperand &use) { return !isa<PrintOp, AssertOp>(use.getOwner()); }));
}

/// The form of an operand; a sum that others use too is computed once.
LinearForm ElementMapper::getForm(Value original) {
  auto form = forms.find(original);
  if (form != forms.end() && (hasOneUse(original) || form->second.second.isSingle()))
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

/// The form of a sum, a product, a quotient by a scalar, or a choice between such.
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
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return LinearForm::choose(get(select.getCondition()), getForm(select.getTrueValue()),
                              getForm(select.getFalseValue()), getTileType(select.getType()),
                              builder);
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
    if (hasOneUse(operand))
      forms.erase(operand);
  forms.try_emplace(op.getResult(0), op.getLoc(), std::move(*form));
  return true;
}

/// What makes numbers of rows alone, or of columns alone, makes them before they are repeated. An
/// analysis of masks takes integers as they stand.
bool ElementMapper::mapVectors(Operation &op) {
  if (op.getNumResults() != 1 || !isa<FloatType>(op.getResult(0).getType()))
    return false;
  BroadcastOp repeated;
  for (Value operand : op.getOperands()) {
    if (!isTile(operand))
      continue;
    auto other =
        indices.contains(operand) ? BroadcastOp() : get(operand).getDefiningOp<BroadcastOp>();
    if (!other || (repeated && other.getAxis() != repeated.getAxis()))
      return false;
    repeated = other;
  }
  if (!repeated)
    return false;
  auto vector = cast<RankedTensorType>(repeated.getSource().getType());
  SmallVector<Value> operands = llvm::map_to_vector(op.getOperands(), [&](Value operand) {
    Value value = get(operand);
    return isTile(operand) ? value.getDefiningOp<BroadcastOp>().getSource()
                           : makeUniform(value, vector.clone(value.getType()), builder);
  });
  OperationState state(op.getLoc(), op.getName(), operands,
                       {vector.clone(op.getResult(0).getType())}, op.getAttrs());
  Value made = builder.OpBuilder::create(state)->getResult(0);
  mapping.map(op.getResult(0), toVector(made, repeated.getAxis()));
  return true;
}

LogicalResult ElementMapper::mapElementwise(Operation &op) {
  if (mapLinear(op))
    return success();
  if (auto cast = dyn_cast<arith::IndexCastOp>(op); cast && cast.getType().isIndex()) {
    indices[cast.getResult()] = get(cast.getIn());
    return success();
  }
  if (mapVectors(op))
    return success();
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

/// The value of `original` for what shows or checks it, which leaves sums as they are.
Value ElementMapper::getShown(Value original) {
  auto form = forms.find(original);
  if (form == forms.end())
    return indices.contains(original) ? indices.lookup(original) : mapping.lookup(original);
  ImplicitLocOpBuilder there(form->second.first, builder);
  return LinearForm(form->second.second).materialize(getTileType(original.getType()), there);
}

/// Shows a tile where some element meets a condition; checks all of them.
void ElementMapper::mapDebug(Operation &op) {
  SmallVector<Value> operands =
      llvm::map_to_vector(op.getOperands(), [&](Value operand) { return getShown(operand); });
  if (auto print = dyn_cast<PrintOp>(op); print && print.getCondition())
    if (isa<ShapedType>(operands.back().getType()))
      operands.back() = AnyOp::create(builder, builder.getI1Type(), operands.back());
  OperationState state(op.getLoc(), op.getName(), operands, TypeRange(), op.getAttrs());
  builder.OpBuilder::create(state);
}

LogicalResult ElementMapper::mapOperation(Operation &op) {
  builder.setLoc(op.getLoc());
  if (isa<PrintOp, AssertOp>(op))
    return mapDebug(op), success();
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

/// The name of a view: of an argument of `kernel`, or of a request for one.
static StringRef getViewName(Value view, KernelOp kernel) {
  if (auto request = view.getDefiningOp<ArgumentOp>())
    return request.getName();
  return kernel.getArgumentName(cast<BlockArgument>(view).getArgNumber());
}

/// Whether `op` gives the same wherever in `kernel`, which stores the views `stored`, its operands
/// are known, and costs few registers to keep.
static bool canStandEarlier(Operation *op, KernelOp kernel,
                            const llvm::DenseSet<StringRef> &stored) {
  if (auto load = dyn_cast<LoadOp>(op))
    return kernel && !stored.contains(getViewName(load.getView(), kernel));
  bool isSmall = llvm::all_of(op->getResultTypes(), [](Type type) {
    auto tile = dyn_cast<ShapedType>(type);
    return !tile || tile.getRank() < 2;
  });
  return isSmall && (isa<GatherElementsOp>(op) || (isMemoryEffectFree(op) && isSpeculatable(op)));
}

/// Adds to `moved` the operations in `body` that compute `value` from scalars outside of it, each
/// behind its operands; false where others do.
static bool findScalarsOf(Value value, Region &body, llvm::SetVector<Operation *> &moved) {
  if (!body.isAncestor(value.getParentRegion()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getParentRegion() != &body || isa<ShapedType>(value.getType()) ||
      op->getNumRegions() != 0 || !isMemoryEffectFree(op) || !isSpeculatable(op) ||
      !llvm::all_of(op->getOperands(),
                    [&](Value operand) { return findScalarsOf(operand, body, moved); }))
    return false;
  moved.insert(op);
  return true;
}

/// Whether what `op` makes is worth its registers for all of a loop that the scalars of its indices
/// leave with it. A vector of rows that have few elements in a step is loaded with it.
static bool isWorthHolding(Operation *op, MapOp map) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return !type || ShapedType::getNumElements(map.getShape()) >
                      getCostModel(map).elementsOfLoadedRow * type.getNumElements();
}

/// Moves an operation out of the loops, and of what says which iterations these visit, in which its
/// operands do not change; if asked for, with the scalars that these are computed from.
static void moveOut(Operation *op, bool withScalars) {
  while (isa<scf::ForOp, VisitsOp>(op->getParentOp())) {
    Region &body = *op->getParentRegion();
    llvm::SetVector<Operation *> moved;
    if (!llvm::all_of(op->getOperands(),
                      [&](Value operand) { return findScalarsOf(operand, body, moved); }) ||
        (!withScalars && !moved.empty()))
      return;
    moved.insert(op);
    for (Operation *each : moved)
      each->moveBefore(body.getParentOp());
  }
}

/// Moves the scalars, the vectors and the loads that stand between `before` and the map out of the
/// loops, and of what says which iterations these visit, in which their operands do not change,
/// with the scalars that these are computed from.
void ElementMapper::hoist(Operation *before) {
  Operation *op = before ? before->getNextNode() : &map->getBlock()->front();
  auto kernel = map->getParentOfType<KernelOp>();
  llvm::DenseSet<StringRef> stored;
  if (kernel)
    kernel.walk([&](Operation *op) {
      if (storesToView(op))
        stored.insert(getViewName(op->getOperand(1), kernel));
    });
  SmallVector<Operation *> candidates;
  for (; op != map; op = op->getNextNode())
    if (canStandEarlier(op, kernel, stored))
      candidates.push_back(op);
  for (bool withScalars : {false, true})
    for (Operation *candidate : candidates)
      if (!withScalars || isWorthHolding(candidate, map))
        moveOut(candidate, withScalars);
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
