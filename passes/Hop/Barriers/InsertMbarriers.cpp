//===- InsertMbarriers.cpp - Pipes as buffers and mbarriers ---------------===//
//
// Implements hop-insert-mbarriers. See BarrierPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/PipeProtocol.h"
#include "passes/Hop/Barriers/PipeRewriter.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_INSERTMBARRIERS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct InsertMbarriersPass : tessera::impl::InsertMbarriersBase<InsertMbarriersPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    WalkResult placed = kernel.walk([](Operation *op) { return WalkResult(checkPlace(op)); });
    if (placed.wasInterrupted())
      return signalPassFailure();
    SmallVector<hop::PipeCreateOp> pipes(kernel.getBody().getOps<hop::PipeCreateOp>());
    if (llvm::any_of(pipes, [](hop::PipeCreateOp pipe) { return failed(checkUse(pipe)); }))
      return signalPassFailure();
    PipeRings rings = createRings(kernel, pipes);
    for (auto role : kernel.getBody().getOps<hop::RoleOp>())
      rewritePipes(role, rings, kernel.getClusterSize());
    for (hop::PipeCreateOp pipe : llvm::reverse(pipes))
      pipe.erase();
  }

  /// A slot of a pipe that goes with another one is given back before that of the other, whose
  /// release stands for both.
  static LogicalResult checkLedRelease(hop::PipeReleaseOp release) {
    Value leader = leaderOf(release);
    for (Operation *behind = release->getNextNode(); behind; behind = behind->getNextNode())
      if (auto other = dyn_cast<hop::PipeReleaseOp>(behind); other && other.getPipe() == leader)
        return success();
    InFlightDiagnostic diag = release.emitError(
        "gives a slot back that goes with one of another pipe, which has been given "
        "back before it; release this one first, in the same block");
    diag.attachNote(leader.getLoc()) << "the other pipe";
    return diag;
  }

  /// One thread of each warpgroup sends what all have written to the other block of a cluster.
  static LogicalResult checkExchange(hop::PipeCommitOp commit) {
    auto pipe = commit.getPipe().getDefiningOp<hop::PipeCreateOp>();
    auto acquire = commit.getTile().getDefiningOp<hop::PipeAcquireOp>();
    bool sends = pipe && (pipe.getExchanged() ||
                          (pipe.getMulticast() && acquire && !acquire.isFilledByCopies()));
    if (!sends || isJoined(commit))
      return success();
    return commit.emitError("hands a tile to the other block of a cluster before the threads that "
                            "write it have met; put hop.warpgroup_sync before it");
  }

  /// Slots are carried through loops and conditionals of a role, and through nothing else.
  static LogicalResult checkPlace(Operation *op) {
    if ((op->hasTrait<hop::FillsPipe>() || op->hasTrait<hop::ReadsPipe>()) && leaderOf(op))
      return checkLed(op);
    if (auto release = dyn_cast<hop::PipeReleaseOp>(op); release && leaderOf(release))
      return checkLedRelease(release);
    if (auto commit = dyn_cast<hop::PipeCommitOp>(op); commit && failed(checkExchange(commit)))
      return failure();
    if (!cursorOf(op) && !isa<hop::PipeReleaseOp, hop::PipeCommitOp>(op))
      return success();
    hop::PipeType type = cast<hop::PipeType>(op->getOperand(0).getType());
    bool isTile = !hop::holdsValue(type.getTile());
    if (isTile == isa<hop::PipePutOp, hop::PipeGetOp>(op))
      return op->emitError("takes a pipe of ")
             << (isTile ? "values, tensor<1xi32>" : "tiles") << ", got " << type;
    Region *region = op->getParentRegion();
    for (; !isa<hop::RoleOp, hop::KernelOp>(region->getParentOp());
         region = region->getParentRegion()) {
      Operation *around = region->getParentOp();
      if (isa<hop::AttemptOp>(around))
        return op->emitError("is part of a hop.attempt; run hop-retry first");
      if (auto loop = dyn_cast<scf::WhileOp>(around);
          !isa<scf::ForOp, scf::IfOp>(around) && (!loop || region == &loop.getBefore()))
        return op->emitError("stands where slots cannot be counted: in ")
               << (loop ? "the condition of " : "") << around->getName()
               << "; move it into a role, a scf.for, a scf.if or the body of a scf.while";
    }
    if (!isa<hop::RoleOp>(region->getParentOp()))
      return op->emitError("stands outside of a role");
    return success();
  }

  /// Before a load or a wait of a pipe that goes with another one stands that of the other.
  static LogicalResult checkLed(Operation *op) {
    if (!isa<hop::PipeLoadOp, hop::PipeWaitOp>(op))
      return op->emitError(
          "is of a pipe that goes with another one, which only hop.pipe.load fills "
          "and only hop.pipe.wait reads; leave out with");
    Value leader = leaderOf(op);
    if (auto wait = dyn_cast<hop::PipeWaitOp>(op);
        wait && llvm::none_of(wait.getTile().getUsers(), llvm::IsaPred<hop::PipeReleaseOp>))
      return wait.emitError(
          "takes a slot that goes with one of another pipe and is given back with "
          "it; release this one before the other");
    for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
      if (before->getName() == op->getName() && before->getOperand(0) == leader)
        return success();
    InFlightDiagnostic diag = op->emitError("is of a pipe that goes with another one, of which "
                                            "nothing like it stands before it in this block");
    diag.attachNote(leader.getLoc()) << "the other pipe";
    return diag;
  }
};

} // namespace
