//===- InlineFunctions.cpp - The functions of a source, in their calls ----===//
//
// Implements tile-inline-functions. See FunctionPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Tile/MapElements.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_TILEINLINEFUNCTIONS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Functions that call functions could make a short source into a program that exhausts memory or,
/// since MLIR recurses into what nests, the stack. Kernels are far from these limits.
static constexpr int64_t maxOperations = 1 << 16;
static constexpr int64_t maxRegionDepth = 256;
static constexpr size_t maxCallDepth = 64;

/// Puts a copy of the body of `callee`, which has one block, in place of `call`. The copies keep
/// their locations: what is said about them names the line of the function.
static void inlineInto(func::CallOp call, func::FuncOp callee) {
  Block &body = callee.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), call.getOperands());
  OpBuilder builder(call);
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  for (auto [result, value] :
       llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  call.erase();
}

/// The name of the function that `op` calls or applies; empty for another operation.
static StringRef getCallee(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return call.getCallee();
  auto map = dyn_cast<MapOp>(op);
  return map ? map.getFunction() : StringRef();
}

/// How many regions there are around `op`, up to `root`.
static int64_t getRegionDepth(Operation *op, Operation *root) {
  int64_t depth = 0;
  for (; op != root; op = op->getParentOp())
    ++depth;
  return depth;
}

/// The argument of `entry`, a kernel or a sequence, with the name and the type that `request` asks
/// for, which is added where there is none; null after an error.
template <typename Entry>
static BlockArgument findArgument(Entry entry, StringRef name, Type type, Operation *request) {
  for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
    if (entry.getArgumentName(i) != name)
      continue;
    BlockArgument argument = entry.getArgument(i);
    if (argument.getType() == type)
      return argument;
    request->emitOpError("asks for '")
        << name << "' of " << type << "; the argument of this name of '" << entry.getSymName()
        << "' is " << argument.getType();
    return {};
  }
  Builder builder(entry.getContext());
  SmallVector<Attribute> types(entry.getArgumentTypes().getValue()),
      names(entry.getArgumentNames().getValue());
  types.push_back(TypeAttr::get(type));
  names.push_back(builder.getStringAttr(name));
  entry.setArgumentTypesAttr(builder.getArrayAttr(types));
  entry.setArgumentNamesAttr(builder.getArrayAttr(names));
  return entry.getBody().insertArgument(types.size() - 1, type, request->getLoc());
}

/// Replaces each tile.argument of `kernel` by an argument.
static LogicalResult resolveArguments(KernelOp kernel) {
  WalkResult walk = kernel.walk([&](ArgumentOp request) {
    BlockArgument argument =
        findArgument(kernel, request.getName(), request.getType(), request.getOperation());
    if (!argument)
      return WalkResult::interrupt();
    request.replaceAllUsesWith(Value(argument));
    request.erase();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// `type`, that of an argument of the kernel of `launch`, with the extents that its dimensions have
/// in the sequence.
static Type translateDims(Type type, LaunchOp launch, KernelOp kernel) {
  auto view = dyn_cast<ViewType>(type);
  if (!view)
    return type;
  llvm::StringMap<Attribute> extents;
  for (auto [i, operand] : llvm::enumerate(launch.getOperands()))
    if (auto takes = dyn_cast<ViewType>(kernel.getArgument(i).getType()))
      for (auto [dim, extent] : llvm::enumerate(cast<ViewType>(operand.getType()).getDims()))
        if (StringRef name = takes.getDimName(dim); !name.empty())
          extents.try_emplace(name, extent);
  SmallVector<Attribute> dims(view.getDims());
  for (auto [i, dim] : llvm::enumerate(dims))
    if (Attribute extent = extents.lookup(view.getDimName(i)))
      dim = extent;
  return ViewType::get(type.getContext(), dims, view.getElementType());
}

/// The workspace of a name that stands before `launch`; null where there is none.
static Value findWorkspace(SequenceOp sequence, StringRef name, LaunchOp launch) {
  for (auto workspace : sequence.getOps<WorkspaceOp>())
    if (workspace.getName() == name && workspace->isBeforeInBlock(launch))
      return workspace.getView();
  return {};
}

/// Gives the kernels of `sequence` what their functions ask for: workspaces of these names, or
/// arguments of its own.
static LogicalResult passArguments(SequenceOp sequence) {
  for (auto launch : sequence.getOps<LaunchOp>()) {
    KernelOp kernel = launch.getKernelOp();
    // The verifier says what is wrong with a launch; only arguments that were added are missing.
    if (!kernel)
      continue;
    for (unsigned i = launch.getNumOperands(); i < kernel.getNumArguments(); ++i) {
      if (Value workspace = findWorkspace(sequence, kernel.getArgumentName(i), launch)) {
        launch->insertOperands(i, workspace);
        continue;
      }
      Type type = translateDims(kernel.getArgument(i).getType(), launch, kernel);
      BlockArgument argument = findArgument(sequence, kernel.getArgumentName(i), type, launch);
      if (!argument)
        return failure();
      launch->insertOperands(i, argument);
    }
  }
  return success();
}

static LogicalResult verifyFunction(func::FuncOp function) {
  if (function.isDeclaration())
    return emitError(function.getLoc())
           << "the function '" << function.getSymName()
           << "' has no body; functions are inlined, so that each is written out in the source";
  if (!function.getBody().hasOneBlock())
    return emitError(function.getLoc())
           << "the function '" << function.getSymName() << "' has "
           << function.getBody().getBlocks().size()
           << " blocks; it has one, and branches and loops are those of scf";
  return success();
}

/// Refuses what is left of func once calls are inlined and functions erased.
static LogicalResult verifyNoneLeft(ModuleOp module) {
  WalkResult walk = module.walk<WalkOrder::PreOrder>([](Operation *op) {
    if (!isa_and_present<func::FuncDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError(isa<func::FuncOp, func::CallOp>(op)
                        ? "stands where it has no meaning; functions stand beside the kernels, and "
                          "kernels and functions call them"
                        : "is not available; functions are no values, and func.call names the one "
                          "that it calls");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Tells the loads that the source writes from each other, before functions are inlined: an author
/// who loads a tile a second time wants it in a second place. Loads of one place in the source are
/// those of a function and of its gradients.
static void numberSites(ModuleOp module) {
  DenseMap<Location, uint64_t> sites;
  module.walk([&](LoadOp load) {
    bool isKnown = load->getLoc()->findInstanceOf<FileLineColRange>() != nullptr;
    uint64_t next = sites.size();
    Location place = isKnown
                         ? load.getLoc()
                         : NameLoc::get(StringAttr::get(load.getContext(), std::to_string(next)));
    load.setSite(sites.try_emplace(place, next).first->second);
  });
}

/// Numbers the sites of `kernel` anew, for each view and type; the first one needs no number.
static void renumberSites(KernelOp kernel) {
  DenseMap<std::pair<Value, Type>, llvm::SmallSetVector<Attribute, 2>> sites;
  kernel.walk([&](LoadOp load) {
    auto &ofView = sites[{load.getView(), load.getType()}];
    Attribute site = load.removeSiteAttr();
    ofView.insert(site);
    if (uint64_t number = llvm::find(ofView, site) - ofView.begin())
      load.setSite(number);
  });
}

/// Refuses what takes a value that is not there, and removes the value where nothing does.
static LogicalResult resolveUnavailable(KernelOp kernel) {
  SmallVector<UnavailableOp> values;
  kernel.walk([&](UnavailableOp value) { values.push_back(value); });
  for (UnavailableOp value : values) {
    while (!value->use_empty()) {
      Operation *user = *value->user_begin();
      // What is computed of it in vain goes first, from the last operation on.
      while (isMemoryEffectFree(user) && user->getNumRegions() == 0 && !user->use_empty())
        user = *user->user_begin();
      if (!isOpTriviallyDead(user)) {
        // Not the cast that a function makes for its callers, but what takes the index.
        Operation *taker = *value->user_begin();
        while (isa<arith::IndexCastOp>(taker) && !taker->use_empty())
          taker = *taker->user_begin();
        return taker->emitOpError("takes a value that is not there: ") << value.getWhy();
      }
      user->erase();
    }
    value.erase();
  }
  return success();
}

namespace {
/// What a function or kernel amounts to once its calls are inlined.
struct Extent {
  int64_t operations = 0;
  int64_t regionDepth = 0;
  size_t callDepth = 0;
};

class Inliner {
public:
  explicit Inliner(ModuleOp module) : symbols(module) {}

  LogicalResult inlineCalls(Operation *root);

private:
  static LogicalResult verifyExtent(Operation *call, const Extent &extent);
  LogicalResult enter(Operation *call, func::FuncOp callee);
  InFlightDiagnostic emitCycle(Operation *call, func::FuncOp callee);
  FailureOr<func::FuncOp> findCallee(Operation *call);
  LogicalResult expandMaps(KernelOp kernel);

  SymbolTable symbols;
  /// The functions and kernels whose calls are inlined.
  DenseMap<Operation *, Extent> extents;
  /// Those whose calls are being inlined, each called by the one before.
  llvm::SmallSetVector<Operation *, 4> path;
};

struct TileInlineFunctionsPass
    : public tessera::impl::TileInlineFunctionsBase<TileInlineFunctionsPass> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    if (llvm::any_of(functions, [](func::FuncOp op) { return failed(verifyFunction(op)); }))
      return signalPassFailure();
    numberSites(getOperation());
    Inliner inliner(getOperation());
    for (Operation &op : getOperation().getOps())
      if (isa<func::FuncOp, KernelOp>(op) && failed(inliner.inlineCalls(&op)))
        return signalPassFailure();
    for (func::FuncOp function : functions)
      function.erase();
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      if (failed(resolveArguments(kernel)) || failed(resolveUnavailable(kernel)))
        return signalPassFailure();
      renumberSites(kernel);
    }
    for (auto sequence : getOperation().getOps<SequenceOp>())
      if (failed(passArguments(sequence)))
        return signalPassFailure();
    if (failed(verifyNoneLeft(getOperation())))
      return signalPassFailure();
  }
};
} // namespace

/// Refuses what `call` makes too large.
LogicalResult Inliner::verifyExtent(Operation *call, const Extent &extent) {
  std::string excess;
  if (extent.operations > maxOperations)
    excess = "more than " + std::to_string(maxOperations) + " operations";
  else if (extent.regionDepth > maxRegionDepth)
    excess = "regions nested more than " + std::to_string(maxRegionDepth) + " levels deep";
  else if (extent.callDepth > maxCallDepth)
    excess = "calls nested more than " + std::to_string(maxCallDepth) + " levels deep";
  else
    return success();
  return emitError(call->getLoc())
         << "with this call of '" << getCallee(call) << "' there are " << excess;
}

/// "f calls itself", with the way from one to the next.
InFlightDiagnostic Inliner::emitCycle(Operation *call, func::FuncOp callee) {
  InFlightDiagnostic error = emitError(call->getLoc());
  error << "the function '" << callee.getSymName() << "' calls itself (";
  for (Operation *op : llvm::make_range(llvm::find(path, callee.getOperation()), path.end()))
    error << cast<func::FuncOp>(op).getSymName() << " -> ";
  error << callee.getSymName()
        << "); functions are inlined and cannot recurse, a loop is an scf.for";
  return error;
}

/// Inlines the calls of `callee`, which `call` calls.
LogicalResult Inliner::enter(Operation *call, func::FuncOp callee) {
  if (extents.contains(callee))
    return success();
  if (path.contains(callee))
    return emitCycle(call, callee);
  // Before the recursion, which this bounds.
  if (failed(verifyExtent(call, {0, 0, path.size()})))
    return failure();
  return inlineCalls(callee);
}

/// The function that `call` names; null for a call in a module of its own, which is refused later.
FailureOr<func::FuncOp> Inliner::findCallee(Operation *call) {
  auto callee = symbols.lookup<func::FuncOp>(getCallee(call));
  if (callee || isa<func::CallOp>(call))
    return callee;
  return call->emitOpError("applies '")
         << getCallee(call) << "', which is no function of the source";
}

/// Expands what is applied to tiles, in the loops of the kernel that functions have come to.
LogicalResult Inliner::expandMaps(KernelOp kernel) {
  SmallVector<MapOp> maps;
  kernel.walk([&](MapOp map) { maps.push_back(map); });
  for (MapOp map : maps)
    if (failed(expandMap(map, symbols.lookup<func::FuncOp>(map.getFunction()))))
      return failure();
  return success();
}

/// Inlines all calls in `root`, a function or a kernel.
LogicalResult Inliner::inlineCalls(Operation *root) {
  if (extents.contains(root))
    return success();
  path.insert(root);
  Extent extent;
  SmallVector<Operation *> calls;
  root->walk([&](Operation *op) {
    ++extent.operations;
    extent.regionDepth = std::max(extent.regionDepth, getRegionDepth(op, root));
    if (!getCallee(op).empty())
      calls.push_back(op);
  });
  for (Operation *call : calls) {
    FailureOr<func::FuncOp> callee = findCallee(call);
    if (failed(callee))
      return failure();
    if (!*callee)
      continue;
    if (failed(enter(call, *callee)))
      return failure();
    const Extent &inner = extents[*callee];
    extent.operations += inner.operations;
    extent.regionDepth =
        std::max(extent.regionDepth, getRegionDepth(call, root) + inner.regionDepth);
    extent.callDepth = std::max(extent.callDepth, inner.callDepth + 1);
    if (failed(verifyExtent(call, extent)))
      return failure();
    if (auto direct = dyn_cast<func::CallOp>(call))
      inlineInto(direct, *callee);
  }
  extents[root] = extent;
  path.remove(root);
  auto kernel = dyn_cast<KernelOp>(root);
  return kernel ? expandMaps(kernel) : success();
}
