//===- ElementOps.cpp - Functions of elements, and what their masks leave --===//

#include "dialects/Tile/ScalarRegion.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// MapOp
//===----------------------------------------------------------------------===//

/// Parses `%a, %b axis 1, ...`, which may be nothing.
ParseResult tessera::parseMapOperands(OpAsmParser &parser,
                                      SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
                                      DenseI64ArrayAttr &axes) {
  SmallVector<int64_t> values;
  auto parseAxis = [&]() -> ParseResult {
    int64_t axis = -1;
    if (succeeded(parser.parseOptionalKeyword("axis"))) {
      SMLoc loc = parser.getCurrentLocation();
      if (parser.parseInteger(axis))
        return failure();
      if (axis < 0 || axis > 1)
        return parser.emitError(loc) << "a vector is repeated along axis 0 or 1, got " << axis;
    }
    values.push_back(axis);
    return success();
  };
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult first = parser.parseOptionalOperand(operand);
  if (first.has_value()) {
    if (failed(*first))
      return failure();
    operands.push_back(operand);
    if (parseAxis())
      return failure();
    while (succeeded(parser.parseOptionalComma()))
      if (parser.parseOperand(operands.emplace_back()) || parseAxis())
        return failure();
  }
  axes = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

void tessera::printMapOperands(OpAsmPrinter &printer, Operation *, OperandRange operands,
                               DenseI64ArrayAttr axes) {
  llvm::interleaveComma(llvm::zip(operands, axes.asArrayRef()), printer, [&](auto operand) {
    auto [value, axis] = operand;
    printer << value;
    if (axis >= 0)
      printer << " axis " << axis;
  });
}

LogicalResult MapOp::verify() {
  if (getNumResults() == 0)
    return emitOpError("gives a tile for each result of the function; it has none");
  if (getAxes().size() != getNumOperands())
    return emitOpError("has ") << getNumOperands() << " operands but " << getAxes().size()
                               << " axes, -1 of an operand that is not repeated";
  ArrayRef<int64_t> shape = getShape();
  if (shape.empty() || shape.size() > 2)
    return emitOpError("gives tiles of rank 1 or 2, got ") << getResult(0).getType();
  for (Type type : getResultTypes())
    if (cast<ShapedType>(type).getShape() != shape)
      return emitOpError("gives tiles of one shape, got ") << getResultTypes();
  for (auto [i, operand] : llvm::enumerate(getOperands())) {
    auto tile = dyn_cast<RankedTensorType>(operand.getType());
    if (std::optional<int64_t> axis = getAxis(i)) {
      if (!tile || tile.getRank() != 1 || shape.size() != 2 || *axis > 1 ||
          tile.getDimSize(0) != shape[1 - *axis])
        return emitOpError("repeats operand ")
               << i << " along axis " << *axis << " of a tile of rank 2; it is a tile of rank 1 "
               << "with the other axis' extent, got " << operand.getType() << " for "
               << getResult(0).getType();
    } else if (tile && tile.getShape() != shape) {
      return emitOpError("takes tiles of the results' shape, vectors with an axis, and scalars; "
                         "operand ")
             << i << " is " << operand.getType() << ", a result " << getResult(0).getType();
    } else if (!tile && !operand.getType().isIntOrIndexOrFloat()) {
      return emitOpError("takes tiles and scalars; operand ") << i << " is " << operand.getType();
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// VisitsOp
//===----------------------------------------------------------------------===//

ParseResult VisitsOp::parse(OpAsmParser &parser, OperationState &result) {
  Type index = parser.getBuilder().getIndexType();
  OpAsmParser::Argument induction;
  induction.type = index;
  OpAsmParser::UnresolvedOperand lower, upper;
  if (parser.parseArgument(induction) || parser.parseEqual() || parser.parseOperand(lower) ||
      parser.parseKeyword("to") || parser.parseOperand(upper) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperand(lower, index, result.operands) ||
      parser.resolveOperand(upper, index, result.operands))
    return failure();
  result.addTypes({index, index});
  return parser.parseRegion(*result.addRegion(), {induction});
}

void VisitsOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getInductionVar() << " = " << getLower() << " to " << getUpper();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void VisitsOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!region.empty() && region.getNumArguments() == 1)
    setName(region.getArgument(0), "j");
}

Value VisitsOp::getMask() { return cast<MaskOp>(getBody().front().getTerminator()).getValue(); }

LogicalResult VisitsOp::verifyRegions() {
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 || !body.getArgument(0).getType().isIndex())
    return emitOpError("has a region of one index, the iteration");
  if (body.empty() || !isa<MaskOp>(body.back()))
    return emitOpError("ends its region with tile.mask");
  return success();
}

//===----------------------------------------------------------------------===//
// ReduceRangeOp
//===----------------------------------------------------------------------===//

LogicalResult tessera::tile::verifyScalars(Block &body) {
  for (Operation &op : body.without_terminator()) {
    bool isScalar = llvm::none_of(op.getResultTypes(), llvm::IsaPred<ShapedType>);
    // Of calls the operations of the function are looked at when they stand here.
    if (op.getNumRegions() != 0 || !isScalar ||
        !(isa<LoadOp, func::CallOp>(op) || isMemoryEffectFree(&op)))
      return op.emitOpError("stands in a ")
             << body.getParentOp()->getName()
             << ", which has scalar arithmetic and loads of elements";
  }
  return success();
}

/// Parses `min %i to 128 -> i32 { ... }`.
ParseResult ReduceRangeOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::Argument number;
  number.type = builder.getIndexType();
  std::string kindName;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&kindName))
    return failure();
  std::optional<ReduceKind> kind = symbolizeReduceKind(kindName);
  if (!kind)
    return parser.emitError(loc) << "takes min or max, got " << kindName;
  int64_t count;
  Type type;
  if (parser.parseArgument(number) || parser.parseKeyword("to") || parser.parseInteger(count) ||
      parser.parseArrow() || parser.parseType(type) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.getOrAddProperties<Properties>().kind = ReduceKindAttr::get(builder.getContext(), *kind);
  result.getOrAddProperties<Properties>().count = builder.getI64IntegerAttr(count);
  result.addTypes(type);
  return parser.parseRegion(*result.addRegion(), {number});
}

void ReduceRangeOp::print(OpAsmPrinter &printer) {
  printer << ' ' << stringifyReduceKind(getKind()) << ' ' << getNumber() << " to " << getCount()
          << " -> " << getType();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"kind", "count"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void ReduceRangeOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!region.empty() && region.getNumArguments() == 1)
    setName(region.getArgument(0), "i");
}

LogicalResult ReduceRangeOp::verifyRegions() {
  if (getKind() != ReduceKind::min && getKind() != ReduceKind::max)
    return emitOpError("takes the least or the largest of integers, min or max; got ")
           << stringifyReduceKind(getKind());
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 || !body.getArgument(0).getType().isIndex())
    return emitOpError("has a region of one index, the number");
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield || yield.getNumOperands() != 1 || yield.getOperand(0).getType() != getType())
    return emitOpError("ends its region with a tile.yield of ") << getType();
  return verifyScalars(body);
}

//===----------------------------------------------------------------------===//
// GatherRunsOp
//===----------------------------------------------------------------------===//

LogicalResult GatherRunsOp::verifyRegions() {
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 + getCaptures().size() ||
      !body.getArgument(0).getType().isIndex() ||
      !llvm::equal(llvm::drop_begin(body.getArgumentTypes()), getCaptures().getTypes()))
    return emitOpError("has a region of an index, the number of a run, and of what it takes from "
                       "outside");
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield || !llvm::all_of(yield.getOperandTypes(), [](Type type) { return type.isIndex(); }) ||
      yield.getNumOperands() < 2 || getFirstNumberedDim() < 0)
    return emitOpError(
               "ends its region with a tile.yield of indices: of the run's places along 1 to ")
           << getRowDim() + 1 << " dimensions, and of how many rows of it there are";
  for (LoadOp load : body.getOps<LoadOp>())
    for (Operation *user : load.getView().getUsers())
      if (storesToView(user))
        return load.emitOpError("says where runs lie, and the kernel stores to its view")
                   .attachNote(user->getLoc())
               << "stored here";
  return verifyScalars(body);
}
