//===- TileKernel.cpp - Kernels and their dimensions ----------------------===//

#include "dialects/Tile/Signature.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace tessera::tile;

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

/// Parses what follows the name of a scalar and `>`.
static ParseResult parseAbove(OpAsmParser &parser, SMLoc loc, StringAttr argument,
                              Attribute &requirement) {
  double bound = 0;
  if (parser.parseFloat(bound))
    return failure();
  requirement = AboveAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                      argument, bound);
  return success(requirement != nullptr);
}

/// Parses `8 * HK divides H`, `HK divides H`, `8 divides H`, `DQ <= 128` or `scale > 1.0e-30`.
static ParseResult parseRequirement(OpAsmParser &parser, SmallVectorImpl<Attribute> &requirements) {
  std::string dim, dividend;
  int64_t factor = 1, bound = 0;
  Builder &builder = parser.getBuilder();
  SMLoc loc = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(loc); };
  OptionalParseResult hasFactor = parser.parseOptionalInteger(factor);
  if (hasFactor.has_value() && failed(*hasFactor))
    return failure();
  bool isNumber = hasFactor.has_value() && succeeded(parser.parseOptionalKeyword("divides"));
  if (!isNumber &&
      ((hasFactor.has_value() && parser.parseStar()) || parser.parseKeywordOrString(&dim)))
    return failure();
  Attribute requirement;
  if (!hasFactor.has_value() && succeeded(parser.parseOptionalLess())) {
    if (parser.parseEqual() || parser.parseInteger(bound))
      return failure();
    requirement =
        AtMostAttr::getChecked(emitError, parser.getContext(), builder.getStringAttr(dim), bound);
  } else if (!hasFactor.has_value() && succeeded(parser.parseOptionalGreater())) {
    if (parseAbove(parser, loc, builder.getStringAttr(dim), requirement))
      return failure();
  } else {
    if ((!isNumber && parser.parseKeyword("divides")) || parser.parseKeywordOrString(&dividend))
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

/// Refuses a part of the head that stands behind `part`, and belongs before it.
static ParseResult refuseBehind(OpAsmParser &parser, StringRef part, ArrayRef<StringRef> earlier) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef found;
  if (failed(parser.parseOptionalKeyword(&found, earlier)))
    return success();
  return parser.emitError(loc) << "has " << found << " behind " << part
                               << "; in the head of a kernel stand grid, requires, fixed_sums, "
                                  "schedule and attributes, in this order";
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> types, names, grid, gridNames;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parseSignature(parser, arguments, types, names))
    return failure();
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
  if (succeeded(parser.parseOptionalKeyword("fixed_sums"))) {
    result.addAttribute(getFixedSumsAttrName(result.name), builder.getUnitAttr());
    if (refuseBehind(parser, "fixed_sums", {"requires"}))
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("schedule"))) {
    ScheduleAttr schedule;
    if (parser.parseAttribute(schedule, getScheduleAttrName(result.name), result.attributes) ||
        refuseBehind(parser, "schedule", {"requires", "fixed_sums"}))
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
  if (auto above = dyn_cast<AboveAttr>(attr)) {
    printer.printKeywordOrString(above.getArgument().getValue());
    printer << " > ";
    printer.printAttributeWithoutType(above.getBound());
    return;
  }
  auto divides = cast<DividesAttr>(attr);
  bool isNumber = divides.getDivisor().empty();
  if (isNumber || divides.getFactor() != 1)
    printer << divides.getFactor() << (isNumber ? "" : " * ");
  if (!isNumber)
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
  if (getFixedSums())
    printer << " fixed_sums";
  if (ScheduleAttr schedule = getScheduleAttr())
    printer << " schedule " << schedule;
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getSymNameAttrName(), getArgumentTypesAttrName(),
                                            getArgumentNamesAttrName(), getGridAttrName(),
                                            getGridNamesAttrName(), getRequirementsAttrName(),
                                            getFixedSumsAttrName(), getScheduleAttrName()});
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
  return tessera::tile::getDimNames(getArgumentTypes());
}

/// True for an identifier of PTX (PTX ISA 4.4) that C has too, up to '$'.
static bool isKernelName(StringRef name) {
  auto isNameChar = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; };
  return !name.empty() && !llvm::isDigit(name.front()) && llvm::all_of(name, isNameChar);
}

static LogicalResult verifyArguments(KernelOp kernel) {
  llvm::StringSet<> argumentNames;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    Type type = cast<TypeAttr>(kernel.getArgumentTypes()[i]).getValue();
    if (kernel.getArgument(i).getType() != type)
      return kernel.emitOpError("argument ") << i << " is " << type << " but its block argument is "
                                             << kernel.getArgument(i).getType();
    if (!isArgumentType(type))
      return kernel.emitOpError("argument '") << kernel.getArgumentName(i) << "' is " << type
                                              << "; a kernel takes " << listArgumentTypes();
    if (!isValueName(kernel.getArgumentName(i)))
      return kernel.emitOpError("argument ")
             << i << " is named '" << kernel.getArgumentName(i)
             << "'; launches name arguments: letters, digits, '_', '$', "
                "'.' and '-', no digit first";
    if (!argumentNames.insert(kernel.getArgumentName(i)).second)
      return kernel.emitOpError("has two arguments named '") << kernel.getArgumentName(i) << "'";
  }
  return success();
}

/// Refuses a dimension that no view has; `use` says what names it.
static LogicalResult verifyDimName(KernelOp kernel, StringAttr name, StringRef use) {
  if (llvm::is_contained(kernel.getDimNames(), name))
    return success();
  return kernel.emitOpError() << use << " the dimension '" << name.getValue()
                              << "', which no view of the kernel has";
}

static LogicalResult verifyGrid(KernelOp kernel) {
  for (Attribute attr : kernel.getGrid()) {
    auto dim = dyn_cast<GridDimAttr>(attr);
    if (!dim)
      return kernel.emitOpError("grid holds #tile.grid_dim, got ") << attr;
    if (auto name = dyn_cast<StringAttr>(dim.getExtent());
        name && failed(verifyDimName(kernel, name, "grid names")))
      return failure();
  }
  for (unsigned i = 0; i < kernel.getGridRank(); ++i)
    if (!kernel.getGridIndex(i).getType().isIndex())
      return kernel.emitOpError("grid indices are of type index");
  return success();
}

static LogicalResult verifyAbove(KernelOp kernel, AboveAttr above) {
  StringRef name = above.getArgument().getValue();
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (kernel.getArgumentName(i) == name && kernel.getArgument(i).getType().isF32())
      return success();
  return kernel.emitOpError() << "requires names the scalar '" << name
                              << "', which is no f32 argument of the kernel";
}

static LogicalResult verifyRequirements(KernelOp kernel) {
  std::optional<ArrayAttr> requirements = kernel.getRequirements();
  if (!requirements)
    return success();
  for (Attribute attr : *requirements) {
    SmallVector<StringAttr, 2> required;
    if (auto divides = dyn_cast<DividesAttr>(attr)) {
      required = {divides.getDividend()};
      if (!divides.getDivisor().empty())
        required.push_back(divides.getDivisor());
    } else if (auto atMost = dyn_cast<AtMostAttr>(attr))
      required = {atMost.getDim()};
    else if (auto above = dyn_cast<AboveAttr>(attr)) {
      if (failed(verifyAbove(kernel, above)))
        return failure();
    } else
      return kernel.emitOpError(
                 "requirements hold #tile.divides, #tile.at_most and #tile.above, got ")
             << attr;
    for (StringAttr name : required)
      if (failed(verifyDimName(kernel, name, "requires names")))
        return failure();
  }
  return success();
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
  if (failed(verifyArguments(*this)) || failed(verifyGrid(*this)) ||
      failed(verifyRequirements(*this)))
    return failure();
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
// DimOp
//===----------------------------------------------------------------------===//

void DimOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setRange) {
  setRange(getResult(), indexRange(1, kMaxExtent));
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

//===----------------------------------------------------------------------===//
// Stores that add
//===----------------------------------------------------------------------===//

/// What adds to a view, among its uses.
static Operation *findAddition(BlockArgument view) {
  for (Operation *user : view.getUsers())
    if (addsToView(user))
      return user;
  return nullptr;
}

/// Grid points that add to an element run in any order: none of them can know what it holds.
static LogicalResult verifyAddedView(KernelOp kernel, BlockArgument view, Operation *addition) {
  StringRef name = kernel.getArgumentName(view.getArgNumber());
  for (Operation *user : view.getUsers()) {
    bool stores = storesToView(user) && !addsToView(user);
    if (!stores && !loadsFromView(user))
      continue;
    InFlightDiagnostic diag = user->emitError(stores ? "stores to '" : "loads from '")
                              << name
                              << "', to which the kernel adds in an order that is not specified; "
                              << "use a view of its own, or do it in a kernel of its own";
    diag.attachNote(addition->getLoc()) << "added here";
    return diag;
  }
  for (auto speculation : kernel.getBody().getOps<SpeculateOp>()) {
    InFlightDiagnostic diag =
        addition->emitError("adds to '")
        << name
        << "' in a kernel that speculates, and a grid point whose speculation fails runs twice: it "
        << "would add twice; write the exact region alone";
    diag.attachNote(speculation.getLoc()) << "the speculation";
    return diag;
  }
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  for (BlockArgument argument : getBody().getArguments())
    if (Operation *addition = isa<ViewType>(argument.getType()) ? findAddition(argument) : nullptr;
        addition && failed(verifyAddedView(*this, argument, addition)))
      return failure();
  return success();
}
