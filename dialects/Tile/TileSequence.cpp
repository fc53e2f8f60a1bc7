//===- TileSequence.cpp - Sequences of kernels ----------------------------===//

#include "dialects/Tile/Entries.h"
#include "dialects/Tile/Signature.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Extents that follow from others
//===----------------------------------------------------------------------===//

LogicalResult DerivedDimAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr name,
                                     ArrayAttr factors, int64_t divisor) {
  if (factors.empty())
    return emitError() << "the extent '" << name.getValue() << "' is a product of nothing";
  for (Attribute factor : factors) {
    auto integer = dyn_cast<IntegerAttr>(factor);
    if (!isa<StringAttr>(factor) && !(integer && integer.getInt() >= 1))
      return emitError() << "a factor of the extent '" << name.getValue()
                         << "' is the name of a dimension or an integer of at least 1, got "
                         << factor;
  }
  if (divisor < 1)
    return emitError() << "the divisor of an extent is at least 1, got " << divisor;
  return success();
}

std::optional<int64_t> DerivedDimAttr::evaluate(function_ref<int64_t(StringRef)> getExtent) const {
  int64_t product = 1;
  for (Attribute factor : getFactors()) {
    auto name = dyn_cast<StringAttr>(factor);
    int64_t extent = name ? getExtent(name.getValue()) : cast<IntegerAttr>(factor).getInt();
    if (llvm::MulOverflow(product, extent, product))
      return std::nullopt;
  }
  int64_t extent = llvm::divideCeil(static_cast<uint64_t>(product), getDivisor());
  return extent <= INT32_MAX ? std::optional(extent) : std::nullopt;
}

/// Parses a name or an integer.
static ParseResult parseFactor(OpAsmParser &parser, SmallVectorImpl<Attribute> &factors) {
  Builder &builder = parser.getBuilder();
  int64_t integer;
  OptionalParseResult isInteger = parser.parseOptionalInteger(integer);
  std::string name;
  if (isInteger.has_value() ? failed(*isInteger) : failed(parser.parseKeywordOrString(&name)))
    return failure();
  factors.push_back(isInteger.has_value() ? Attribute(builder.getI64IntegerAttr(integer))
                                          : builder.getStringAttr(name));
  return success();
}

/// Parses `PARTS = 2 * B * K ceildiv 1024`.
static ParseResult parseDerivedDim(OpAsmParser &parser, SmallVectorImpl<Attribute> &dims) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  SmallVector<Attribute> factors;
  int64_t divisor = 1;
  if (parser.parseKeywordOrString(&name) || parser.parseEqual() || parseFactor(parser, factors))
    return failure();
  while (succeeded(parser.parseOptionalStar()))
    if (parseFactor(parser, factors))
      return failure();
  if (succeeded(parser.parseOptionalKeyword("ceildiv")) && parser.parseInteger(divisor))
    return failure();
  Builder &builder = parser.getBuilder();
  auto dim = DerivedDimAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                        builder.getStringAttr(name), builder.getArrayAttr(factors),
                                        divisor);
  if (!dim)
    return failure();
  dims.push_back(dim);
  return success();
}

static void printDerivedDim(OpAsmPrinter &printer, DerivedDimAttr dim) {
  printer.printKeywordOrString(dim.getName().getValue());
  printer << " = ";
  llvm::interleave(
      dim.getFactors(), printer,
      [&](Attribute factor) {
        if (auto name = dyn_cast<StringAttr>(factor))
          printer.printKeywordOrString(name.getValue());
        else
          printer << cast<IntegerAttr>(factor).getInt();
      },
      " * ");
  if (dim.getDivisor() != 1)
    printer << " ceildiv " << dim.getDivisor();
}

//===----------------------------------------------------------------------===//
// SequenceOp
//===----------------------------------------------------------------------===//

ParseResult SequenceOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> types, names, dims;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parseSignature(parser, arguments, types, names))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("dims"))) {
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                       [&] { return parseDerivedDim(parser, dims); }))
      return failure();
    result.addAttribute(getDerivedDimsAttrName(result.name), builder.getArrayAttr(dims));
  }
  result.addAttribute(getArgumentTypesAttrName(result.name), builder.getArrayAttr(types));
  result.addAttribute(getArgumentNamesAttrName(result.name), builder.getArrayAttr(names));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void SequenceOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ')';
  if (SmallVector<DerivedDimAttr> dims = getDerivedDimAttrs(); !dims.empty()) {
    printer << " dims(";
    llvm::interleaveComma(dims, printer,
                          [&](DerivedDimAttr dim) { printDerivedDim(printer, dim); });
    printer << ')';
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getSymNameAttrName(), getArgumentTypesAttrName(),
                                            getArgumentNamesAttrName(), getDerivedDimsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
}

void SequenceOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty() || region.getNumArguments() != getNumArguments())
    return;
  for (unsigned i = 0; i < getNumArguments(); ++i)
    setName(getArgument(i), getArgumentName(i));
}

SmallVector<StringRef> SequenceOp::getDimNames() {
  return tessera::tile::getDimNames(getArgumentTypes());
}

SmallVector<DerivedDimAttr> SequenceOp::getDerivedDimAttrs() {
  if (std::optional<ArrayAttr> dims = getDerivedDims())
    return llvm::to_vector(dims->getAsRange<DerivedDimAttr>());
  return {};
}

/// The dimensions of a sequence's arguments and those that it derives.
static SmallVector<StringRef> getKnownDims(SequenceOp sequence) {
  SmallVector<StringRef> known = sequence.getDimNames();
  for (DerivedDimAttr dim : sequence.getDerivedDimAttrs())
    known.push_back(dim.getName().getValue());
  return known;
}

static std::string join(ArrayRef<StringRef> names) {
  return names.empty() ? "none" : llvm::join(names, ", ");
}

static LogicalResult verifyDerivedDims(SequenceOp sequence) {
  SmallVector<StringRef> known = sequence.getDimNames();
  std::optional<ArrayAttr> dims = sequence.getDerivedDims();
  for (Attribute attribute : dims ? dims->getValue() : ArrayRef<Attribute>()) {
    auto dim = dyn_cast<DerivedDimAttr>(attribute);
    if (!dim)
      return sequence.emitOpError("dims holds #tile.derived_dim, got ") << attribute;
    StringRef name = dim.getName().getValue();
    if (llvm::is_contained(known, name))
      return sequence.emitOpError("dims names '")
             << name << "', which is a dimension already; give it another name";
    for (Attribute factor : dim.getFactors())
      if (auto used = dyn_cast<StringAttr>(factor); used && !llvm::is_contained(known, used))
        return sequence.emitOpError("dims makes '")
               << name << "' of '" << used.getValue()
               << "', whose extent is unknown at launch; known before it are " << join(known);
    known.push_back(name);
  }
  return success();
}

LogicalResult SequenceOp::verify() {
  if (getBody().getNumArguments() != getNumArguments() ||
      getArgumentNames().size() != getNumArguments())
    return emitOpError("has ") << getNumArguments() << " argument types, "
                               << getArgumentNames().size() << " argument names and "
                               << getBody().getNumArguments() << " block arguments";
  llvm::StringSet<> names;
  for (unsigned i = 0; i < getNumArguments(); ++i) {
    Type type = getArgument(i).getType();
    if (type != cast<TypeAttr>(getArgumentTypes()[i]).getValue())
      return emitOpError("argument ")
             << i << " is " << getArgumentTypes()[i] << " but its block argument is " << type;
    if (!isArgumentType(type))
      return emitOpError("argument '") << getArgumentName(i) << "' is " << type
                                       << "; a sequence takes " << listArgumentTypes();
    if (!names.insert(getArgumentName(i)).second)
      return emitOpError("has two arguments named '") << getArgumentName(i) << "'";
  }
  bool launches = false;
  for (Operation &op : getBody().front()) {
    if (!isa<WorkspaceOp, LaunchOp>(op))
      return op.emitOpError("is not what a sequence does: it holds tile.workspace and tile.launch; "
                            "compute in a kernel");
    launches |= isa<LaunchOp>(op);
    if (auto workspace = dyn_cast<WorkspaceOp>(op);
        workspace && !names.insert(workspace.getName()).second)
      return workspace.emitOpError("is named '")
             << workspace.getName() << "' as an argument or another workspace is";
  }
  if (!launches)
    return emitOpError("launches no kernel; add a tile.launch");
  return verifyDerivedDims(*this);
}

//===----------------------------------------------------------------------===//
// WorkspaceOp
//===----------------------------------------------------------------------===//

ParseResult WorkspaceOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringRef name = parser.getNumResults() ? parser.getResultName(0).first : "";
  if (succeeded(parser.parseOptionalKeyword("zeroed")))
    result.addAttribute(getZeroedAttrName(result.name), builder.getUnitAttr());
  ViewType type;
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type))
    return failure();
  result.addAttribute(getNameAttrName(result.name), builder.getStringAttr(name));
  result.addTypes(type);
  return success();
}

void WorkspaceOp::print(OpAsmPrinter &printer) {
  if (getZeroed())
    printer << " zeroed";
  printer.printOptionalAttrDict((*this)->getAttrs(), {getNameAttrName(), getZeroedAttrName()});
  printer << " : " << getView().getType();
}

void WorkspaceOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getView(), getName()); }

LogicalResult WorkspaceOp::verify() {
  auto sequence = cast<SequenceOp>((*this)->getParentOp());
  ViewType view = getView().getType();
  SmallVector<StringRef> known = getKnownDims(sequence);
  int64_t bytes = view.getElementBytes();
  for (int64_t i = 0; i < view.getRank(); ++i) {
    StringRef name = view.getDimName(i);
    if (name.empty() && llvm::MulOverflow(bytes, view.getStaticDim(i), bytes))
      return emitOpError("has more bytes than 64 bits count");
    if (!name.empty() && !llvm::is_contained(known, name))
      return emitOpError("has the dimension '")
             << name << "', whose extent is unknown at launch; known are " << join(known)
             << "; others follow from these in dims(...) of the sequence";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

KernelOp LaunchOp::getKernelOp() {
  return SymbolTable::lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
}

/// How the sequence calls a value.
static std::string nameOf(Value value) {
  if (auto workspace = value.getDefiningOp<WorkspaceOp>())
    return ("%" + workspace.getName()).str();
  auto argument = cast<BlockArgument>(value);
  auto sequence = cast<SequenceOp>(argument.getOwner()->getParentOp());
  return ("%" + sequence.getArgumentName(argument.getArgNumber())).str();
}

static void printExtent(InFlightDiagnostic &error, Attribute extent) {
  if (auto name = dyn_cast<StringAttr>(extent))
    error << name.getValue();
  else
    error << cast<IntegerAttr>(extent).getInt();
}

/// Holds the view that argument `index` of the kernel gets against the one that it takes. `bound`
/// has what each dimension of the kernel is so far.
static LogicalResult verifyView(LaunchOp launch, KernelOp kernel, unsigned index, ViewType takes,
                                llvm::StringMap<Attribute> &bound) {
  Value operand = launch.getOperands()[index];
  auto gets = dyn_cast<ViewType>(operand.getType());
  if (!gets || gets.getRank() != takes.getRank() || gets.getElementType() != takes.getElementType())
    return launch.emitOpError("passes ")
           << nameOf(operand) << " of type " << operand.getType() << " as '"
           << kernel.getArgumentName(index) << "' of kernel '" << kernel.getSymName()
           << "', which takes " << takes;
  for (int64_t i = 0; i < takes.getRank(); ++i) {
    StringRef name = takes.getDimName(i);
    Attribute extent = gets.getDims()[i];
    Attribute expected =
        name.empty() ? takes.getDims()[i] : bound.try_emplace(name, extent).first->second;
    if (extent == expected)
      continue;
    InFlightDiagnostic error = launch.emitOpError("passes ")
                               << nameOf(operand) << " as '" << kernel.getArgumentName(index)
                               << "', whose dimension " << i << " is ";
    printExtent(error, extent);
    error << "; kernel '" << kernel.getSymName() << "' ";
    if (name.empty())
      error << "is compiled for ";
    else
      error << "has one extent for '" << name << "', which an earlier argument makes ";
    printExtent(error, expected);
    return error;
  }
  return success();
}

/// Calls `visit` with the kernel of each launch that is given `value`, and which argument it is.
static void
forEachKernel(Value value,
              function_ref<void(LaunchOp launch, KernelOp kernel, unsigned index)> visit) {
  for (OpOperand &operand : value.getUses()) {
    auto launch = cast<LaunchOp>(operand.getOwner());
    KernelOp kernel = launch.getKernelOp();
    if (kernel && operand.getOperandNumber() < kernel.getNumArguments())
      visit(launch, kernel, operand.getOperandNumber());
  }
}

ViewUse tessera::tile::getViewUse(EntryOpInterface entry, unsigned index) {
  ViewUse use;
  if (isa<SequenceOp>(entry))
    forEachKernel(entry.getArgument(index), [&](LaunchOp, KernelOp kernel, unsigned i) {
      ViewUse own = getViewUse(kernel, i);
      use.loaded |= own.loaded;
      use.stored |= own.stored;
      use.added |= own.added;
    });
  else
    for (Operation *user : entry.getArgument(index).getUsers()) {
      use.added |= addsToView(user);
      use.loaded |= loadsFromView(user) || use.added;
      use.stored |= storesToView(user);
    }
  return use;
}

/// Whether a launch before `launch` stores to a view. A function that is called may: its body is
/// looked at once it is inlined.
static bool isStoredBefore(LaunchOp launch, Value view) {
  bool isStored = false;
  forEachKernel(view, [&](LaunchOp other, KernelOp kernel, unsigned i) {
    bool reachesCall = llvm::any_of(kernel.getArgument(i).getUsers(), [](Operation *user) {
      return !isa<MemoryEffectOpInterface>(user);
    });
    isStored |= other->isBeforeInBlock(launch) && (getViewUse(kernel, i).stored || reachesCall);
  });
  return isStored;
}

/// Looks at what the kernel does with what it is given.
static LogicalResult verifyUse(LaunchOp launch, KernelOp kernel, unsigned index) {
  Value operand = launch.getOperands()[index];
  if (!isa<ViewType>(operand.getType()))
    return success();
  ViewUse use = getViewUse(kernel, index);
  if (use.stored && llvm::count(launch.getOperands(), operand) > 1)
    return launch.emitOpError("passes ")
           << nameOf(operand) << " twice, and kernel '" << kernel.getSymName() << "' stores to '"
           << kernel.getArgumentName(index)
           << "'; views of a kernel are different memory: give it a workspace, and another kernel "
              "what follows";
  auto workspace = operand.getDefiningOp<WorkspaceOp>();
  if (workspace && !workspace.getZeroed() && use.loaded && !isStoredBefore(launch, operand))
    return launch.emitOpError("passes ")
           << nameOf(operand) << " as '" << kernel.getArgumentName(index) << "', which kernel '"
           << kernel.getSymName()
           << "' loads, and no earlier launch stores; launch the kernel that stores it before, or "
              "make the workspace `zeroed`";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel) {
    SmallVector<StringRef> names;
    for (auto known : (*this)->getParentOfType<ModuleOp>().getOps<KernelOp>())
      names.push_back(known.getSymName());
    return emitOpError("launches '")
           << getKernel() << "', which is no kernel; the source has " << join(names);
  }
  if (getNumOperands() != kernel.getNumArguments())
    return emitOpError("passes ") << getNumOperands() << " operands to kernel '"
                                  << kernel.getSymName() << "', which takes "
                                  << kernel.getNumArguments();
  llvm::StringMap<Attribute> bound;
  for (unsigned i = 0; i < getNumOperands(); ++i) {
    Type takes = kernel.getArgument(i).getType();
    if (auto view = dyn_cast<ViewType>(takes)) {
      if (failed(verifyView(*this, kernel, i, view, bound)))
        return failure();
    } else if (getOperands()[i].getType() != takes) {
      return emitOpError("passes ")
             << nameOf(getOperands()[i]) << " of type " << getOperands()[i].getType() << " as '"
             << kernel.getArgumentName(i) << "' of kernel '" << kernel.getSymName()
             << "', which takes " << takes;
    }
    if (failed(verifyUse(*this, kernel, i)))
      return failure();
  }
  return success();
}
