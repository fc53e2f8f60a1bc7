//===- LoadOnce.cpp - Tiles that a thread block keeps ---------------------===//
//
// Implements hop-load-once. See StagingPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_LOADONCE
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

/// The loop over tiles of the role of `op`, if the loop stands in the role itself.
static scf::WhileOp walkOf(Operation *op) {
  auto role = op->getParentOfType<hop::RoleOp>();
  Operation *outer = role ? role.getBody().findAncestorOpInRegion(*op) : nullptr;
  return dyn_cast_or_null<scf::WhileOp>(outer);
}

/// Whether `op` runs once in each turn of `walk`.
static bool runsEachTurn(Operation *op, scf::WhileOp walk) {
  return walk && op->getBlock() == walk.getAfterBody();
}

static bool isOutside(Value value, scf::WhileOp walk) {
  return !walk->isAncestor(value.getParentBlock()->getParentOp());
}

/// Whether `value` is the same in all turns: what makes it has no effects and takes nothing of a
/// turn.
static bool isSame(Value value, scf::WhileOp walk) {
  if (isOutside(value, walk))
    return true;
  Operation *op = value.getDefiningOp();
  return op && isPure(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isSame(operand, walk); });
}

/// Moves what makes `value` before the loop.
static void moveBefore(Value value, scf::WhileOp walk) {
  Operation *op = value.getDefiningOp();
  if (isOutside(value, walk))
    return;
  for (Value operand : op->getOperands())
    moveBefore(operand, walk);
  op->moveBefore(walk);
}

namespace {

/// The load of a tile, and what reads its pipe.
struct KeptTile {
  hop::PipeLoadOp load;
  /// The load, or the condition under which one thread of a role with warpgroups loads.
  Operation *fill = nullptr;
  SmallVector<hop::PipeWaitOp> waits;
  SmallVector<hop::PipeReleaseOp> releases;
};

struct LoadOncePass : tessera::impl::LoadOnceBase<LoadOncePass> {
  void runOnOperation() override {
    SmallVector<hop::PipeLoadOp> loads;
    getOperation().walk([&](hop::PipeLoadOp load) {
      if (findFill(load))
        loads.push_back(load);
    });
    for (hop::PipeLoadOp load : loads) {
      KeptTile tile{load, findFill(load), {}, {}};
      if (std::optional<StringRef> reason = whyNot(tile))
        load.emitRemark("is the same for all tiles, and loaded for each: ") << *reason;
      else
        keep(tile);
    }
  }

private:
  /// What to move to load once; null where turns differ in what is loaded.
  static Operation *findFill(hop::PipeLoadOp load) {
    scf::WhileOp walk = walkOf(load);
    if (!walk || load.getRun() ||
        !llvm::all_of(load.getIndices(), [&](Value i) { return isSame(i, walk); }))
      return nullptr;
    if (runsEachTurn(load, walk))
      return load;
    scf::IfOp branch = hop::findElection(load);
    bool isElected = branch && branch == load->getParentOp() &&
                     llvm::hasSingleElement(branch.thenBlock()->without_terminator()) &&
                     !branch.elseBlock();
    return isElected && runsEachTurn(branch, walk) && isSame(branch.getCondition(), walk)
               ? branch.getOperation()
               : nullptr;
  }

  /// Why the tile cannot stay in its slot; else finds what reads it.
  std::optional<StringRef> whyNot(KeptTile &tile) {
    auto pipe = tile.load.getPipe().getDefiningOp<hop::PipeCreateOp>();
    if (pipe.getMulticast())
      return "the blocks of a cluster load it together";
    if (llvm::any_of(tile.load.getView().getUsers(), [](Operation *user) {
          return !isa<hop::PipeLoadOp>(user) && !hasEffect<MemoryEffects::Read>(user);
        }))
      return "the kernel stores to its view";
    for (Operation *user : pipe.getPipe().getUsers()) {
      if (user == tile.load)
        continue;
      auto wait = dyn_cast<hop::PipeWaitOp>(user);
      auto release = dyn_cast<hop::PipeReleaseOp>(user);
      if (!wait && !release)
        return "other tiles come through its pipe";
      if (!runsEachTurn(user, walkOf(user)))
        return "it is not read in each turn of the loop over tiles";
      if (wait)
        tile.waits.push_back(wait);
      else
        tile.releases.push_back(release);
    }
    auto roleOf = [](Operation *op) { return op->getParentOfType<hop::RoleOp>(); };
    for (auto [i, wait] : llvm::enumerate(tile.waits))
      for (hop::PipeWaitOp other : ArrayRef(tile.waits).drop_front(i + 1))
        if (roleOf(wait) == roleOf(other))
          return "a role waits for it more than once";
    return std::nullopt;
  }

  static void keep(KeptTile &tile) {
    // A value that waits and releases hand on stays in its role; the loops keep their place.
    for (hop::PipeReleaseOp release : tile.releases)
      release->moveAfter(walkOf(release));
    scf::WhileOp walk = walkOf(tile.load);
    for (Value operand : tile.fill->getOperands())
      moveBefore(operand, walk);
    for (Value index : tile.load.getIndices())
      moveBefore(index, walk);
    tile.fill->moveBefore(walk);
    for (hop::PipeWaitOp wait : tile.waits)
      wait->moveBefore(walkOf(wait));
    tile.load.emitRemark("is loaded once for all tiles of a thread block");
  }
};

} // namespace
