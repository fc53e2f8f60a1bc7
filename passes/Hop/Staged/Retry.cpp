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

namespace tessera {
#define GEN_PASS_DEF_RETRY
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// What the roles of a kernel keep of doubtful tiles.
struct Ledger {
  Value list;           ///< by place in the phase: 0, or the tile's number and doubtBit; none of a
                        ///< block with one tile
  Value doubted;        ///< by parity of the phase: whether the list has entries
  Value meet;           ///< completed by all threads that run a program, of all blocks of a cluster
  int64_t blocks;       ///< of the cluster
  hop::RoleOp clearing; ///< clears the list when all have read it: the first role with warpgroups
};

/// Marks an entry of the list, so that tile 0 is not taken for none.
constexpr int32_t doubtBit = std::numeric_limits<int32_t>::min();

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

  /// `loop` walks over the tiles of the thread block.
  void retryAfterPhases(scf::WhileOp loop) {
    builder.setInsertionPoint(loop);
    Value first = loop.getInits().front();
    scf::WhileOp phases = createWhile(
        {first, constant(0)}, [&](ValueRange arguments) { return tilesLeft(loop, arguments[0]); });
    Value parity = phases.getAfterBody()->getArgument(1);
    scf::WhileOp phase =
        createWhile({phases.getAfterBody()->getArgument(0), index(0)}, [&](ValueRange arguments) {
          Value fits = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, arguments[1],
                                             index(kRetryTiles));
          return arith::AndIOp::create(builder, loc, tilesLeft(loop, arguments[0]), fits);
        });
    Value number = phase.getAfterBody()->getArgument(0),
          place = phase.getAfterBody()->getArgument(1);
    movePhaseBody(loop, phase, number, place, parity);

    builder.setInsertionPointAfter(phase);
    meet(parity);
    Value again = isSet(read(ledger.doubted, parity));
    auto conditional = scf::IfOp::create(builder, loc, again, /*withElseRegion=*/false);
    builder.setInsertionPoint(conditional.thenYield());
    retryListed(phase.getAfterBody(), number, phase.getResult(1), parity);
    builder.setInsertionPointAfter(conditional);
    Value next = arith::XOrIOp::create(builder, loc, parity, constant(1));
    scf::YieldOp::create(builder, loc, {phase.getResult(0), next});
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

  /// Runs the exact program of the tiles in the list, then clears it.
  void retryListed(Block *phaseBody, Value number, Value count, Value parity) {
    waitForStores();
    scf::WhileOp loop = createWhile({index(0)}, [&](ValueRange arguments) {
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, arguments[0], count);
    });
    Value place = loop.getAfterBody()->getArgument(0);
    Value entry = read(ledger.list, toI32(place));
    auto conditional = scf::IfOp::create(builder, loc, isSet(entry), /*withElseRegion=*/false);
    Value next = arith::AddIOp::create(builder, loc, place, index(1));
    scf::YieldOp::create(builder, loc, next);
    builder.setInsertionPoint(conditional.thenYield());
    Value again = toIndex(arith::AndIOp::create(builder, loc, entry, constant(~doubtBit)));
    moveExact(phaseBody, number, again, conditional.thenYield());

    builder.setInsertionPointAfter(loop);
    // Nobody may clear what another role still has to read, nor doubt before it is clear.
    meet(arith::XOrIOp::create(builder, loc, parity, constant(1)));
    if (role == ledger.clearing)
      clear(count, parity);
    meet(parity);
  }

  /// The exact program before `end`, with what it reads of the tile `number` computed for `again`.
  void moveExact(Block *phaseBody, Value number, Value again, Operation *end) {
    Block &exact = attempt.getExact().front();
    llvm::SetVector<Operation *> needed;
    SmallVector<Value> work;
    exact.walk([&](Operation *op) { llvm::append_range(work, op->getOperands()); });
    while (!work.empty()) {
      Operation *op = work.pop_back_val().getDefiningOp();
      if (op && op->getBlock() == phaseBody && needed.insert(op))
        llvm::append_range(work, op->getOperands());
    }
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
    return {walks ? values("retry.list", kRetryTiles) : Value(), values("retry.doubted", 2),
            hop::BarriersOp::create(builder, loc, hop::BarriersType::get(&getContext(), 1),
                                    "retry.meet", threads * kernel.getClusterSize(), IntegerAttr()),
            kernel.getClusterSize(), clearing};
  }
};

} // namespace
