//===- OrderLoads.cpp - Loads that wait for a step go behind others -------===//
//
// Implements hop-order-loads. See OrderPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera {
#define GEN_PASS_DEF_ORDERLOADS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

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

struct OrderLoadsPass : tessera::impl::OrderLoadsBase<OrderLoadsPass> {
  void runOnOperation() override {
    for (hop::RoleOp role : getOperation().getBody().getOps<hop::RoleOp>())
      if (role.isElected())
        role.walk([](LoopLikeOpInterface loop) {
          for (Region *region : loop.getLoopRegions())
            for (Block &block : *region)
              orderLoads(block);
        });
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
};
} // namespace
