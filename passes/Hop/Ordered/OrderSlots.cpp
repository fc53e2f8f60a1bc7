//===- OrderSlots.cpp - When a role waits for a slot, loads and releases --===//
//
// Implements hop-order-slots. See OrderPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/MemoryDependenceAnalysis.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera {
#define GEN_PASS_DEF_ORDERSLOTS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

/// The operation of the block that `wait` has to stay before: what uses the tile, the next wait for
/// the same pipe, or the end.
Operation *findPlace(hop::PipeWaitOp wait) {
  for (Operation *op = wait->getNextNode();; op = op->getNextNode()) {
    bool uses =
        llvm::any_of(wait->getUsers(), [&](Operation *user) { return op->isAncestor(user); });
    bool takesNext = llvm::is_contained(op->getOperands(), wait.getPipe()) &&
                     isa<hop::PipeWaitOp, hop::PipePeekOp>(op);
    if (uses || takesNext || op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>())
      return op;
  }
}

/// Pipes whose loads read what the kernel stores: a store behind a wait for one comes after the
/// load, which holds only as long as the wait stays before it.
llvm::SmallDenseSet<Value> findOrdered(hop::KernelOp kernel) {
  llvm::SmallDenseSet<Value> stored, pipes;
  kernel.walk([&](Operation *op) {
    std::optional<MemoryAccess> access = MemoryAccess::get(op);
    if (access && access->stores)
      stored.insert(access->view);
  });
  kernel.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (stored.contains(operand))
        for (Value pipe : op->getOperands())
          if (isa<hop::PipeType>(pipe.getType()))
            pipes.insert(pipe);
  });
  return pipes;
}

/// The first product between `from` and `to`, operations of one block.
hop::MmaOp findProduct(Operation *from, Operation *to) {
  for (Operation *op = from; op != to; op = op->getNextNode())
    if (auto product = dyn_cast<hop::MmaOp>(op))
      return product;
  return {};
}

/// Why products go before `wait`, if they should.
std::optional<StringRef> whyLate(hop::PipeWaitOp wait) {
  if (wait.getPipe().getType().getSlots() == 1)
    return StringRef("its pipe has one slot, which is filled when the step before is done: "
                     "products that do not need it go first");
  // Rows that a warpgroup gathers stay as they are: by lists it lost.
  auto kernel = wait->getParentOfType<hop::KernelOp>();
  bool handsOn = kernel.getSchedule().getPlacement() == tile::PlacementKind::divided &&
                 llvm::range_size(wait->getBlock()->getOps<hop::PipeCommitOp>()) > 1;
  if (handsOn && llvm::any_of(wait.getPipe().getUsers(), llvm::IsaPred<hop::PipeLoadOp>))
    return StringRef("others wait for what this role hands on: "
                     "products that do not need the tile go first");
  return std::nullopt;
}

/// Moves such waits behind the products that stand before the first use of their tiles.
void waitLate(hop::RoleOp role, const llvm::SmallDenseSet<Value> &ordered) {
  SmallVector<hop::PipeWaitOp> waits;
  role.walk([&](hop::PipeWaitOp wait) {
    if (whyLate(wait) && !ordered.contains(wait.getPipe()))
      waits.push_back(wait);
  });
  for (hop::PipeWaitOp wait : waits) {
    Operation *place = findPlace(wait);
    hop::MmaOp product = findProduct(wait, place);
    if (!product)
      continue;
    wait->emitRemark(*whyLate(wait)).attachNote(product.getLoc()) << "the first of them";
    wait->moveBefore(place);
  }
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

int64_t slotsOf(hop::PipeLoadOp load) { return load.getPipe().getType().getSlots(); }

/// The loads of a block.
class Loads {
public:
  explicit Loads(Block &block) : block(block) {
    block.walk([&](hop::PipeLoadOp load) {
      Value pipe = load.getPipe();
      if (load->getBlock() != &block)
        inside.insert(pipe);
      else if (inside.contains(pipe))
        late.insert(pipe);
      else
        ++fills[pipe];
    });
  }

  /// Whether a step before this one has filled the slot that `load` waits for, so that it is given
  /// back before this step needs any of its loads.
  bool isEarly(hop::PipeLoadOp load) const {
    Value pipe = load.getPipe();
    return slotsOf(load) > 1 && !late.contains(pipe) && fills.lookup(pipe) <= slotsOf(load);
  }

  /// Those that follow each other with nothing but arithmetic between them, and may change places.
  SmallVector<SmallVector<hop::PipeLoadOp>> findRuns() const {
    SmallVector<SmallVector<hop::PipeLoadOp>> runs(1);
    for (Operation &op : block) {
      auto load = dyn_cast<hop::PipeLoadOp>(op);
      if (load && (slotsOf(load) == 1 || isEarly(load)))
        runs.back().push_back(load);
      else if (!isPure(&op) && !runs.back().empty())
        runs.emplace_back();
    }
    return runs;
  }

private:
  Block &block;
  /// How often a step fills a pipe.
  llvm::SmallDenseMap<Value, int64_t> fills;
  /// Pipes that loops and branches of the block fill, and those that it fills itself behind them.
  llvm::SmallDenseSet<Value> inside, late;
};

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

/// One that a copy reads, one of which the next copy begins, and one to be filled.
constexpr int64_t leastSlots = 3;

/// A copy from a slot, and the operation behind it that gives the slot back.
struct Copy {
  hop::BulkStoreOp store;
  hop::PipeReleaseOp release;
};

/// `store`, if the next operation gives the slot that it reads back.
std::optional<Copy> findCopy(hop::BulkStoreOp store) {
  auto release = dyn_cast_or_null<hop::PipeReleaseOp>(store->getNextNode());
  if (store.getInFlight() != 0 || !release || release.getTile() != store.getSource())
    return std::nullopt;
  return Copy{store, release};
}

/// The copy behind `copy`, if only index arithmetic and the wait for its slot, which is of the same
/// pipe, are in between.
std::optional<Copy> findNext(Copy copy) {
  hop::PipeReleaseOp release = copy.release;
  for (Operation *op = release->getNextNode(); op; op = op->getNextNode()) {
    if (auto store = dyn_cast<hop::BulkStoreOp>(op)) {
      std::optional<Copy> next = findCopy(store);
      bool isAlike = next && next->release.getPipe() == release.getPipe();
      return isAlike ? next : std::nullopt;
    }
    auto wait = dyn_cast<hop::PipeWaitOp>(op);
    if (!(wait && wait.getPipe() == release.getPipe()) && !isPure(op))
      return std::nullopt;
  }
  return std::nullopt;
}

/// The copies from `first` on of which each one stands behind the one before.
SmallVector<Copy> findRun(hop::BulkStoreOp first) {
  SmallVector<Copy> run;
  for (std::optional<Copy> copy = findCopy(first); copy; copy = findNext(*copy))
    run.push_back(*copy);
  return run;
}

struct OrderSlotsPass : tessera::impl::OrderSlotsBase<OrderSlotsPass> {
  void runOnOperation() override {
    llvm::SmallDenseSet<Value> ordered = findOrdered(getOperation());
    for (hop::RoleOp role : getOperation().getBody().getOps<hop::RoleOp>()) {
      waitLate(role, ordered);
      if (!role.isElected())
        continue;
      role.walk([](LoopLikeOpInterface loop) {
        for (Region *region : loop.getLoopRegions())
          for (Block &block : *region)
            orderLoads(block);
      });
      releaseLate(role);
    }
  }

private:
  static void orderLoads(Block &block) {
    Loads loads(block);
    for (ArrayRef<hop::PipeLoadOp> run : loads.findRuns())
      orderLoads(run);
  }

  /// Moves those that have one slot behind the others of `run`.
  static void orderLoads(ArrayRef<hop::PipeLoadOp> run) {
    auto last =
        llvm::find_if(llvm::reverse(run), [](hop::PipeLoadOp load) { return slotsOf(load) > 1; });
    if (last == run.rend())
      return;
    hop::PipeLoadOp early = *last;
    Operation *place = early;
    for (hop::PipeLoadOp load : run) {
      if (load == early)
        break;
      if (slotsOf(load) > 1)
        continue;
      load->emitRemark("has one slot, which the step before gives back: loads that need "
                       "not wait for that go first")
              .attachNote(early.getLoc())
          << "the last of them";
      load->moveAfter(place);
      place = load;
    }
  }

  static void releaseLate(hop::RoleOp role) {
    SmallVector<hop::BulkStoreOp> stores;
    role.walk([&](hop::BulkStoreOp store) { stores.push_back(store); });
    DenseSet<Operation *> seen;
    for (hop::BulkStoreOp store : stores) {
      if (seen.contains(store))
        continue;
      SmallVector<Copy> run = findRun(store);
      for (Copy &copy : run)
        seen.insert(copy.store);
      releaseLate(run);
    }
  }

  static void releaseLate(MutableArrayRef<Copy> run) {
    if (run.size() < 2 || run.front().release.getPipe().getType().getSlots() < leastSlots)
      return;
    for (auto [copy, next] : llvm::zip(run.drop_back(), run.drop_front())) {
      copy.release
              ->emitRemark(
                  "is given back behind the next copy, which begins while this one reads the slot")
              .attachNote(next.store.getLoc())
          << "the next copy";
      copy.release->moveAfter(next.store);
    }
    // Behind the next copy each one is the last but one.
    for (Copy &copy : run)
      copy.store.setInFlight(1);
    OpBuilder builder(run.back().release);
    hop::BulkReadWaitOp::create(builder, run.back().release.getLoc());
  }
};

} // namespace
