//===- PipePlan.cpp - Which loads share which pipe ---------------------------===//
//
// See Slices.h.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/ResourceModel.h"
#include "passes/WarpSpecialize/Slices.h"

using namespace mlir;
using namespace tessera;

/// Whether a loaded tile is an operand of a dot, directly or transposed.
static bool feedsDot(Value tile) {
  return llvm::any_of(tile.getUses(), [](OpOperand &use) {
    if (isa<tile::DotOp>(use.getOwner()))
      return use.getOperandNumber() < 2;
    return isa<tile::TransposeOp>(use.getOwner()) && feedsDot(use.getOwner()->getResult(0));
  });
}

/// Refuses uses of `tile`, the result of a piped load or its transpose, that registers would have
/// to serve.
static LogicalResult checkPipedUses(tile::LoadOp load, Value tile) {
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    bool isOperand = isa<tile::DotOp>(user) && use.getOperandNumber() < 2;
    if (isOperand)
      continue;
    if (isa<tile::TransposeOp>(user)) {
      if (failed(checkPipedUses(load, user->getResult(0))))
        return failure();
      continue;
    }
    InFlightDiagnostic diag = user->emitError(
        "uses a loaded tile that is also an operand of a dot, and so lies in shared memory");
    diag.attachNote(load.getLoc()) << "loaded here; load it a second time for this use";
    return diag;
  }
  return success();
}

FailureOr<PipePlan> tessera::planPipes(tile::KernelOp kernel) {
  PipePlan plan;
  llvm::DenseMap<StringRef, unsigned> labels;
  WalkResult walk = kernel.walk([&](tile::LoadOp load) -> WalkResult {
    if (!feedsDot(load.getResult()))
      return success();
    if (failed(checkPipedUses(load, load.getResult())))
      return failure();
    auto tile = cast<RankedTensorType>(load.getType());
    if (!hop::getSharedLayout(tile))
      return load.emitError(
                 "feeds a dot, so its rows are a multiple of 32 bytes and their number one of 8; "
                 "got ")
             << tile;
    auto number = load->getAttrOfType<IntegerAttr>(kPipeAttrName);
    PipeKey key = number ? PipeKey(nullptr, number.getInt()) : PipeKey(load, 0);
    PipeInfo &info = plan.pipes[key];
    if (info.tile && info.tile != tile)
      return load.emitError("shares a pipe with loads of ") << info.tile << ", but loads " << tile;
    if (!info.tile) {
      auto argument = cast<BlockArgument>(load.getView());
      StringRef name = kernel.getArgumentName(argument.getArgNumber());
      unsigned count = labels[name]++;
      info.label = count ? (name + "." + Twine(count)).str() : name.str();
      info.tile = tile;
    }
    info.inLoop |= load->getParentOfType<scf::ForOp>() != nullptr;
    plan.loads[load] = key;
    return success();
  });
  if (walk.wasInterrupted())
    return failure();
  // Earlier passes may have changed the order of the loads, which the numbers remember.
  SmallVector<std::pair<int64_t, PipeInfo *>> inLoops;
  for (auto &[key, info] : plan.pipes)
    if (info.inLoop)
      inLoops.emplace_back(key.second, &info);
  llvm::stable_sort(inLoops, llvm::less_first());
  for (auto [i, entry] : llvm::enumerate(inLoops))
    entry.second->loopIndex = i;
  return plan;
}
