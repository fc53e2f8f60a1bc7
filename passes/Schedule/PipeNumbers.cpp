//===- PipeNumbers.cpp - Which loads share the slots of a pipe ------------===//

#include "passes/Schedule/PipeNumbers.h"
#include "passes/Schedule/ResourceModel.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// The last operation of `block` in which the loaded tile, or a transpose of it, is used.
static Operation *lastUse(Operation *op, Block *block) {
  Operation *last = block->findAncestorOpInBlock(*op);
  // What is loaded in a nested region is used there.
  if (last != op)
    return last;
  for (Operation *user : op->getUsers()) {
    Operation *use = isa<TransposeOp>(user) && user->getBlock() == block
                         ? lastUse(user, block)
                         : block->findAncestorOpInBlock(*user);
    if (last->isBeforeInBlock(use))
      last = use;
  }
  return last;
}

/// Whether one of the loads is done with its tile before the other one loads.
static bool mayShare(LoadOp a, LoadOp b) {
  if (a.getView() != b.getView() || a.getType() != b.getType() || a->getBlock() == b->getBlock())
    return false;
  Block *block = a->getBlock();
  while (!block->findAncestorOpInBlock(*b))
    block = block->getParentOp()->getBlock();
  Operation *inA = block->findAncestorOpInBlock(*a), *inB = block->findAncestorOpInBlock(*b);
  // Different regions of one operation exclude each other.
  if (inA == inB)
    return true;
  return inA->isBeforeInBlock(inB) ? lastUse(a, block)->isBeforeInBlock(inB)
                                   : lastUse(b, block)->isBeforeInBlock(inA);
}

void tessera::numberPipes(KernelOp kernel) {
  SmallVector<SmallVector<LoadOp>> pipes;
  auto add = [&](LoadOp load) {
    auto *pipe = llvm::find_if(pipes, [&](ArrayRef<LoadOp> others) {
      return llvm::all_of(others, [&](LoadOp other) { return mayShare(load, other); });
    });
    if (pipe == pipes.end()) {
      pipes.emplace_back();
      pipe = &pipes.back();
    }
    pipe->push_back(load);
  };
  for (const PipedTile &tile : pipedTiles(kernel))
    llvm::for_each(tile.loads, add);
  // What registers take is of other pipes than what dots read.
  SmallVector<SmallVector<LoadOp>> ofDots = std::exchange(pipes, {});
  SmallVector<LoadOp> vectors;
  for (LoadOp load : fetchedLoads(kernel))
    if (cast<RankedTensorType>(load.getType()).getRank() == 2)
      add(load);
    else
      vectors.push_back(load);
  pipes.insert(pipes.begin(), ofDots.begin(), ofDots.end());
  // Each of these has a pipe of its own, which the copies that later passes make of it share.
  for (LoadOp load : vectors)
    pipes.push_back({load});
  for (auto [number, loads] : llvm::enumerate(pipes))
    for (LoadOp load : loads)
      load.setPipe(number);
}
