//===- InsertMbarriers.cpp - Pipes as buffers and mbarriers ---------------===//
//
// Implements hop-insert-mbarriers. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/Analysis/PipeProtocol.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/MapVector.h"

namespace tessera {
#define GEN_PASS_DEF_INSERTMBARRIERS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// What a pipe becomes.
struct Ring {
  Value buffer, full, empty;
  int64_t slots;
  int64_t bytes;
  bool isTile; ///< otherwise a value
  /// The roles of which every thread releases a slot, not one of each warpgroup.
  llvm::SmallPtrSet<Operation *, 2> releasedByAll;
  /// The threads that fill a slot arrive one by one, not one of each warpgroup.
  bool committedByAll;
  /// They do when the copies have come that fill it.
  bool copied;
  /// The blocks of a cluster fill it together: each its part of a tile, the first one a value.
  bool multicast;
  /// The pipe whose barriers and places stand for this one's too.
  Value leader;
};

/// A role's place in a ring: the next slot and the parity of its next phase.
struct Position {
  Value index, parity;
};

/// Fills and reads of one pipe have places of their own.
enum class Side { Fill, Read };
using Cursor = std::pair<Value, Side>;
using Positions = llvm::MapVector<Cursor, Position>;

/// The pipe that `op`, which fills, reads or gives back a slot of another pipe, goes with; or none.
Value leaderOf(Operation *op) {
  auto pipe = op->getOperand(0).getDefiningOp<hop::PipeCreateOp>();
  return pipe ? pipe.getLeader() : Value();
}

std::optional<Cursor> cursorOf(Operation *op) {
  if ((op->hasTrait<hop::FillsPipe>() || op->hasTrait<hop::ReadsPipe>()) && leaderOf(op))
    return std::nullopt;
  if (op->hasTrait<hop::FillsPipe>())
    return Cursor(op->getOperand(0), Side::Fill);
  if (op->hasTrait<hop::ReadsPipe>())
    return Cursor(op->getOperand(0), Side::Read);
  return std::nullopt;
}

/// Whether threads read the slot `shared`, or a part of it, into registers.
bool isFetched(Value shared) {
  return llvm::any_of(shared.getUsers(), [](Operation *user) {
    return isa<hop::FetchOp>(user) || (isa<hop::SliceOp>(user) && isFetched(user->getResult(0)));
  });
}

/// Whether the threads of the warpgroup have met between the last `Access` before `op` and `op`:
/// they read and write slots one by one.
template <typename Access>
bool haveMetSince(Operation *op) {
  while ((op = op->getPrevNode())) {
    if (isa<hop::WarpgroupSyncOp>(op))
      return true;
    if (isa<Access>(op) || op->getNumRegions() != 0)
      return false;
  }
  return false;
}

/// Whether every warp of the warpgroup has waited for the slot when one of its threads releases it:
/// a product that all of them issued after the wait is complete, or they have met since. Only what
/// is on the straight way from the wait to the release counts, as a loop or a conditional may do
/// nothing.
bool isJoined(hop::PipeReleaseOp release) {
  Operation *wait = release.getTile().getDefiningOp();
  if (!wait)
    return false;
  if (isFetched(wait->getResult(0)))
    return haveMetSince<hop::FetchOp>(release);
  DenseSet<Value> issued;
  SmallVector<Operation *> way = {release};
  while (way.back()->getBlock() != wait->getBlock())
    way.push_back(way.back()->getParentOp());
  Operation *from = wait->getNextNode();
  for (Operation *end : llvm::reverse(way)) {
    for (Operation *op = end == way.back() ? from : &end->getBlock()->front(); op != end;
         op = op->getNextNode()) {
      if (isa<hop::WarpgroupSyncOp>(op))
        return true;
      if (auto issue = dyn_cast<hop::MmaIssueOp>(op))
        issued.insert(issue.getFlight());
      else if (auto done = dyn_cast<hop::MmaWaitOp>(op);
               done && llvm::any_of(done.getFlights(),
                                    [&](Value flight) { return issued.contains(flight); }))
        return true;
    }
  }
  return false;
}

/// Whether the threads of each warpgroup have met since they wrote the slot that `commit` hands on.
bool isJoined(hop::PipeCommitOp commit) { return haveMetSince<hop::StageOp>(commit); }

/// Rewrites one role, carrying its positions through loops and conditionals.
class RoleRewriter {
public:
  RoleRewriter(const llvm::MapVector<Value, Ring> &rings, int64_t blocks, MLIRContext *context)
      : rings(rings), blocks(blocks), rewriter(context) {}

  void run(hop::RoleOp of) {
    role = of;
    Block &body = role.getBody().front();
    rewriter.setInsertionPointToStart(&body);
    Positions positions;
    role.walk([&](Operation *op) {
      std::optional<Cursor> cursor = cursorOf(op);
      if (!cursor || positions.contains(*cursor))
        return;
      // The phase before the first is complete, of parity 1: an empty slot needs no release.
      positions[*cursor] = {constant(role.getLoc(), 0),
                            constant(role.getLoc(), cursor->second == Side::Fill ? 1 : 0)};
    });
    rewriteBlock(body, positions);
    rewriter.setInsertionPointToEnd(&body);
    for (auto &[cursor, position] : positions)
      if (cursor.second == Side::Fill)
        drain(rings.find(cursor.first)->second, position);
  }

private:
  Value constant(Location loc, int32_t value) {
    return arith::ConstantIntOp::create(rewriter, loc, value, 32);
  }

  /// Waits until every slot of a ring that other blocks release too is empty: their arrivals must
  /// find this block's shared memory.
  void drain(const Ring &ring, Position position) {
    if (!ring.multicast)
      return;
    Location loc = role.getLoc();
    auto waitForAll = [&] {
      for (int64_t i = 0; i < ring.slots; ++i) {
        hop::BarrierWaitOp::create(rewriter, loc, ring.empty, position.index, position.parity);
        advance(loc, ring, position);
      }
    };
    auto waitWhereFilled = [&] { ring.isTile ? waitForAll() : inFirstBlock(loc, waitForAll); };
    if (role.isElected())
      return waitWhereFilled();
    // One thread has filled the ring and knows its place.
    Value elected =
        hop::ElectedOp::create(rewriter, loc, rewriter.getI1Type(), role.getBody().getArgument(0));
    onlyIf(loc, elected, waitWhereFilled);
  }

  void onlyIf(Location loc, Value condition, function_ref<void()> write) {
    auto guard = scf::IfOp::create(rewriter, loc, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard restore(rewriter);
    rewriter.setInsertionPointToStart(guard.thenBlock());
    write();
  }

  /// Writes what only the first block of a cluster does.
  void inFirstBlock(Location loc, function_ref<void()> write) {
    Value rank = hop::ClusterRankOp::create(rewriter, loc, rewriter.getIndexType());
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    Value isFirst = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, rank, zero);
    onlyIf(loc, isFirst, write);
  }

  void rewriteBlock(Block &block, Positions &positions) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      rewriter.setInsertionPoint(&op);
      if (auto load = dyn_cast<hop::PipeLoadOp>(op))
        rewriteLoad(load, positions);
      else if (auto wait = dyn_cast<hop::PipeWaitOp>(op))
        rewriteWait(wait, positions);
      else if (auto peek = dyn_cast<hop::PipePeekOp>(op))
        rewritePeek(peek, positions);
      else if (auto release = dyn_cast<hop::PipeReleaseOp>(op))
        rewriteRelease(release);
      else if (auto acquire = dyn_cast<hop::PipeAcquireOp>(op))
        rewriteAcquire(acquire, positions);
      else if (auto commit = dyn_cast<hop::PipeCommitOp>(op))
        rewriteCommit(commit);
      else if (auto lend = dyn_cast<hop::PipeLendOp>(op))
        rewriteLend(lend, positions);
      else if (auto put = dyn_cast<hop::PipePutOp>(op))
        rewritePut(put, positions);
      else if (auto get = dyn_cast<hop::PipeGetOp>(op))
        rewriteGet(get, positions);
      else if (auto loop = dyn_cast<scf::WhileOp>(op))
        rewriteWhile(loop, positions);
      else if (auto loop = dyn_cast<scf::ForOp>(op))
        rewriteLoop(loop, positions);
      else if (auto conditional = dyn_cast<scf::IfOp>(op))
        rewriteConditional(conditional, positions);
    }
  }

  /// Starts the copy of a load into the slot at `index`, of which `full` is told.
  void startCopy(hop::PipeLoadOp load, const Ring &ring, Value full, Value index) {
    Location loc = load.getLoc();
    Value slot = slotAt(loc, ring, index);
    auto copy = hop::BulkLoadOp::create(rewriter, loc, load.getView(), load.getIndices(),
                                        load.getBoxAttr(), slot, full, index, ring.multicast);
    copy->setDiscardableAttrs(load->getDiscardableAttrDictionary());
  }

  void rewriteLoad(hop::PipeLoadOp load, Positions &positions) {
    const Ring &ring = rings.find(load.getPipe())->second;
    if (ring.leader) {
      startCopy(load, ring, rings.find(ring.leader)->second.full, lastFilled.lookup(ring.leader));
      return load.erase();
    }
    Position &position = positions.find({load.getPipe(), Side::Fill})->second;
    Location loc = load.getLoc();
    hop::BarrierWaitOp::create(rewriter, loc, ring.empty, position.index, position.parity);
    hop::BarrierExpectOp::create(rewriter, loc, ring.full, position.index, ring.bytes);
    startCopy(load, ring, ring.full, position.index);
    lastFilled[load.getPipe()] = position.index;
    advance(loc, ring, position);
    load.erase();
  }

  void rewriteWait(hop::PipeWaitOp wait, Positions &positions) {
    const Ring &ring = rings.find(wait.getPipe())->second;
    if (ring.leader) {
      wait.getTile().replaceAllUsesWith(slotAt(wait.getLoc(), ring, lastRead.lookup(ring.leader)));
      return wait.erase();
    }
    Position &position = positions.find({wait.getPipe(), Side::Read})->second;
    lastRead[wait.getPipe()] = position.index;
    hop::BarrierWaitOp::create(rewriter, wait.getLoc(), ring.full, position.index, position.parity);
    Value slot = slotAt(wait.getLoc(), ring, position.index);
    indexOfSlot[slot] = position.index;
    wait.getTile().replaceAllUsesWith(slot);
    advance(wait.getLoc(), ring, position);
    wait.erase();
  }

  /// The next wait takes the slot.
  void rewritePeek(hop::PipePeekOp peek, Positions &positions) {
    const Ring &ring = rings.find(peek.getPipe())->second;
    const Position &position = positions.find({peek.getPipe(), Side::Read})->second;
    hop::BarrierWaitOp::create(rewriter, peek.getLoc(), ring.full, position.index, position.parity);
    peek.getTile().replaceAllUsesWith(slotAt(peek.getLoc(), ring, position.index));
    peek.erase();
  }

  void rewriteRelease(hop::PipeReleaseOp release) {
    const Ring &ring = rings.find(release.getPipe())->second;
    if (ring.leader)
      return release.erase();
    hop::BarrierArriveOp::create(rewriter, release.getLoc(), ring.empty,
                                 indexOfSlot.lookup(release.getTile()),
                                 ring.releasedByAll.contains(role), /*copies=*/false,
                                 ring.multicast ? rewriter.getI64IntegerAttr(blocks) : nullptr);
    release.erase();
  }

  void rewriteAcquire(hop::PipeAcquireOp acquire, Positions &positions) {
    const Ring &ring = rings.find(acquire.getPipe())->second;
    Position &position = positions.find({acquire.getPipe(), Side::Fill})->second;
    Location loc = acquire.getLoc();
    hop::BarrierWaitOp::create(rewriter, loc, ring.empty, position.index, position.parity);
    Value slot = slotAt(loc, ring, position.index);
    indexOfSlot[slot] = position.index;
    acquire.getTile().replaceAllUsesWith(slot);
    advance(loc, ring, position);
    acquire.erase();
  }

  void rewriteCommit(hop::PipeCommitOp commit) {
    const Ring &ring = rings.find(commit.getPipe())->second;
    hop::BarrierArriveOp::create(rewriter, commit.getLoc(), ring.full,
                                 indexOfSlot.lookup(commit.getTile()),
                                 ring.committedByAll && !ring.copied, ring.copied,
                                 /*blocks=*/nullptr);
    commit.erase();
  }

  /// The arrival that a load makes, without bytes to wait for.
  void rewriteLend(hop::PipeLendOp lend, Positions &positions) {
    const Ring &ring = rings.find(lend.getPipe())->second;
    Position &position = positions.find({lend.getPipe(), Side::Fill})->second;
    Location loc = lend.getLoc();
    hop::BarrierWaitOp::create(rewriter, loc, ring.empty, position.index, position.parity);
    hop::BarrierArriveOp::create(rewriter, loc, ring.full, position.index, /*all=*/true,
                                 /*copies=*/false, /*blocks=*/nullptr);
    advance(loc, ring, position);
    lend.erase();
  }

  void rewritePut(hop::PipePutOp put, Positions &positions) {
    const Ring &ring = rings.find(put.getPipe())->second;
    Position &position = positions.find({put.getPipe(), Side::Fill})->second;
    Location loc = put.getLoc();
    auto waitForReaders = [&] {
      hop::BarrierWaitOp::create(rewriter, loc, ring.empty, position.index, position.parity);
    };
    if (ring.multicast) {
      // This block's last read of the slot is over: its producer reads every value too.
      hop::BarrierExpectOp::create(rewriter, loc, ring.full, position.index, ring.bytes);
      inFirstBlock(loc, [&] {
        waitForReaders();
        hop::SlotMulticastOp::create(rewriter, loc, put.getValue(), ring.buffer, ring.full,
                                     position.index);
      });
    } else {
      waitForReaders();
      hop::SlotStoreOp::create(rewriter, loc, put.getValue(), ring.buffer, position.index);
      hop::BarrierArriveOp::create(rewriter, loc, ring.full, position.index, /*all=*/true,
                                   /*copies=*/false, /*blocks=*/nullptr);
    }
    advance(loc, ring, position);
    put.erase();
  }

  void rewriteGet(hop::PipeGetOp get, Positions &positions) {
    const Ring &ring = rings.find(get.getPipe())->second;
    Position &position = positions.find({get.getPipe(), Side::Read})->second;
    Location loc = get.getLoc();
    hop::BarrierWaitOp::create(rewriter, loc, ring.full, position.index, position.parity,
                               ring.multicast);
    Value value =
        hop::SlotLoadOp::create(rewriter, loc, rewriter.getI32Type(), ring.buffer, position.index);
    // Every thread has read the value when all have arrived, where the next one is written.
    hop::BarrierArriveOp::create(rewriter, loc, ring.empty, position.index, /*all=*/true,
                                 /*copies=*/false,
                                 ring.multicast ? rewriter.getI64IntegerAttr(1) : nullptr);
    get.getValue().replaceAllUsesWith(value);
    advance(loc, ring, position);
    get.erase();
  }

  Value slotAt(Location loc, const Ring &ring, Value index) {
    auto buffer = cast<hop::BufferType>(ring.buffer.getType());
    auto type = hop::SharedType::get(rewriter.getContext(), buffer.getTile(),
                                     buffer.getTile().getDimSize(0));
    return hop::SlotOp::create(rewriter, loc, type, ring.buffer, index);
  }

  /// The next slot; the parity flips when the ring wraps around.
  void advance(Location loc, const Ring &ring, Position &position) {
    if (ring.slots == 1) {
      position.parity = arith::XOrIOp::create(rewriter, loc, position.parity, constant(loc, 1));
      return;
    }
    if (ring.slots == 2) {
      position.parity = arith::XOrIOp::create(rewriter, loc, position.parity, position.index);
      position.index = arith::XOrIOp::create(rewriter, loc, position.index, constant(loc, 1));
      return;
    }
    Value next = arith::AddIOp::create(rewriter, loc, position.index, constant(loc, 1));
    Value wraps = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, next,
                                        constant(loc, ring.slots));
    Value flip = arith::ExtUIOp::create(rewriter, loc, rewriter.getI32Type(), wraps);
    position.parity = arith::XOrIOp::create(rewriter, loc, position.parity, flip);
    position.index = arith::SelectOp::create(rewriter, loc, wraps, constant(loc, 0), next);
  }

  /// The positions that change inside `op`, as the values that must be carried.
  SmallVector<Cursor> movedInside(Operation *op, const Positions &positions) {
    llvm::SmallVector<Cursor> moved;
    op->walk([&](Operation *inner) {
      if (std::optional<Cursor> cursor = cursorOf(inner);
          cursor && !llvm::is_contained(moved, *cursor))
        moved.push_back(*cursor);
    });
    return moved;
  }

  SmallVector<Value> valuesOf(ArrayRef<Cursor> cursors, const Positions &positions) {
    SmallVector<Value> values;
    for (const Cursor &cursor : cursors) {
      const Position &position = positions.find(cursor)->second;
      values.push_back(position.parity);
      if (rings.find(cursor.first)->second.slots > 1)
        values.push_back(position.index);
    }
    return values;
  }

  void setValues(ArrayRef<Cursor> cursors, ValueRange values, Positions &positions) {
    size_t next = 0;
    for (const Cursor &cursor : cursors) {
      Position &position = positions.find(cursor)->second;
      position.parity = values[next++];
      if (rings.find(cursor.first)->second.slots > 1)
        position.index = values[next++];
    }
  }

  void rewriteLoop(scf::ForOp loop, Positions &positions) {
    SmallVector<Cursor> moved = movedInside(loop, positions);
    if (moved.empty())
      return;
    SmallVector<Value> inits = valuesOf(moved, positions);
    unsigned oldResults = loop.getNumResults();
    auto yieldArguments = [](OpBuilder &, Location, ArrayRef<BlockArgument> arguments) {
      return SmallVector<Value>(arguments.begin(), arguments.end());
    };
    auto replaced =
        loop.replaceWithAdditionalYields(rewriter, inits,
                                         /*replaceInitOperandUsesInLoop=*/false, yieldArguments);
    auto carried = cast<scf::ForOp>(replaced->getOperation());
    setValues(moved, carried.getRegionIterArgs().drop_front(oldResults), positions);
    rewriteBlock(*carried.getBody(), positions);
    Operation *yield = carried.getBody()->getTerminator();
    for (auto [i, value] : llvm::enumerate(valuesOf(moved, positions)))
      yield->setOperand(oldResults + i, value);
    setValues(moved, carried.getResults().drop_front(oldResults), positions);
  }

  /// Positions change in the second region only; the first passes them on.
  void rewriteWhile(scf::WhileOp loop, Positions &positions) {
    SmallVector<Cursor> moved = movedInside(loop, positions);
    if (moved.empty())
      return;
    SmallVector<Value> inits(loop.getInits());
    unsigned oldArguments = inits.size(), oldResults = loop.getNumResults();
    llvm::append_range(inits, valuesOf(moved, positions));
    SmallVector<Type> types(loop.getResultTypes());
    types.append(inits.size() - oldArguments, rewriter.getI32Type());
    auto carried = scf::WhileOp::create(rewriter, loop.getLoc(), types, inits);
    carried.getBefore().takeBody(loop.getBefore());
    carried.getAfter().takeBody(loop.getAfter());
    Operation *condition = carried.getBeforeBody()->getTerminator();
    for (size_t i = oldArguments; i < inits.size(); ++i) {
      Value passed = carried.getBeforeBody()->addArgument(rewriter.getI32Type(), loop.getLoc());
      condition->insertOperands(condition->getNumOperands(), passed);
      carried.getAfterBody()->addArgument(rewriter.getI32Type(), loop.getLoc());
    }
    setValues(moved, carried.getAfterBody()->getArguments().drop_front(oldResults), positions);
    rewriteBlock(*carried.getAfterBody(), positions);
    Operation *yield = carried.getAfterBody()->getTerminator();
    yield->insertOperands(yield->getNumOperands(), valuesOf(moved, positions));
    setValues(moved, carried.getResults().drop_front(oldResults), positions);
    loop->replaceAllUsesWith(carried.getResults().take_front(oldResults));
    loop.erase();
  }

  void rewriteConditional(scf::IfOp conditional, Positions &positions) {
    SmallVector<Cursor> moved = movedInside(conditional, positions);
    if (moved.empty())
      return;
    SmallVector<Type> types(conditional.getResultTypes());
    unsigned oldResults = types.size();
    types.append(valuesOf(moved, positions).size(), rewriter.getI32Type());
    auto carried =
        scf::IfOp::create(rewriter, conditional.getLoc(), types, conditional.getCondition(),
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    auto fill = [&](Block *source, Block *target) {
      Positions local = positions;
      target->clear();
      if (source) {
        target->getOperations().splice(target->end(), source->getOperations());
      } else {
        rewriter.setInsertionPointToStart(target);
        scf::YieldOp::create(rewriter, conditional.getLoc());
      }
      rewriteBlock(*target, local);
      Operation *yield = target->getTerminator();
      yield->insertOperands(yield->getNumOperands(), valuesOf(moved, local));
    };
    fill(conditional.thenBlock(), carried.thenBlock());
    fill(conditional.elseBlock(), carried.elseBlock());
    setValues(moved, carried.getResults().drop_front(oldResults), positions);
    conditional->replaceAllUsesWith(carried.getResults().take_front(oldResults));
    conditional.erase();
  }

  const llvm::MapVector<Value, Ring> &rings;
  int64_t blocks; ///< of a cluster
  hop::RoleOp role;
  IRRewriter rewriter;
  DenseMap<Value, Value> indexOfSlot;
  /// The slot of each pipe that was filled, and read, last: those of the pipes that go with it.
  DenseMap<Value, Value> lastFilled, lastRead;
};

struct InsertMbarriersPass : tessera::impl::InsertMbarriersBase<InsertMbarriersPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    WalkResult placed = kernel.walk([](Operation *op) { return WalkResult(checkPlace(op)); });
    if (placed.wasInterrupted())
      return signalPassFailure();
    llvm::MapVector<Value, Ring> rings;
    SmallVector<hop::PipeCreateOp> pipes(kernel.getBody().getOps<hop::PipeCreateOp>());
    for (hop::PipeCreateOp pipe : pipes) {
      if (failed(checkUse(pipe)))
        return signalPassFailure();
      rings[pipe.getPipe()] = createRing(kernel, pipe);
      // What a fill waits for are the bytes of all that goes with it.
      if (pipe.getLeader())
        rings[pipe.getLeader()].bytes += rings[pipe.getPipe()].bytes;
    }
    for (auto role : kernel.getBody().getOps<hop::RoleOp>())
      RoleRewriter(rings, kernel.getClusterSize(), &getContext()).run(role);
    for (hop::PipeCreateOp pipe : llvm::reverse(pipes))
      pipe.erase();
  }

  /// Slots are carried through loops and conditionals of a role, and through nothing else.
  static LogicalResult checkPlace(Operation *op) {
    if ((op->hasTrait<hop::FillsPipe>() || op->hasTrait<hop::ReadsPipe>()) && leaderOf(op))
      return checkLed(op);
    if (!cursorOf(op) && !isa<hop::PipeReleaseOp, hop::PipeCommitOp>(op))
      return success();
    hop::PipeType type = cast<hop::PipeType>(op->getOperand(0).getType());
    bool isTile = !hop::holdsValue(type.getTile());
    if (isTile == isa<hop::PipePutOp, hop::PipeGetOp>(op))
      return op->emitError("takes a pipe of ")
             << (isTile ? "values, tensor<1xi32>" : "tiles") << ", got " << type;
    Region *region = op->getParentRegion();
    for (; !isa<hop::RoleOp, hop::KernelOp>(region->getParentOp());
         region = region->getParentRegion()) {
      Operation *around = region->getParentOp();
      if (isa<hop::AttemptOp>(around))
        return op->emitError("is part of a hop.attempt; run hop-retry first");
      if (auto loop = dyn_cast<scf::WhileOp>(around);
          !isa<scf::ForOp, scf::IfOp>(around) && (!loop || region == &loop.getBefore()))
        return op->emitError("stands where slots cannot be counted: in ")
               << (loop ? "the condition of " : "") << around->getName()
               << "; move it into a role, a scf.for, a scf.if or the body of a scf.while";
    }
    if (!isa<hop::RoleOp>(region->getParentOp()))
      return op->emitError("stands outside of a role");
    return success();
  }

  /// Before a load or a wait of a pipe that goes with another one stands that of the other.
  static LogicalResult checkLed(Operation *op) {
    if (!isa<hop::PipeLoadOp, hop::PipeWaitOp>(op))
      return op->emitError(
          "is of a pipe that goes with another one, which only hop.pipe.load fills "
          "and only hop.pipe.wait reads; leave out with");
    Value leader = leaderOf(op);
    for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
      if (before->getName() == op->getName() && before->getOperand(0) == leader)
        return success();
    InFlightDiagnostic diag = op->emitError("is of a pipe that goes with another one, of which "
                                            "nothing like it stands before it in this block");
    diag.attachNote(leader.getLoc()) << "the other pipe";
    return diag;
  }

  /// The pipe, and those that go with it.
  static SmallVector<hop::PipeCreateOp> groupOf(hop::PipeCreateOp pipe) {
    SmallVector<hop::PipeCreateOp> group = {pipe};
    for (Operation *user : pipe.getPipe().getUsers())
      if (auto led = dyn_cast<hop::PipeCreateOp>(user))
        group.push_back(led);
    return group;
  }

  Ring createRing(hop::KernelOp kernel, hop::PipeCreateOp pipe) {
    OpBuilder builder(pipe);
    Location loc = pipe.getLoc();
    RankedTensorType tile = pipe.getPipe().getType().getTile();
    int64_t slots = pipe.getPipe().getType().getSlots();
    auto bufferType = hop::BufferType::get(&getContext(), tile, slots);
    auto barriersType = hop::BarriersType::get(&getContext(), slots);
    std::string label = pipe.getLabel().str();
    Ring ring;
    ring.slots = slots;
    ring.isTile = !hop::holdsValue(tile);
    ring.multicast = pipe.getMulticast();
    ring.bytes = tile.getNumElements() * tile.getElementTypeBitWidth() / 8;
    ring.buffer = hop::BufferOp::create(builder, loc, bufferType, label, IntegerAttr());
    ring.leader = pipe.getLeader();
    if (ring.leader)
      return ring;
    ring.copied = llvm::any_of(pipe.getPipe().getUsers(), [](Operation *user) {
      auto acquire = dyn_cast<hop::PipeAcquireOp>(user);
      return acquire && acquire.isFilledByCopies();
    });
    ring.committedByAll = ring.copied || isCommittedByAll(pipe);
    ring.full = hop::BarriersOp::create(builder, loc, barriersType, label + ".full",
                                        countFills(pipe, ring.committedByAll), IntegerAttr());
    int64_t releases = 0;
    for (hop::RoleOp role : hop::getReaders(pipe)) {
      bool byAll = llvm::any_of(groupOf(pipe),
                                [&](hop::PipeCreateOp of) { return isReleasedByAll(of, role); });
      if (byAll)
        ring.releasedByAll.insert(role);
      releases += byAll ? role.getNumThreads() : role.getNumWarpgroups();
    }
    if (ring.multicast)
      releases *= kernel.getClusterSize();
    ring.empty = hop::BarriersOp::create(builder, loc, barriersType, label + ".empty", releases,
                                         IntegerAttr());
    return ring;
  }

  static bool isCommittedByAll(hop::PipeCreateOp pipe) {
    return llvm::any_of(pipe.getPipe().getUsers(), [](Operation *user) {
      auto commit = dyn_cast<hop::PipeCommitOp>(user);
      return commit && !isJoined(commit);
    });
  }

  /// Arrivals that fill a slot: of the one thread that starts a copy or writes a value, or of those
  /// that have written a tile.
  static int64_t countFills(hop::PipeCreateOp pipe, bool byAll) {
    hop::RoleOp filler = hop::getFillers(pipe).front();
    if (llvm::none_of(pipe.getPipe().getUsers(), llvm::IsaPred<hop::PipeCommitOp>))
      return 1;
    return byAll ? filler.getNumThreads() : filler.getNumWarpgroups();
  }

  /// A tile is released by one thread of each warpgroup when the others are known to have waited
  /// for it. Otherwise, and a value, by every thread of the role: a warp that comes late would find
  /// the barrier two phases on, which its parity cannot tell from none.
  static bool isReleasedByAll(hop::PipeCreateOp pipe, hop::RoleOp role) {
    if (role.isElected() || hop::holdsValue(pipe.getPipe().getType().getTile()))
      return true;
    return llvm::any_of(pipe.getPipe().getUsers(), [&](Operation *user) {
      auto release = dyn_cast<hop::PipeReleaseOp>(user);
      return release && role->isAncestor(release) && !isJoined(release);
    });
  }
};

} // namespace
