//===- Retry.cpp - The tiles that are run a second time -------------------===//
//
// Implements hop-retry. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Analysis/PipeSlots.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_RETRY
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// What the roles of a kernel with probes decide by, and where they take the numbers of tiles.
struct Probing {
  Value probes;
  Value numbers; ///< the pipe by which roles get them
};

/// What the roles of a kernel keep of doubtful tiles.
struct Ledger {
  Value list;           ///< by place in the phase: 0, or the tile's number and doubtBit
  Value doubted;        ///< by parity of the phase: whether the list has entries
  Value meet;           ///< completed by all threads that run a program, of all blocks of a cluster
  int64_t blocks;       ///< of the cluster
  hop::RoleOp clearing; ///< clears the list when all have read it: the first role with warpgroups
  std::optional<Probing> probing = std::nullopt;
};

/// Marks an entry of the list, so that tile 0 is not taken for none, and the number of a tile that
/// runs exactly at once.
constexpr int32_t doubtBit = std::numeric_limits<int32_t>::min();

/// The first tiles of a launch, and the share of them that may not fail: docs/lab/speculation.md,
/// "Probes".
constexpr int64_t kProbes = 32, kProbesShare = 8;
/// Tiles of each thread block from which on probes decide.
constexpr int64_t kProbedRounds = 4;

/// The retries of one role.
class RoleRetry {
public:
  RoleRetry(hop::RoleOp role, hop::AttemptOp attempt, const Ledger &ledger)
      : role(role), attempt(attempt), ledger(ledger), builder(attempt), loc(attempt.getLoc()) {}

  void run() {
    if (auto loop = dyn_cast<scf::WhileOp>(attempt->getParentOp()))
      return retryAfterPhases(loop);
    retryAtOnce();
  }

private:
  Value constant(int32_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32); }
  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value toI32(Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), value);
  }
  Value toIndex(Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }
  Value read(Value buffer, Value place) {
    return hop::SlotLoadOp::create(builder, loc, builder.getI32Type(), buffer, place);
  }
  Value isSet(Value value) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value, constant(0));
  }

  /// Splices the fast program to where the attempt stands; `flag` writes what a doubt sets.
  void inlineFast(function_ref<void(Value valid)> flag) {
    Block &fast = attempt.getFast().front();
    SmallVector<hop::DoubtOp> doubts(fast.getOps<hop::DoubtOp>());
    for (hop::DoubtOp doubt : doubts) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(doubt);
      flag(doubt.getValid());
      doubt.erase();
    }
    attempt->getBlock()->getOperations().splice(attempt->getIterator(), fast.getOperations());
  }

  /// All threads that run a program meet, for the blocks of a cluster load for each other; what
  /// they wrote before is seen after.
  void meet(Value parity) {
    bool isCluster = ledger.blocks > 1;
    if (isCluster)
      hop::ClusterFenceOp::create(builder, loc);
    hop::BarrierArriveOp::create(builder, loc, ledger.meet, constant(0), /*all=*/true,
                                 /*copies=*/false,
                                 isCluster ? builder.getI64IntegerAttr(ledger.blocks) : nullptr);
    hop::BarrierWaitOp::create(builder, loc, ledger.meet, constant(0), parity, isCluster);
  }

  void waitForStores() {
    bool any = role.walk([](hop::BulkStoreOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (any)
      hop::BulkStoreWaitOp::create(builder, loc);
  }

  /// The thread block has one tile.
  void retryAtOnce() {
    inlineFast([&](Value valid) {
      hop::FlagOp::create(builder, loc, valid, constant(1), ledger.doubted, constant(0));
    });
    meet(constant(0));
    Value again = isSet(read(ledger.doubted, constant(0)));
    auto conditional = scf::IfOp::create(builder, loc, again, /*withElseRegion=*/false);
    builder.setInsertionPoint(conditional.thenYield());
    waitForStores();
    conditional.thenBlock()->getOperations().splice(Block::iterator(conditional.thenYield()),
                                                    attempt.getExact().front().getOperations());
    attempt.erase();
  }

  /// scf.while over `inits`; the new loop, with the builder at the end of its empty second block.
  scf::WhileOp createWhile(ValueRange inits, function_ref<Value(ValueRange)> condition) {
    auto loop = scf::WhileOp::create(
        builder, loc, inits.getTypes(), inits,
        [&](OpBuilder &inner, Location, ValueRange arguments) {
          OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
          scf::ConditionOp::create(builder, loc, condition(arguments), arguments);
        },
        [](OpBuilder &, Location, ValueRange) {});
    builder.setInsertionPointToEnd(loop.getAfterBody());
    return loop;
  }

  /// Whether tiles are left when `number` comes next, as `loop` says.
  Value tilesLeft(scf::WhileOp loop, Value number) {
    IRMapping mapping;
    mapping.map(loop.getBeforeArguments().front(), number);
    for (Operation &op : loop.getBeforeBody()->without_terminator())
      builder.clone(op, mapping);
    return mapping.lookupOrDefault(loop.getConditionOp().getCondition());
  }

  Value isBelow(Value value, Value limit) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, value, limit);
  }
  Value isMarked(Value number) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, number, index(0));
  }
  Value mark(Value number) { return arith::OrIOp::create(builder, loc, number, index(doubtBit)); }

  /// Whether tiles are left for the fast program: `number` is not marked.
  Value fastTilesLeft(scf::WhileOp loop, Value number) {
    Value left = tilesLeft(loop, number);
    if (!ledger.probing)
      return left;
    Value isFast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, number, index(0));
    return arith::AndIOp::create(builder, loc, left, isFast);
  }

  /// Whether the launch has so many tiles that probes decide.
  Value hasManyTiles(scf::WhileOp loop) {
    Value blocks = hop::BlockCountOp::create(builder, loc, builder.getIndexType());
    Value few = arith::MulIOp::create(builder, loc, blocks, index(kProbedRounds));
    return tilesLeft(loop, arith::SubIOp::create(builder, loc, few, index(1)));
  }

  /// `loop` walks over the tiles of the thread block.
  void retryAfterPhases(scf::WhileOp loop) {
    builder.setInsertionPoint(loop);
    Value first = loop.getInits().front();
    scf::WhileOp phases = createWhile({first, constant(0)}, [&](ValueRange arguments) {
      return fastTilesLeft(loop, arguments[0]);
    });
    Value parity = phases.getAfterBody()->getArgument(1);
    scf::WhileOp phase =
        createWhile({phases.getAfterBody()->getArgument(0), index(0)}, [&](ValueRange arguments) {
          Value fits = isBelow(arguments[1], index(kRetryTiles));
          return arith::AndIOp::create(builder, loc, fastTilesLeft(loop, arguments[0]), fits);
        });
    Value number = phase.getAfterBody()->getArgument(0),
          place = phase.getAfterBody()->getArgument(1);
    movePhaseBody(loop, phase, number, place, parity);

    builder.setInsertionPointAfter(phase);
    meet(parity);
    Value following = phase.getResult(0), again = isSet(read(ledger.doubted, parity));
    if (ledger.probing)
      again = arith::OrIOp::create(builder, loc, again, isMarked(following));
    SmallVector<Type> types(ledger.probing ? 1 : 0, builder.getIndexType());
    auto conditional = scf::IfOp::create(builder, loc, types, again, /*addThenBlock=*/true,
                                         /*addElseBlock=*/!types.empty());
    builder.setInsertionPointToEnd(conditional.thenBlock());
    runExact(loop, phase, number, parity);
    if (ledger.probing) {
      judge(loop, phase);
      builder.setInsertionPointToEnd(conditional.elseBlock());
      scf::YieldOp::create(builder, loc, following);
      following = conditional.getResult(0);
    }
    builder.setInsertionPointAfter(conditional);
    Value next = arith::XOrIOp::create(builder, loc, parity, constant(1));
    scf::YieldOp::create(builder, loc, {following, next});
    attempt.erase();
    loop.erase();
  }

  /// Makes the body of `loop` that of `phase`, with the fast program.
  void movePhaseBody(scf::WhileOp loop, scf::WhileOp phase, Value number, Value place,
                     Value parity) {
    Block *body = phase.getAfterBody();
    body->getOperations().splice(body->end(), loop.getAfterBody()->getOperations());
    loop.getAfterBody()->getArgument(0).replaceAllUsesWith(number);
    Operation *yield = body->getTerminator();
    builder.setInsertionPoint(yield);
    Value following = arith::AddIOp::create(builder, loc, place, index(1));
    yield->insertOperands(1, following);
    inlineFast([&](Value valid) {
      Value entry = arith::OrIOp::create(builder, loc, toI32(number), constant(doubtBit));
      hop::FlagOp::create(builder, loc, valid, entry, ledger.list, toI32(place));
      hop::FlagOp::create(builder, loc, valid, constant(1), ledger.doubted, parity);
      if (ledger.probing)
        hop::ProbesReportOp::create(builder, loc, ledger.probing->probes, valid, toI32(number),
                                    hasManyTiles(loop));
    });
    // Slots are lent when consumers are done with them, for which the next number need not wait.
    // At another place the loan is late and no more: the protocol of pipes is that of a whole
    // kernel.
    for (hop::PipeLendOp lend : llvm::to_vector(body->getOps<hop::PipeLendOp>()))
      lend->moveBefore(yield);
  }

  /// Runs the exact program of the tiles in the list, and of all that are left when the number
  /// behind the phase is marked. Then clears the list, and yields the number that comes next.
  void runExact(scf::WhileOp tiles, scf::WhileOp phase, Value number, Value parity) {
    waitForStores();
    Value count = phase.getResult(1);
    SmallVector<Value> inits = {index(0)};
    if (ledger.probing)
      inits.push_back(phase.getResult(0));
    scf::WhileOp loop = createWhile(inits, [&](ValueRange arguments) -> Value {
      Value isListed = isBelow(arguments[0], count);
      if (!ledger.probing)
        return isListed;
      return arith::OrIOp::create(builder, loc, isListed, markedTilesLeft(tiles, arguments[1]));
    });
    Value place = loop.getAfterBody()->getArgument(0), isListed, entry;
    if (ledger.probing) {
      isListed = isBelow(place, count);
      entry = arith::SelectOp::create(builder, loc, isListed, readListed(place, isListed),
                                      toI32(loop.getAfterBody()->getArgument(1)));
    } else {
      entry = read(ledger.list, toI32(place));
    }
    auto conditional = scf::IfOp::create(builder, loc, isSet(entry), /*withElseRegion=*/false);
    SmallVector<Value> next = {arith::AddIOp::create(builder, loc, place, index(1))};
    if (ledger.probing)
      next.push_back(takeBehindList(phase, isListed, loop.getAfterBody()->getArgument(1)));
    scf::YieldOp::create(builder, loc, next);
    builder.setInsertionPoint(conditional.thenYield());
    Value again = toIndex(arith::AndIOp::create(builder, loc, entry, constant(~doubtBit)));
    moveExact(phase.getAfterBody(), number, again, conditional.thenYield());

    builder.setInsertionPointAfter(loop);
    // Nobody may clear what another role still has to read, nor doubt before it is clear.
    meet(arith::XOrIOp::create(builder, loc, parity, constant(1)));
    if (role == ledger.clearing)
      clear(count, parity);
    meet(parity);
    scf::YieldOp::create(builder, loc, loop.getResults().drop_front());
  }

  /// Whether `number` is marked, and its tile is there.
  Value markedTilesLeft(scf::WhileOp loop, Value number) {
    Value tile = arith::XOrIOp::create(builder, loc, number, index(doubtBit));
    return arith::AndIOp::create(builder, loc, isMarked(number), tilesLeft(loop, tile));
  }

  /// The entry at `place` where that is one, else some entry.
  Value readListed(Value place, Value isListed) {
    Value inside = arith::SelectOp::create(builder, loc, isListed, place, index(0));
    return read(ledger.list, toI32(inside));
  }

  /// The marked number of the next tile behind the list, which the roles take as in the phase; in
  /// the list `number` stays.
  Value takeBehindList(scf::WhileOp phase, Value isListed, Value number) {
    auto conditional = scf::IfOp::create(builder, loc, TypeRange(builder.getIndexType()), isListed,
                                         /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(conditional.thenBlock());
    scf::YieldOp::create(builder, loc, number);
    builder.setInsertionPointToEnd(conditional.elseBlock());
    Block *body = phase.getAfterBody();
    Value next = body->getTerminator()->getOperand(0);
    llvm::SetVector<Operation *> taking;
    SmallVector<Value> work = {next};
    for (Operation &op : *body)
      if (takesNumber(&op)) {
        taking.insert(&op);
        op.walk([&](Operation *inner) { llvm::append_range(work, inner->getOperands()); });
      }
    addSlice(body, work, taking);
    IRMapping mapping;
    for (Operation &op : *body)
      if (taking.contains(&op)) {
        Operation *copy = builder.clone(op, mapping);
        copy->walk([&](hop::NextTileOp fetched) {
          Value marked = changeFetched(fetched, [&](Value tile) { return mark(tile); });
          if (fetched == copy)
            mapping.map(op.getResult(0), marked);
        });
      }
    scf::YieldOp::create(builder, loc, mapping.lookupOrDefault(next));
    return conditional.getResult(0);
  }

  /// Whether `op` is of those by which a role takes the number of a tile, or hands it on.
  bool takesNumber(Operation *op) {
    auto find = [&](Operation *inner) {
      bool takes = isa<hop::NextTileOp>(inner) || (isa<hop::PipePutOp, hop::PipeGetOp>(inner) &&
                                                   inner->getOperand(0) == ledger.probing->numbers);
      return takes ? WalkResult::interrupt() : WalkResult::advance();
    };
    return op->walk(find).wasInterrupted();
  }

  /// Puts what `change` makes of the number in its place, and returns that.
  Value changeFetched(hop::NextTileOp fetched, function_ref<Value(Value)> change) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : fetched.getResult().getUses())
      uses.push_back(&use);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(fetched);
    Value changed = change(fetched.getResult());
    for (OpOperand *use : uses)
      use->set(changed);
    return changed;
  }

  /// The second tile of the thread block, and so all behind it, run exactly when the verdict is
  /// against the fast program. Later it is the same, so that nobody looks.
  void judge(scf::WhileOp loop, scf::WhileOp phase) {
    Block *body = phase.getAfterBody();
    body->walk([&](hop::NextTileOp fetched) {
      changeFetched(fetched, [&](Value tile) -> Value {
        Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                              body->getArgument(1), index(0));
        Value looks = arith::AndIOp::create(builder, loc, isFirst, hasManyTiles(loop));
        Value fails = hop::ProbesVerdictOp::create(builder, loc, builder.getI32Type(),
                                                   ledger.probing->probes, looks);
        return arith::SelectOp::create(builder, loc, isSet(fails), mark(tile), tile);
      });
    });
  }

  /// Adds the operations of `block` that `work` is computed from.
  static void addSlice(Block *block, SmallVector<Value> work, llvm::SetVector<Operation *> &slice) {
    while (!work.empty()) {
      Operation *op = work.pop_back_val().getDefiningOp();
      if (op && op->getBlock() == block && slice.insert(op))
        llvm::append_range(work, op->getOperands());
    }
  }

  /// The exact program before `end`, with what it reads of the tile `number` computed for `again`.
  void moveExact(Block *phaseBody, Value number, Value again, Operation *end) {
    Block &exact = attempt.getExact().front();
    llvm::SetVector<Operation *> needed;
    SmallVector<Value> work;
    exact.walk([&](Operation *op) { llvm::append_range(work, op->getOperands()); });
    addSlice(phaseBody, work, needed);
    IRMapping mapping;
    mapping.map(number, again);
    for (Operation &op : *phaseBody)
      if (needed.contains(&op))
        builder.clone(op, mapping);
    exact.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        operand.set(mapping.lookupOrDefault(operand.get()));
    });
    end->getBlock()->getOperations().splice(end->getIterator(), exact.getOperations());
  }

  /// One thread clears the list.
  void clear(Value count, Value parity) {
    OpBuilder::InsertionGuard guard(builder);
    Value elected =
        hop::ElectedOp::create(builder, loc, builder.getI1Type(), role.getBody().getArgument(0));
    auto conditional = scf::IfOp::create(builder, loc, elected, /*withElseRegion=*/false);
    builder.setInsertionPoint(conditional.thenYield());
    hop::SlotStoreOp::create(builder, loc, constant(0), ledger.doubted, parity);
    scf::ForOp loop = scf::ForOp::create(builder, loc, index(0), count, index(1));
    builder.setInsertionPointToStart(loop.getBody());
    hop::SlotStoreOp::create(builder, loc, constant(0), ledger.list, toI32(loop.getInductionVar()));
  }

  hop::RoleOp role;
  hop::AttemptOp attempt;
  const Ledger &ledger;
  OpBuilder builder;
  Location loc;
};

struct RetryPass : tessera::impl::RetryBase<RetryPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    SmallVector<std::pair<hop::RoleOp, hop::AttemptOp>> attempts;
    kernel.walk([&](hop::AttemptOp attempt) {
      attempts.emplace_back(attempt->getParentOfType<hop::RoleOp>(), attempt);
    });
    if (attempts.empty())
      return;
    for (auto [role, attempt] : attempts)
      if (failed(checkPlace(role, attempt)))
        return signalPassFailure();
    Ledger ledger = createLedger(kernel, attempts);
    for (auto [role, attempt] : attempts)
      RoleRetry(role, attempt, ledger).run();
  }

  /// An attempt is the whole program of a tile: in the role, or in its loop over tiles.
  static LogicalResult checkPlace(hop::RoleOp role, hop::AttemptOp attempt) {
    Operation *parent = attempt->getParentOp();
    auto loop = dyn_cast<scf::WhileOp>(parent);
    bool walksOverTiles = loop && loop->getParentOp() == role && loop.getInits().size() == 1;
    if (role && (parent == role || walksOverTiles))
      return success();
    return attempt.emitError("stands in a role or in its loop over tiles, whose one value is the "
                             "number of the tile, as hop-persistent makes it");
  }

  /// A role without an attempt has nothing to run again, and meets nobody.
  Ledger createLedger(hop::KernelOp kernel,
                      ArrayRef<std::pair<hop::RoleOp, hop::AttemptOp>> attempts) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    Location loc = kernel.getLoc();
    int64_t threads = 0;
    hop::RoleOp clearing;
    for (hop::RoleOp role : llvm::make_first_range(attempts)) {
      threads += role.getNumThreads();
      if (!clearing && !role.isElected())
        clearing = role;
    }
    auto values = [&](StringRef label, int64_t slots) -> Value {
      auto type = hop::BufferType::get(&getContext(),
                                       RankedTensorType::get({1}, builder.getI32Type()), slots);
      return hop::BufferOp::create(builder, loc, type, label, IntegerAttr(), /*zeroed=*/true);
    };
    return {values("retry.list", kRetryTiles),
            values("retry.doubted", 2),
            hop::BarriersOp::create(builder, loc, hop::BarriersType::get(&getContext(), 1),
                                    "retry.meet", threads * kernel.getClusterSize(), IntegerAttr()),
            kernel.getClusterSize(),
            clearing,
            createProbing(kernel, attempts, builder)};
  }

  /// The probes of a kernel whose thread blocks begin with the tiles of their own numbers, and
  /// draw all others.
  static std::optional<Probing>
  createProbing(hop::KernelOp kernel, ArrayRef<std::pair<hop::RoleOp, hop::AttemptOp>> attempts,
                OpBuilder &builder) {
    hop::NextTileOp fetched;
    kernel.walk([&](hop::NextTileOp op) { fetched = op; });
    // A number that says "exact" would be a tile to a role that has nothing to run exactly.
    bool haveAll = attempts.size() == llvm::range_size(kernel.getBody().getOps<hop::RoleOp>());
    if (!fetched || fetched.getAll() || kernel.getClusterSize() > 1 || !haveAll)
      return std::nullopt;
    hop::PipePutOp put;
    fetched->getParentRegion()->walk([&](hop::PipePutOp op) {
      auto cast = op.getValue().getDefiningOp<arith::IndexCastOp>();
      if (cast && cast.getIn() == fetched.getResult())
        put = op;
    });
    int64_t reports = 0;
    for (auto [role, attempt] : attempts)
      reports += llvm::range_size(attempt.getFast().front().getOps<hop::DoubtOp>()) *
                 role.getNumThreads() / hopper::warpThreads;
    if (!put || !reports)
      return std::nullopt;
    Value probes =
        hop::ProbesOp::create(builder, kernel.getLoc(), hop::ProbesType::get(kernel.getContext()),
                              kProbes, kProbesShare, reports);
    return Probing{probes, put.getPipe()};
  }
};

} // namespace
