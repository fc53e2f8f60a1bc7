//===- TileOps.cpp - Operations of the tile dialect -----------------------===//

#include "dialects/Tile/Entries.h"
#include "dialects/Tile/LoadedIndex.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tessera::tile;

/// Parses `tensor<..>, tensor<..> -> tensor<..>`; the accumulator has the type of the result.
static ParseResult parseDotTypes(OpAsmParser &parser,
                                 const std::optional<OpAsmParser::UnresolvedOperand> &acc, Type &a,
                                 Type &b, Type &accType, Type &result) {
  if (parser.parseType(a) || parser.parseComma() || parser.parseType(b) || parser.parseArrow() ||
      parser.parseType(result))
    return failure();
  if (acc)
    accType = result;
  return success();
}
static void printDotTypes(OpAsmPrinter &printer, Operation *, Value, Type a, Type b, Type,
                          Type result) {
  printer << a << ", " << b << " -> " << result;
}

/// Parses `[%a, ...] box [..] add ticket %n from %x to %y` of a store; all behind the list may be
/// missing.
static ParseResult parseStorePlaces(OpAsmParser &parser,
                                    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &places,
                                    DenseI64ArrayAttr &box, UnitAttr &add, UnitAttr &ticketed) {
  UnitAttr unit = parser.getBuilder().getUnitAttr();
  if (parser.parseOperandList(places, OpAsmParser::Delimiter::Square))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("box"))) {
    box = dyn_cast_or_null<DenseI64ArrayAttr>(DenseI64ArrayAttr::parse(parser, Type()));
    if (!box)
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("add")))
    add = unit;
  if (failed(parser.parseOptionalKeyword("ticket")))
    return success();
  ticketed = unit;
  return failure(parser.parseOperand(places.emplace_back()) || parser.parseKeyword("from") ||
                 parser.parseOperand(places.emplace_back()) || parser.parseKeyword("to") ||
                 parser.parseOperand(places.emplace_back()));
}
static void printStorePlaces(OpAsmPrinter &printer, StoreOp store, OperandRange,
                             DenseI64ArrayAttr box, UnitAttr add, UnitAttr ticketed) {
  printer << "[" << store.getIndices() << "]";
  if (box) {
    printer << " box ";
    box.print(printer);
  }
  if (add)
    printer << " add";
  if (ticketed)
    printer << " ticket " << store.getTicket() << " from " << store.getFrom() << " to "
            << store.getTo();
}

#define GET_OP_CLASSES
#include "dialects/Tile/TileOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void CommonBoundOp::inferResultRanges(ArrayRef<ConstantIntRanges> operands,
                                      SetIntRangeFn setRange) {
  setRange(getResult(), operands.front());
}

/// What tile.load and tile.store ask of a tile, its view, the indices and the box.
static LogicalResult verifyAccess(Operation *op, Type moved, Value viewValue, ValueRange indices,
                                  std::optional<ArrayRef<int64_t>> box) {
  auto view = cast<ViewType>(viewValue.getType());
  auto argument = dyn_cast<BlockArgument>(viewValue);
  bool isArgument =
      argument && argument.getOwner()->getParentOp()->hasTrait<OpTrait::IsIsolatedFromAbove>();
  if (!isArgument && !viewValue.getDefiningOp<ArgumentOp>())
    return op->emitOpError("takes its view straight from the kernel's arguments; select between "
                           "tiles or indices, not between views");
  if (static_cast<int64_t>(indices.size()) != view.getRank())
    return op->emitOpError("takes one index per dimension of the view: expected ")
           << view.getRank() << ", got " << indices.size();
  if (getElementTypeOrSelf(moved) != view.getElementType())
    return op->emitOpError("has a tile of ")
           << getElementTypeOrSelf(moved) << " and a view of " << view.getElementType()
           << "; move elements of the view's type, and convert them";
  auto tile = dyn_cast<RankedTensorType>(moved);
  if (isByteFloat(view.getElementType()) && !(tile && tile.getRank() == 2))
    return op->emitOpError("moves elements of 8 bits as tiles of rank 2, four to a register, got ")
           << moved << "; a tile of one row would do";
  if (!tile && box)
    return op->emitOpError("moves one element, which has no box");
  if (!tile)
    return success();
  if (tile.getRank() < 1 || tile.getRank() > 2 || tile.getRank() > view.getRank())
    return op->emitOpError("moves tiles of rank 1 or 2, at most the rank of the view (")
           << view.getRank() << "), got " << tile;
  if (failed(verifyBox(op, view, tile, box)))
    return failure();
  for (int64_t dim = 0; box && dim < view.getRank() - tile.getRank(); ++dim)
    if ((*box)[dim] != 1 && comesFromMemory(indices[dim]))
      return op->emitOpError("has a box of ")
             << (*box)[dim] << " along dimension " << dim
             << ", whose index comes from memory; only the tile's own dimensions may reach outside "
                "the view, so take one at a time there";
  return success();
}

LogicalResult LoadOp::verify() {
  if (getAlike() && !getPipe())
    return emitOpError("is alike in all blocks of a cluster in a pipe, and has none");
  if (getAhead() && !getPipe())
    return emitOpError("is kept for the next load of its pipe, and has none");
  if (getWide() && !getPipe())
    return emitOpError("says how the tiles of its pipe lie in shared memory, and has none");
  return verifyAccess(*this, getType(), getView(), getIndices(), getBox());
}

/// What rows that numbers name ask of a tile, its view, and numbers.
template <typename AccessOp>
static LogicalResult verifyNamedRows(AccessOp op, RankedTensorType tile) {
  if (failed(verifyAccess(op, tile, op.getView(), op.getIndices(), std::nullopt)))
    return failure();
  if (op.getRows().empty() || op.getFirstNumberedDim() < 0)
    return op.emitOpError("has numbers along ")
           << op.getRows().size() << " dimensions; a tile of " << tile << " of "
           << op.getView().getType() << " takes 1 to " << op.getRowDim() + 1;
  for (Value numbers : op.getRows()) {
    auto rows = cast<RankedTensorType>(numbers.getType());
    if (rows.getRank() != 1 || rows.getDimSize(0) != tile.getDimSize(0))
      return op.emitOpError("takes the number of each row from a tile of rank 1: expected ")
             << RankedTensorType::get(tile.getDimSize(0), rows.getElementType()) << " for " << tile
             << ", got " << rows;
  }
  return success();
}

LogicalResult GatherOp::verify() {
  return verifyNamedRows(*this, cast<RankedTensorType>(getType()));
}

LogicalResult GatherRunsOp::verify() {
  auto tile = cast<RankedTensorType>(getType());
  if (failed(verifyAccess(*this, tile, getView(), getIndices(), std::nullopt)))
    return failure();
  if (tile.getDimSize(0) % getRun() != 0)
    return emitOpError("has runs of ")
           << getRun() << " rows, which do not divide a tile of " << tile.getDimSize(0);
  return success();
}

LogicalResult ScatterOp::verify() {
  if (failed(verifyNamedRows(*this, cast<RankedTensorType>(getValue().getType()))))
    return failure();
  for (Operation *user : getView().getUsers())
    if (loadsFromView(user)) {
      InFlightDiagnostic error =
          emitOpError("stores to a view that the kernel loads from, where any row may be meant; do "
                      "one of them in a kernel of its own");
      error.attachNote(user->getLoc()) << "loaded here";
      return error;
    }
  return success();
}

/// What an access to single elements asks of a tile of rank 1 or 2, its view, and indices.
static LogicalResult verifyElements(Operation *op, RankedTensorType tile, Value view,
                                    ValueRange indices) {
  if (failed(verifyAccess(op, tile.getElementType(), view, indices, std::nullopt)))
    return failure();
  if (tile.getRank() < 1 || tile.getRank() > 2)
    return op->emitOpError("moves elements of tiles of rank 1 or 2, got ") << tile;
  for (Value index : indices)
    if (auto type = dyn_cast<RankedTensorType>(index.getType());
        type && type.getShape() != tile.getShape())
      return op->emitOpError("has indices of ")
             << type << " for a tile of " << tile << "; they have its shape";
  return success();
}

LogicalResult GatherElementsOp::verify() {
  if (failed(verifyElements(*this, cast<RankedTensorType>(getType()), getView(), getIndices())))
    return failure();
  auto isTile = [](Value index) { return isa<RankedTensorType>(index.getType()); };
  if (llvm::none_of(getIndices(), isTile))
    return emitOpError(
        "takes an index that is a tile; with scalars alone tile.load gives the element, "
        "and tile.splat a tile of it");
  for (Operation *user : getView().getUsers())
    if (storesToView(user)) {
      InFlightDiagnostic error =
          emitOpError("loads from a view that the kernel stores to, where any "
                      "element may be meant; do one of them in a kernel of "
                      "its own");
      error.attachNote(user->getLoc()) << "stored here";
      return error;
    }
  return success();
}

LogicalResult ScatterAddOp::verify() {
  return verifyElements(*this, cast<RankedTensorType>(getValue().getType()), getView(),
                        getIndices());
}

LogicalResult StoreOp::verify() {
  Type element = getElementTypeOrSelf(getValue().getType());
  if (getAdd() && !element.isF32())
    return emitOpError("adds f32, got ")
           << element << ": a sum of " << element << " would be rounded at each of its additions; "
           << "add to a view of f32, and round it in a kernel of its own";
  if (getTicketed() && getPlaces().size() < 3)
    return emitOpError("has a ticket, which takes a number and two values behind the indices");
  if (getTicketed() && !getAdd())
    return emitOpError("has a ticket, which gives additions an order; add, or leave it out");
  if (getExchanged() && !getAdd())
    return emitOpError("is exchanged, as blocks of a cluster do with sums; add, or leave it out");
  return verifyAccess(*this, getValue().getType(), getView(), getIndices(), getBox());
}

void StoreOp::setTicket(Value number, Value from, Value to) {
  SmallVector<Value> places(getIndices());
  places.append({number, from, to});
  getPlacesMutable().assign(places);
  setTicketed(true);
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

std::optional<DotTerms> DotOp::getTerms() {
  FloatType half = Float16Type::get(getContext()), brain = BFloat16Type::get(getContext());
  if (std::optional<DotPrecision> precision = getPrecision())
    switch (*precision) {
    case DotPrecision::bf16:
      return DotTerms{brain, 1};
    case DotPrecision::f16:
      return DotTerms{half, 1};
    case DotPrecision::bf16x3:
      return DotTerms{brain, 2};
    case DotPrecision::f16x3:
      return DotTerms{half, 2};
    case DotPrecision::bf16x6:
      return DotTerms{brain, 3};
    case DotPrecision::tf32:
      break;
    }
  return std::nullopt;
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType()),
       result = cast<RankedTensorType>(getType());
  if (a.getRank() != 2 || b.getRank() != 2 || result.getRank() != 2)
    return emitOpError("operands and result have rank 2");
  if (a.getDimSize(1) != b.getDimSize(0))
    return emitOpError("contracts dimension 1 of a (")
           << a.getDimSize(1) << ") with dimension 0 of b (" << b.getDimSize(0)
           << "), which differ; transpose an operand?";
  if (result.getDimSize(0) != a.getDimSize(0) || result.getDimSize(1) != b.getDimSize(1))
    return emitOpError("result is ") << a.getDimSize(0) << "x" << b.getDimSize(1) << " for " << a
                                     << " and " << b << ", got " << result;
  if (a.getElementType() != b.getElementType())
    return emitOpError("operands have one element type, got ")
           << a.getElementType() << " and " << b.getElementType();
  if (getPrecision() && !a.getElementType().isF32())
    return emitOpError("has a precision, which operands of f32 take; leave it out for ")
           << a.getElementType();
  if (!getPrecision() && !a.getElementType().isF16() && !a.getElementType().isBF16() &&
      !isByteFloat(a.getElementType()))
    return emitOpError("operands are f16, bf16, f8E4M3FN or f8E5M2, got ")
           << a.getElementType()
           << "; round them with arith.truncf, or give f32 a precision, as 'precision bf16x3'";
  if (!result.getElementType().isF32())
    return emitOpError("accumulates in f32, got a result of ") << result.getElementType();
  if (getAcc() && getAcc().getType() != result)
    return emitOpError("accumulator is ") << getAcc().getType() << ", the result " << result;
  return success();
}

/// What a reduction of `source` along `axis` asks of the shape of `result`.
static LogicalResult verifyReduced(Operation *op, RankedTensorType source, uint64_t axis,
                                   RankedTensorType result) {
  if (axis >= static_cast<uint64_t>(source.getRank()))
    return op->emitOpError("axis ") << axis << " is outside a tile of rank " << source.getRank();
  if (source.getRank() < 2)
    return op->emitOpError("reduces a tile of rank 2 to one of rank 1, got ")
           << source << "; tile.reduce_all makes a number of all elements";
  SmallVector<int64_t> shape(source.getShape());
  shape.erase(shape.begin() + axis);
  // Encodings are not compared: once tiles have layouts, a reduction changes them.
  if (result.getShape() != ArrayRef<int64_t>(shape))
    return op->emitOpError("reduces a tile of rank 2 to one of rank 1 without axis ")
           << axis << ": expected " << RankedTensorType::get(shape, result.getElementType())
           << ", got " << result;
  return success();
}

/// A product of all elements is no result of roles yet that have parts of it.
static LogicalResult refuseProduct(Operation *op, ReduceKind kind) {
  if (kind == ReduceKind::product)
    return op->emitOpError("makes a product, which tile.scan alone does; its last element is that "
                           "of all, and tile.reduce takes sum, max, min, maximum or minimum");
  return success();
}

LogicalResult ReduceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()),
       result = cast<RankedTensorType>(getType());
  if (failed(refuseProduct(*this, getKind())) ||
      failed(verifyReduced(*this, source, getAxis(), result)))
    return failure();
  if (result.getElementType() != source.getElementType())
    return emitOpError("keeps the type of the elements, ")
           << source.getElementType() << ", got " << result;
  if (getLimit() && (getKind() != ReduceKind::sum || !source.getElementType().isF32()))
    return emitOpError("has a limit, which sums of f32 take; leave it out for a ")
           << stringifyReduceKind(getKind()) << " of " << source.getElementType();
  return success();
}

LogicalResult ReduceIndexOp::verify() {
  if (getKind() == ReduceKind::sum)
    return emitOpError("asks where a sum is, which is no element; max, min, maximum and minimum "
                       "have an index, and tile.reduce makes a sum");
  if (failed(refuseProduct(*this, getKind())))
    return failure();
  auto source = cast<RankedTensorType>(getSource().getType());
  for (Value result : getResults())
    if (failed(verifyReduced(*this, source, getAxis(), cast<RankedTensorType>(result.getType()))))
      return failure();
  return success();
}

LogicalResult MaskedMaxOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto expected = RankedTensorType::get(source.getShape().take_front(), source.getElementType());
  if (source.getRank() != 2 || getOld().getType() != expected)
    return emitOpError("takes a tile of rank 1 for the rows of one of rank 2, got ")
           << getOld().getType() << " and " << source;
  return success();
}

LogicalResult ReferenceOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() != 1 || !type.getElementType().isF32())
    return emitOpError("takes a number of f32 for each row, got ") << type;
  return success();
}

LogicalResult ReduceAllOp::verify() {
  if (failed(refuseProduct(*this, getKind())))
    return failure();
  Type element = cast<RankedTensorType>(getSource().getType()).getElementType();
  if (getType() != element)
    return emitOpError("makes a number of the type of the elements, ")
           << element << ", got " << getType();
  return success();
}

LogicalResult ScanOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  if (getAxis() >= static_cast<uint64_t>(source.getRank()))
    return emitOpError("axis ") << getAxis() << " is outside a tile of rank " << source.getRank();
  bool ofNumbers = getKind() == ReduceKind::maximum || getKind() == ReduceKind::minimum;
  if (ofNumbers && !source.getElementType().isF32())
    return emitOpError("takes max or min of integers, which have no NaN, got ")
           << stringifyReduceKind(getKind());
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()),
       result = cast<RankedTensorType>(getType());
  if (source.getRank() != 1 || result.getRank() != 2 || getAxis() > 1 ||
      source.getElementType() != result.getElementType() ||
      source.getDimSize(0) != result.getDimSize(1 - getAxis()))
    return emitOpError("repeats a rank-1 tile along axis 0 or 1 of a rank-2 tile of the same "
                       "element type, whose other axis has its extent; got ")
           << source << " along axis " << getAxis() << " to " << result;
  return success();
}

LogicalResult SplatOp::verify() {
  if (getSource().getType() != cast<RankedTensorType>(getType()).getElementType())
    return emitOpError("source is ") << getSource().getType() << ", the tile's elements are "
                                     << cast<RankedTensorType>(getType()).getElementType();
  return success();
}

LogicalResult TransposeOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()),
       result = cast<RankedTensorType>(getType());
  if (source.getRank() != 2 || result.getRank() != 2 ||
      source.getElementType() != result.getElementType() ||
      source.getDimSize(0) != result.getDimSize(1) || source.getDimSize(1) != result.getDimSize(0))
    return emitOpError("exchanges the axes of a rank-2 tile: got ") << source << " to " << result;
  return success();
}

int64_t IotaOp::getPeriodOrExtent() {
  return getPeriod().value_or(cast<RankedTensorType>(getType()).getDimSize(getAxis()));
}

LogicalResult IotaOp::verify() {
  auto result = cast<RankedTensorType>(getType());
  if (result.getRank() < 1 || result.getRank() > 2 ||
      getAxis() >= static_cast<uint64_t>(result.getRank()))
    return emitOpError("makes a tile of rank 1 or 2 with indices along one of its axes; got axis ")
           << getAxis() << " of " << result;
  if (std::optional<int64_t> period = getPeriod();
      period && (*period < 1 || result.getDimSize(getAxis()) % *period != 0))
    return emitOpError("repeats in periods that divide the extent of the axis, ")
           << result.getDimSize(getAxis()) << "; got " << *period;
  return success();
}

/// What other operations make of the index has no end, so that rows behind it would be moved. A
/// function that returns it is inlined, and who calls that is asked then.
LogicalResult RowOp::verify() {
  for (Operation *user : (*this)->getUsers())
    if (!isa<LoadOp, StoreOp, func::ReturnOp>(user) && user->getDialect()->getNamespace() != "hop")
      return emitOpError("is read by '")
             << user->getName() << "', and only loads and stores know where its rows end";
  return success();
}

/// A pass that rotates a loop also works on later steps, of which its bounds say nothing here.
LogicalResult WalkOp::verify() {
  auto argument = dyn_cast<BlockArgument>(getStep());
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || argument != loop.getInductionVar() || matchPattern(loop.getStep(), m_One()))
    return success();
  InFlightDiagnostic error = emitOpError("is of a loop in steps of 1, so that it has the same "
                                         "iterations from either end");
  error.attachNote(loop.getLoc()) << "this loop has other steps; go through it in steps of 1, and "
                                     "multiply";
  return error;
}

//===----------------------------------------------------------------------===//
// Speculation
//===----------------------------------------------------------------------===//

ParseResult tessera::parseSpeculationRegions(OpAsmParser &parser, Region &fast, Region &exact) {
  if (failed(parser.parseRegion(fast)))
    return failure();
  if (succeeded(parser.parseKeyword("exact")) && succeeded(parser.parseRegion(exact)))
    return success();
  // Operations before the region may already use what it defines, and it goes away.
  fast.walk([](Operation *op) { op->dropAllUses(); });
  return failure();
}

void tessera::printSpeculationRegions(OpAsmPrinter &printer, Operation *, Region &fast,
                                      Region &exact) {
  printer.printRegion(fast);
  printer << " exact ";
  printer.printRegion(exact);
}

YieldIfOp SpeculateOp::getFastYield() { return cast<YieldIfOp>(getFast().front().getTerminator()); }

YieldOp SpeculateOp::getExactYield() { return cast<YieldOp>(getExact().front().getTerminator()); }

bool tessera::tile::loadsFromView(Operation *op) {
  return isa<LoadOp, GatherOp, GatherRunsOp, GatherElementsOp>(op);
}

bool tessera::tile::storesToView(Operation *op) {
  return isa<StoreOp, ScatterOp, ScatterAddOp>(op);
}

bool tessera::tile::addsToView(Operation *op) {
  auto store = dyn_cast<StoreOp>(op);
  return store ? store.getAdd() : isa<ScatterAddOp>(op);
}

/// Whether the kernel loads a view that it stores. Asks the views, for other operations of the
/// kernel have not been verified.
static BlockArgument viewLoadedAndStored(KernelOp kernel) {
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (isa<ViewType>(argument.getType()) && llvm::any_of(argument.getUsers(), loadsFromView) &&
        llvm::any_of(argument.getUsers(), storesToView))
      return argument;
  return {};
}

LogicalResult SpeculateOp::verifyRegions() {
  auto check = [&](Region &region, StringRef name, auto yield) -> LogicalResult {
    if (!yield)
      return emitOpError("ends its ")
             << name << " region with " << (name == "fast" ? "tile.yield_if" : "tile.yield");
    if (yield.getValues().getTypes() != getResultTypes())
      return yield.emitOpError("yields the results of the speculation, of types ")
             << getResultTypes() << ", got " << yield.getValues().getTypes();
    return success();
  };
  if (failed(check(getFast(), "fast", dyn_cast<YieldIfOp>(getFast().front().back()))) ||
      failed(check(getExact(), "exact", dyn_cast<YieldOp>(getExact().front().back()))))
    return failure();
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel)
    return success(); // A function is looked at where it is called.
  SmallVector<SpeculateOp> all;
  kernel.walk<WalkOrder::PreOrder>([&](SpeculateOp op) { all.push_back(op); });
  if (all.front() != *this)
    return emitOpError("is the second of the kernel; a grid point succeeds or fails as a whole, so "
                       "put both into one and join their predicates")
               .attachNote(all.front().getLoc())
           << "the first is here";
  if (BlockArgument view = viewLoadedAndStored(kernel))
    return emitOpError("may run a grid point twice, so the kernel may not load what it stores, and "
                       "it does both with '")
           << kernel.getArgumentName(view.getArgNumber()) << "'";
  return success();
}
