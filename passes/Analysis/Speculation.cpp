//===- Speculation.cpp - The two programs of a speculation ----------------===//

#include "passes/Analysis/Speculation.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

SpeculateOp tessera::findSpeculation(KernelOp kernel) {
  SpeculateOp found;
  kernel.walk([&](SpeculateOp op) {
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

void tessera::takeExactRegion(KernelOp kernel) {
  SpeculateOp speculation = findSpeculation(kernel);
  if (!speculation)
    return;
  YieldOp yield = speculation.getExactYield();
  speculation.replaceAllUsesWith(yield.getValues());
  yield.erase();
  Block &exact = speculation.getExact().front();
  speculation->getBlock()->getOperations().splice(speculation->getIterator(),
                                                  exact.getOperations());
  speculation.erase();
}
