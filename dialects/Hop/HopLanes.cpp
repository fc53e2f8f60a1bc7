//===- HopLanes.cpp - What lanes of a warp do together, and one alone -----===//

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Tile/ScalarRegion.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::hop;

/// Refuses `op` in other roles than elected ones, whose lanes stay together.
static LogicalResult verifyElected(Operation *op, StringRef takes, StringRef instead) {
  auto role = op->getParentOfType<RoleOp>();
  if (!role || role.isElected())
    return success();
  return op->emitOpError("takes ") << takes << ", and @" << role.getSymName() << " has " << instead;
}

LogicalResult InLanesOp::verifyRegions() {
  Block &body = getBody().front();
  if (getResults().empty() || !llvm::all_equal(getResultTypes()) ||
      getCount() > hopper::warpThreads)
    return emitOpError("gives at least one place for each of as many numbers as the lanes of a "
                       "warp, ")
           << hopper::warpThreads << ", or fewer";
  if (body.getNumArguments() != 1 || !body.getArgument(0).getType().isIndex() ||
      !isa<YieldOp>(body.back()) || getYielded().size() != getNumResults())
    return emitOpError("has a region of an index, which ends with a hop.yield of as many places as "
                       "there are results");
  if (failed(verifyElected(*this, "the lanes of a warp that has nothing else to do",
                           "threads that do; move it to an elected role")))
    return failure();
  return tile::verifyScalars(body);
}

LogicalResult OneLaneOp::verifyRegions() {
  Block &body = getBody().front();
  auto first = llvm::find_if(body, [](Operation &op) { return !isa<MarkOp>(op); });
  if (first == body.end() || !isa<BarrierWaitOp>(*first))
    return emitOpError("begins with a hop.barrier.wait, which keeps ptxas from starting its copies "
                       "in all parts of a warp whose lanes have parted");
  if (failed(verifyElected(*this, "one lane of a warp that stays together",
                           "threads of its own; use an scf.if of hop.elected")))
    return failure();
  auto isInLanes = [](InLanesOp) { return WalkResult::interrupt(); };
  auto role = (*this)->getParentOfType<RoleOp>();
  if (role && !role.walk(isInLanes).wasInterrupted())
    return emitOpError("stands in a role without a hop.in_lanes, where one thread does all; write "
                       "its operations without it");
  WalkResult met = body.walk([&](Operation *op) {
    if (!isa<InLanesOp, OfLaneOp, OneLaneOp, tile::ReduceRangeOp>(op))
      return WalkResult::advance();
    op->emitOpError("needs all lanes, and one alone comes here; move it before the hop.one_lane");
    return WalkResult::interrupt();
  });
  return failure(met.wasInterrupted());
}

LogicalResult OfLaneOp::verify() {
  if (getPlaces().getDefiningOp<InLanesOp>())
    return success();
  return emitOpError("takes what a hop.in_lanes gives");
}
