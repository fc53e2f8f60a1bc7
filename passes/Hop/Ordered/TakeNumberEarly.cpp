//===- TakeNumberEarly.cpp - The next tile's number, under a product ------===//
//
// Implements hop-take-number-early. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_TAKENUMBEREARLY
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {
struct TakeNumberEarlyPass : tessera::impl::TakeNumberEarlyBase<TakeNumberEarlyPass> {
  void runOnOperation() override {
    getOperation().walk([](hop::PipeGetOp get) {
      Operation *op = get->getPrevNode();
      while (op && op->getNumRegions() == 0 &&
             !isa<hop::PipeWaitOp, hop::PipePeekOp, hop::MmaIssueOp>(op))
        op = op->getPrevNode();
      if (isa_and_nonnull<hop::MmaIssueOp>(op))
        get->moveAfter(op);
    });
  }
};
} // namespace
