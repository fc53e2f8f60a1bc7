//===- WarpSpecialize.cpp - A kernel as roles joined by pipes -------------===//
//
// Implements tile-warp-specialize: each role is a slice of the kernel's program,
// joined by pipes. See WarpSpecializePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Tile/ScheduleFields.h"
#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/PipeProtocol.h"
#include "passes/Analysis/PipeSlots.h"
#include "passes/Schedule/ResourceModel.h"
#include "passes/Schedule/ScheduleFacts.h"
#include "passes/WarpSpecialize/Slicer.h"
#include "passes/WarpSpecialize/WarpSpecializePasses.h"

namespace tessera {
#define GEN_PASS_DEF_WARPSPECIALIZE
#include "passes/WarpSpecialize/WarpSpecializePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// Roles of one thread that share a warpgroup.
constexpr int64_t mostProducers = hopper::warpgroupThreads / hopper::warpThreads;

struct WarpSpecializePass : tessera::impl::WarpSpecializeBase<WarpSpecializePass> {
  using WarpSpecializeBase::WarpSpecializeBase;

  void runOnOperation() override {
    if (producers < 1 || producers > mostProducers) {
      getOperation().emitError("producers = ")
          << producers.getValue()
          << ": the roles that load share one warpgroup, a warp each; use 1 to " << mostProducers;
      return signalPassFailure();
    }
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<tile::KernelOp>()))
      if (failed(specialize(kernel)))
        return signalPassFailure();
  }

  LogicalResult specialize(tile::KernelOp kernel) {
    tile::ScheduleFields schedule = kernel.getScheduleFields();
    if (failed(schedule.require(kernel)))
      return failure();
    FailureOr<PipePlan> plan = planPipes(kernel, *schedule.producer);
    if (failed(plan))
      return failure();
    reloadTiles(kernel, *plan);
    plan->handsOverLate = schedule.keepsOperands();
    HelperWork work(kernel);
    if (failed(checkRegisters(kernel, schedule)) || failed(checkHelpers(kernel, schedule, work)))
      return failure();
    if (failed(planResults(kernel, schedule, *plan)))
      return failure();
    // Consumers of different programs have all rows each.
    FailureOr<RowPartition> rows =
        RowPartition::get(kernel, plan->division ? 1 : *schedule.consumers,
                          reducerOperations(kernel, *schedule.placement));
    if (failed(rows))
      return failure();
    if (failed(checkResults(*plan, *rows)) || failed(checkTickets(kernel, schedule, *plan)))
      return failure();
    SmallVector<RoleSpec> roles = planRoles(schedule, work.registers(schedule), *plan);
    FailureOr<RoleAssignment> assignment =
        RoleAssignment::get(kernel, *plan, roles, /*rest=*/roles.size() - 1);
    if (failed(assignment))
      return failure();

    OpBuilder builder(kernel);
    auto target = createKernel(kernel, builder);
    IRMapping arguments;
    arguments.map(kernel.getBody().getArguments(), target.getBody().getArguments());
    builder.setInsertionPointToEnd(&target.getBody().front());
    createPipes(*plan, schedule, kernel.getLoc(), builder);

    for (unsigned i = 0; i < roles.size(); ++i)
      if (failed(createRole(i, roles, kernel, *plan, *assignment, *rows, arguments, builder)))
        return failure();
    if (failed(checkPipes(target)))
      return failure();
    kernel.erase();
    return success();
  }

  /// Adds the pipes of what a role of its own converts, transposes, stores or sums up.
  LogicalResult planResults(tile::KernelOp kernel, const tile::ScheduleFields &schedule,
                            PipePlan &plan) {
    planConversions(kernel, plan);
    planBounds(boundsOfFinder(kernel, schedule), plan);
    if (*schedule.transpose > 0)
      planTransposes(kernel, plan);
    bool isDivided = schedule.placement == tile::PlacementKind::divided;
    if (schedule.placement != tile::PlacementKind::rows) {
      bool sums = !isDivided || !findReducerSums(kernel).empty();
      if (sums && failed(planSums(kernel, plan)))
        return failure();
      if (sums && schedule.store == tile::StoreKind::writer && failed(planSumStores(kernel, plan)))
        return failure();
      return isDivided ? planDivision(kernel, *schedule.consumers, plan) : success();
    }
    return schedule.store == tile::StoreKind::writer ? planStores(kernel, plan) : success();
  }

  /// Refuses registers of each consumer where all run one program, or of other numbers of
  /// consumers.
  LogicalResult checkRegisters(tile::KernelOp kernel, const tile::ScheduleFields &schedule) {
    const tile::NumberList &registers = *schedule.consumerRegisters;
    bool isDivided = schedule.placement == tile::PlacementKind::divided;
    if (registers.isUniform() || (isDivided && registers.fits(*schedule.consumers)))
      return success();
    return kernel.emitError("has registers for ")
           << registers.getNumbers().size() << " consumers of different programs, and "
           << (isDivided ? std::to_string(*schedule.consumers) + " of these; use as many numbers"
                         : "consumers of one program; use one number")
           << " for consumer_registers";
  }

  /// Refuses roles of their own that the kernel cannot have.
  LogicalResult checkHelpers(tile::KernelOp kernel, const tile::ScheduleFields &schedule,
                             const HelperWork &work) {
    bool speculates = !kernel.getBody().getOps<tile::SpeculateOp>().empty();
    std::optional<std::string> reason = work.whyNot(schedule, speculates);
    return reason ? kernel.emitError("cannot have the roles of its schedule: ") << *reason
                  : success();
  }

  /// Refuses what a writer cannot store: it gets one tile, of which each warpgroup has its rows.
  LogicalResult checkResults(const PipePlan &plan, const RowPartition &rows) {
    for (auto &[access, pipe] : plan.accesses) {
      auto store = dyn_cast<tile::StoreOp>(access);
      if (store && rows.isByLayout())
        return store.emitError("is of a kernel that needs no dot for what it stores, whose "
                               "warpgroups have no rows to hand to a writer; use store = direct");
      if (store && rows.isPartialSum(store.getValue()))
        return store.emitError(
            "adds a partial sum, of which each consumer warpgroup has a part, and "
            "a writer takes one tile for all of them; use store = direct, or "
            "consumers = 1");
    }
    return success();
  }

  /// Refuses tickets of sums that are not added by copies of one thread, which waits for them.
  LogicalResult checkTickets(tile::KernelOp kernel, const tile::ScheduleFields &schedule,
                             const PipePlan &plan) {
    WalkResult walk = kernel.walk([&](tile::StoreOp store) -> WalkResult {
      bool isCopied =
          plan.isPiped(store) || (plan.sumOf(store) && schedule.store == tile::StoreKind::tma &&
                                  !whyNoBulkStore(store, plan.partsOf(*plan.sumOf(store)).stored));
      if (!store.getTicket() || isCopied)
        return success();
      return store.emitError("waits for its ticket (fixed_sums), which one thread does that copies "
                             "in bulk; use store = writer, placement = apart with store = tma, or "
                             "leave fixed_sums out");
    });
    return failure(walk.wasInterrupted());
  }

  /// Threads that load, which divide the pipes of loads in turn, as many as there are pipes that
  /// take a copy for each run of rows, or a warpgroup that gathers; the helpers for which there is
  /// work; and those that compute, or do all of this. The role of all else is last.
  SmallVector<RoleSpec> planRoles(const tile::ScheduleFields &schedule, int64_t ofHelpers,
                                  PipePlan &plan) {
    RoleSpec consumer{"consumer", RoleTask::Compute, schedule.consumers, std::nullopt};
    if (!schedule.hasProducer()) {
      if (int64_t registers = schedule.consumerRegisters->most();
          registers < hop::entryRegisters(*schedule.consumers))
        consumer.registers = registers;
      return {consumer};
    }
    consumer.registers = schedule.consumerRegisters->most();
    auto isLoaded = [](auto &pipe) { return pipe.second.maker == RoleTask::Load; };
    size_t loaded = llvm::count_if(plan.pipes, isLoaded);
    size_t wanted =
        std::max<size_t>(producers, sharesTransposer(schedule) ? 1 : plan.countOfRuns());
    size_t count = plan.gathers() ? 1 : std::clamp<size_t>(loaded, 1, wanted);
    SmallVector<RoleSpec> roles;
    for (size_t i = 0; i < count; ++i)
      roles.push_back({count == 1 ? "producer" : ("producer" + Twine(i)).str(), RoleTask::Load,
                       plan.gathers() ? std::optional<int64_t>(1) : std::nullopt,
                       schedule.producerRegisters});
    for (auto [i, pipe] : llvm::enumerate(llvm::make_filter_range(plan.pipes, isLoaded)))
      pipe.second.part = i % count;
    for (const Helper &helper : getHelpers(plan.gathers())) {
      plan.roleOf(helper.task) = roles.size();
      if (plan.needs(helper.task))
        roles.push_back(planHelper(helper, schedule, ofHelpers));
    }
    plan.roleOf(RoleTask::Compute) = roles.size();
    if (!plan.division)
      roles.push_back(consumer);
    else
      for (unsigned part = 0; part < plan.division->getConsumers(); ++part) {
        roles.push_back({("consumer" + Twine(part)).str(), RoleTask::Compute, 1,
                         schedule.consumerRegisters->of(part)});
        roles.back().part = part;
      }
    return roles;
  }

  static RoleSpec planHelper(const Helper &helper, const tile::ScheduleFields &schedule,
                             int64_t registers) {
    RoleSpec role{helper.name.str(), helper.task, std::nullopt, schedule.producerRegisters};
    if (helper.hasWarpgroup(schedule))
      role.registers = registers;
    role.warps = helper.getWarps(schedule);
    if (role.warps && helper.hasWarpgroup(schedule)) {
      role.warpgroups = 1;
      role.warps = std::nullopt;
    }
    return role;
  }

  hop::KernelOp createKernel(tile::KernelOp kernel, OpBuilder &builder) {
    auto target = hop::KernelOp::create(
        builder, kernel.getLoc(), kernel.getSymNameAttr(), kernel.getArgumentTypesAttr(),
        kernel.getArgumentNamesAttr(), kernel.getGridAttr(), kernel.getRequirementsAttr(),
        kernel.getScheduleAttr(), /*shared_bytes=*/IntegerAttr(),
        /*spread=*/!hasDots(kernel) && tile::countBlocks(*kernel.getScheduleFields().cluster) > 1,
        /*parts=*/countPointBlocks(kernel) > 1);
    for (StringRef name : {kSmallTileAttr, kProbesAttr})
      if (Attribute known = kernel->getAttr(name))
        target->setAttr(name, known);
    Block *body = builder.createBlock(&target.getBody());
    for (BlockArgument argument : kernel.getBody().getArguments())
      body->addArgument(argument.getType(), argument.getLoc());
    return target;
  }

  void createPipes(PipePlan &plan, const tile::ScheduleFields &schedule, Location loc,
                   OpBuilder &builder) {
    for (auto &[key, info] : plan.pipes) {
      auto type = hop::PipeType::get(builder.getContext(), info.tile,
                                     info.slots      ? *info.slots
                                     : info.inLoop   ? schedule.stages->of(info.index)
                                     : info.isStored ? schedule.outerStages->last()
                                                     : schedule.outerStages->of(info.index));
      info.pipe = hop::PipeCreateOp::create(builder, loc, type, info.label);
      info.pipe.getDefiningOp<hop::PipeCreateOp>().setExchanged(info.isExchanged);
      auto createHalf = [&](RankedTensorType tile, const Twine &label) -> Value {
        auto half = hop::PipeType::get(builder.getContext(), tile, type.getSlots());
        return hop::PipeCreateOp::create(builder, loc, half, label.str());
      };
      if (info.theirTile)
        info.theirs = createHalf(info.theirTile, info.label + ".theirs");
      if (info.loadsOwnHalf)
        info.ownHalf = createHalf(info.theirTile, info.label + ".half");
      if (!info.isTransposed)
        continue;
      auto turned = RankedTensorType::get({info.tile.getDimSize(1), info.tile.getDimSize(0)},
                                          info.tile.getElementType());
      info.transposed = hop::PipeCreateOp::create(
          builder, loc, hop::PipeType::get(builder.getContext(), turned, slotsOfTransposed),
          info.label + ".transposed");
    }
  }

  /// Writes the role number `number`.
  LogicalResult createRole(unsigned number, ArrayRef<RoleSpec> roles, tile::KernelOp kernel,
                           PipePlan &plan, const RoleAssignment &assignment,
                           const RowPartition &rows, const IRMapping &arguments,
                           OpBuilder &builder) {
    const RoleSpec &spec = roles[number];
    auto optional = [&](std::optional<int64_t> value) {
      return value ? builder.getI64IntegerAttr(*value) : IntegerAttr();
    };
    auto role = hop::RoleOp::create(builder, kernel.getLoc(), builder.getStringAttr(spec.name),
                                    optional(spec.warpgroups), optional(spec.warps),
                                    optional(spec.registers));
    Block &body = role.getBody().emplaceBlock();
    Value warpgroup = body.addArgument(builder.getIndexType(), kernel.getLoc());
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    // One warpgroup has all rows of a part of the dots, and of what it gathers or helps with, which
    // cannot fail.
    bool isAlone = !spec.isElected() && (spec.task != RoleTask::Compute || spec.part);
    RowPartition divided = isAlone ? *RowPartition::get(kernel, 1) : rows;
    return Slicer(plan, assignment, roles, number, divided, warpgroup, arguments)
        .slice(kernel.getBody().front(), inner);
  }
};

} // namespace