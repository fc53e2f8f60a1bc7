//===- SharedTileAnalysis.cpp - Loops whose loads are made alike in a cluster -===//

#include "passes/Schedule/SharedTileAnalysis.h"
#include "passes/Analysis/GridOrder.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Why `loop` cannot load as many tiles in each block of a cluster as in the one where it runs
/// longest; nothing when it can.
static std::optional<std::string> whyNotEven(KernelOp kernel, const IndexDependence &dependence,
                                             scf::ForOp loop) {
  Value index = kernel.getGridIndex(0), upper = loop.getUpperBound();
  if (loop.getUnsignedCmp() || !upper.getType().isIndex())
    return "it does not count in signed index";
  if (dependence.contains(loop.getLowerBound()) || dependence.contains(loop.getStep()))
    return "its first iteration does too; a loop that starts alike for all tiles would work";
  if (dependence.getVaryingControl(loop))
    return "so does what is around it";
  if (!dependence.isArithmetic(upper))
    return "its upper bound takes more than arithmetic";
  Trend trend = trendOf(upper, index);
  if (trend != Trend::Increasing && trend != Trend::Decreasing)
    return "its upper bound neither only grows nor only falls with it";
  WalkResult nested = loop.walk([&](LoadOpInterface load) {
    bool isNested = load.getPipeAttr() && load->getBlock() != loop.getBody();
    return isNested ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (nested.wasInterrupted())
    return "a tile for a dot is loaded in a nested region of its body";
  return std::nullopt;
}

SharedTile tessera::shareTile(KernelOp kernel, const IndexDependence &dependence,
                              const PipedTile &tile, int64_t blocks) {
  SharedTile shared;
  SmallVector<Operation *> loads(tile.loads.begin(), tile.loads.end());
  for (Operation *load : loads) {
    Operation *control = dependence.getVaryingControl(load);
    if ((shared.refusal = whyPlaceVaries(dependence, load))) {
      if (isa_and_nonnull<scf::ForOp>(control))
        *shared.refusal += "; a loop that walks from one place in all tiles would load alike";
      return shared;
    }
    if (!control)
      continue;
    // The outermost one; what is inside of it would vary too.
    auto loop = dyn_cast<scf::ForOp>(control);
    std::optional<std::string> reason;
    if (loop && !isa<LoadOp>(load))
      reason = "its rows are gathered; a loop that runs as often in all tiles would load alike";
    else if (loop && loop.getBody() == load->getBlock())
      reason = whyNotEven(kernel, dependence, loop);
    else if (loop)
      reason = "its load is in a nested region of its body";
    if (!loop || reason) {
      shared.refusal = explainControl(control) + (reason ? ", and " + *reason : "");
      return shared;
    }
    if (!llvm::is_contained(shared.uneven, loop))
      shared.uneven.push_back(loop);
  }
  shared.refusal = whyIndivisible(loads, pipedType(tile.loads.front()), blocks);
  return shared;
}
