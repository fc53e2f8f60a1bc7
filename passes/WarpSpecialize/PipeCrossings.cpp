//===- PipeCrossings.cpp - Loads and stores as fills of pipes and waits ------===//
//
// How a role writes an operation that crosses the boundary between roles. See Slicer.h.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/WarpSpecialize/Slicer.h"

using namespace mlir;
using namespace tessera;

static hop::SharedType slotType(const PipeInfo &info) {
  return hop::SharedType::get(info.tile.getContext(), info.tile, info.tile.getDimSize(0));
}

LogicalResult Slicer::cloneLoad(tile::LoadOp load, OpBuilder &builder) {
  if (!plan.isPiped(load))
    return cloneDirectLoad(load, builder), success();
  PipeInfo &info = plan.pipeOf(load);
  if (assignment.fills(role, load))
    writeFill(load, info, builder);
  if (assignment.reads(role, plan.accesses.lookup(load)))
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
  auto wait = hop::PipeWaitOp::create(builder, load.getLoc(), slotType(info), info.pipe);
  operands[load.getResult()] = {wait.getTile(), false};
  waits.push_back(wait);
}

/// Each warpgroup writes its rows of the slot, and hands them over by one thread.
void Slicer::writeResult(tile::StoreOp store, PipeInfo &info, OpBuilder &builder) {
  Location loc = store.getLoc();
  Value value = lookup(store.getValueMutable());
  Value slot = hop::PipeAcquireOp::create(builder, loc, slotType(info), info.pipe);
  hop::StageOp::create(builder, loc, value, sliceOf(slot, /*ofColumns=*/false, loc, builder));
  hop::WarpgroupSyncOp::create(builder, loc);
  hop::PipeCommitOp::create(builder, loc, info.pipe, slot);
}

void Slicer::writeBulkStore(tile::StoreOp store, PipeInfo &info, OpBuilder &builder) {
  Location loc = store.getLoc();
  SmallVector<Value> indices;
  for (Value index : store.getIndices())
    indices.push_back(whole.lookupOrDefault(index));
  auto wait = hop::PipeWaitOp::create(builder, loc, slotType(info), info.pipe);
  hop::BulkStoreOp::create(builder, loc, wait.getTile(), whole.lookup(store.getView()), indices,
                           store.getBoxAttr(), store.getAdd());
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
    Value tile = hop::PipeWaitOp::create(inner, loc, slotType(info), info.pipe);
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
