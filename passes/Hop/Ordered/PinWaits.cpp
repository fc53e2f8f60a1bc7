//===- PinWaits.cpp - Work stays under its product ------------------------===//
//
// Implements hop-pin-waits. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_PINWAITS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// Whether a use of `value` is at `wait` or behind it.
bool isUsedBehind(Value value, hop::MmaWaitOp wait) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && !ancestor->isBeforeInBlock(wait);
  });
}

/// Whether all products that `wait` waits for are in flight before `op`.
bool isUnder(Operation *op, hop::MmaWaitOp wait) {
  return llvm::all_of(wait.getFlights(), [&](Value flight) {
    Operation *issue = flight.getDefiningOp();
    return issue && issue->getBlock() == op->getBlock() && issue->isBeforeInBlock(op);
  });
}

/// The work between the wait before and `wait`, in order: what computes tiles from that one's.
class WorkUnderProduct {
public:
  WorkUnderProduct(hop::MmaWaitOp before, hop::MmaWaitOp wait) : wait(wait) {
    llvm::SmallPtrSet<Value, 16> computed(before->result_begin(), before->result_end());
    for (Operation *op = before->getNextNode(); op != wait; op = op->getNextNode()) {
      bool depends = llvm::any_of(op->getOperands(), [&](Value v) { return computed.contains(v); });
      if (!depends || !isPure(op) || !isUnder(op, wait))
        continue;
      ops.push_back(op);
      computed.insert(op->result_begin(), op->result_end());
    }
  }

  /// The tiles that are used behind the wait, without those that later ones are computed from.
  SmallVector<Value> ends() const {
    llvm::SmallPtrSet<Operation *, 16> covered;
    SmallVector<Value> ends;
    for (Operation *op : llvm::reverse(ops)) {
      bool isEnd = !covered.contains(op) && isa<RankedTensorType>(op->getResult(0).getType()) &&
                   isUsedBehind(op->getResult(0), wait);
      if (isEnd)
        ends.push_back(op->getResult(0));
      if (isEnd || covered.contains(op))
        for (Value operand : op->getOperands())
          if (Operation *source = operand.getDefiningOp())
            covered.insert(source);
    }
    return SmallVector<Value>(llvm::reverse(ends));
  }

private:
  hop::MmaWaitOp wait;
  SmallVector<Operation *> ops;
};

struct PinWaitsPass : tessera::impl::PinWaitsBase<PinWaitsPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    const tile::ScheduleFields &schedule = kernel.getSchedule().getFields();
    if (failed(schedule.require(kernel, &tile::ScheduleFields::work)))
      return signalPassFailure();
    if (*schedule.work != tile::WorkKind::pinned)
      return;
    kernel.walk([](Block *block) {
      hop::MmaWaitOp before;
      for (hop::MmaWaitOp wait : block->getOps<hop::MmaWaitOp>()) {
        if (before)
          wait.getBehindMutable().assign(WorkUnderProduct(before, wait).ends());
        before = wait;
      }
    });
  }
};

} // namespace
