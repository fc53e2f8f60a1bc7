//===- WaitLate.cpp - Tiles are waited for behind products that need none -===//
//
// Implements hop-wait-late. See OrderPasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/MemoryDependenceAnalysis.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera {
#define GEN_PASS_DEF_WAITLATE
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// The operation of the block that `wait` has to stay before: what uses the tile, the next wait for
/// the same pipe, or the end.
Operation *findPlace(hop::PipeWaitOp wait) {
  for (Operation *op = wait->getNextNode();; op = op->getNextNode()) {
    bool uses =
        llvm::any_of(wait->getUsers(), [&](Operation *user) { return op->isAncestor(user); });
    bool takesNext = llvm::is_contained(op->getOperands(), wait.getPipe()) &&
                     isa<hop::PipeWaitOp, hop::PipePeekOp>(op);
    if (uses || takesNext || op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>())
      return op;
  }
}

struct WaitLatePass : tessera::impl::WaitLateBase<WaitLatePass> {
  void runOnOperation() override {
    llvm::SmallDenseSet<Value> ordered = findOrdered(getOperation());
    getOperation().walk([&](hop::RoleOp role) {
      SmallVector<hop::PipeWaitOp> waits;
      role.walk([&](hop::PipeWaitOp wait) {
        if (wait.getPipe().getType().getSlots() == 1 && !ordered.contains(wait.getPipe()))
          waits.push_back(wait);
      });
      for (hop::PipeWaitOp wait : waits) {
        Operation *place = findPlace(wait);
        if (hasProduct(wait, place))
          wait->moveBefore(place);
      }
    });
  }

private:
  /// Pipes whose loads read what the kernel stores: a store behind a wait for one comes after the
  /// load, which holds only as long as the wait stays before it.
  static llvm::SmallDenseSet<Value> findOrdered(hop::KernelOp kernel) {
    llvm::SmallDenseSet<Value> stored, pipes;
    kernel.walk([&](Operation *op) {
      std::optional<MemoryAccess> access = MemoryAccess::get(op);
      if (access && access->stores)
        stored.insert(access->view);
    });
    kernel.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (stored.contains(operand))
          for (Value pipe : op->getOperands())
            if (isa<hop::PipeType>(pipe.getType()))
              pipes.insert(pipe);
    });
    return pipes;
  }

  static bool hasProduct(Operation *from, Operation *to) {
    for (Operation *op = from; op != to; op = op->getNextNode())
      if (isa<hop::MmaOp>(op))
        return true;
    return false;
  }
};
} // namespace
