//===- TileOps.cpp - Operations of the tile dialect -----------------------===//

#include "dialects/Tile/LoadedIndex.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

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

#define GET_OP_CLASSES
#include "dialects/Tile/TileOps.cpp.inc"

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

/// Parses `%m = SQ ceildiv 128`, `%h = H` or `%b = 4`.
static ParseResult parseGridDim(OpAsmParser &parser, OpAsmParser::Argument &index,
                                SmallVectorImpl<Attribute> &grid) {
  Builder &builder = parser.getBuilder();
  SMLoc loc = parser.getCurrentLocation();
  index.type = builder.getIndexType();
  Attribute extent;
  int64_t integer, divisor = 1;
  if (parser.parseArgument(index) || parser.parseEqual())
    return failure();
  OptionalParseResult isInteger = parser.parseOptionalInteger(integer);
  if (isInteger.has_value()) {
    if (failed(*isInteger))
      return failure();
    extent = builder.getI64IntegerAttr(integer);
  } else {
    std::string name;
    if (parser.parseKeywordOrString(&name))
      return failure();
    extent = builder.getStringAttr(name);
  }
  if (succeeded(parser.parseOptionalKeyword("ceildiv")) && parser.parseInteger(divisor))
    return failure();
  auto attr = GridDimAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                      extent, divisor);
  if (!attr)
    return failure();
  grid.push_back(attr);
  return success();
}

/// Parses `8 * HK divides H`, `HK divides H` or `DQ <= 128`.
static ParseResult parseRequirement(OpAsmParser &parser, SmallVectorImpl<Attribute> &requirements) {
  std::string dim, dividend;
  int64_t factor = 1, bound = 0;
  Builder &builder = parser.getBuilder();
  SMLoc loc = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(loc); };
  OptionalParseResult hasFactor = parser.parseOptionalInteger(factor);
  if (hasFactor.has_value() && (failed(*hasFactor) || parser.parseStar()))
    return failure();
  if (parser.parseKeywordOrString(&dim))
    return failure();
  Attribute requirement;
  if (!hasFactor.has_value() && succeeded(parser.parseOptionalLess())) {
    if (parser.parseEqual() || parser.parseInteger(bound))
      return failure();
    requirement =
        AtMostAttr::getChecked(emitError, parser.getContext(), builder.getStringAttr(dim), bound);
  } else {
    if (parser.parseKeyword("divides") || parser.parseKeywordOrString(&dividend))
      return failure();
    requirement =
        DividesAttr::getChecked(emitError, parser.getContext(), builder.getStringAttr(dim),
                                builder.getStringAttr(dividend), factor);
  }
  if (!requirement)
    return failure();
  requirements.push_back(requirement);
  return success();
}

/// Parses `requires(HK divides H, DQ <= 128, ...)` when it is there.
static ParseResult parseRequirements(OpAsmParser &parser, NamedAttrList &attributes) {
  if (failed(parser.parseOptionalKeyword("requires")))
    return success();
  SmallVector<Attribute> requirements;
  auto parseOne = [&] { return parseRequirement(parser, requirements); };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  attributes.set("requirements", parser.getBuilder().getArrayAttr(requirements));
  return success();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> types, names, grid, gridNames;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren, /*allowType=*/true))
    return failure();
  for (const OpAsmParser::Argument &argument : arguments) {
    types.push_back(TypeAttr::get(argument.type));
    names.push_back(builder.getStringAttr(argument.ssaName.name.drop_front()));
  }
  auto parseOneGridDim = [&]() -> ParseResult {
    arguments.emplace_back();
    if (parseGridDim(parser, arguments.back(), grid))
      return failure();
    gridNames.push_back(builder.getStringAttr(arguments.back().ssaName.name.drop_front()));
    return success();
  };
  if (parser.parseKeyword("grid") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOneGridDim) ||
      parseRequirements(parser, result.attributes))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("schedule"))) {
    ScheduleAttr schedule;
    if (parser.parseAttribute(schedule, getScheduleAttrName(result.name), result.attributes))
      return failure();
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addAttribute(getArgumentTypesAttrName(result.name), builder.getArrayAttr(types));
  result.addAttribute(getArgumentNamesAttrName(result.name), builder.getArrayAttr(names));
  result.addAttribute(getGridAttrName(result.name), builder.getArrayAttr(grid));
  result.addAttribute(getGridNamesAttrName(result.name), builder.getArrayAttr(gridNames));
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, builder, result.location);
  return success();
}

static void printRequirement(OpAsmPrinter &printer, Attribute attr) {
  if (auto atMost = dyn_cast<AtMostAttr>(attr)) {
    printer.printKeywordOrString(atMost.getDim().getValue());
    printer << " <= " << atMost.getBound();
    return;
  }
  auto divides = cast<DividesAttr>(attr);
  if (divides.getFactor() != 1)
    printer << divides.getFactor() << " * ";
  printer.printKeywordOrString(divides.getDivisor().getValue());
  printer << " divides ";
  printer.printKeywordOrString(divides.getDividend().getValue());
}

void KernelOp::print(OpAsmPrinter &printer) {
  Block &block = getBody().front();
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(block.getArguments().take_front(getNumArguments()), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") grid(";
  llvm::interleaveComma(llvm::seq(getGridRank()), printer, [&](unsigned i) {
    GridDimAttr dim = getGridDim(i);
    printer.printRegionArgument(getGridIndex(i), {}, /*omitType=*/true);
    printer << " = ";
    if (auto name = dyn_cast<StringAttr>(dim.getExtent()))
      printer.printKeywordOrString(name.getValue());
    else
      printer << cast<IntegerAttr>(dim.getExtent()).getInt();
    if (dim.getDivisor() != 1)
      printer << " ceildiv " << dim.getDivisor();
  });
  printer << ")";
  if (std::optional<ArrayAttr> requirements = getRequirements()) {
    printer << " requires(";
    llvm::interleaveComma(*requirements, printer,
                          [&](Attribute attr) { printRequirement(printer, attr); });
    printer << ")";
  }
  if (ScheduleAttr schedule = getScheduleAttr())
    printer << " schedule " << schedule;
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getArgumentTypesAttrName(),
                            getArgumentNamesAttrName(), getGridAttrName(), getGridNamesAttrName(),
                            getRequirementsAttrName(), getScheduleAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty() || region.getNumArguments() != getNumArguments() + getGridRank())
    return;
  for (unsigned i = 0; i < getNumArguments(); ++i)
    setName(getArgument(i), getArgumentName(i));
  if (std::optional<ArrayAttr> names = getGridNames(); names && names->size() == getGridRank())
    for (unsigned i = 0; i < getGridRank(); ++i)
      setName(getGridIndex(i), cast<StringAttr>((*names)[i]).getValue());
}

/// True for what can follow `%` in the assembly and is no number.
static bool isValueName(StringRef name) {
  auto isNameChar = [](char c) { return llvm::isAlnum(c) || StringRef("_$.-").contains(c); };
  return !name.empty() && !llvm::isDigit(name.front()) && llvm::all_of(name, isNameChar);
}

SmallVector<StringRef> KernelOp::getDimNames() {
  llvm::SetVector<StringRef, SmallVector<StringRef>> names;
  for (Type type : getArgumentTypes().getAsValueRange<TypeAttr>())
    if (auto view = dyn_cast<ViewType>(type))
      for (int64_t i = 0; i < view.getRank(); ++i)
        if (!view.getDimName(i).empty())
          names.insert(view.getDimName(i));
  return names.takeVector();
}

/// True for an identifier of PTX (PTX ISA 4.4) that C has too, up to '$'.
static bool isKernelName(StringRef name) {
  auto isNameChar = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; };
  return !name.empty() && !llvm::isDigit(name.front()) && llvm::all_of(name, isNameChar);
}

LogicalResult KernelOp::verify() {
  if (!isKernelName(getSymName()))
    return emitOpError("is named '")
           << getSymName()
           << "'; the names of kernels have letters, digits, '_' and '$', no digit first";
  unsigned numArguments = getNumArguments();
  if (getArgumentNames().size() != numArguments)
    return emitOpError("has ") << numArguments << " argument types but "
                               << getArgumentNames().size() << " argument names";
  if (getGrid().empty() || getGrid().size() > 3)
    return emitOpError("has 1 to 3 grid dimensions, got ") << getGrid().size();
  if (getBody().getNumArguments() != numArguments + getGridRank())
    return emitOpError("body takes the arguments and one index per grid dimension: expected ")
           << numArguments + getGridRank() << " block arguments, got "
           << getBody().getNumArguments();
  if (std::optional<ArrayAttr> names = getGridNames(); names && names->size() != getGridRank())
    return emitOpError("has ") << getGridRank() << " grid dimensions but " << names->size()
                               << " grid names";
  llvm::StringSet<> argumentNames;
  for (unsigned i = 0; i < numArguments; ++i) {
    Type type = cast<TypeAttr>(getArgumentTypes()[i]).getValue();
    if (getArgument(i).getType() != type)
      return emitOpError("argument ")
             << i << " is " << type << " but its block argument is " << getArgument(i).getType();
    if (!isa<ViewType>(type) && !type.isF32() && !type.isIndex() && !type.isSignlessInteger(32) &&
        !type.isSignlessInteger(64))
      return emitOpError("argument '") << getArgumentName(i) << "' is " << type
                                       << "; a kernel takes views, f32, i32, i64 and index";
    if (!isValueName(getArgumentName(i)))
      return emitOpError("argument ") << i << " is named '" << getArgumentName(i)
                                      << "'; launches name arguments: letters, digits, '_', '$', "
                                         "'.' and '-', no digit first";
    if (!argumentNames.insert(getArgumentName(i)).second)
      return emitOpError("has two arguments named '") << getArgumentName(i) << "'";
  }
  SmallVector<StringRef> names = getDimNames();
  for (Attribute attr : getGrid()) {
    auto dim = dyn_cast<GridDimAttr>(attr);
    if (!dim)
      return emitOpError("grid holds #tile.grid_dim, got ") << attr;
    if (auto name = dyn_cast<StringAttr>(dim.getExtent()); name && !llvm::is_contained(names, name))
      return emitOpError("grid names the dimension '")
             << name.getValue() << "', which no view of the kernel has";
  }
  for (unsigned i = 0; i < getGridRank(); ++i)
    if (!getGridIndex(i).getType().isIndex())
      return emitOpError("grid indices are of type index");
  if (std::optional<ArrayAttr> requirements = getRequirements())
    for (Attribute attr : *requirements) {
      SmallVector<StringAttr, 2> required;
      if (auto divides = dyn_cast<DividesAttr>(attr))
        required = {divides.getDivisor(), divides.getDividend()};
      else if (auto atMost = dyn_cast<AtMostAttr>(attr))
        required = {atMost.getDim()};
      else
        return emitOpError("requirements hold #tile.divides and #tile.at_most, got ") << attr;
      for (StringAttr name : required)
        if (!llvm::is_contained(names, name))
          return emitOpError("requires names the dimension '")
                 << name.getValue() << "', which no view of the kernel has";
    }
  return verifyTileSizes(*this);
}

/// The values from `low` to `high` of type index.
static ConstantIntRanges indexRange(int64_t low, int64_t high) {
  unsigned width = IndexType::kInternalStorageBitWidth;
  return ConstantIntRanges::fromSigned(APInt(width, low, /*isSigned=*/true),
                                       APInt(width, high, /*isSigned=*/true));
}

/// The largest extent of a run-time dimension: coordinates fit i32 (see tile.iota).
static constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

void KernelOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setRange) {
  for (unsigned i = 0; i < getGridRank(); ++i) {
    GridDimAttr dim = getGridDim(i);
    auto extent = dyn_cast<IntegerAttr>(dim.getExtent());
    int64_t points = llvm::divideCeil(extent ? extent.getInt() : kMaxExtent, dim.getDivisor());
    setRange(getGridIndex(i), indexRange(0, std::max<int64_t>(points, 1) - 1));
  }
}

//===----------------------------------------------------------------------===//
// Memory and dimensions
//===----------------------------------------------------------------------===//

void DimOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setRange) {
  setRange(getResult(), indexRange(1, kMaxExtent));
}

void CommonBoundOp::inferResultRanges(ArrayRef<ConstantIntRanges> operands,
                                      SetIntRangeFn setRange) {
  setRange(getResult(), operands.front());
}

LogicalResult DimOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel || llvm::is_contained(kernel.getDimNames(), getDim()))
    return success();
  InFlightDiagnostic diag = emitOpError("names the dimension '")
                            << getDim() << "', which no view of the kernel has; it has ";
  llvm::interleaveComma(kernel.getDimNames(), diag);
  return diag;
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
           << getElementTypeOrSelf(moved) << " and a view of " << view.getElementType();
  auto tile = dyn_cast<RankedTensorType>(moved);
  if (isByteFloat(view.getElementType()) && !(tile && tile.getRank() == 2))
    return op->emitOpError("moves elements of 8 bits as tiles of rank 2, four to a register, got ")
           << moved << "; a tile of one row would do";
  if (!tile && box)
    return op->emitOpError("loads one element, which has no box");
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
  return verifyAccess(*this, getType(), getView(), getIndices(), getBox());
}

LogicalResult GatherOp::verify() {
  auto tile = cast<RankedTensorType>(getType()), rows = cast<RankedTensorType>(getRows().getType());
  if (failed(verifyAccess(*this, tile, getView(), getIndices(), std::nullopt)))
    return failure();
  if (rows.getRank() != 1 || rows.getDimSize(0) != tile.getDimSize(0))
    return emitOpError("takes the number of each row from a tile of rank 1: expected ")
           << RankedTensorType::get(tile.getDimSize(0), rows.getElementType()) << " for " << tile
           << ", got " << rows;
  return success();
}

LogicalResult StoreOp::verify() {
  Type element = getElementTypeOrSelf(getValue().getType());
  if (getAdd() && !element.isF32())
    return emitOpError("adds tiles of f32, got one of ")
           << element << ": a sum of " << element << " would be rounded at each of its additions; "
           << "add to a view of f32, and round it in a kernel of its own";
  return verifyAccess(*this, getValue().getType(), getView(), getIndices(), getBox());
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

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
  if (!a.getElementType().isF16() && !a.getElementType().isBF16() &&
      !isByteFloat(a.getElementType()))
    return emitOpError("operands are f16, bf16, f8E4M3FN or f8E5M2, got ")
           << a.getElementType() << "; round them with arith.truncf";
  if (!result.getElementType().isF32())
    return emitOpError("accumulates in f32, got a result of ") << result.getElementType();
  if (getAcc() && getAcc().getType() != result)
    return emitOpError("accumulator is ") << getAcc().getType() << ", the result " << result;
  return success();
}

LogicalResult ReduceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()),
       result = cast<RankedTensorType>(getType());
  if (getAxis() >= static_cast<uint64_t>(source.getRank()))
    return emitOpError("axis ") << getAxis() << " is outside a tile of rank " << source.getRank();
  if (source.getRank() < 2)
    return emitOpError("reduces a tile of rank 2 to one of rank 1, got ")
           << source << ": its elements are spread over the threads of all warpgroups, which no "
           << "operation makes one of; store the tile and reduce it where it is read";
  SmallVector<int64_t> shape(source.getShape());
  shape.erase(shape.begin() + getAxis());
  // Encodings are not compared: once tiles have layouts, a reduction changes them.
  if (result.getShape() != ArrayRef<int64_t>(shape) ||
      result.getElementType() != source.getElementType())
    return emitOpError("reduces a tile of rank 2 to one of rank 1 without axis ")
           << getAxis() << ": expected " << RankedTensorType::get(shape, source.getElementType())
           << ", got " << result;
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

/// Whether the kernel loads a view that it stores. Asks the views, for other operations of the
/// kernel have not been verified.
static BlockArgument viewLoadedAndStored(KernelOp kernel) {
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (isa<ViewType>(argument.getType()) &&
        llvm::any_of(argument.getUsers(), llvm::IsaPred<LoadOp, GatherOp>) &&
        llvm::any_of(argument.getUsers(), llvm::IsaPred<StoreOp>))
      return argument;
  return {};
}

/// A store that adds, among the uses of a view.
static StoreOp findAddition(BlockArgument view) {
  for (Operation *user : view.getUsers())
    if (auto store = dyn_cast<StoreOp>(user); store && store.getAdd())
      return store;
  return {};
}

/// Grid points that add to an element run in any order: none of them can know what it holds.
LogicalResult KernelOp::verifyRegions() {
  for (BlockArgument argument : getBody().getArguments()) {
    StoreOp addition = isa<ViewType>(argument.getType()) ? findAddition(argument) : StoreOp();
    if (!addition)
      continue;
    for (Operation *user : argument.getUsers()) {
      auto store = dyn_cast<StoreOp>(user);
      if (!isa<LoadOp>(user) && (!store || store.getAdd()))
        continue;
      InFlightDiagnostic diag = user->emitError(store ? "stores to '" : "loads from '")
                                << getArgumentName(argument.getArgNumber())
                                << "', to which the kernel adds in an order that is not specified; "
                                << "use a view of its own, or do it in a kernel of its own";
      diag.attachNote(addition.getLoc()) << "added here";
      return diag;
    }
  }
  return success();
}

/// Refuses additions in a kernel whose grid points may run twice.
static LogicalResult verifyNoAdditions(SpeculateOp speculation, KernelOp kernel) {
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    StoreOp addition = isa<ViewType>(argument.getType()) ? findAddition(argument) : StoreOp();
    if (!addition)
      continue;
    InFlightDiagnostic diag =
        addition.emitError("adds to '")
        << kernel.getArgumentName(argument.getArgNumber())
        << "' in a kernel that speculates, and a grid point whose speculation fails runs twice: it "
        << "would add twice; write the exact region alone";
    diag.attachNote(speculation.getLoc()) << "the speculation";
    return diag;
  }
  return success();
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
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  auto all = kernel.getBody().getOps<SpeculateOp>();
  if (*all.begin() != *this)
    return emitOpError("is the second of the kernel; a grid point succeeds or fails as a whole, so "
                       "put both into one and join their predicates")
               .attachNote((*all.begin()).getLoc())
           << "the first is here";
  if (BlockArgument view = viewLoadedAndStored(kernel))
    return emitOpError("may run a grid point twice, so the kernel may not load what it stores, and "
                       "it does both with '")
           << kernel.getArgumentName(view.getArgNumber()) << "'";
  return verifyNoAdditions(*this, kernel);
}
