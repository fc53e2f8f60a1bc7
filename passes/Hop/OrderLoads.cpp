//===- OrderLoads.cpp - Loads that wait for a step go behind others -------===//
//
// Implements hop-order-loads. See AheadPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/MapVector.h"

namespace tessera {
#define GEN_PASS_DEF_ORDERLOADS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

int64_t slotsOf(hop::PipeLoadOp load) { return load.getPipe().getType().getSlots(); }

/// Loads that follow each other with nothing but arithmetic between them.
using Run = SmallVector<hop::PipeLoadOp>;

SmallVector<Run> findRuns(Block &block) {
  SmallVector<Run> runs(1);
  for (Operation &op : block) {
    if (auto load = dyn_cast<hop::PipeLoadOp>(op))
      runs.back().push_back(load);
    else if (!isPure(&op) && !runs.back().empty())
      runs.emplace_back();
  }
  return runs;
}

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
    llvm::MapVector<Value, int64_t> fills;
    for (auto load : block.getOps<hop::PipeLoadOp>())
      ++fills[load.getPipe()];
    // Whether the slot that a load waits for is given back before this step needs any of its loads.
    auto isEarly = [&](hop::PipeLoadOp load) {
      return slotsOf(load) > 1 && fills[load.getPipe()] <= slotsOf(load);
    };
    for (const Run &run : findRuns(block))
      orderLoads(run, isEarly);
  }

  /// Moves those that have one slot behind the early ones of `run`.
  static void orderLoads(const Run &run, function_ref<bool(hop::PipeLoadOp)> isEarly) {
    auto last = llvm::find_if(llvm::reverse(run), isEarly);
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
