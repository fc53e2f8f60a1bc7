//===- Overlap.cpp - Dots under the elementwise work of the next step ----===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Schedule/LoopOverlap.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILEOVERLAP
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
class TileOverlapPass : public tessera::impl::TileOverlapBase<TileOverlapPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    ScheduleFields schedule = kernel.getScheduleFields();
    if (failed(schedule.require(kernel, &ScheduleFields::overlap)) ||
        (*schedule.overlap > 1 && failed(overlap(kernel, schedule))))
      signalPassFailure();
  }

private:
  static LogicalResult overlap(KernelOp kernel, const ScheduleFields &schedule) {
    if (failed(schedule.require(kernel, &ScheduleFields::lead, &ScheduleFields::rescale,
                                &ScheduleFields::pack)))
      return failure();
    OverlapShape shape = OverlapShape::of(schedule);
    if (std::optional<std::string> conflict = shape.findConflict())
      return kernel.emitError() << *conflict;
    SmallVector<std::pair<Location, std::string>> refusals;
    unsigned rotated = overlapLoops(kernel, shape, [&](scf::ForOp, const OverlapRefusal &refusal) {
      refusals.emplace_back(refusal.op->getLoc(), refusal.reason);
    });
    if (rotated == 0) {
      InFlightDiagnostic diag = kernel.emitError("overlap = ")
                                << shape.stages
                                << " has no loop to overlap; overlap = 1 would work";
      for (const auto &[loc, reason] : refusals)
        diag.attachNote(loc) << reason;
      return diag;
    }
    for (const auto &[loc, reason] : refusals)
      mlir::emitRemark(loc, "loop not overlapped: ") << reason;
    return success();
  }
};
} // namespace
