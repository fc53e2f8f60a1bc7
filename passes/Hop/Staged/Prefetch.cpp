//===- Prefetch.cpp - Loads ahead of their use without a producer ---------===//
//
// Implements hop-prefetch. See StagingPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Hop/FutureValues.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_PREFETCH
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// The slots of `pipe` that a role holds at once at most: those of a block between a wait and its
/// release, and those that the blocks around it hold meanwhile.
int64_t heldIn(Block &block, Value pipe) {
  int64_t held = 0, most = 0;
  for (Operation &op : block) {
    int64_t inside = 0;
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        inside = std::max(inside, heldIn(nested, pipe));
    if (auto wait = dyn_cast<hop::PipeWaitOp>(op); wait && wait.getPipe() == pipe)
      ++held;
    most = std::max(most, held + inside);
    if (auto release = dyn_cast<hop::PipeReleaseOp>(op); release && release.getPipe() == pipe)
      --held;
  }
  return most;
}

/// A load in each iteration of the loop by the thread that the role elects.
struct OwnLoad {
  scf::IfOp guard;
  hop::PipeLoadOp load;
};

class LoopPrefetcher {
public:
  LoopPrefetcher(scf::ForOp loop, Block &role) : loop(loop), role(role) {}

  void run() {
    DenseMap<Value, unsigned> loadsOf;
    loop->walk([&](hop::PipeLoadOp load) { ++loadsOf[load.getPipe()]; });
    SmallVector<OwnLoad> loads;
    loop->walk([&](hop::PipeLoadOp load) {
      scf::IfOp guard = hop::findElection(load);
      if (guard && guard == load->getParentOp() && guard->getBlock() == loop.getBody())
        loads.push_back({guard, load});
    });
    for (OwnLoad own : loads) {
      if (!own.guard.getCondition().getDefiningOp<hop::ElectedOp>())
        own.load.emitRemark("not prefetched: the elected thread loads under one more condition");
      // Two loads fill the slots of a pipe in turns that a distance in iterations does not keep.
      else if (loadsOf.lookup(own.load.getPipe()) > 1)
        own.load.emitRemark("not prefetched: the loop loads into this pipe more than once");
      else
        prefetch(own);
    }
  }

private:
  /// How many iterations ahead the loads can start. The slot of the reads of the iteration before
  /// is the last that the other warpgroups give back, so one more is left to them where there is.
  int64_t distanceOf(Value pipe) {
    int64_t spare = cast<hop::PipeType>(pipe.getType()).getSlots() - heldIn(role, pipe);
    return spare > 1 ? spare - 1 : spare;
  }

  void prefetch(OwnLoad own) {
    int64_t distance = distanceOf(own.load.getPipe());
    if (distance < 1) {
      own.load.emitRemark("not prefetched: all slots of the pipe are in use; raise stages");
      return;
    }
    OpBuilder before(loop), inside(own.guard);
    FutureValues first(loop, before, loop.getLowerBound(), loop.getInitArgs());
    FutureValues later(loop, inside, loop.getInductionVar(), loop.getRegionIterArgs());
    // All addresses before any load: what was made for them is dead when one cannot be.
    SmallVector<SmallVector<Value>> addresses;
    for (int64_t ahead = 0; ahead <= distance; ++ahead)
      addresses.push_back(addressOf(own.load, ahead < distance ? first : later, ahead));
    if (!llvm::all_of(addresses,
                      [](const auto &address) { return llvm::all_of(address, isMade); })) {
      own.load.emitRemark("not prefetched: its address takes more than index arithmetic on the "
                          "induction variable");
      return;
    }
    for (int64_t ahead = 0; ahead < distance; ++ahead)
      startLoad(own, first.isRun(ahead), addresses[ahead], before);
    startLoad(own, later.isRun(distance), addresses[distance], inside);
    own.load.erase();
    if (own.guard.thenBlock()->without_terminator().empty())
      own.guard.erase();
  }

  static bool isMade(Value value) { return value != nullptr; }

  static SmallVector<Value> addressOf(hop::PipeLoadOp load, FutureValues &values, int64_t ahead) {
    SmallVector<Value> address;
    for (Value index : load.getIndices())
      address.push_back(values.get(index, ahead));
    return address;
  }

  /// Starts the load of an iteration, if the loop runs it.
  void startLoad(OwnLoad own, Value runs, ValueRange address, OpBuilder &builder) {
    Location loc = own.load.getLoc();
    auto elected = own.guard.getCondition().getDefiningOp<hop::ElectedOp>();
    Value isElected =
        hop::ElectedOp::create(builder, loc, builder.getI1Type(), elected.getWarpgroup());
    Value condition = arith::AndIOp::create(builder, loc, isElected, runs);
    auto guard = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
    OpBuilder then = guard.getThenBodyBuilder();
    hop::PipeLoadOp::create(then, loc, own.load.getPipe(), own.load.getView(), address,
                            own.load.getBoxAttr(), /*alike=*/UnitAttr(), own.load.getTf32Attr());
  }

  scf::ForOp loop;
  Block &role;
};

struct PrefetchPass : tessera::impl::PrefetchBase<PrefetchPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    const tile::ScheduleFields &schedule = kernel.getSchedule().getFields();
    if (failed(schedule.require(kernel, &tile::ScheduleFields::producer)))
      return signalPassFailure();
    if (schedule.hasProducer())
      return;
    for (auto role : kernel.getBody().getOps<hop::RoleOp>())
      role.walk([&](scf::ForOp loop) { LoopPrefetcher(loop, role.getBody().front()).run(); });
  }
};

} // namespace
