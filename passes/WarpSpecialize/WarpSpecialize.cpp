//===- WarpSpecialize.cpp - A kernel as roles joined by pipes -------------===//
//
// Implements tile-warp-specialize: each role is a slice of the kernel's program,
// joined by pipes. See WarpSpecialize.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Tile/ScheduleFields.h"
#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/PipeProtocol.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Schedule/ResourceModel.h"
#include "passes/WarpSpecialize/Slicer.h"

namespace tessera {
#define GEN_PASS_DEF_WARPSPECIALIZE
#include "passes/Hop/HopPasses.h.inc"
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
    FailureOr<PipePlan> plan = planPipes(kernel, *schedule.loads);
    if (failed(plan))
      return failure();
    reloadTiles(kernel, *plan);
    plan->handsOverLate = schedule.keepsOperands();
    if (failed(checkRegisters(kernel, schedule)) || failed(checkGathers(kernel, schedule)))
      return failure();
    if (failed(planResults(kernel, schedule, *plan)))
      return failure();
    // Consumers of different programs have all rows each.
    FailureOr<RowPartition> rows =
        RowPartition::get(kernel, plan->division ? 1 : *schedule.consumers,
                          apartOperations(kernel, *schedule.placement));
    if (failed(rows))
      return failure();
    if (failed(checkResults(*plan, *rows)) || failed(checkTickets(kernel, schedule, *plan)))
      return failure();
    SmallVector<RoleSpec> roles = planRoles(schedule, *plan);
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
    if (failed(checkConverter(kernel, schedule)))
      return failure();
    planConversions(kernel, plan);
    planBounds(boundsFoundApart(kernel, schedule), plan);
    if (schedule.transpose == tile::TransposeKind::apart &&
        (failed(checkTransposer(kernel, schedule)) || failed(planTransposes(kernel, plan))))
      return failure();
    bool isDivided = schedule.placement == tile::PlacementKind::divided;
    if (schedule.placement != tile::PlacementKind::rows) {
      if (failed(checkPlacement(kernel, schedule)))
        return failure();
      bool sums = !isDivided || !findApartSums(kernel).empty();
      if (sums && failed(planSums(kernel, plan)))
        return failure();
      if (sums && schedule.store == tile::StoreKind::writer && failed(planSumStores(kernel, plan)))
        return failure();
      return isDivided ? planDivision(kernel, *schedule.consumers, plan) : success();
    }
    if (schedule.store != tile::StoreKind::writer)
      return success();
    return success(succeeded(checkWriter(kernel, schedule)) && succeeded(planStores(kernel, plan)));
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

  /// Refuses gathers into pipes where no threads of a producer make them, and roles of one thread
  /// beside a producer that has a warpgroup of its own.
  LogicalResult checkGathers(tile::KernelOp kernel, const tile::ScheduleFields &schedule) {
    SmallVector<tile::GatherOp> gathers = pipedGathers(kernel);
    if (gathers.empty())
      return success();
    if (std::optional<std::string> reason = whyNotGathered(schedule))
      return gathers.front().emitError("feeds a dot, so that the threads of a producer gather it: ")
             << *reason;
    return success();
  }

  /// Refuses dots in roles of different programs where no producer loads for them, where a grid
  /// point may run again, and where loops have been rotated, so that operands cross from one step
  /// to the next.
  LogicalResult checkPlacement(tile::KernelOp kernel, const tile::ScheduleFields &schedule) {
    bool isDivided = schedule.placement == tile::PlacementKind::divided;
    StringRef who = isDivided ? "consumers with different dots (placement = divided)"
                              : "a reducer (placement = apart)";
    if (!*schedule.warpSpecialize)
      return kernel.emitError("has no producer, which loads for ")
             << (isDivided ? "" : "the consumers and for ") << who
             << "; use warp_specialize = true or placement = rows";
    if (!kernel.getBody().getOps<tile::SpeculateOp>().empty())
      return kernel.emitError("speculates, and ")
             << who << " would not know which of " << (isDivided ? "their tiles" : "its sums")
             << " come again; use placement = rows or speculate = false";
    if (SmallVector<OpOperand *> computed = computedBs(kernel); !computed.empty())
      return emitError(computed.front()->get().getLoc())
             << "is operand b of a dot, which consumers compute together, and " << who
             << " have not all rows of it; use placement = rows";
    if (isDivided && schedule.store == tile::StoreKind::writer && findApartSums(kernel).empty())
      return kernel.emitError("has ") << who
                                      << ", which store their results; use store = tma or "
                                         "direct, or placement = rows";
    if (*schedule.overlap != 1)
      return kernel.emitError("has rotated loops, and ")
             << who
             << (isDivided ? " hand tiles on in their own steps"
                           : " takes the operands of its dots in their own steps")
             << "; use overlap = 1 or placement = rows";
    return success();
  }

  /// Refuses a role that converts where no producer loads for it, or another helper is.
  LogicalResult checkConverter(tile::KernelOp kernel, const tile::ScheduleFields &schedule) {
    SmallVector<Conversion> conversions = findConversions(kernel);
    if (conversions.empty())
      return success();
    Operation *first = conversions.front().operations.back();
    if (!*schedule.warpSpecialize)
      return first->emitError("is to be made by a converter, as a dot reads it from shared memory, "
                              "and no producer loads for one; use warp_specialize = true");
    if (schedule.placement != tile::PlacementKind::rows)
      return first->emitError("is to be made by a converter, as a dot reads it from shared memory, "
                              "and ")
             << (schedule.placement == tile::PlacementKind::apart
                     ? "a reducer (placement = apart) leaves"
                     : "consumers with different dots (placement = divided) leave")
             << " no room for one; use placement = rows";
    if (schedule.transpose == tile::TransposeKind::apart)
      return first->emitError("is to be made by a converter, as a dot reads it from shared memory, "
                              "and a transposer (transpose = apart) leaves no room for one; use "
                              "transpose = own");
    return success();
  }

  /// Refuses a role that transposes where no producer loads for it, or a reducer is, or where it
  /// has warps of a warpgroup with other registers.
  LogicalResult checkTransposer(tile::KernelOp kernel, const tile::ScheduleFields &schedule) {
    if (!*schedule.warpSpecialize)
      return kernel.emitError("has no producer, which loads for a transposer (transpose = apart); "
                              "use warp_specialize = true or transpose = own");
    if (schedule.placement != tile::PlacementKind::rows)
      return kernel.emitError("has ")
             << (schedule.placement == tile::PlacementKind::apart
                     ? "a reducer (placement = apart)"
                     : "consumers with different dots (placement = divided)")
             << " and no room for a transposer (transpose = apart); use placement = rows or "
                "transpose = own";
    if (sharesTransposer(schedule) && schedule.producerRegisters != schedule.reducerRegisters)
      return kernel.emitError("has a transposer with warps of the producer's warpgroup "
                              "(transposer_warps = ")
             << *schedule.transposerWarps
             << "), and registers are of a whole warpgroup; use producer_registers = "
                "reducer_registers or transposer_warps = 4";
    return success();
  }

  /// Refuses a role that stores where there is no warpgroup of such roles, or where a grid point
  /// may run again after it.
  LogicalResult checkWriter(tile::KernelOp kernel, const tile::ScheduleFields &schedule) {
    if (!*schedule.warpSpecialize)
      return kernel.emitError("has no producer, beside which a writer could run (store = writer); "
                              "use warp_specialize = true or store = tma");
    if (!kernel.getBody().getOps<tile::SpeculateOp>().empty())
      return kernel.emitError("speculates, and a writer (store = writer) would not know which of "
                              "its stores come again; use store = tma or speculate = false");
    return success();
  }

  /// Refuses a partial sum that a writer would store: it gets one tile for all warpgroups.
  LogicalResult checkResults(const PipePlan &plan, const RowPartition &rows) {
    for (auto &[access, pipe] : plan.accesses)
      if (auto store = dyn_cast<tile::StoreOp>(access);
          store && rows.isPartialSum(store.getValue()))
        return store.emitError(
            "adds a partial sum, of which each consumer warpgroup has a part, and "
            "a writer takes one tile for all of them; use store = direct, or "
            "consumers = 1");
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
      return store.emitError("waits for its ticket (sums = fixed), which one thread does that "
                             "copies in bulk; use store = writer, placement = apart with store = "
                             "tma, or sums = any");
    });
    return failure(walk.wasInterrupted());
  }

  /// Threads that load, which divide the pipes of loads in turn; those that store, where results go
  /// through pipes; a warpgroup that makes sums, one that transposes or one that converts; and
  /// those that compute, or do all of this. The role of all else is last.
  SmallVector<RoleSpec> planRoles(const tile::ScheduleFields &schedule, PipePlan &plan) {
    RoleSpec consumer{"consumer", schedule.consumers, std::nullopt};
    if (!*schedule.warpSpecialize) {
      if (int64_t registers = schedule.consumerRegisters->most();
          registers < hop::entryRegisters(*schedule.consumers))
        consumer.registers = registers;
      return {consumer};
    }
    consumer.registers = schedule.consumerRegisters->most();
    auto isStored = [](auto &pipe) { return pipe.second.isStored; };
    auto isLoaded = [](auto &pipe) { return !pipe.second.isStored && !pipe.second.isComputed; };
    size_t loaded = llvm::count_if(plan.pipes, isLoaded);
    size_t count = std::clamp<size_t>(loaded, 1, producers);
    SmallVector<RoleSpec> roles;
    // Gathering takes a warpgroup.
    if (plan.gathers())
      count = 1;
    for (size_t i = 0; i < count; ++i)
      roles.push_back({count == 1 ? "producer" : ("producer" + Twine(i)).str(),
                       plan.gathers() ? std::optional<int64_t>(1) : std::nullopt,
                       schedule.producerRegisters, /*loads=*/true});
    for (auto [i, pipe] : llvm::enumerate(llvm::make_filter_range(plan.pipes, isLoaded)))
      pipe.second.filler = i % count;
    unsigned writer = roles.size();
    if (llvm::any_of(plan.pipes, isStored))
      roles.push_back({"writer", std::nullopt, schedule.producerRegisters});
    unsigned finder = roles.size();
    if (plan.findsBounds()) {
      roles.push_back({"finder", std::nullopt, schedule.producerRegisters});
      roles.back().finds = true;
    }
    unsigned reducer = roles.size();
    if (!plan.sums.empty())
      roles.push_back({"reducer", 1, schedule.reducerRegisters, /*loads=*/false, /*sums=*/true});
    unsigned transposer = roles.size();
    if (schedule.transpose == tile::TransposeKind::apart)
      roles.push_back(planTransposer(schedule));
    unsigned converter = roles.size();
    if (llvm::any_of(plan.pipes, [](auto &pipe) { return pipe.second.isConverted; }))
      roles.push_back({"converter", 1, schedule.reducerRegisters, /*loads=*/false, /*sums=*/false,
                       /*transposes=*/false, /*converts=*/true});
    for (auto &[key, pipe] : plan.pipes) {
      pipe.transposer = transposer;
      pipe.writer = writer;
      if (pipe.isStored || pipe.isComputed)
        pipe.filler = pipe.isConverted ? converter
                      : pipe.isBound   ? finder
                      : pipe.isSum     ? reducer
                                       : roles.size() + pipe.maker;
    }
    if (!plan.division)
      roles.push_back(consumer);
    else
      for (unsigned part = 0; part < plan.division->getConsumers(); ++part) {
        roles.push_back(
            {("consumer" + Twine(part)).str(), 1, schedule.consumerRegisters->of(part)});
        roles.back().part = part;
      }
    return roles;
  }

  /// A warpgroup that transposes, or warps of the producer's.
  static RoleSpec planTransposer(const tile::ScheduleFields &schedule) {
    RoleSpec transposer{"transposer", 1, schedule.reducerRegisters};
    transposer.transposes = true;
    if (sharesTransposer(schedule)) {
      transposer.warpgroups = std::nullopt;
      transposer.warps = schedule.transposerWarps;
    }
    return transposer;
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
    // One warpgroup has all rows of a sum, of a part of the dots, or of a tile to gather, transpose
    // or convert, which cannot fail.
    bool isAlone = (spec.loads && !spec.isElected()) || spec.sums || spec.transposes ||
                   spec.converts || spec.part;
    RowPartition divided = isAlone ? *RowPartition::get(kernel, 1) : rows;
    return Slicer(plan, assignment, roles, number, divided, warpgroup, arguments)
        .slice(kernel.getBody().front(), inner);
  }
};

} // namespace