//===- Pingpong.cpp - Turns of the consumer warpgroups --------------------===//
//
// Implements hop-pingpong. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/MapVector.h"

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

/// A vector that another role makes, where this one takes it from its slot.
struct VectorRead {
  hop::PipeWaitOp wait;
  hop::FetchOp fetch;
  hop::PipeReleaseOp release;

  static std::optional<VectorRead> get(hop::PipeWaitOp wait) {
    VectorRead read{wait, nullptr, nullptr};
    for (Operation *user : wait.getTile().getUsers()) {
      if (auto fetch = dyn_cast<hop::FetchOp>(user); fetch && !read.fetch)
        read.fetch = fetch;
      else if (auto release = dyn_cast<hop::PipeReleaseOp>(user); release && !read.release)
        read.release = release;
      else
        return std::nullopt;
    }
    bool isVector = read.fetch && cast<RankedTensorType>(read.fetch.getType()).getRank() == 1;
    if (!isVector || !read.release || read.fetch->getBlock() != wait->getBlock() ||
        read.release->getBlock() != wait->getBlock())
      return std::nullopt;
    return read;
  }

  SmallVector<Operation *> operations() const { return {wait, fetch, release}; }
};

/// All reads of a pipe by a role: one in each iteration of some loops with products, and one behind
/// them, in the block of the loops.
struct VectorReads {
  SmallVector<std::pair<scf::ForOp, VectorRead>> inLoops;
  VectorRead behind;

  static std::optional<VectorReads> get(ArrayRef<hop::PipeWaitOp> waits) {
    std::optional<VectorRead> behind = VectorRead::get(waits.back());
    if (!behind || waits.size() < 2)
      return std::nullopt;
    VectorReads reads{{}, *behind};
    Operation *before = nullptr;
    for (hop::PipeWaitOp wait : waits.drop_back()) {
      std::optional<VectorRead> read = VectorRead::get(wait);
      auto loop = dyn_cast<scf::ForOp>(wait->getParentOp());
      if (!read || !loop || loop->getBlock() != behind->wait->getBlock() || loop == before ||
          loop.getBody()->getOps<hop::MmaIssueOp>().empty() || !loop->isBeforeInBlock(behind->wait))
        return std::nullopt;
      reads.inLoops.emplace_back(loop, *read);
      before = loop;
    }
    return reads;
  }

  /// Has each product wait for the vector of the next iteration, which is read once, and which the
  /// iteration then hands on.
  void moveAhead() {
    IRRewriter rewriter(behind.wait.getContext());
    rewriter.setInsertionPoint(inLoops.front().first);
    IRMapping first;
    for (Operation *op : inLoops.front().second.operations())
      rewriter.clone(*op, first);
    Value next = first.lookup(inLoops.front().second.fetch.getTile());
    for (auto &[loop, read] : inLoops) {
      Operation *product = *loop.getBody()->getOps<hop::MmaIssueOp>().begin();
      for (Operation *op : read.operations())
        op->moveBefore(product);
      rewriter.setInsertionPoint(loop);
      Value ahead = read.fetch.getTile();
      auto handsOn = [&](OpBuilder &, Location, ArrayRef<BlockArgument> own) {
        rewriter.replaceAllUsesWith(ahead, own.front());
        return SmallVector<Value>{ahead};
      };
      FailureOr<LoopLikeOpInterface> made =
          loop.replaceWithAdditionalYields(rewriter, next, false, handsOn);
      next = cast<scf::ForOp>(made->getOperation()).getResults().back();
    }
    rewriter.replaceAllUsesWith(behind.fetch.getTile(), next);
    for (Operation *op :
         {behind.release.getOperation(), behind.fetch.getOperation(), behind.wait.getOperation()})
      rewriter.eraseOp(op);
  }
};

struct PingpongPass : tessera::impl::PingpongBase<PingpongPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    const tile::ScheduleFields &schedule = kernel.getSchedule().getFields();
    if (failed(schedule.require(kernel, &tile::ScheduleFields::pingpong)))
      return signalPassFailure();
    if (!*schedule.pingpong)
      return;
    auto roles = kernel.getBody().getOps<hop::RoleOp>();
    if (schedule.placement == tile::PlacementKind::divided) {
      if (!llvm::count_if(roles, [](hop::RoleOp role) { return followMaker(role); })) {
        kernel.emitError("pingpong = true has the products of a consumer wait for those of another "
                         "one that makes a vector of rows for them, in a loop and once more behind "
                         "it, and no consumer of this kernel gets one so; use pingpong = false");
        return signalPassFailure();
      }
      return;
    }
    // A role of one warpgroup takes no turns beside one that has several.
    bool hasTeam =
        llvm::any_of(roles, [](hop::RoleOp role) { return role.getNumWarpgroups() > 1; });
    for (auto role : roles)
      if (!role.isElected() && (role.getNumWarpgroups() > 1 || !hasTeam) &&
          failed(insertTurns(role)))
        return signalPassFailure();
  }

  /// Has the products of `role` wait until the consumer that makes a vector for them has done those
  /// of its own next iteration: they run under its elementwise work then, and not beside its
  /// products. Returns whether it gets such a vector.
  static bool followMaker(hop::RoleOp role) {
    llvm::MapVector<Value, SmallVector<hop::PipeWaitOp>> waits;
    role.walk([&](hop::PipeWaitOp wait) { waits[wait.getPipe()].push_back(wait); });
    for (auto &[pipe, ofPipe] : waits)
      if (std::optional<VectorReads> reads = VectorReads::get(ofPipe))
        return reads->moveAhead(), true;
    return false;
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
