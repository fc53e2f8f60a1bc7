//===- CheckPipes.cpp - The pipes have the slots that the roles need ------===//
//
// Implements hop-check-pipes. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/PipeProtocol.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_CHECKPIPES
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {
struct CheckPipesPass : tessera::impl::CheckPipesBase<CheckPipesPass> {
  void runOnOperation() override {
    if (failed(checkPipes(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
