//===- Overlap.cpp - Dots under the elementwise work of the next step ----===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/Schedule/LoopLead.h"
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
    if (failed(schedule.require(kernel, &ScheduleFields::overlap)))
      return signalPassFailure();
    OverlapShape shape{*schedule.overlap};
    if (shape.changesLoops() && failed(overlap(kernel, shape)))
      signalPassFailure();
  }

private:
  /// Says which dots run ahead by themselves, and what is kept for that.
  static void describeLeads(KernelOp kernel) {
    DenseSet<Operation *> elsewhere = reducerOperations(kernel, PlacementKind::apart);
    for (scf::ForOp loop : loopsWithDots(kernel)) {
      OverlapRefusal refusal;
      FailureOr<LeadPlan> plan = planLead(loop, elsewhere, refusal);
      if (failed(plan))
        continue;
      InFlightDiagnostic remark = plan->first.emitRemark(
          "of the next iteration is issued beside the last dots of this one, "
          "in registers that are free by then");
      remark.attachNote(plan->last.getLoc()) << "behind this dot";
      for (LoadOp load : plan->kept)
        remark.attachNote(load.getLoc()) << "this tile keeps its slot for the next step";
    }
  }

  static LogicalResult overlap(KernelOp kernel, const OverlapShape &shape) {
    if (shape.leadsAlone())
      describeLeads(kernel);
    SmallVector<std::pair<Location, std::string>> refusals;
    unsigned rotated = overlapLoops(kernel, shape, [&](scf::ForOp, const OverlapRefusal &refusal) {
      refusals.emplace_back(refusal.op->getLoc(), refusal.reason);
    });
    if (rotated == 0) {
      InFlightDiagnostic diag = kernel.emitError("overlap = ") << stringifyOverlapKind(shape.kind);
      if (shape.leadsAlone())
        diag << " has no loop whose first dot can run ahead; overlap = 1 would work";
      else
        diag << " has no loop to overlap; overlap = 1 would work";
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
