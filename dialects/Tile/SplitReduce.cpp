//===- SplitReduce.cpp - Reductions whose range may be split --------------===//

#include "dialects/Tile/Tile.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace tessera::tile;

/// Parses `%left with %right`: arguments of the types of a state, twice.
static ParseResult parseStates(OpAsmParser &parser, TypeRange types,
                               SmallVectorImpl<OpAsmParser::Argument> &arguments) {
  auto parseState = [&]() -> ParseResult {
    for (auto [i, type] : llvm::enumerate(types)) {
      OpAsmParser::Argument &argument = arguments.emplace_back();
      if ((i != 0 && parser.parseComma()) || parser.parseArgument(argument))
        return failure();
      argument.type = type;
    }
    return success();
  };
  return failure(parseState() || parser.parseKeyword("with") || parseState());
}

/// Parses `%first, %past = %lower to %upper part 8 -> f32 { ... } merge %left with %right { ... }`.
ParseResult SplitReduceOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  SmallVector<OpAsmParser::Argument> bounds(2), states;
  OpAsmParser::UnresolvedOperand lower, upper;
  for (OpAsmParser::Argument &bound : bounds)
    bound.type = builder.getIndexType();
  if (parser.parseArgument(bounds[0]) || parser.parseComma() || parser.parseArgument(bounds[1]) ||
      parser.parseEqual() || parser.parseOperand(lower) || parser.parseKeyword("to") ||
      parser.parseOperand(upper))
    return failure();
  Properties &properties = result.getOrAddProperties<Properties>();
  int64_t part;
  if (succeeded(parser.parseOptionalKeyword("part"))) {
    if (parser.parseInteger(part))
      return failure();
    properties.part = builder.getI64IntegerAttr(part);
  }
  if (succeeded(parser.parseOptionalKeyword("fill")))
    properties.fill = builder.getUnitAttr();
  int64_t balanced;
  if (succeeded(parser.parseOptionalKeyword("balanced"))) {
    if (parser.parseInteger(balanced))
      return failure();
    properties.balanced = builder.getI64IntegerAttr(balanced);
  }
  int64_t cluster;
  if (succeeded(parser.parseOptionalKeyword("cluster"))) {
    if (parser.parseInteger(cluster))
      return failure();
    properties.cluster = builder.getI64IntegerAttr(cluster);
  }
  if ((succeeded(parser.parseOptionalArrow()) && parser.parseTypeList(result.types)) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperand(lower, builder.getIndexType(), result.operands) ||
      parser.resolveOperand(upper, builder.getIndexType(), result.operands))
    return failure();
  Region &body = *result.addRegion(), &merge = *result.addRegion();
  if (parser.parseRegion(body, bounds))
    return failure();
  if (succeeded(parser.parseKeyword("merge")) &&
      succeeded(parseStates(parser, result.types, states)) &&
      succeeded(parser.parseRegion(merge, states)))
    return success();
  // Operations before the region may already use what it defines, and it goes away.
  body.walk([](Operation *op) { op->dropAllUses(); });
  return failure();
}

void SplitReduceOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getFirst() << ", " << getPast() << " = " << getLower() << " to " << getUpper();
  if (std::optional<int64_t> part = getPart())
    printer << " part " << *part;
  if (getFill())
    printer << " fill";
  if (std::optional<int64_t> balanced = getBalanced())
    printer << " balanced " << *balanced;
  if (std::optional<int64_t> cluster = getCluster())
    printer << " cluster " << *cluster;
  if (getNumResults() != 0)
    printer << " -> " << getResultTypes();
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getPartAttrName(), getFillAttrName(), getBalancedAttrName(), getClusterAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer << " merge " << getLeft() << " with " << getRight() << ' ';
  printer.printRegion(getMerge(), /*printEntryBlockArgs=*/false);
}

void SplitReduceOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (&region != &getBody() || region.empty() || region.getNumArguments() != 2)
    return;
  setName(region.getArgument(0), "first");
  setName(region.getArgument(1), "past");
}

YieldOp SplitReduceOp::getBodyYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

YieldOp SplitReduceOp::getMergeYield() { return cast<YieldOp>(getMerge().front().getTerminator()); }

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// The first operation in `region` that does what `asked` asks for.
static Operation *findFirst(Region &region, function_ref<bool(Operation *)> asked) {
  Operation *found = nullptr;
  region.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!asked(op))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// Where a workspace can hold it.
static LogicalResult verifyState(SplitReduceOp reduction, Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  bool isShaped = !tile || (tile.hasStaticShape() && tile.getRank() >= 1 && tile.getRank() <= 2);
  Type element = getElementTypeOrSelf(type);
  if (isShaped && ViewType::isElementType(element) && !element.isInteger(8))
    return success();
  return reduction.emitOpError("has a state of ")
         << type
         << ", which no workspace holds; its values are numbers, vectors and tiles of what views "
            "hold, but i8: widen flags and indices";
}

static LogicalResult verifySignature(SplitReduceOp reduction) {
  if (reduction.getNumResults() == 0)
    return reduction.emitOpError("has no state; give the types of what a part yields behind '->'");
  for (Type type : reduction.getResultTypes())
    if (failed(verifyState(reduction, type)))
      return failure();
  SmallVector<Type> states(reduction.getResultTypes());
  llvm::append_range(states, reduction.getResultTypes());
  if (reduction.getBody().getNumArguments() != 2 ||
      !llvm::all_of(reduction.getBody().getArgumentTypes(), llvm::IsaPred<IndexType>) ||
      reduction.getMerge().getArgumentTypes() != TypeRange(states))
    return reduction.emitOpError("has regions of two indices, and of the states of two parts");
  for (Region *region : {&reduction.getBody(), &reduction.getMerge()}) {
    Block &block = region->front();
    auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
    if (!yield)
      return reduction.emitOpError("ends its regions with tile.yield");
    if (yield.getValues().getTypes() != reduction.getResultTypes())
      return yield.emitOpError("yields a state, of types ")
             << reduction.getResultTypes() << ", got " << yield.getValues().getTypes();
  }
  return success();
}

/// The blocks of a cluster have shared memory of each other, and are no grid points.
static LogicalResult verifyCluster(SplitReduceOp reduction) {
  int64_t blocks = reduction.getCluster().value_or(0);
  if (blocks == 0)
    return success();
  if (blocks != 2 && blocks != 4 && blocks != 8)
    return reduction.emitOpError("has clusters of ")
           << blocks
           << " blocks, whose states meet in pairs; use 2, 4 or 8, or 0 to leave the "
              "range whole";
  if (reduction.getPart().value_or(0) > 0 || reduction.getFill() ||
      reduction.getBalanced().value_or(0) > 0)
    return reduction.emitOpError("has parts for the blocks of a cluster, and others that a second "
                                 "kernel merges; leave out 'cluster', or the others");
  for (Type type : reduction.getResultTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type); !tile || !tile.getElementType().isF32())
      return reduction.emitOpError("has a state of ")
             << type << ", and blocks of a cluster send tiles of f32; make it one, or use 'part'";
  return success();
}

/// As many thread blocks as a multiprocessor has at once.
static constexpr int64_t mostShares = 32;

static LogicalResult verifyParts(SplitReduceOp reduction) {
  std::optional<int64_t> part = reduction.getPart();
  if (part && *part < 0)
    return reduction.emitOpError("has parts of ")
           << *part << " iterations; a part has at least one, and with 0 the range stays whole";
  if (part && *part > 0 && reduction.getFill())
    return reduction.emitOpError("has parts of ")
           << *part
           << " iterations and as many as fill the GPU; leave out one of 'part' and 'fill'";
  std::optional<int64_t> balanced = reduction.getBalanced();
  if (balanced && (*balanced < 0 || *balanced > mostShares))
    return reduction.emitOpError("has ")
           << *balanced << " shares for each multiprocessor; there are 1 to " << mostShares
           << ", and with 0 nothing is cut";
  if (balanced && *balanced > 0 && reduction.getFill())
    return reduction.emitOpError("has equal shares and parts that fill the GPU; leave out one of "
                                 "'balanced' and 'fill'");
  return verifyCluster(reduction);
}

/// Stores of a part would be made once for each, and merged states lie where no part is.
static LogicalResult verifyAccesses(SplitReduceOp reduction) {
  if (Operation *store = findFirst(reduction.getBody(), storesToView))
    return store->emitOpError("stores before the range of a tile.split_reduce has ended; a part "
                              "yields its state, and what follows the operation stores");
  if (Operation *access = findFirst(reduction.getMerge(), [](Operation *op) {
        return loadsFromView(op) || storesToView(op);
      }))
    return access->emitOpError(loadsFromView(access) ? "loads" : "stores")
           << " in the merge of a tile.split_reduce, which sees two states alone; "
           << (loadsFromView(access) ? "load before the operation, or yield it with the state"
                                     : "store behind the operation");
  return success();
}

/// What the kernel does beside it.
static LogicalResult verifyPlace(SplitReduceOp reduction, KernelOp kernel) {
  auto all = kernel.getBody().getOps<SplitReduceOp>();
  if (*all.begin() != reduction)
    return reduction
               .emitOpError("is the second of the kernel, whose parts would need the results of "
                            "the first; yield both states from one, or write two kernels")
               .attachNote((*all.begin()).getLoc())
           << "the first is here";
  for (Operation &op : kernel.getBody().front()) {
    if (&op == reduction)
      return success();
    Operation *found = nullptr;
    op.walk([&](Operation *nested) { found = storesToView(nested) ? nested : found; });
    if (found)
      return found
                 ->emitOpError("stores before the range of a tile.split_reduce has ended, and each "
                               "of its parts would store; move it behind the operation")
                 .attachNote(reduction.getLoc())
             << "the range";
  }
  return success();
}

LogicalResult SplitReduceOp::verifyRegions() {
  if (failed(verifySignature(*this)) || failed(verifyParts(*this)) || failed(verifyAccesses(*this)))
    return failure();
  Operation *parent = (*this)->getParentOp();
  if (auto kernel = dyn_cast<KernelOp>(parent))
    return verifyPlace(*this, kernel);
  // A function is looked at where it is called.
  if (isa<FunctionOpInterface>(parent))
    return success();
  InFlightDiagnostic error = emitOpError("stands in a '");
  error << parent->getName()
        << "', and the parts of its range are grid points of a kernel, which know no loop around "
           "them; put it outside of loops and conditionals";
  error.attachNote(parent->getLoc()) << "around it here";
  return error;
}

int64_t tessera::tile::countPointBlocks(KernelOp kernel) {
  int64_t blocks = 1;
  kernel.walk(
      [&](FromBlockOp sent) { blocks = std::max<int64_t>(blocks, 2 * sent.getDistance()); });
  return blocks;
}
