//===- OverrideSchedule.cpp - Fields in place of what kernels write -------===//

#include "dialects/Tile/ScheduleFields.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "passes/Schedule/SchedulePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILEOVERRIDESCHEDULE
#include "passes/Schedule/SchedulePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

void tessera::overrideSchedule(KernelOp kernel, ScheduleAttr fields) {
  if (fields == ScheduleFields().get(kernel.getContext()))
    return;
  ScheduleAttr written = kernel.getScheduleAttr();
  kernel.setScheduleAttr(written ? written.overriddenBy(fields) : fields);
}

void tessera::overrideSchedules(ModuleOp module, ScheduleAttr fields) {
  for (KernelOp kernel : module.getOps<KernelOp>())
    overrideSchedule(kernel, fields);
}

namespace {
class TileOverrideSchedulePass
    : public tessera::impl::TileOverrideScheduleBase<TileOverrideSchedulePass> {
public:
  using Base::Base;

  void runOnOperation() override {
    FailureOr<ScheduleAttr> fields = ScheduleAttr::parseText(
        &getContext(), schedule, [&] { return mlir::emitError(getOperation().getLoc()); });
    if (failed(fields))
      return signalPassFailure();
    overrideSchedules(getOperation(), *fields);
  }
};
} // namespace
