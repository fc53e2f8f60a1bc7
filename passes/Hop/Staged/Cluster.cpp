//===- Cluster.cpp - Loads that the blocks of a cluster share -------------===//
//
// Implements hop-cluster. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/IndexDependence.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Schedule/SharedTileAnalysis.h"

namespace tessera {
#define GEN_PASS_DEF_CLUSTER
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// What loads the tiles of `pipe`: bulk copies, or copies of threads.
SmallVector<Operation *> loadsOf(hop::PipeCreateOp pipe) {
  SmallVector<Operation *> loads;
  for (Operation *user : pipe.getPipe().getUsers()) {
    if (isa<hop::PipeLoadOp>(user))
      loads.push_back(user);
    if (auto acquire = dyn_cast<hop::PipeAcquireOp>(user))
      llvm::copy_if(acquire.getTile().getUsers(), std::back_inserter(loads),
                    llvm::IsaPred<hop::GatherOp>);
  }
  return loads;
}

/// Moves what hands shared gathered tiles on, which waits for their copies, behind the gathers that
/// follow: up to the next one into a pipe of before, so that all of these copies are on their way
/// together.
void commitTogether(Block &block) {
  SmallVector<hop::PipeCommitOp> held;
  llvm::SmallDenseSet<Value> acquired;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto acquire = dyn_cast<hop::PipeAcquireOp>(op);
    bool goesOn = acquire && acquired.insert(acquire.getPipe()).second;
    if (!goesOn && (acquire || op.getNumRegions() != 0 || op.hasTrait<hop::ReadsPipe>() ||
                    op.hasTrait<OpTrait::IsTerminator>())) {
      for (hop::PipeCommitOp commit : held)
        commit->moveBefore(&op);
      held.clear();
      acquired.clear();
      if (acquire)
        acquired.insert(acquire.getPipe());
    }
    if (auto commit = dyn_cast<hop::PipeCommitOp>(op))
      if (commit.getPipe().getDefiningOp<hop::PipeCreateOp>().getMulticast())
        held.push_back(commit);
  }
}

/// Why the blocks of a cluster cannot load the tiles of `pipe` together; nothing when they can.
std::optional<std::string> whyNotMulticast(const IndexDependence &dependence,
                                           hop::PipeCreateOp pipe, int64_t blocks) {
  SmallVector<Operation *> loads = loadsOf(pipe);
  if (loads.empty())
    return "no load fills it";
  for (Operation *load : loads) {
    if (auto own = dyn_cast<hop::PipeLoadOp>(load); own && own.getAlike())
      continue;
    if (std::optional<std::string> reason = whyPlaceVaries(dependence, load))
      return reason;
    if (Operation *control = dependence.getVaryingControl(load))
      return explainControl(control);
  }
  return whyIndivisible(loads, pipe.getPipe().getType().getTile(), blocks);
}

struct ClusterPass : tessera::impl::ClusterBase<ClusterPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    if (kernel.getClusterSize() == 1)
      return;
    if (failed(shareLoads(kernel)))
      signalPassFailure();
  }

  LogicalResult shareLoads(hop::KernelOp kernel) {
    IndexDependence dependence(kernel.getGridIndex(0), kernel.getClusterSize());
    SmallVector<std::pair<hop::PipeCreateOp, std::string>> own;
    bool any = false;
    for (auto pipe : kernel.getBody().getOps<hop::PipeCreateOp>()) {
      std::optional<std::string> reason =
          whyNotMulticast(dependence, pipe, kernel.getClusterSize());
      if (reason) {
        own.emplace_back(pipe, *reason);
        continue;
      }
      pipe.setMulticast(true);
      pipe.emitRemark("'") << pipe.getLabel() << "' is loaded once for the "
                           << kernel.getClusterSize() << " blocks of a cluster";
      any = true;
    }
    for (auto &[pipe, reason] : own)
      if (any)
        pipe.emitRemark("'") << pipe.getLabel()
                             << "' is loaded by each block of a cluster: " << reason;
    kernel.walk([](Block *block) { commitTogether(*block); });
    if (any)
      return success();
    InFlightDiagnostic diag = kernel.emitError("has no load that the blocks of a cluster share; "
                                               "use cluster = 1");
    for (auto &[pipe, reason] : own)
      diag.attachNote(pipe.getLoc()) << "'" << pipe.getLabel() << "': " << reason;
    return diag;
  }
};

} // namespace
