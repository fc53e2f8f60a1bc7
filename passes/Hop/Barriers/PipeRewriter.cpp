//===- PipeRewriter.cpp - Roles on buffers and mbarriers --------------------===//

#include "passes/Hop/Barriers/PipeRewriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/Hop/Barriers/RunCopies.h"

using namespace mlir;
using namespace tessera;

std::optional<Cursor> tessera::cursorOf(Operation *op) {
  if ((op->hasTrait<hop::FillsPipe>() || op->hasTrait<hop::ReadsPipe>()) && leaderOf(op))
    return std::nullopt;
  if (op->hasTrait<hop::FillsPipe>())
    return Cursor(op->getOperand(0), Side::Fill);
  if (op->hasTrait<hop::ReadsPipe>())
    return Cursor(op->getOperand(0), Side::Read);
  return std::nullopt;
}

namespace {

/// A role's place in a ring: the next slot and the parity of its next phase.
struct Position {
  Value index, parity;
};

using Positions = llvm::MapVector<Cursor, Position>;

/// Rewrites one role, carrying its positions through loops and conditionals.
class RoleRewriter {
public:
  RoleRewriter(const PipeRings &rings, int64_t blocks, MLIRContext *context)
      : rings(rings), blocks(blocks), rewriter(context) {}

  void run(hop::RoleOp of) {
    role = of;
    Block &body = role.getBody().front();
    rewriter.setInsertionPointToStart(&body);
    Positions positions;
    role.walk([&](Operation *op) {
      if (auto load = dyn_cast<hop::PipeLoadOp>(op))
        usesLanes |= RunSearch::areFoundInLanes(load, partsOf(load));
      std::optional<Cursor> cursor = cursorOf(op);
      if (!cursor || positions.contains(*cursor))
        return;
      // The phase before the first is complete, of parity 1: an empty slot needs no release.
      positions[*cursor] = {constant(role.getLoc(), 0),
                            constant(role.getLoc(), cursor->second == Side::Fill ? 1 : 0)};
    });
    if (usesLanes)
      ahead =
          groupIterations(role, [this](hop::PipeLoadOp load) { return partsOf(load); }, rewriter);
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
    if (!ring.isShared())
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

  /// Starts the copy of a load, of `runs` if it has any, into the slot at `index`, of which `full`
  /// is told.
  void startCopy(hop::PipeLoadOp load, const Ring &ring, Value full, Value index,
                 std::optional<RunCopies> &runs) {
    Location loc = load.getLoc();
    Value slot = slotAt(loc, ring, index);
    if (runs)
      return runs->start(slot, full, index);
    auto copy =
        hop::BulkLoadOp::create(rewriter, loc, load.getView(), load.getIndices(), load.getBoxAttr(),
                                slot, full, index, ring.multicast, load.getTf32());
    copy->setDiscardableAttrs(load->getDiscardableAttrDictionary());
  }

  /// Among how many blocks of a cluster the runs of a load are divided.
  int64_t partsOf(hop::PipeLoadOp load) {
    return rings.find(load.getPipe())->second.multicast ? blocks : 1;
  }

  void rewriteLoad(hop::PipeLoadOp load, Positions &positions) {
    const Ring &ring = rings.find(load.getPipe())->second;
    const Ring &leader = ring.leader ? rings.find(ring.leader)->second : ring;
    Location loc = load.getLoc();
    std::optional<RunCopies> runs;
    if (load.getRun()) {
      auto found = ahead.find(load);
      runs.emplace(load, partsOf(load), found == ahead.end() ? nullptr : &found->second, rewriter);
    }
    Position position = ring.leader ? lastFilled.lookup(ring.leader)
                                    : positions.find({load.getPipe(), Side::Fill})->second;
    {
      OpBuilder::InsertionGuard restore(rewriter);
      if (usesLanes) {
        auto one = hop::OneLaneOp::create(rewriter, loc);
        rewriter.createBlock(&one.getBody());
      }
      // A slot that its leader has waited for is still there: one lane waits for it once more.
      if (usesLanes || !ring.leader)
        hop::BarrierWaitOp::create(rewriter, loc, leader.empty, position.index, position.parity);
      if (!ring.leader)
        hop::BarrierExpectOp::create(rewriter, loc, ring.full, position.index, ring.bytes);
      startCopy(load, ring, leader.full, position.index, runs);
    }
    if (!ring.leader) {
      lastFilled[load.getPipe()] = position;
      advance(loc, ring, positions.find({load.getPipe(), Side::Fill})->second);
    }
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
                                 ring.isShared() ? rewriter.getI64IntegerAttr(blocks) : nullptr);
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
    if (ring.gathered)
      gatherHalf(loc, slot, position.parity);
    advance(loc, ring, position);
    acquire.erase();
  }

  /// Has the block gather its half of the rows of a slot, whose barrier of copies completes a phase
  /// of the parity that the slot's empty one has not had.
  void gatherHalf(Location loc, Value slot, Value parity) {
    Gathered &own = gathered[slot];
    own.half = halfOf(loc, slot, /*ofColumns=*/false);
    own.parity = arith::XOrIOp::create(rewriter, loc, parity, constant(loc, 1));
    for (OpOperand &use : llvm::make_early_inc_range(slot.getUses()))
      if (isa<hop::GatherOp>(use.getOwner()))
        use.set(own.half);
  }

  /// Sends the half of a slot that this block has gathered, when its copies have come, or written.
  void sendHalf(hop::PipeCommitOp commit, const Ring &ring) {
    Location loc = commit.getLoc();
    Value slot = commit.getTile(), index = indexOfSlot.lookup(slot), half;
    if (ring.gathered) {
      const Gathered own = gathered.lookup(slot);
      half = own.half;
      hop::BarrierArriveOp::create(rewriter, loc, ring.gathered, index, /*all=*/false,
                                   /*copies=*/true, /*blocks=*/nullptr);
      hop::BarrierWaitOp::create(rewriter, loc, ring.gathered, index, own.parity);
    } else {
      half = halfOf(loc, slot, llvm::any_of(slot.getUsers(), [](Operation *user) {
                      auto part = dyn_cast<hop::SliceOp>(user);
                      return part && part.isOfColumns();
                    }));
    }
    hop::ExchangeOp::create(rewriter, loc, half, half, ring.full, index);
    commit.erase();
  }

  /// This block's part of a slot that all blocks of the cluster fill.
  Value halfOf(Location loc, Value slot, bool ofColumns) {
    Value rank = hop::ClusterRankOp::create(rewriter, loc, rewriter.getIndexType());
    auto type = partOf(cast<hop::SharedType>(slot.getType()), blocks, ofColumns);
    return hop::SliceOp::create(rewriter, loc, type, slot, rank);
  }

  /// A part of the rows or the columns of a slot, one of so many.
  static hop::SharedType partOf(hop::SharedType slot, int64_t parts, bool ofColumns) {
    SmallVector<int64_t> shape(slot.getTile().getShape());
    shape[ofColumns] /= parts;
    return hop::SharedType::get(slot.getContext(),
                                RankedTensorType::get(shape, slot.getTile().getElementType()),
                                slot.getStoredRows());
  }

  void rewriteCommit(hop::PipeCommitOp commit) {
    const Ring &ring = rings.find(commit.getPipe())->second;
    if (ring.exchanged)
      return rewriteExchange(commit, ring);
    if (ring.multicast)
      return sendHalf(commit, ring);
    hop::BarrierArriveOp::create(rewriter, commit.getLoc(), ring.full,
                                 indexOfSlot.lookup(commit.getTile()),
                                 ring.committedByAll && !ring.copied, ring.copied,
                                 /*blocks=*/nullptr);
    commit.erase();
  }

  /// Each warpgroup sends its rows of the upper half of the slot, and gets as many of the lower
  /// one.
  void rewriteExchange(hop::PipeCommitOp commit, const Ring &ring) {
    Location loc = commit.getLoc();
    int64_t warpgroups = role.getNumWarpgroups();
    hop::SharedType part =
        partOf(commit.getTile().getType(), blocks * warpgroups, /*ofColumns=*/false);
    Value number = role.getBody().getArgument(0);
    Value below = arith::AddIOp::create(rewriter, loc, number,
                                        arith::ConstantIndexOp::create(rewriter, loc, warpgroups));
    Value own = hop::SliceOp::create(rewriter, loc, part, commit.getTile(), number);
    Value theirs = hop::SliceOp::create(rewriter, loc, part, commit.getTile(), below);
    hop::ExchangeOp::create(rewriter, loc, own, theirs, ring.full,
                            indexOfSlot.lookup(commit.getTile()));
    commit.erase();
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

  const PipeRings &rings;
  int64_t blocks; ///< of a cluster
  hop::RoleOp role;
  IRRewriter rewriter;
  DenseMap<Value, Value> indexOfSlot;
  /// What this block gathers of a slot, and the parity of the phase in which that has come.
  struct Gathered {
    Value half, parity;
  };
  DenseMap<Value, Gathered> gathered;
  /// The slot of each pipe that was filled, and read, last: those of the pipes that go with it.
  DenseMap<Value, Position> lastFilled;
  DenseMap<Value, Value> lastRead;
  /// Whether the lanes of the role stay together, so that one of them starts copies.
  bool usesLanes = false;
  /// What they have found of loads before the iterations of these.
  DenseMap<Operation *, RunsInLanes> ahead;
};

} // namespace

void tessera::rewritePipes(hop::RoleOp role, const PipeRings &rings, int64_t blocks) {
  RoleRewriter(rings, blocks, role.getContext()).run(role);
}
