//===- InsertMemoryBarriers.cpp - Barriers between accesses of one element -===//
//
// Implements hop-insert-memory-barriers. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/FragmentLayout.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/MemoryDependenceAnalysis.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_INSERTMEMORYBARRIERS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {
/// Which threads meet between two accesses: none when each thread comes back to its own elements.
enum class Scope { Thread, Warpgroup, Role };

bool isBulk(const MemoryAccess &access) { return isa<hop::BulkStoreOp>(access.op); }

/// Whether a tile starts where its layout repeats in the view: then an element's place in the view
/// says which thread has it.
bool startsAtRepeat(const MemoryAccess &access) {
  hop::LayoutAttr layout = hop::getLayout(access.tile);
  int64_t rank = access.tile.getRank(), outer = access.indices.size() - rank;
  for (int64_t axis = 0; layout && axis < rank; ++axis) {
    int64_t span = layout.getExtent(axis);
    if (access.extents[outer + axis] != access.tile.getDimSize(axis) ||
        (span > 1 && !isMultipleOf(access.indices[outer + axis], span)))
      return false;
  }
  return layout != nullptr;
}

/// Whether the later access of an element is the thread's that made the earlier one.
bool isByOneThread(const AccessPair &pair, const MemoryDependenceAnalysis &order) {
  RankedTensorType tile = pair.earlier.tile;
  if (!tile || tile != pair.later.tile || isBulk(pair.earlier) || isBulk(pair.later))
    return false;
  if (!order.haveSamePlace(pair) && !(startsAtRepeat(pair.earlier) && startsAtRepeat(pair.later)))
    return false;
  if (pair.earlier.stores && pair.later.stores)
    return true;
  // Stores of rank 1 are one thread's of several; those of packed accumulators exchange elements
  // within a quad.
  hop::LayoutAttr layout = hop::getLayout(tile);
  bool exchanges = layout.isAccumulator() || layout.isByteAccumulator();
  return tile.getRank() == 2 && !(hop::isPacked(tile) && exchanges);
}

/// Whether the role's one thread that stores scalars makes both accesses.
bool areScalarStores(const AccessPair &pair) {
  return !pair.earlier.tile && !pair.later.tile && pair.earlier.stores && pair.later.stores;
}

/// Whether the tiles of a pair are divided among the warpgroups of their role.
bool isDivided(const AccessPair &pair) {
  RankedTensorType tile = pair.earlier.tile;
  hop::LayoutAttr layout = tile ? hop::getLayout(tile) : hop::LayoutAttr();
  return layout && !layout.getWarpgroups().empty();
}

/// Orders the accesses of one role.
class RoleOrder {
public:
  RoleOrder(hop::KernelOp kernel, hop::RoleOp role)
      : role(role),
        order(role.getBody(), kernel.getBody().getArguments().drop_front(kernel.getNumArguments()),
              kernel.getGrid(), role.getBody().getArgument(0),
              role.getNumWarpgroups() * kernel.getTileBlocks()) {}

  LogicalResult run() {
    LogicalResult result = order.verify();
    if (failed(result))
      return failure();
    order.forEachPair([&](const AccessPair &pair) {
      Scope scope = scopeOf(pair);
      if (scope == Scope::Thread || isSynced(pair, scope))
        return;
      if (failed(check(pair, scope)))
        result = failure();
      else
        sync(pair, scope);
    });
    return result;
  }

private:
  Scope scopeOf(const AccessPair &pair) {
    if (areScalarStores(pair))
      return Scope::Thread;
    bool isOwn = isDivided(pair) && isByOneThread(pair, order);
    if ((role.getNumWarpgroups() > 1 || isSpread()) && !isOwn &&
        order.mayMeet(pair, /*across=*/true))
      return Scope::Role;
    bool isOrdered = isBulk(pair.later) && !pair.earlier.stores; // by the barrier before the copy
    return isOrdered || isByOneThread(pair, order) || !order.mayMeet(pair) ? Scope::Thread
                                                                           : Scope::Warpgroup;
  }

  /// Whether so many threads already meet between the two, on every way.
  bool isSynced(const AccessPair &pair, Scope scope) {
    if (scope == Scope::Role && isSpread()) // None of these is a meeting of the cluster.
      return false;
    for (Operation *op = pair.later.op->getPrevNode(); op && !op->isAncestor(pair.earlier.op);
         op = op->getPrevNode())
      if (isa<hop::RoleSyncOp>(op) ||
          (isa<hop::WarpgroupSyncOp>(op) && (scope == Scope::Warpgroup || isAlone())))
        return !isBulk(pair.earlier) && !(isBulk(pair.later) && pair.earlier.stores);
    return false;
  }

  bool isAlone() { return role.getNumWarpgroups() == 1; }
  bool isSpread() { return role->getParentOfType<hop::KernelOp>().getSpread(); }

  /// Refuses what a barrier of threads does not order, or must not.
  LogicalResult check(const AccessPair &pair, Scope scope) {
    auto refuse = [&](const Twine &why) -> LogicalResult {
      InFlightDiagnostic diag = pair.later.op->emitError("may touch elements that the same grid "
                                                         "point touches before; ")
                                << why;
      diag.attachNote(pair.earlier.op->getLoc()) << "here";
      return diag;
    };
    if (isBulk(pair.earlier) || (isBulk(pair.later) && pair.earlier.stores))
      return refuse("nothing orders bulk stores with other stores and loads; use store = direct");
    if (scope == Scope::Role && isSpread())
      return refuse("the blocks of a cluster do not wait for each other; use cluster = 1");
    if (scope == Scope::Role && pair.later.op->getParentOfType<LoopLikeOpInterface>())
      return refuse("in a loop the " + Twine(role.getNumWarpgroups()) +
                    " consumer warpgroups do not wait for each other; use consumers = 1, or store "
                    "to another view");
    return success();
  }

  void sync(const AccessPair &pair, Scope scope) {
    OpBuilder builder(pair.later.op);
    Location loc = pair.later.op->getLoc();
    bool isRole = scope == Scope::Role && !isAlone();
    if (isRole)
      hop::RoleSyncOp::create(builder, loc);
    else
      hop::WarpgroupSyncOp::create(builder, loc);
    InFlightDiagnostic remark = pair.later.op->emitRemark("waits for ")
                                << (isRole ? "all consumer warpgroups" : "its warpgroup")
                                << ", as it may touch elements that the grid point touched before";
    remark.attachNote(pair.earlier.op->getLoc()) << "here";
  }

  hop::RoleOp role;
  MemoryDependenceAnalysis order;
};

struct InsertMemoryBarriersPass
    : tessera::impl::InsertMemoryBarriersBase<InsertMemoryBarriersPass> {
  void runOnOperation() override {
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      if (!role.isElected() && failed(RoleOrder(getOperation(), role).run()))
        return signalPassFailure();
  }
};
} // namespace
