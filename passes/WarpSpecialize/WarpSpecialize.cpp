//===- WarpSpecialize.cpp - Producer and consumer roles -------------------===//
//
// Implements tile-warp-specialize: each role is a slice of the kernel's program,
// joined by pipes. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/PipeProtocol.h"
#include "passes/Hop/HopPasses.h"
#include "passes/WarpSpecialize/Slices.h"

namespace tessera {
#define GEN_PASS_DEF_WARPSPECIALIZE
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct WarpSpecializePass : tessera::impl::WarpSpecializeBase<WarpSpecializePass> {
  void runOnOperation() override {
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<tile::KernelOp>()))
      if (failed(specialize(kernel)))
        return signalPassFailure();
  }

  LogicalResult specialize(tile::KernelOp kernel) {
    tile::ScheduleAttr schedule = kernel.getScheduleAttr();
    if (!schedule || !schedule.isComplete())
      return kernel.emitError("has no complete schedule; run tile-choose-schedule first");
    FailureOr<PipePlan> plan = planPipes(kernel);
    if (failed(plan))
      return failure();
    reloadTiles(kernel, *plan);
    FailureOr<RowPartition> rows = RowPartition::get(kernel, *schedule.getConsumers());
    if (failed(rows))
      return failure();

    OpBuilder builder(kernel);
    auto target = createKernel(kernel, builder);
    IRMapping arguments;
    arguments.map(kernel.getBody().getArguments(), target.getBody().getArguments());
    builder.setInsertionPointToEnd(&target.getBody().front());
    createPipes(*plan, schedule, kernel.getLoc(), builder);

    bool specialized = *schedule.getWarpSpecialize();
    if (specialized) {
      hop::RoleOp role = createRole(hop::RoleKind::Producer, 1, schedule.getProducerRegisters(),
                                    kernel.getLoc(), builder);
      OpBuilder inner = OpBuilder::atBlockEnd(&role.getBody().front());
      if (failed(cloneProducer(kernel, *plan, inner, arguments)))
        return failure();
    }
    hop::RoleOp role = createRole(hop::RoleKind::Consumer, *schedule.getConsumers(),
                                  specialized ? schedule.getConsumerRegisters() : std::nullopt,
                                  kernel.getLoc(), builder);
    OpBuilder inner = OpBuilder::atBlockEnd(&role.getBody().front());
    if (failed(cloneConsumer(kernel, *plan, *rows, role.getBody().getArgument(0), !specialized,
                             inner, arguments)) ||
        failed(checkPipes(target)))
      return failure();
    kernel.erase();
    return success();
  }

  hop::KernelOp createKernel(tile::KernelOp kernel, OpBuilder &builder) {
    auto target = hop::KernelOp::create(
        builder, kernel.getLoc(), kernel.getSymNameAttr(), kernel.getArgumentTypesAttr(),
        kernel.getArgumentNamesAttr(), kernel.getGridAttr(), kernel.getRequirementsAttr(),
        kernel.getScheduleAttr(), /*shared_bytes=*/IntegerAttr());
    Block *body = builder.createBlock(&target.getBody());
    for (BlockArgument argument : kernel.getBody().getArguments())
      body->addArgument(argument.getType(), argument.getLoc());
    return target;
  }

  void createPipes(PipePlan &plan, tile::ScheduleAttr schedule, Location loc, OpBuilder &builder) {
    for (auto &[key, info] : plan.pipes) {
      auto type = hop::PipeType::get(builder.getContext(), info.tile,
                                     info.inLoop ? schedule.getStages()->of(info.loopIndex)
                                                 : *schedule.getOuterStages());
      info.pipe = hop::PipeCreateOp::create(builder, loc, type, info.label);
    }
  }

  hop::RoleOp createRole(hop::RoleKind kind, int64_t warpgroups, std::optional<int64_t> registers,
                         Location loc, OpBuilder &builder) {
    auto role =
        hop::RoleOp::create(builder, loc, kind, warpgroups,
                            registers ? builder.getI64IntegerAttr(*registers) : IntegerAttr());
    role.getBody().emplaceBlock().addArgument(builder.getIndexType(), loc);
    return role;
  }
};

} // namespace