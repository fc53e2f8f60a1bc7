//===- InsertProxyFences.cpp - Generic writes before async reads ----------===//
//
// Implements hop-insert-proxy-fences. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_INSERTPROXYFENCES
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct InsertProxyFencesPass : tessera::impl::InsertProxyFencesBase<InsertProxyFencesPass> {
  void runOnOperation() override {
    getOperation().walk([&](Block *block) { insertFences(*block); });
    llvm::SmallPtrSet<Value, 4> copied;
    getOperation().walk([&](hop::BarrierArriveOp arrive) {
      if (arrive.getCopies())
        copied.insert(arrive.getBarriers());
    });
    getOperation().walk([&](hop::BarrierWaitOp wait) {
      if (copied.contains(wait.getBarriers()))
        fenceBehind(wait);
    });
  }

  static void fenceBehind(Operation *op) {
    OpBuilder builder(op->getBlock(), std::next(op->getIterator()));
    hop::ProxyFenceOp::create(builder, op->getLoc());
  }

  /// A barrier follows the writes in their block, before what reads them: hop-stage-operands,
  /// hop-stage-stores and hop-insert-mbarriers make no others.
  void insertFences(Block &block) {
    Operation *lastWrite = nullptr;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<hop::StageOp, hop::TransposeOp>(op)) {
        lastWrite = &op;
        continue;
      }
      // A barrier, or a reader in the async proxy, ends the run of writes.
      bool endsRun = isa<hop::WarpgroupSyncOp, hop::RoleSyncOp, hop::BarrierArriveOp,
                         hop::BulkStoreOp, hop::MmaIssueOp>(op) ||
                     op.getNumRegions() != 0 || op.hasTrait<OpTrait::IsTerminator>();
      if (!lastWrite || !endsRun)
        continue;
      fenceBehind(lastWrite);
      lastWrite = nullptr;
    }
  }
};

} // namespace
