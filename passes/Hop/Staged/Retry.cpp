//===- Retry.cpp - The tiles that are run a second time -------------------===//
//
// Implements hop-retry. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Analysis/PipeSlots.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Hop/PerCluster.h"

namespace tessera {
#define GEN_PASS_DEF_RETRY
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// How a kernel asks its probes.
struct Probing {
  Probes probes;
  hop::RoleOp judge;                   ///< one thread of it waits for the verdict
  Value numbers;                       ///< the pipe by which roles get the numbers of tiles
  Value judged;                        ///< the roles meet here when it has come
  DenseMap<Operation *, Value> isLong; ///< by role: whether the launch has probes
};

/// What the roles of a kernel keep of doubtful tiles.
struct Ledger {
  Value list;           ///< by place in the phase: 0, or the tile's number and doubtBit; none of a
                        ///< block with one tile
  Value doubted;        ///< by parity of the phase: whether the list has entries; of a kernel with
                        ///< probes, then whether they speak against the fast program
  Value meet;           ///< completed by all threads that run a program, of all blocks of a cluster
  int64_t blocks;       ///< of the cluster
  hop::RoleOp clearing; ///< clears the list when all have read it: the first role with warpgroups
  std::optional<Probing> probing = std::nullopt;
};

/// Marks an entry of the list, so that tile 0 is not taken for none.
constexpr int32_t doubtBit = std::numeric_limits<int32_t>::min();

/// The slot of Ledger::doubted that has the verdict.
constexpr int32_t verdictSlot = 2;

/// The retries of one role.
class RoleRetry {
public:
  RoleRetry(hop::RoleOp role, hop::AttemptOp attempt, const Ledger &ledger)
      : kernel(role->getParentOfType<hop::KernelOp>()), role(role), attempt(attempt),
        ledger(ledger), builder(attempt), loc(attempt.getLoc()) {}

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
  void meet(Value barriers, Value parity) {
    bool isCluster = ledger.blocks > 1;
    if (isCluster)
      hop::ClusterFenceOp::create(builder, loc);
    hop::BarrierArriveOp::create(builder, loc, barriers, constant(0), /*all=*/true,
                                 /*copies=*/false,
                                 isCluster ? builder.getI64IntegerAttr(ledger.blocks) : nullptr);
    hop::BarrierWaitOp::create(builder, loc, barriers, constant(0), parity, isCluster);
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
    meet(ledger.meet, constant(0));
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

  /// The first place of a phase that ends behind its first tile.
  Value lastPlace() { return index(kRetryTiles - 1); }

  /// `loop` walks over the tiles of the thread block.
  void retryAfterPhases(scf::WhileOp loop) {
    builder.setInsertionPoint(loop);
    SmallVector<Value> inits = {loop.getInits().front(), constant(0)};
    if (ledger.probing)
      startWithProbe(inits);
    scf::WhileOp phases =
        createWhile(inits, [&](ValueRange arguments) { return tilesLeft(loop, arguments[0]); });
    ValueRange carried = phases.getAfterBody()->getArguments();
    Value parity = carried[1], start = ledger.probing ? carried[2] : index(0);
    scf::WhileOp phase = createWhile({carried[0], start}, [&](ValueRange arguments) {
      Value fits = isBelow(arguments[1], index(kRetryTiles));
      return arith::AndIOp::create(builder, loc, tilesLeft(loop, arguments[0]), fits);
    });
    Value number = phase.getAfterBody()->getArgument(0),
          place = phase.getAfterBody()->getArgument(1);
    movePhaseBody(loop, phase, number, place, parity);

    builder.setInsertionPointAfter(phase);
    meet(ledger.meet, parity);
    SmallVector<Value> next = {phase.getResult(0),
                               arith::XOrIOp::create(builder, loc, parity, constant(1))};
    Value again = isSet(read(ledger.doubted, parity)), goesOn;
    if (ledger.probing) {
      goesOn = judge(start, parity);
      again = arith::OrIOp::create(builder, loc, again, goesOn);
      next.push_back(index(0));
    }
    auto conditional = goesOn ? scf::IfOp::create(builder, loc, next.front().getType(), again,
                                                  /*addThenBlock=*/true, /*addElseBlock=*/true)
                              : scf::IfOp::create(builder, loc, again, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(conditional.thenBlock());
    Value following = runExact(loop, phase, start, parity, goesOn);
    if (goesOn) {
      scf::YieldOp::create(builder, loc, following);
      builder.setInsertionPointToEnd(conditional.elseBlock());
      scf::YieldOp::create(builder, loc, next.front());
      next.front() = conditional.getResult(0);
    }
    builder.setInsertionPointAfter(conditional);
    scf::YieldOp::create(builder, loc, next);
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
    });
  }

  /// In a launch with probes the first phase has one tile. Numbers are dealt from the last one down
  /// then: where long tiles come first, those of the probes are the first to end.
  void startWithProbe(SmallVector<Value> &inits) {
    Value isLong = ledger.probing->isLong.lookup(role), first = inits.front();
    Value blocks = perCluster<hop::BlockCountOp>(kernel, builder, loc);
    Value fromLast = arith::SubIOp::create(
        builder, loc, arith::SubIOp::create(builder, loc, blocks, index(1)), first);
    inits.front() = arith::SelectOp::create(builder, loc, isLong, fromLast, first);
    inits.push_back(arith::SelectOp::create(builder, loc, isLong, lastPlace(), index(0)));
  }

  /// Behind the first phase of a launch with probes all wait for what has become of these; whether
  /// the tiles that are left run exactly.
  Value judge(Value start, Value parity) {
    Value isFirst =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, start, lastPlace());
    auto conditional = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(conditional.thenYield());
    if (role == ledger.probing->judge) {
      Value block = perCluster<hop::BlockIndexOp>(kernel, builder, loc);
      const Probes &probes = ledger.probing->probes;
      Value isProbe = isBelow(block, index(probes.count));
      Value verdict = hop::ProbesVerdictOp::create(builder, loc, builder.getI32Type(),
                                                   read(ledger.doubted, parity), isProbe,
                                                   probes.count, probes.forFailure, probes.looks);
      hop::SlotStoreOp::create(builder, loc, verdict, ledger.doubted, constant(verdictSlot));
    }
    meet(ledger.probing->judged, constant(0));
    builder.setInsertionPointAfter(conditional);
    return isSet(read(ledger.doubted, constant(verdictSlot)));
  }

  /// Runs the exact program of the tiles in the list, and where `goesOn` is true of all that are
  /// left. Then clears the list. The number that comes next, where there is `goesOn`.
  Value runExact(scf::WhileOp tiles, scf::WhileOp phase, Value start, Value parity, Value goesOn) {
    waitForStores();
    Value number = phase.getAfterBody()->getArgument(0), count = phase.getResult(1);
    SmallVector<Value> inits = {start};
    if (goesOn)
      inits.push_back(phase.getResult(0));
    scf::WhileOp loop = createWhile(inits, [&](ValueRange arguments) -> Value {
      Value isListed = isBelow(arguments[0], count);
      if (!goesOn)
        return isListed;
      Value left = arith::AndIOp::create(builder, loc, goesOn, tilesLeft(tiles, arguments[1]));
      return arith::OrIOp::create(builder, loc, isListed, left);
    });
    Value place = loop.getAfterBody()->getArgument(0), isListed, entry;
    if (goesOn) {
      isListed = isBelow(place, count);
      Value inside = arith::SelectOp::create(builder, loc, isListed, place, start);
      Value unlisted = arith::OrIOp::create(
          builder, loc, toI32(loop.getAfterBody()->getArgument(1)), constant(doubtBit));
      entry = arith::SelectOp::create(builder, loc, isListed, read(ledger.list, toI32(inside)),
                                      unlisted);
    } else {
      entry = read(ledger.list, toI32(place));
    }
    auto conditional = scf::IfOp::create(builder, loc, isSet(entry), /*withElseRegion=*/false);
    SmallVector<Value> next = {arith::AddIOp::create(builder, loc, place, index(1))};
    if (goesOn)
      next.push_back(takeBehindList(phase, isListed, loop.getAfterBody()->getArgument(1)));
    scf::YieldOp::create(builder, loc, next);
    builder.setInsertionPoint(conditional.thenYield());
    Value again = toIndex(arith::AndIOp::create(builder, loc, entry, constant(~doubtBit)));
    moveExact(phase.getAfterBody(), number, again, conditional.thenYield());

    builder.setInsertionPointAfter(loop);
    // Nobody may clear what another role still has to read, nor doubt before it is clear.
    meet(ledger.meet, arith::XOrIOp::create(builder, loc, parity, constant(1)));
    if (role == ledger.clearing)
      clear(start, count, parity);
    meet(ledger.meet, parity);
    return goesOn ? loop.getResult(1) : Value();
  }

  /// The number of the next tile behind the list, which the roles take as in the phase; in the list
  /// `number` stays.
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
      if (taking.contains(&op))
        builder.clone(op, mapping);
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

  /// One thread clears the list, from `start` on.
  void clear(Value start, Value count, Value parity) {
    OpBuilder::InsertionGuard guard(builder);
    Value elected =
        hop::ElectedOp::create(builder, loc, builder.getI1Type(), role.getBody().getArgument(0));
    auto conditional = scf::IfOp::create(builder, loc, elected, /*withElseRegion=*/false);
    builder.setInsertionPoint(conditional.thenYield());
    hop::SlotStoreOp::create(builder, loc, constant(0), ledger.doubted, parity);
    scf::ForOp loop = scf::ForOp::create(builder, loc, start, count, index(1));
    builder.setInsertionPointToStart(loop.getBody());
    hop::SlotStoreOp::create(builder, loc, constant(0), ledger.list, toI32(loop.getInductionVar()));
  }

  hop::KernelOp kernel;
  hop::RoleOp role;
  hop::AttemptOp attempt;
  const Ledger &ledger;
  OpBuilder builder;
  Location loc;
};

/// Whether a launch is long enough for probes. All roles and thread blocks find the same: they ask
/// about the first tile of the grid, and about the loops of one role.
class LaunchLength {
public:
  LaunchLength(hop::AttemptOp attempt, const Probes &probes) : attempt(attempt), probes(probes) {}

  /// Before the loop over tiles around `user`; null where it is not known before the launch.
  Value isLong(hop::AttemptOp user) {
    auto own = attempt->getParentOfType<scf::WhileOp>(),
         loop = user->getParentOfType<scf::WhileOp>();
    OpBuilder builder(loop);
    Location loc = user.getLoc();
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    IRMapping mapping;
    mapping.map(own.getAfterArguments().front(), index(0));
    Value steps = index(1);
    for (auto walk : attempt.getFast().front().getOps<scf::ForOp>()) {
      SmallVector<Value> bounds = {walk.getLowerBound(), walk.getUpperBound(), walk.getStep()};
      for (Value &bound : bounds)
        if (!(bound = computeFirst(bound, builder, mapping)))
          return {};
      Value span = arith::MaxSIOp::create(
          builder, loc, arith::SubIOp::create(builder, loc, bounds[1], bounds[0]), index(0));
      steps = arith::AddIOp::create(builder, loc, steps,
                                    arith::CeilDivUIOp::create(builder, loc, span, bounds[2]));
    }
    Value blocks =
        perCluster<hop::BlockCountOp>(user->getParentOfType<hop::KernelOp>(), builder, loc);
    Value rounds = arith::MaxUIOp::create(
        builder, loc, index(probes.leastTiles),
        arith::CeilDivUIOp::create(builder, loc, index(probes.leastSteps), steps));
    Value last = arith::SubIOp::create(
        builder, loc, arith::MulIOp::create(builder, loc, blocks, rounds), index(1));
    IRMapping ofLast;
    ofLast.map(loop.getBeforeArguments().front(), last);
    for (Operation &op : loop.getBeforeBody()->without_terminator())
      builder.clone(op, ofLast);
    return ofLast.lookupOrDefault(loop.getConditionOp().getCondition());
  }

private:
  /// `value` for the first tile; null where it depends on what is loaded.
  static Value computeFirst(Value value, OpBuilder &builder, IRMapping &mapping) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    if (isa<hop::KernelOp>(value.getParentRegion()->getParentOp()))
      return value;
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumRegions() || !isMemoryEffectFree(op))
      return {};
    if (isa<hop::ClusterRankOp>(op)) {
      mapping.map(value, arith::ConstantIndexOp::create(builder, op->getLoc(), 0).getResult());
      return mapping.lookup(value);
    }
    for (Value operand : op->getOperands())
      if (!computeFirst(operand, builder, mapping))
        return {};
    builder.clone(*op, mapping);
    return mapping.lookup(value);
  }

  hop::AttemptOp attempt;
  const Probes &probes;
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
    if (failed(readProbes(kernel)))
      return signalPassFailure();
    Ledger ledger = createLedger(kernel, attempts);
    for (auto [role, attempt] : attempts)
      RoleRetry(role, attempt, ledger).run();
  }

  /// What tile-choose-schedule has noted, if it has.
  LogicalResult readProbes(hop::KernelOp kernel) {
    Attribute given = kernel->getAttr(kProbesAttr);
    if (!given)
      return success();
    auto numbers = dyn_cast<DenseI64ArrayAttr>(given);
    if (!numbers || numbers.size() != 5 ||
        llvm::any_of(numbers.asArrayRef(), [](int64_t number) { return number < 1; }))
      return kernel.emitOpError() << "has '" << kProbesAttr << "', which is five numbers above 0";
    ArrayRef<int64_t> each = numbers.asArrayRef();
    probes = Probes{each[0], each[1], each[2], each[3], each[4]};
    return success();
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
    bool walks = false;
    for (auto [role, attempt] : attempts) {
      threads += role.getNumThreads();
      walks |= isa<scf::WhileOp>(attempt->getParentOp());
      if (!clearing && !role.isElected())
        clearing = role;
    }
    auto values = [&](StringRef label, int64_t slots) -> Value {
      auto type = hop::BufferType::get(&getContext(),
                                       RankedTensorType::get({1}, builder.getI32Type()), slots);
      return hop::BufferOp::create(builder, loc, type, label, IntegerAttr(), /*zeroed=*/true);
    };
    auto meeting = [&](StringRef label) -> Value {
      return hop::BarriersOp::create(builder, loc, hop::BarriersType::get(&getContext(), 1), label,
                                     threads * kernel.getClusterSize(), IntegerAttr());
    };
    std::optional<Probing> probing = findProbing(kernel, attempts);
    Ledger ledger = {walks ? values("retry.list", kRetryTiles) : Value(),
                     values("retry.doubted", probing ? verdictSlot + 1 : 2),
                     meeting("retry.meet"),
                     kernel.getClusterSize(),
                     clearing,
                     probing};
    if (probing)
      ledger.probing->judged = meeting("retry.judged");
    return ledger;
  }

  /// The probes of a kernel whose thread blocks begin with the tiles of their own numbers and draw
  /// all others, and of which it is known how long its loops are.
  std::optional<Probing> findProbing(hop::KernelOp kernel,
                                     ArrayRef<std::pair<hop::RoleOp, hop::AttemptOp>> attempts) {
    hop::NextTileOp fetched;
    kernel.walk([&](hop::NextTileOp op) { fetched = op; });
    if (!probes || !fetched || fetched.getAll())
      return std::nullopt;
    auto judge = fetched->getParentOfType<hop::RoleOp>();
    hop::PipePutOp put;
    fetched->getParentRegion()->walk([&](hop::PipePutOp op) {
      auto cast = op.getValue().getDefiningOp<arith::IndexCastOp>();
      if (cast && cast.getIn() == fetched.getResult())
        put = op;
    });
    // All roles leave the fast program together, and one thread is the judge.
    bool haveAll = attempts.size() == llvm::range_size(kernel.getBody().getOps<hop::RoleOp>());
    if (!put || !haveAll || !judge.isElected())
      return std::nullopt;
    Probing probing;
    probing.probes = *probes;
    probing.judge = judge;
    probing.numbers = put.getPipe();
    LaunchLength length(attempts.front().second, probing.probes);
    for (auto [role, attempt] : attempts)
      if (!(probing.isLong[role] = length.isLong(attempt)))
        return std::nullopt;
    return probing;
  }

  std::optional<Probes> probes;
};

} // namespace
