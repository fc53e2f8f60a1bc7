//===- PolynomialExp.cpp - Exponentials without special functions --------===//
//
// Implements tile-polynomial-exp. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "passes/Schedule/Exponentials.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILEPOLYNOMIALEXP
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
/// Marks the exponential `op`, or says why it stays a special function.
void mark(Operation *op, int64_t share) {
  if (Operation *use = findExactUse(op)) {
    InFlightDiagnostic remark =
        op->emitRemark("exponentials stay special functions, as their results are used in f32");
    remark.attachNote(use->getLoc()) << "here; a rounding to 16 bits or a sum would do";
    return;
  }
  op->emitRemark() << share << " of " << kExponentialShares << " exponentials are polynomials"
                   << (staysPrecise(op) ? ", of fifth degree as their sums stay f32" : "");
  markPolynomial(op, share);
}

struct TilePolynomialExpPass : tessera::impl::TilePolynomialExpBase<TilePolynomialExpPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    ScheduleFields schedule = kernel.getScheduleFields();
    if (failed(schedule.require(kernel, &ScheduleFields::polynomialExp)))
      return signalPassFailure();
    if (*schedule.polynomialExp == 0)
      return;
    for (Operation *op : exponentialsInLoops(kernel))
      mark(op, *schedule.polynomialExp);
  }
};
} // namespace
