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
    getOperation().walk([&](Block *block) {
      insertFences(*block);
      fenceReads(*block);
    });
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

  /// Whether a product or a write to shared memory before `end` takes what was read, and so has
  /// waited for it. It does so for all elements but where some columns are taken.
  static bool isTakenBefore(hop::FetchOp read, Operation &end) {
    llvm::SmallPtrSet<Value, 16> found{read.getResult()};
    auto isFound = [&](Value value) { return found.contains(value); };
    for (Operation *op = read->getNextNode(); op != &end; op = op->getNextNode()) {
      if (llvm::none_of(op->getOperands(), isFound))
        continue;
      if (isa<hop::StageOp, hop::MmaIssueOp, hop::MmaOp>(op))
        return true;
      if (op->getNumRegions() == 0 && !isa<hop::ColumnsOp>(op))
        found.insert_range(op->getResults());
    }
    return false;
  }

  /// A copy into the slot that an arrival gives back is of another proxy, which does not wait for
  /// reads that are under way. Those of vectors are over long before a copy comes.
  static void fenceReads(Block &block) {
    SmallVector<hop::FetchOp> reads;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto read = dyn_cast<hop::FetchOp>(op)) {
        if (cast<RankedTensorType>(read.getType()).getRank() > 1)
          reads.push_back(read);
      } else if (isa<hop::ProxyFenceOp>(op)) {
        reads.clear();
      } else if (isa<hop::BarrierArriveOp>(op)) {
        if (!llvm::all_of(reads, [&](hop::FetchOp read) { return isTakenBefore(read, op); })) {
          OpBuilder builder(&op);
          hop::ProxyFenceOp::create(builder, op.getLoc());
        }
        reads.clear();
      }
    }
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
