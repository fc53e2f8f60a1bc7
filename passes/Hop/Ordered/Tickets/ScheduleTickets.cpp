//===- ScheduleTickets.cpp - Threads that wait for tickets ----------------===//
//
// Implements hop-schedule-tickets. See TicketPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Hop/Ordered/Tickets/Tickets.h"

namespace tessera {
#define GEN_PASS_DEF_SCHEDULETICKETS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct ScheduleTicketsPass : tessera::impl::ScheduleTicketsBase<ScheduleTicketsPass> {
  using Base::Base;

  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    for (StringRef step : steps)
      if (!llvm::is_contained({"join", "flatten", "peek", "pass"}, step)) {
        kernel.emitError("the steps of hop-schedule-tickets are join, flatten, peek and pass; got ")
            << step;
        return signalPassFailure();
      }
    if (!waitsForTickets(kernel))
      return;
    if (takes("join"))
      joinLoops(kernel);
    if (takes("flatten"))
      flattenLoops(kernel);
    if (takes("peek"))
      peekTickets(kernel);
    if (!takes("pass"))
      return;
    const tile::ScheduleFields &schedule = kernel.getSchedule().getFields();
    if (failed(schedule.require(kernel, &tile::ScheduleFields::placement)))
      return signalPassFailure();
    // Without a role that makes sums the writer has little else to do.
    if (schedule.placement != tile::PlacementKind::rows)
      passTickets(kernel);
  }

private:
  static bool waitsForTickets(hop::KernelOp kernel) {
    return kernel.walk([](hop::TicketWaitOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }

  bool takes(StringRef step) const { return steps.empty() || llvm::is_contained(steps, step); }
};

} // namespace
