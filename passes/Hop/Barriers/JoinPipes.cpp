//===- JoinPipes.cpp - Small tiles that go with larger ones ---------------===//
//
// Implements hop-join-pipes. See BarrierPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Dominance.h"
#include "passes/Analysis/PipeSlots.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_JOINPIPES
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

int64_t bytesOf(hop::PipeCreateOp pipe) {
  RankedTensorType tile = pipe.getPipe().getType().getTile();
  return tile.getNumElements() * tile.getElementTypeBitWidth() / 8;
}

/// Whether `op` fills, reads or gives back a slot of a pipe, or may do so inside.
bool usesPipe(Operation *op) {
  return op->getNumRegions() != 0 ||
         llvm::any_of(op->getOperandTypes(), llvm::IsaPred<hop::PipeType>);
}

/// Uses of `small` stand before those of `large` and nothing between them waits for a third pipe.
bool isNextPipe(Operation *small, Operation *large, Value ofSmall) {
  for (Operation *op = small->getNextNode(); op && op != large; op = op->getNextNode())
    if (usesPipe(op) && !(op->getNumOperands() && op->getOperand(0) == ofSmall))
      return false;
  return small->isBeforeInBlock(large);
}

/// The one operation of kind `Op` on `pipe` in each block that has any; none where a block has two.
template <typename Op>
std::optional<DenseMap<Block *, Op>> onceInBlocks(Value pipe) {
  DenseMap<Block *, Op> found;
  for (Operation *user : pipe.getUsers())
    if (auto op = dyn_cast<Op>(user))
      if (!found.try_emplace(op->getBlock(), op).second)
        return std::nullopt;
  return found;
}

/// All that happens to a pipe, by blocks: loads by one role, and waits with their releases.
struct Use {
  DenseMap<Block *, hop::PipeLoadOp> loads;
  DenseMap<Block *, hop::PipeWaitOp> waits;
  DenseMap<Block *, hop::PipeReleaseOp> releases;

  static std::optional<Use> of(Value pipe) {
    if (!llvm::all_of(pipe.getUsers(), [](Operation *user) {
          return isa<hop::PipeLoadOp, hop::PipeWaitOp, hop::PipeReleaseOp, hop::PipeCreateOp>(user);
        }))
      return std::nullopt;
    auto loads = onceInBlocks<hop::PipeLoadOp>(pipe);
    auto waits = onceInBlocks<hop::PipeWaitOp>(pipe);
    auto releases = onceInBlocks<hop::PipeReleaseOp>(pipe);
    if (!loads || !waits || !releases || waits->size() != releases->size())
      return std::nullopt;
    for (auto &[block, release] : *releases)
      if (release.getTile() != waits->lookup(block).getTile())
        return std::nullopt;
    return Use{*loads, *waits, *releases};
  }
};

/// Two pipes that may be in step.
class Pair {
public:
  Pair(hop::PipeCreateOp small, hop::PipeCreateOp large, DominanceInfo &dominance)
      : small(small), large(large), dominance(dominance) {}

  /// Where tiles of at most `most` bytes are small.
  bool isInStep(int64_t most) {
    hop::PipeType type = small.getPipe().getType(), other = large.getPipe().getType();
    if (small == large || type.getSlots() != other.getSlots() || small.getMulticast() ||
        large.getMulticast() || hop::holdsValue(type.getTile()) || large.getLeader() ||
        bytesOf(small) > most || bytesOf(large) <= most ||
        hop::getReaders(small) != hop::getReaders(large) ||
        hop::getFillers(small) != hop::getFillers(large))
      return false;
    std::optional<Use> used = Use::of(small.getPipe()), others = Use::of(large.getPipe());
    if (!used || !others || used->loads.size() != others->loads.size() ||
        used->waits.size() != others->waits.size())
      return false;
    ofSmall = *used;
    ofLarge = *others;
    return llvm::all_of(ofSmall.loads, [&](auto &use) { return isLoadedBeside(use.first); }) &&
           llvm::all_of(ofSmall.waits, [&](auto &use) { return isReadBeside(use.first); });
  }

  void join() {
    for (auto &[block, load] : ofSmall.loads) {
      hop::PipeLoadOp other = ofLarge.loads.lookup(block);
      if (load->isBeforeInBlock(other))
        other->moveBefore(load);
      load->moveAfter(other);
    }
    for (auto &[block, wait] : ofSmall.waits)
      if (hop::PipeWaitOp other = ofLarge.waits.lookup(block); wait->isBeforeInBlock(other))
        other->moveBefore(wait);
    if (small->isBeforeInBlock(large))
      small->moveAfter(large);
    small.getLeaderMutable().assign(large.getPipe());
  }

private:
  /// Whether the values of `op` are there before `place`.
  bool canStandAt(Operation *op, Operation *place) {
    return llvm::all_of(op->getOperands(),
                        [&](Value value) { return dominance.properlyDominates(value, place); });
  }

  bool isLoadedBeside(Block *block) {
    hop::PipeLoadOp load = ofSmall.loads.lookup(block), other = ofLarge.loads.lookup(block);
    if (!other)
      return false;
    return other->isBeforeInBlock(load)
               ? canStandAt(load, other)
               : canStandAt(other, load) && isNextPipe(load, other, small.getPipe());
  }

  bool isReadBeside(Block *block) {
    hop::PipeWaitOp wait = ofSmall.waits.lookup(block), other = ofLarge.waits.lookup(block);
    if (!other || !ofSmall.releases.lookup(block)->isBeforeInBlock(ofLarge.releases.lookup(block)))
      return false;
    return other->isBeforeInBlock(wait) || isNextPipe(wait, other, small.getPipe());
  }

  hop::PipeCreateOp small, large;
  DominanceInfo &dominance;
  Use ofSmall, ofLarge;
};

struct JoinPipesPass : tessera::impl::JoinPipesBase<JoinPipesPass> {
  void runOnOperation() override {
    Attribute given = getOperation()->getAttr(kSmallTileAttr);
    if (!given)
      return;
    auto most = dyn_cast<IntegerAttr>(given);
    if (!most) {
      getOperation()->emitOpError() << "has '" << kSmallTileAttr << "', which is a number of bytes";
      return signalPassFailure();
    }
    DominanceInfo &dominance = getAnalysis<DominanceInfo>();
    SmallVector<hop::PipeCreateOp> pipes(getOperation().getBody().getOps<hop::PipeCreateOp>());
    for (hop::PipeCreateOp small : pipes)
      for (hop::PipeCreateOp large : pipes)
        if (Pair pair(small, large, dominance);
            !small.getLeader() && pair.isInStep(most.getInt())) {
          pair.join();
          small.emitRemark("pipe '") << small.getLabel() << "' goes with '" << large.getLabel()
                                     << "': one barrier is told of both tiles";
        }
  }
};

} // namespace
