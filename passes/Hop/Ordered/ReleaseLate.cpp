//===- ReleaseLate.cpp - Slots given back behind the next copy ------------===//
//
// Implements hop-release-late. See OrderPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_RELEASELATE
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// One that a copy reads, one of which the next copy begins, and one to be filled.
constexpr int64_t leastSlots = 3;

/// A copy from a slot, and the operation behind it that gives the slot back.
struct Copy {
  hop::BulkStoreOp store;
  hop::PipeReleaseOp release;
};

/// `store`, if the next operation gives the slot that it reads back.
std::optional<Copy> findCopy(hop::BulkStoreOp store) {
  auto release = dyn_cast_or_null<hop::PipeReleaseOp>(store->getNextNode());
  if (store.getInFlight() != 0 || !release || release.getTile() != store.getSource())
    return std::nullopt;
  return Copy{store, release};
}

/// The copy behind `copy`, if only index arithmetic and the wait for its slot, which is of the same
/// pipe, are in between.
std::optional<Copy> findNext(Copy copy) {
  hop::PipeReleaseOp release = copy.release;
  for (Operation *op = release->getNextNode(); op; op = op->getNextNode()) {
    if (auto store = dyn_cast<hop::BulkStoreOp>(op)) {
      std::optional<Copy> next = findCopy(store);
      bool isAlike = next && next->release.getPipe() == release.getPipe();
      return isAlike ? next : std::nullopt;
    }
    auto wait = dyn_cast<hop::PipeWaitOp>(op);
    if (!(wait && wait.getPipe() == release.getPipe()) && !isPure(op))
      return std::nullopt;
  }
  return std::nullopt;
}

/// The copies from `first` on of which each one stands behind the one before.
SmallVector<Copy> findRun(hop::BulkStoreOp first) {
  SmallVector<Copy> run;
  for (std::optional<Copy> copy = findCopy(first); copy; copy = findNext(*copy))
    run.push_back(*copy);
  return run;
}

struct ReleaseLatePass : tessera::impl::ReleaseLateBase<ReleaseLatePass> {
  void runOnOperation() override {
    SmallVector<hop::BulkStoreOp> stores;
    for (hop::RoleOp role : getOperation().getBody().getOps<hop::RoleOp>())
      if (role.isElected())
        role.walk([&](hop::BulkStoreOp store) { stores.push_back(store); });
    DenseSet<Operation *> seen;
    for (hop::BulkStoreOp store : stores) {
      if (seen.contains(store))
        continue;
      SmallVector<Copy> run = findRun(store);
      for (Copy &copy : run)
        seen.insert(copy.store);
      releaseLate(run);
    }
  }

private:
  static void releaseLate(MutableArrayRef<Copy> run) {
    if (run.size() < 2 || run.front().release.getPipe().getType().getSlots() < leastSlots)
      return;
    for (auto [copy, next] : llvm::zip(run.drop_back(), run.drop_front()))
      copy.release->moveAfter(next.store);
    // Behind the next copy each one is the last but one.
    for (Copy &copy : run)
      copy.store.setInFlight(1);
    OpBuilder builder(run.back().release);
    hop::BulkReadWaitOp::create(builder, run.back().release.getLoc());
  }
};

} // namespace
