//===- FillProducts.cpp - What products do not need, under them -----------===//
//
// Implements hop-fill-products. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/RowBounds.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tessera {
#define GEN_PASS_DEF_FILLPRODUCTS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct FillProductsPass : tessera::impl::FillProductsBase<FillProductsPass> {
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
    getOperation().walk(takeEarly);
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

  /// Takes the number of the next tile behind the product that is issued last, once all tiles of
  /// this one have been waited for.
  static void takeEarly(hop::PipeGetOp get) {
    Operation *op = get->getPrevNode();
    while (op && op->getNumRegions() == 0 &&
           !isa<hop::PipeWaitOp, hop::PipePeekOp, hop::MmaIssueOp>(op))
      op = op->getPrevNode();
    if (isa_and_nonnull<hop::MmaIssueOp>(op))
      get->moveAfter(op);
  }
};

} // namespace
