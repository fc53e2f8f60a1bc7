//===- Pingpong.cpp - Turns of the consumer warpgroups --------------------===//
//
// Implements hop-pingpong. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_PINGPONG
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// Elementwise work of `op`: elements of a rank-2 tile that it computes.
int64_t elementwiseWork(Operation &op) {
  if (isa<hop::MmaIssueOp, hop::MmaWaitOp>(op) || op.getNumRegions() != 0)
    return 0;
  int64_t work = 0;
  for (Type type : llvm::concat<const Type>(op.getOperandTypes(), op.getResultTypes()))
    if (auto tile = dyn_cast<RankedTensorType>(type); tile && tile.getRank() == 2)
      work = std::max(work, tile.getNumElements());
  return work;
}

/// The products of a loop body and the work between them: `gaps[i]` follows product i,
/// the last one continues over the back edge.
struct LoopShape {
  SmallVector<hop::MmaIssueOp> products;
  SmallVector<int64_t> gaps;
};

LoopShape shapeOf(scf::ForOp loop) {
  LoopShape shape;
  int64_t before = 0;
  for (Operation &op : *loop.getBody()) {
    if (auto product = dyn_cast<hop::MmaIssueOp>(op)) {
      shape.products.push_back(product);
      shape.gaps.push_back(0);
      continue;
    }
    (shape.gaps.empty() ? before : shape.gaps.back()) += elementwiseWork(op);
  }
  if (!shape.gaps.empty())
    shape.gaps.back() += before;
  return shape;
}

struct PingpongPass : tessera::impl::PingpongBase<PingpongPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    const tile::ScheduleFields &schedule = kernel.getSchedule().getFields();
    if (failed(schedule.require(kernel, &tile::ScheduleFields::pingpong)))
      return signalPassFailure();
    if (!*schedule.pingpong)
      return;
    // A role of one warpgroup takes no turns beside one that has several.
    auto roles = kernel.getBody().getOps<hop::RoleOp>();
    bool hasTeam =
        llvm::any_of(roles, [](hop::RoleOp role) { return role.getNumWarpgroups() > 1; });
    for (auto role : roles)
      if (!role.isElected() && (role.getNumWarpgroups() > 1 || !hasTeam) &&
          failed(insertTurns(role)))
        return signalPassFailure();
  }

  LogicalResult insertTurns(hop::RoleOp role) {
    if (role.getNumWarpgroups() < 2)
      return role.emitError("pingpong = true needs two or more warpgroups to take turns; the role "
                            "has ")
             << role.getNumWarpgroups();
    bool found = false;
    WalkResult walk = role.walk([&](scf::ForOp loop) -> WalkResult {
      LoopShape shape = shapeOf(loop);
      bool isInnermost = !loop.getBody()
                              ->walk([](scf::ForOp) { return WalkResult::interrupt(); })
                              .wasInterrupted();
      if (!isInnermost || shape.products.empty() || *llvm::max_element(shape.gaps) == 0)
        return success();
      auto joins = loop.getBody()->getOps<hop::RoleSyncOp>();
      if (!joins.empty())
        return (*joins.begin())
            .emitError(
                "waits for all consumer warpgroups, of which one at a time has its turn; use "
                "pingpong = false");
      insertTurns(role, loop, shape);
      found = true;
      return checkSlots(loop);
    });
    if (walk.wasInterrupted())
      return failure();
    if (!found)
      return role.emitError(
          "pingpong = true needs a loop with products and elementwise work on their "
          "results, of which this kernel has none; use pingpong = false");
    OpBuilder builder = OpBuilder::atBlockBegin(&role.getBody().front());
    hop::TurnStartOp::create(builder, role.getLoc(), role.getBody().getArgument(0));
    return success();
  }

  /// Refuses a turn in which a warpgroup waits for a slot that the others give back only in turns
  /// of their own: those that they hold at its start, and those taken in it, must fit in the pipe.
  LogicalResult checkSlots(scf::ForOp loop) {
    DenseMap<Value, int64_t> held, atStart;
    // Twice around, so that what is held over the back edge counts.
    for (int round = 0; round < 2; ++round)
      for (Operation &op : *loop.getBody()) {
        if (isa<hop::TurnWaitOp>(op))
          atStart = held;
        else if (isa<hop::TurnPassOp>(op))
          atStart.clear();
        else if (auto release = dyn_cast<hop::PipeReleaseOp>(op))
          --held[release.getPipe()];
        auto wait = dyn_cast<hop::PipeWaitOp>(op);
        if (!wait)
          continue;
        ++held[wait.getPipe()];
        auto start = atStart.find(wait.getPipe());
        int64_t slots = wait.getPipe().getType().getSlots();
        if (start != atStart.end() && ++start->second > slots)
          return wait.emitError("waits in a warpgroup's turn for a slot that the others give back "
                                "in theirs: pingpong = true needs ")
                 << start->second << " slots of this pipe, and it has " << slots
                 << "; raise stages";
      }
    return success();
  }

  /// A turn lasts from after a long stretch of elementwise work to before the next one. An unrolled
  /// loop has several.
  void insertTurns(hop::RoleOp role, scf::ForOp loop, LoopShape &shape) {
    Value warpgroup = role.getBody().getArgument(0);
    Location loc = loop.getLoc();
    int64_t longest = *llvm::max_element(shape.gaps);
    OpBuilder builder(loop);
    for (auto [i, gap] : llvm::enumerate(shape.gaps)) {
      if (2 * gap < longest)
        continue;
      builder.setInsertionPoint(shape.products[(i + 1) % shape.products.size()]);
      hop::TurnWaitOp::create(builder, loc, warpgroup);
      builder.setInsertionPointAfter(shape.products[i]);
      hop::TurnPassOp::create(builder, loc, warpgroup);
    }
    if (2 * shape.gaps.back() >= longest)
      return;
    // The turn spans the back edge: the loop is entered and left within one.
    builder.setInsertionPoint(loop);
    hop::TurnWaitOp::create(builder, loc, warpgroup);
    builder.setInsertionPointAfter(loop);
    hop::TurnPassOp::create(builder, loc, warpgroup);
  }
};

} // namespace
