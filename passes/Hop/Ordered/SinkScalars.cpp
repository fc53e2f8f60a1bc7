//===- SinkScalars.cpp - Scalars under matrix products --------------------===//
//
// Implements hop-sink-scalars. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/RowBounds.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tessera {
#define GEN_PASS_DEF_SINKSCALARS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct SinkScalarsPass : tessera::impl::SinkScalarsBase<SinkScalarsPass> {
  void runOnOperation() override {
    getOperation().walk([](Block *block) {
      hop::MmaIssueOp last;
      for (Operation &op : llvm::make_early_inc_range(*block)) {
        if (auto issue = dyn_cast<hop::MmaIssueOp>(op))
          last = issue;
        if (isa<hop::MmaWaitOp>(op) && last)
          sinkBehind(std::exchange(last, nullptr));
      }
    });
  }

private:
  /// Whether an operation only computes scalars. A bound of rows loads what nothing stores.
  static bool isScalar(Operation *op) {
    if (auto range = dyn_cast<tile::ReduceRangeOp>(op))
      return llvm::all_of(range.getOps<tile::LoadOp>(),
                          [](tile::LoadOp load) { return isNeverStored(load.getView()); });
    return op->getNumRegions() == 0 && !op->hasTrait<OpTrait::ConstantLike>() &&
           isMemoryEffectFree(op) &&
           llvm::all_of(op->getResultTypes(), [](Type t) { return t.isIntOrIndexOrFloat(); });
  }

  /// Moves the scalars before `issue` that nothing up to it needs behind it.
  static void sinkBehind(hop::MmaIssueOp issue) {
    llvm::SmallPtrSet<Operation *, 16> needed = {issue};
    SmallVector<Operation *> others; // the last one first
    for (Operation *op = issue->getPrevNode(); op; op = op->getPrevNode()) {
      bool isUsed = llvm::any_of(op->getUsers(), [&](Operation *user) {
        return needed.contains(issue->getBlock()->findAncestorOpInBlock(*user));
      });
      if (isScalar(op) && !isUsed)
        others.push_back(op);
      else
        needed.insert(op);
    }
    for (Operation *op : others)
      op->moveAfter(issue);
  }
};

} // namespace
