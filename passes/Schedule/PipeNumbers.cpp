//===- PipeNumbers.cpp - Which loads share the slots of a pipe ------------===//

#include "passes/Schedule/PipeNumbers.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Schedule/ResourceModel.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

using LoadOpSet = llvm::DenseSet<Operation *>;

/// The last operation of `block` in which the loaded tile is used, or a transpose of it, or what
/// one of `conversions` makes of it.
static Operation *lastUse(Operation *op, Block *block, const LoadOpSet &conversions) {
  Operation *last = block->findAncestorOpInBlock(*op);
  // What is loaded in a nested region is used there.
  if (last != op)
    return last;
  for (Operation *user : op->getUsers()) {
    bool handsOn = isa<TransposeOp>(user) || conversions.contains(user);
    Operation *use = handsOn && user->getBlock() == block ? lastUse(user, block, conversions)
                                                          : block->findAncestorOpInBlock(*user);
    if (last->isBeforeInBlock(use))
      last = use;
  }
  return last;
}

/// Whether one of the loads is done with its tile before the other one loads.
static bool mayShare(LoadOpInterface a, LoadOpInterface b, const LoadOpSet &conversions) {
  if (a->getName() != b->getName() || a.getView() != b.getView() || a.getType() != b.getType() ||
      a->getBlock() == b->getBlock())
    return false;
  Block *block = a->getBlock();
  while (!block->findAncestorOpInBlock(*b))
    block = block->getParentOp()->getBlock();
  Operation *inA = block->findAncestorOpInBlock(*a), *inB = block->findAncestorOpInBlock(*b);
  // Different regions of one operation exclude each other.
  if (inA == inB)
    return true;
  return inA->isBeforeInBlock(inB) ? lastUse(a, block, conversions)->isBeforeInBlock(inB)
                                   : lastUse(b, block, conversions)->isBeforeInBlock(inA);
}

void tessera::numberPipes(KernelOp kernel) {
  SmallVector<SmallVector<LoadOpInterface>> pipes;
  LoadOpSet conversions = conversionOperations(kernel);
  auto add = [&](LoadOpInterface load) {
    auto *pipe = llvm::find_if(pipes, [&](ArrayRef<LoadOpInterface> others) {
      return llvm::all_of(
          others, [&](LoadOpInterface other) { return mayShare(load, other, conversions); });
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
  SmallVector<SmallVector<LoadOpInterface>> ofDots = std::exchange(pipes, {});
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
    for (LoadOpInterface load : loads)
      load.setPipeAttr(Builder(kernel.getContext()).getI64IntegerAttr(number));
}
