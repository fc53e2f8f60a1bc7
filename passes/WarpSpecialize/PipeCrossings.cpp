//===- PipeCrossings.cpp - Loads as fills of pipes and waits for them --------===//
//
// How a role writes an operation that crosses the boundary between roles. See Slicer.h.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/WarpSpecialize/Slicer.h"

using namespace mlir;
using namespace tessera;

LogicalResult Slicer::cloneLoad(tile::LoadOp load, OpBuilder &builder) {
  if (!plan.isPiped(load))
    return cloneDirectLoad(load, builder), success();
  PipeInfo &info = plan.pipeOf(load);
  if (assignment.fills(role, load))
    writeFill(load, info, builder);
  if (assignment.reads(role, plan.loads.lookup(load)))
    writeWait(load, info, builder);
  return success();
}

/// One thread starts the copy: the one that runs the role, or one of its first warpgroup.
void Slicer::writeFill(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
  SmallVector<Value> indices;
  for (Value index : load.getIndices())
    indices.push_back(whole.lookupOrDefault(index));
  OpBuilder inner = builder;
  if (!spec.isElected()) {
    auto elected = hop::ElectedOp::create(builder, load.getLoc(), builder.getI1Type(), warpgroup);
    auto guard =
        scf::IfOp::create(builder, load.getLoc(), elected.getResult(), /*withElseRegion=*/false);
    inner = guard.getThenBodyBuilder();
  }
  hop::PipeLoadOp::create(inner, load.getLoc(), info.pipe, whole.lookup(load.getView()), indices,
                          load.getBoxAttr(), load.getAlikeAttr());
}

void Slicer::writeWait(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
  auto type = hop::SharedType::get(load.getContext(), info.tile, info.tile.getDimSize(0));
  auto wait = hop::PipeWaitOp::create(builder, load.getLoc(), type, info.pipe);
  operands[load.getResult()] = {wait.getTile(), false};
  waits.push_back(wait);
}

/// Takes tiles that other grid points need from their pipes. The warps of the warpgroup meet for
/// each, so that one thread can give the slot back for all.
LogicalResult Slicer::cloneSkip(tile::SkipLoadsOp skip, OpBuilder &builder) {
  Location loc = skip.getLoc();
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value).getResult();
  };
  auto loop = scf::ForOp::create(builder, loc, constant(0), whole.lookupOrDefault(skip.getTimes()),
                                 constant(1));
  OpBuilder inner = OpBuilder::atBlockBegin(loop.getBody());
  for (int64_t number : skip.getPipes()) {
    auto pipe = plan.pipes.find(PipeKey(nullptr, number));
    if (pipe == plan.pipes.end())
      return skip.emitError("skips tiles of loads of pipe ")
             << number << ", of which the kernel has none";
    PipeInfo &info = pipe->second;
    if (info.filler == role)
      return skip.emitError("skips tiles that a producer loads for other grid points, and "
                            "warp_specialize = false has none; use warp_specialize = true");
    if (!assignment.reads(role, pipe->first))
      continue;
    auto type = hop::SharedType::get(skip.getContext(), info.tile, info.tile.getDimSize(0));
    Value tile = hop::PipeWaitOp::create(inner, loc, type, info.pipe);
    hop::WarpgroupSyncOp::create(inner, loc);
    hop::PipeReleaseOp::create(inner, loc, info.pipe, tile);
  }
  return success();
}

/// Releases each slot after its last reader in the block of its wait.
void Slicer::releaseSlots() {
  for (hop::PipeWaitOp wait : waits) {
    Operation *last = wait;
    auto extend = [&](Value value, auto &self) -> void {
      for (Operation *user : value.getUsers()) {
        Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*user);
        if (last->isBeforeInBlock(ancestor))
          last = ancestor;
        if (isa<hop::SliceOp>(user))
          self(user->getResult(0), self);
      }
    };
    extend(wait.getTile(), extend);
    OpBuilder builder(last->getBlock(), std::next(last->getIterator()));
    hop::PipeReleaseOp::create(builder, wait.getLoc(), wait.getPipe(), wait.getTile());
  }
}
