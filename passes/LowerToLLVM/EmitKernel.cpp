//===- EmitKernel.cpp - The frame of a kernel and its roles ---------------===//

#include "dialects/Hop/Machine.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/LowerToLLVM/Emitter.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

Emitter::Emitter(hop::KernelOp kernel, const LaunchParameters &parameters,
                 const NamedBarriers &barriers, LLVM::LLVMFuncOp function, Value sharedBase)
    : kernel(kernel), parameters(parameters), function(function), builder(kernel.getContext()),
      loc(kernel.getLoc()), sharedBase(sharedBase), barriers(barriers) {
  builder.setInsertionPointToEnd(&function.getBody().back());
}

LogicalResult Emitter::emitKernel(bool pdl) {
  Type i32Type = builder.getI32Type();
  auto special = [&](StringRef name) {
    return intrinsic(("llvm.nvvm.read.ptx.sreg." + name).str(), i32Type, {});
  };
  Value threadIndex = special("tid.x");
  // Read from lane 0, so that ptxas knows it to be the same in a whole warp.
  Value warpgroup = shuffle("idx", LLVM::LShrOp::create(builder, loc, threadIndex, i32(7)), i32(0));
  if (kernel.getClusterSize() > 1)
    rank = special("cluster.ctarank");
  StringRef blockIndices[] = {kernel.sharesPoint() ? "clusterid.x" : "ctaid.x", "ctaid.y",
                              "ctaid.z"};
  for (unsigned i = 0; i < kernel.getGrid().size(); ++i)
    bind(kernel.getGridIndex(i), {special(blockIndices[i])});
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    BlockArgument argument = kernel.getArgument(i);
    if (isa<tile::ViewType>(argument.getType()))
      continue;
    Value value = function.getArgument(parameters.position(LaunchParameter::Scalar, i));
    if (argument.getType().isIndex())
      value = LLVM::TruncOp::create(builder, loc, i32Type, value);
    bind(argument, {value});
  }
  // What stands outside the roles, such as constants, is the same in all of them.
  for (Operation &op : kernel.getBody().front()) {
    if (auto staging = dyn_cast<hop::StagingOp>(op))
      emitStaging(staging);
    else if (!isa<hop::HopDialect>(op.getDialect()) && failed(emitOp(&op)))
      return failure();
  }
  emitBarrierInit(threadIndex);
  // Results of the launch before are there from here on (PTX ISA 9.7.13.13). Blocks of the next
  // launch may take the place that blocks of this one leave: they wait here for all of it.
  if (pdl)
    assembly("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;", "", {}, {});
  if (kernel.getTimeline())
    emitTimelineStart();

  Block *exit = builder.createBlock(&function.getBody());
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  builder.setInsertionPointToEnd(exit->getPrevNode());
  int64_t entryRegisters = hop::entryRegisters(hop::getRegisterRequests(kernel));
  for (const hop::RoleTeam &team : hop::getTeams(kernel))
    if (failed(emitTeam(team, entryRegisters, warpgroup, threadIndex, exit)))
      return failure();
  LLVM::BrOp::create(builder, loc, exit);
  return success();
}

/// One thread makes the mbarriers and fetches the tensor maps, all clear what starts at zero, then
/// they meet.
void Emitter::emitBarrierInit(Value threadIndex) {
  Value isFirst = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, threadIndex, i32(0));
  Block *after = builder.createBlock(&function.getBody());
  Block *init = builder.createBlock(after);
  builder.setInsertionPointToEnd(init->getPrevNode());
  LLVM::CondBrOp::create(builder, loc, isFirst, init, after);
  builder.setInsertionPointToEnd(init);
  for (auto [i, parameter] : llvm::enumerate(parameters.getParameters()))
    if (parameter.kind == LaunchParameter::Map)
      assembly("prefetch.tensormap [$0];", "l", {function.getArgument(i)}, {});
  for (auto group : kernel.getBody().getOps<hop::BarriersOp>())
    for (int64_t i = 0; i < group.getBarriers().getType().getSlots(); ++i)
      assembly(
          "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r",
          {add(sharedBase, *group.getOffset() + hopper::mbarrierBytes * i), i32(group.getCount())},
          {});
  // Makes the barriers visible to the async proxy (PTX ISA 9.7.13.4).
  assembly("fence.mbarrier_init.release.cluster;", "", {}, {});
  LLVM::BrOp::create(builder, loc, after);
  builder.setInsertionPointToEnd(after);
  for (auto buffer : kernel.getBody().getOps<hop::BufferOp>())
    if (buffer.getZeroed())
      emitZeroes(buffer, threadIndex);
  // Other blocks copy into this one and arrive at its barriers, so that all of a cluster meet.
  // Those that run a grid point together wait where they first write to each other.
  if (kernel.sharesPoint())
    assembly("barrier.cluster.arrive.release.aligned;", "", {}, {});
  if (kernel.getParts())
    assembly("bar.sync 0;", "", {}, {});
  else if (kernel.getSpread())
    return;
  else if (kernel.getClusterSize() > 1)
    emitClusterSync();
  else
    assembly("bar.sync 0;", "", {}, {});
}

/// Each thread clears the slots that have its index, one thread block apart.
void Emitter::emitZeroes(hop::BufferOp buffer, Value threadIndex) {
  int64_t threads = hopper::warpgroupThreads * kernel.getNumWarpgroups(),
          slots = buffer.getBuffer().getType().getSlots();
  for (int64_t first = 0; first < slots; first += threads) {
    Value slot = add(threadIndex, first);
    Value exists =
        toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, slot, i32(slots)));
    assembly("{\n.reg .pred exists;\nsetp.ne.b32 exists, $1, 0;\n@exists st.shared.b32 [$0], 0;\n}",
             "r,r", {add(add(sharedBase, *buffer.getOffset()), mul(slot, 4)), exists}, {});
  }
}

/// Writes the programs of warpgroups that `warpgroup`, the number of the thread's own, chooses.
LogicalResult Emitter::emitTeam(const hop::RoleTeam &team, int64_t entryRegisters, Value warpgroup,
                                Value threadIndex, Block *exit) {
  role = team.roles.front();
  loc = role.getLoc();
  Block *next = builder.createBlock(exit);
  Block *body = builder.createBlock(next);
  builder.setInsertionPointToEnd(body->getPrevNode());
  Value isMine = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, warpgroup,
                                      i32(team.first + team.warpgroups));
  LLVM::CondBrOp::create(builder, loc, isMine, body, next);
  builder.setInsertionPointToEnd(body);
  // The launch gives a single role what it asks for.
  std::optional<int64_t> registers = role.getRegisters();
  if (registers && hop::getTeams(kernel).size() > 1)
    assembly("setmaxnreg." + Twine(*registers < entryRegisters ? "dec" : "inc") +
                 ".sync.aligned.u32 " + Twine(*registers) + ";",
             "", {}, {});
  setThreadValues(threadIndex, add(warpgroup, -team.first));
  LogicalResult result =
      team.isShared() ? emitShared(team, threadIndex, next, exit) : emitRole(exit);
  builder.setInsertionPointToEnd(next);
  return result;
}

/// Writes roles that share a warpgroup: each runs on the warps behind those of the role before; all
/// other threads leave.
LogicalResult Emitter::emitShared(const hop::RoleTeam &team, Value threadIndex, Block *next,
                                  Block *exit) {
  const ThreadValues ofWarpgroup = thread;
  Value inGroup = thread.inGroup;
  // From lane 0, so that ptxas knows that a warp goes one way: roles of whole warps have barriers,
  // and those of one thread take uniform registers.
  if (team.roles.size() > 1)
    inGroup = shuffle("idx", inGroup, i32(0));
  int64_t warps = 0;
  for (hop::RoleOp each : team.roles) {
    role = each;
    loc = role.getLoc();
    int64_t firstWarp = warps;
    warps += role.getNumWarps();
    Value isMine = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, inGroup,
                                        i32(hopper::warpThreads * warps));
    Block *before = builder.getInsertionBlock();
    Block *body = builder.createBlock(next);
    Block *others = each != team.roles.back() ? builder.createBlock(next) : exit;
    builder.setInsertionPointToEnd(before);
    LLVM::CondBrOp::create(builder, loc, isMine, body, others);
    builder.setInsertionPointToEnd(body);
    thread = ofWarpgroup;
    if (firstWarp && !role.isElected())
      setThreadValues(threadIndex, thread.warpgroup, firstWarp);
    if (failed(role.isElected() ? emitElected(exit) : emitRole(exit)))
      return failure();
    if (others != exit)
      builder.setInsertionPointToEnd(others);
  }
  return success();
}

template <typename Op>
static bool contains(hop::RoleOp role) {
  return role.walk([](Op) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// i1: of the lanes of the warp that come here together, the one that `elect.sync` chooses. ptxas
/// knows that there is one, and starts its copies without a loop over lanes.
Value Emitter::electLane() {
  Value chosen = assembly("{\n.reg .pred p;\nelect.sync _|p, -1;\nselp.b32 $0, 1, 0, p;\n}", "=r",
                          {}, TypeRange(builder.getI32Type()))
                     .front();
  return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, chosen, i32(0));
}

/// Chooses a lane by `elect.sync`, and by its number what it does outside of hop.one_lane.
void Emitter::electChosen() {
  Type i32Type = builder.getI32Type();
  Values given = assembly("{\n.reg .pred p;\nelect.sync $0|p, -1;\nselp.b32 $1, 1, 0, p;\n}",
                          "=r,=r", {}, TypeRange({i32Type, i32Type}));
  thread.chosenLane = given[0];
  thread.elected = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, given[1], i32(0));
  thread.chosen =
      LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread.lane, thread.chosenLane);
}

/// Writes the program of `role` for one thread of the warp that comes here; the others leave. Where
/// the warp computes bounds or places together, they stay, and do nothing but scalars.
LogicalResult Emitter::emitElected(Block *exit) {
  if (contains<hop::InLanesOp>(role)) {
    electChosen();
    return emitRole(exit);
  }
  if (contains<tile::ReduceRangeOp>(role)) {
    thread.chosenLane = i32(0);
    thread.chosen =
        LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread.lane, i32(0));
    return emitRole(exit);
  }
  Block *warp = builder.getInsertionBlock();
  Block *body = builder.createBlock(warp->getNextNode());
  builder.setInsertionPointToEnd(warp);
  LLVM::CondBrOp::create(builder, loc, electLane(), body, exit);
  builder.setInsertionPointToEnd(body);
  return emitRole(exit);
}

/// Writes the program of `role` here.
LogicalResult Emitter::emitRole(Block *exit) {
  bind(role.getBody().getArgument(0), {thread.warpgroup});
  if (contains<hop::TransposeOp>(role))
    thread.warp =
        shuffle("idx", LLVM::LShrOp::create(builder, loc, thread.inGroup, i32(5)), i32(0));
  if (kernel.getTimeline())
    emitTimelineRoleStart();
  if (failed(emitBlock(role.getBody().front())))
    return failure();
  closeSums();
  if (kernel.getTimeline())
    emitTimelineRoleEnd();
  LLVM::BrOp::create(builder, loc, exit);
  firstRecord += role.getNumWarpgroups();
  return success();
}

/// What a thread knows of itself in a role whose warps begin behind `firstWarp` others of the
/// warpgroup.
void Emitter::setThreadValues(Value threadIndex, Value warpgroup, int64_t firstWarp) {
  auto bits = [&](Value value, int64_t mask) -> Value {
    return LLVM::AndOp::create(builder, loc, value, i32(mask));
  };
  auto shift = [&](Value value, int64_t by) -> Value {
    return LLVM::LShrOp::create(builder, loc, value, i32(by));
  };
  thread.warpgroup = thread.amongTiles = warpgroup;
  if (kernel.getSpread())
    thread.amongTiles = add(mul(clusterRank(), role.getNumWarpgroups()), warpgroup);
  thread.chosen = thread.elected = {};
  thread.inGroup = bits(threadIndex, hopper::warpgroupThreads - 1);
  if (firstWarp)
    thread.inGroup = add(thread.inGroup, -firstWarp * hopper::warpThreads);
  thread.lane = bits(threadIndex, hopper::warpThreads - 1);
  thread.firstRow = add(mul(shift(thread.inGroup, 5), 16), shift(thread.lane, 2));
  thread.firstColumn = mul(bits(thread.lane, 3), 2);
  if (int64_t size = kernel.getClusterSize(); size > 1)
    thread.clusterBase =
        assembly("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r",
                 {sharedBase, bits(thread.inGroup, size - 1)}, TypeRange(builder.getI32Type()))
            .front();
  thread.isLeader =
      toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread.inGroup, i32(0)));
}

/// Where the blocks of a cluster first write to each other's memory, at the top of `role`.
static Operation *findFirstMeeting(hop::RoleOp role) {
  auto kernel = role->getParentOfType<hop::KernelOp>();
  if (!kernel.sharesPoint())
    return nullptr;
  Operation *first = nullptr;
  role.walk([&](Operation *op) {
    if (!(kernel.getSpread() ? isa<hop::CombineOp>(op) : isa<hop::FromBlockOp>(op)))
      return WalkResult::advance();
    first = role.getBody().front().findAncestorOpInBlock(*op);
    return WalkResult::interrupt();
  });
  return first;
}

LogicalResult Emitter::emitBlock(Block &block) {
  Operation *firstMeeting =
      isa<hop::RoleOp>(block.getParentOp()) ? findFirstMeeting(role) : nullptr;
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    loc = op.getLoc();
    if (&op == firstMeeting)
      assembly("barrier.cluster.wait.acquire.aligned;", "", {}, {});
    if (failed(emitOp(&op)))
      return failure();
  }
  return success();
}

/// Whether `op` does more than compute scalars and places, so that one thread of an elected role
/// does it.
static bool isOfOneThread(Operation *op) {
  auto isNumber = [](Type type) { return type.isIntOrIndex(); };
  return isa<tile::StoreOp>(op) ||
         (isa<hop::HopDialect>(op->getDialect()) && op->getNumRegions() == 0 &&
          !isa<hop::MarkOp>(op) && !isMemoryEffectFree(op) &&
          llvm::all_of(op->getResultTypes(), isNumber));
}

/// Has the chosen lane do `op`; what it gives, a number at most, is that of all lanes.
LogicalResult Emitter::emitByChosen(Operation *op) {
  Block *after = splitBlock();
  Block *inner = builder.createBlock(after);
  builder.setInsertionPointToEnd(inner->getPrevNode());
  Values none;
  if (op->getNumResults() == 1) {
    after->addArgument(builder.getI32Type(), loc);
    none.push_back(i32(0));
  }
  LLVM::CondBrOp::create(builder, loc, thread.chosen, inner, {}, after, none);
  builder.setInsertionPointToEnd(inner);
  if (failed(emitForThread(op)))
    return failure();
  Values given;
  if (!none.empty())
    given.push_back(scalar(op->getResult(0)));
  LLVM::BrOp::create(builder, loc, given, after);
  builder.setInsertionPointToStart(after);
  if (!none.empty())
    bind(op->getResult(0), {shuffle("idx", after->getArgument(0), thread.chosenLane)});
  return success();
}

LogicalResult Emitter::emitOp(Operation *op) {
  return thread.chosen && isOfOneThread(op) ? emitByChosen(op) : emitForThread(op);
}

LogicalResult Emitter::emitForThread(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::ForOp loop) { return emitFor(loop); })
      .Case([&](scf::IfOp conditional) { return emitIf(conditional); })
      .Case([&](scf::WhileOp loop) { return emitWhile(loop); })
      .Case([&](tile::ReduceRangeOp reduce) { return emitReduceRange(reduce); })
      .Case([&](hop::InLanesOp lanes) { return emitInLanes(lanes); })
      .Case([&](hop::OneLaneOp one) { return emitOneLane(one); })
      .Case([&](hop::OfLaneOp of) {
        // Of one lane, so that ptxas knows it to be the same in the whole warp.
        bind(of, {shuffle("idx", scalar(of.getPlaces()), scalar(of.getNumber()))});
        return success();
      })
      .Case([&](tile::DimOp dim) {
        bind(dim, {function.getArgument(parameters.dimPosition(dim.getDim()))});
        return success();
      })
      .Case([&](tile::ClusterRankOp rank) { return bind(rank, {clusterRank()}), success(); })
      .Case([&](tile::RowOp row) { return bind(row, {scalar(row.getRow())}), success(); })
      .Case([&](tile::LoadOp load) { return emitLoad(load); })
      .Case([&](tile::GatherOp gather) { return emitGather(gather); })
      .Case([&](tile::GatherElementsOp gather) { return emitGatherElements(gather), success(); })
      .Case([&](tile::ScatterAddOp scatter) { return emitScatterAdd(scatter), success(); })
      .Case([&](tile::StoreOp store) { return emitStore(store); })
      .Case([&](tile::ScatterOp scatter) { return emitScatter(scatter); })
      .Case([&](tile::ReduceOp reduce) { return emitReduce(reduce); })
      .Case([&](tile::ReferenceOp reference) { return emitReference(reference), success(); })
      .Case([&](tile::ScanOp scan) { return emitScan(scan), success(); })
      .Case([&](hop::ScanOp scan) { return emitScan(scan), success(); })
      .Case([&](tile::AnyOp any) { return emitAny(any), success(); })
      .Case([&](tile::BroadcastOp broadcast) { return emitBroadcast(broadcast); })
      .Case([&](tile::SplatOp splat) { return emitSplat(splat); })
      .Case([&](tile::IotaOp iota) { return emitIota(iota); })
      .Case([&](hop::ConvertLayoutOp convert) { return emitConvertLayout(convert); })
      .Case([&](hop::CombineOp combine) { return emitCombine(combine); })
      .Case([&](hop::FromBlockOp sent) { return emitFromBlock(sent), success(); })
      .Case([&](hop::CombineAllOp combine) { return emitCombineAll(combine), success(); })
      .Case([&](hop::RearrangeOp rearrange) { return emitRearrange(rearrange); })
      .Case([&](tile::TransposeOp transpose) { return emitExchange(transpose), success(); })
      .Case([&](hop::ColumnsOp columns) { return emitColumns(columns), success(); })
      .Case([&](hop::RowFactorOp factor) {
        bind(factor, elements(factor.getSource()));
        return success();
      })
      .Case([&](hop::MmaIssueOp issue) { return emitIssue(issue); })
      .Case([&](hop::MmaWaitOp wait) { return emitWait(wait); })
      .Case([&](hop::FetchOp fetch) { return emitFetch(fetch); })
      .Case([&](hop::PinOp pin) { return emitBlockEnd(pin.getTiles()), success(); })
      .Default([&](Operation *other) {
        if (isa<hop::HopDialect>(other->getDialect()))
          return emitSync(other);
        return emitElementwise(other);
      });
}
