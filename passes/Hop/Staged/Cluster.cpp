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

/// Why the blocks of a cluster cannot load the tiles of `pipe` together; nothing when they can.
std::optional<std::string> whyNotMulticast(const IndexDependence &dependence,
                                           hop::PipeCreateOp pipe, int64_t blocks) {
  SmallVector<Operation *> loads =
      llvm::filter_to_vector(pipe.getPipe().getUsers(), llvm::IsaPred<hop::PipeLoadOp>);
  if (loads.empty())
    return "no load fills it";
  for (Operation *load : loads) {
    if (cast<hop::PipeLoadOp>(load).getAlike())
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
