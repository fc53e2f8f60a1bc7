//===- LoopOverlap.cpp - Two-stage software pipelining of loops -----------===//

#include "passes/LoopOverlap.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/Utils/InferIntRangeCommon.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/ResourceModel.h"
#include <vector>

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
using OpSet = llvm::DenseSet<Operation *>;

/// The operations of one loop body and how they depend on each other.
class BodyGraph {
public:
  explicit BodyGraph(scf::ForOp loop) : body(loop.getBody()) {
    for (Operation &op : body->without_terminator())
      ops.push_back(&op);
  }

  ArrayRef<Operation *> getOps() const { return ops; }

  /// The operation of this body, not the terminator, in which `value` is
  /// defined; null when it is defined elsewhere or is an argument of the body.
  Operation *definingOp(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && op->getBlock() == body ? op : nullptr;
  }

  /// The values that `op` and the operations nested in it read from outside it.
  SmallVector<Value> inputs(Operation *op) const {
    llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), values);
    return values.takeVector();
  }

  /// `roots` and everything of the same iteration that they are computed from.
  OpSet sources(ArrayRef<Value> roots) const {
    OpSet found;
    SmallVector<Value> work(roots);
    while (!work.empty())
      if (Operation *op = definingOp(work.pop_back_val()); op && found.insert(op).second)
        llvm::append_range(work, inputs(op));
    return found;
  }

  /// Adds to `set` every operation that is computed from one of it.
  void closeOverUsers(OpSet &set) const {
    for (Operation *op : ops)
      if (llvm::any_of(inputs(op), [&](Value v) { return set.contains(definingOp(v)); }))
        set.insert(op);
  }

  /// The operations of this body that use a result of `op`, and the terminator
  /// when it yields one.
  SmallVector<Operation *> users(Operation *op) const {
    llvm::SetVector<Operation *> found;
    for (Operation *user : op->getUsers())
      found.insert(body->findAncestorOpInBlock(*user));
    return found.takeVector();
  }

  Block *const body;

private:
  SmallVector<Operation *> ops;
};

bool containsDot(Operation *op) {
  return op->walk([](DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// The dots of the body whose product reads what another dot of the same
/// iteration computed. A dot that only accumulates onto another one is not
/// dependent: the machine chains accumulations without a wait.
OpSet dependentDots(const BodyGraph &graph) {
  OpSet dots, dependent;
  for (Operation *op : graph.getOps())
    if (isa<DotOp>(op))
      dots.insert(op);
  for (Operation *op : dots) {
    auto dot = cast<DotOp>(op);
    OpSet sources = graph.sources({dot.getA(), dot.getB()});
    if (llvm::any_of(sources, [&](Operation *source) { return dots.contains(source); }))
      dependent.insert(op);
  }
  return dependent;
}

/// Loads, transposes and index arithmetic: what may run late when only late
/// operations use it.
bool followsItsUsers(Operation *op) {
  if (isa<LoadOp, TransposeOp>(op))
    return true;
  return isPure(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndex(); });
}

/// Stage 1: the dependent dots, what depends on them, and what only they use.
OpSet lateOps(const BodyGraph &graph, const OpSet &dependent) {
  OpSet late = dependent;
  graph.closeOverUsers(late);
  for (Operation *op : llvm::reverse(graph.getOps())) {
    if (!followsItsUsers(op))
      continue;
    SmallVector<Operation *> users = graph.users(op);
    if (!users.empty() && llvm::all_of(users, [&](Operation *user) { return late.contains(user); }))
      late.insert(op);
  }
  return late;
}

/// Stage 0 that needs a result of stage 1 of the iteration before.
OpSet joiningOps(const BodyGraph &graph, const OpSet &late) {
  llvm::DenseSet<Value> lateArguments;
  auto yield = cast<scf::YieldOp>(graph.body->getTerminator());
  for (auto [argument, value] :
       llvm::zip_equal(graph.body->getArguments().drop_front(), yield.getOperands()))
    if (late.contains(graph.definingOp(value)))
      lateArguments.insert(argument);
  OpSet joining;
  for (Operation *op : graph.getOps())
    if (!late.contains(op) && llvm::any_of(graph.inputs(op), [&](Value v) {
          return lateArguments.contains(v) || joining.contains(graph.definingOp(v));
        }))
      joining.insert(op);
  return joining;
}

/// The view that `op` loads or stores, or null.
Value accessedView(Operation *op) {
  if (auto load = dyn_cast<LoadOp>(op))
    return load.getView();
  if (auto store = dyn_cast<StoreOp>(op))
    return store.getView();
  return {};
}

/// A store of the body that the rotation would move past an access of the same
/// view, or null.
Operation *reorderedStore(const BodyGraph &graph, const OpSet &late) {
  SmallVector<std::pair<Operation *, bool>> accesses;
  for (Operation *op : graph.getOps()) {
    bool isLate = late.contains(op);
    op->walk([&](Operation *nested) {
      if (accessedView(nested))
        accesses.emplace_back(nested, isLate);
    });
  }
  for (auto [store, storeIsLate] : accesses) {
    if (!isa<StoreOp>(store))
      continue;
    for (auto [other, otherIsLate] : accesses)
      if (accessedView(other) == accessedView(store) && storeIsLate != otherIsLate)
        return store;
  }
  return nullptr;
}

/// Says why the stages cannot be rotated with profit or at all.
LogicalResult checkStages(const BodyGraph &graph, const OpSet &dependent, const OpSet &late,
                          const OpSet &joining, OverlapRefusal &refusal) {
  auto refuse = [&](Operation *op, const Twine &reason) {
    refusal = {op, reason.str()};
    return failure();
  };
  for (Operation *op : graph.getOps())
    if (op->getNumRegions() != 0 && containsDot(op))
      return refuse(op, "a dot lies in a nested region of the loop's body");
  if (dependent.empty())
    return refuse(graph.body->getParentOp(),
                  "no dot of the loop reads what was computed from another dot of the "
                  "same iteration");
  for (Operation *op : graph.getOps()) {
    if (!dependent.contains(op))
      continue;
    auto dot = cast<DotOp>(op);
    OpSet sources = graph.sources({dot.getA(), dot.getB()});
    for (Operation *source : graph.getOps())
      if (sources.contains(source) && joining.contains(source))
        return refuse(source, "the operands of a dot need the result of that dot in the iteration "
                              "before, so its work cannot run under the next iteration's");
    for (Value operand : {dot.getA(), dot.getB()})
      if (LoadOp load = loadedOperand(operand);
          load && load->getBlock() == graph.body && !late.contains(load))
        return refuse(load, "the tile feeds dots of both stages and would have to be kept from one "
                            "iteration to the next; load it again for the later dot");
  }
  if (Operation *store = reorderedStore(graph, late))
    return refuse(store, "the store would move past another access of the same view");
  return success();
}

/// Appends `ops` to `order` in the order of the body, but each operation that
/// follows its users right before the first of them.
void appendLazily(const BodyGraph &graph, const OpSet &ops, SmallVectorImpl<Operation *> &order) {
  OpSet done;
  auto append = [&](auto &self, Operation *op) -> void {
    if (!ops.contains(op) || !done.insert(op).second)
      return;
    for (Value input : graph.inputs(op))
      if (Operation *source = graph.definingOp(input))
        self(self, source);
    order.push_back(op);
  };
  for (Operation *op : graph.getOps())
    if (!followsItsUsers(op))
      append(append, op);
  for (Operation *op : graph.getOps())
    append(append, op);
}

/// True for the rounding of a tile that only stage 1 reads. Done under a dot
/// that reads the value before it, it would need a second set of registers,
/// which ptxas does not give (C7513).
bool packsLateOperand(const BodyGraph &graph, Operation *op, const OpSet &late) {
  if (!isa<arith::TruncFOp>(op))
    return false;
  SmallVector<Operation *> users = graph.users(op);
  return !users.empty() &&
         llvm::all_of(users, [&](Operation *user) { return late.contains(user); });
}
} // namespace

bool tessera::hasDependentDots(scf::ForOp loop) { return !dependentDots(BodyGraph(loop)).empty(); }

FailureOr<OverlapPlan> tessera::planOverlap(scf::ForOp loop, OverlapRefusal &refusal) {
  BodyGraph graph(loop);
  OpSet dependent = dependentDots(graph);
  OpSet late = lateOps(graph, dependent);
  OpSet joining = joiningOps(graph, late);
  if (failed(checkStages(graph, dependent, late, joining, refusal)))
    return failure();

  OverlapPlan plan;
  OpSet leading;
  for (Operation *op : graph.getOps())
    if (isa<DotOp>(op) && !late.contains(op)) {
      OpSet sources = graph.sources({op->getResult(0)});
      leading.insert(sources.begin(), sources.end());
    }
  // A leading dot that accumulates onto a late result still has to join.
  for (Operation *op : joining)
    leading.erase(op);
  appendLazily(graph, leading, plan.leading);
  appendLazily(graph, late, plan.late);
  for (Operation *op : graph.getOps()) {
    if (leading.contains(op) || late.contains(op))
      continue;
    bool joins = joining.contains(op) || packsLateOperand(graph, op, late);
    (joins ? plan.joining : plan.independent).push_back(op);
  }
  plan.lateSet = std::move(late);
  return plan;
}

namespace {
/// Rewrites one loop to the plan.
class Rotation {
public:
  Rotation(scf::ForOp loop, const OverlapPlan &plan) : loop(loop), plan(plan) { findCarried(); }

  /// Builds the rotated form at `builder`; the values that replace the loop's.
  SmallVector<Value> build(OpBuilder &builder);

private:
  bool isLate(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && plan.isLate(op);
  }
  Value yielded(unsigned i) { return loop.getYieldedValues()[i]; }
  void findCarried();
  void cloneStageZero(OpBuilder &builder, IRMapping &mapping, bool leading);
  void buildStep(OpBuilder &builder, Location loc, Value induction, ValueRange arguments);

  scf::ForOp loop;
  const OverlapPlan &plan;
  /// Iter_args of the old loop that the new one keeps: those yielded by stage 0
  /// hold the value of the coming iteration, those yielded by stage 1 the value
  /// of the iteration whose stage 1 comes next.
  SmallVector<unsigned> kept;
  /// Values of stage 0 that stage 1 reads a step later.
  llvm::SetVector<Value> crossing;
};

void Rotation::findCarried() {
  llvm::SetVector<Value> readLate;
  for (Operation *op : plan.late) {
    readLate.insert(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), readLate);
  }
  for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
    if (!isLate(yielded(i)) || readLate.contains(loop.getRegionIterArg(i)))
      kept.push_back(i);
  for (Value value : readLate) {
    if (value.getParentBlock() != loop.getBody() || isLate(value))
      continue;
    auto argument = dyn_cast<BlockArgument>(value);
    bool carriesLate = argument && argument != loop.getInductionVar() &&
                       isLate(loop.getTiedLoopYieldedValue(argument)->get());
    if (!carriesLate)
      crossing.insert(value);
  }
}

void Rotation::cloneStageZero(OpBuilder &builder, IRMapping &mapping, bool leading) {
  if (leading)
    for (Operation *op : plan.leading)
      builder.clone(*op, mapping);
  else
    for (ArrayRef<Operation *> ops : {ArrayRef(plan.independent), ArrayRef(plan.joining)})
      for (Operation *op : ops)
        builder.clone(*op, mapping);
}

void Rotation::buildStep(OpBuilder &builder, Location loc, Value induction, ValueRange arguments) {
  IRMapping early, late;
  early.map(loop.getInductionVar(), induction);
  for (auto [i, argument] : llvm::zip(kept, arguments))
    (isLate(yielded(i)) ? late : early).map(loop.getRegionIterArg(i), argument);
  for (auto [value, argument] : llvm::zip(crossing, arguments.drop_front(kept.size())))
    late.map(value, argument);

  cloneStageZero(builder, early, /*leading=*/true);
  for (Operation *op : plan.late)
    builder.clone(*op, late);
  for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
    if (isLate(yielded(i)))
      early.map(loop.getRegionIterArg(i), late.lookup(yielded(i)));
  cloneStageZero(builder, early, /*leading=*/false);

  SmallVector<Value> results;
  for (unsigned i : kept)
    results.push_back((isLate(yielded(i)) ? late : early).lookupOrDefault(yielded(i)));
  for (Value value : crossing)
    results.push_back(early.lookupOrDefault(value));
  scf::YieldOp::create(builder, loc, results);
}

SmallVector<Value> Rotation::build(OpBuilder &builder) {
  Location loc = loop.getLoc();
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  for (auto [argument, init] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    first.map(argument, init);
  cloneStageZero(builder, first, /*leading=*/true);
  cloneStageZero(builder, first, /*leading=*/false);

  SmallVector<Value> inits;
  for (unsigned i : kept)
    inits.push_back(isLate(yielded(i)) ? loop.getInitArgs()[i] : first.lookupOrDefault(yielded(i)));
  for (Value value : crossing)
    inits.push_back(first.lookupOrDefault(value));
  Value second = arith::AddIOp::create(builder, loc, loop.getLowerBound(), loop.getStep());
  auto steady = scf::ForOp::create(
      builder, loc, second, loop.getUpperBound(), loop.getStep(), inits,
      [&](OpBuilder &inner, Location innerLoc, Value induction, ValueRange arguments) {
        buildStep(inner, innerLoc, induction, arguments);
      },
      loop.getUnsignedCmp());
  steady->setDiscardableAttrs(loop->getDiscardableAttrDictionary());

  IRMapping last;
  SmallVector<Value> results(loop.getNumRegionIterArgs());
  for (auto [i, result] : llvm::zip(kept, steady.getResults())) {
    if (isLate(yielded(i)))
      last.map(loop.getRegionIterArg(i), result);
    results[i] = result;
  }
  for (auto [value, result] : llvm::zip(crossing, steady.getResults().drop_front(kept.size())))
    last.map(value, result);
  for (Operation *op : plan.late)
    builder.clone(*op, last);

  for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
    if (isLate(yielded(i)))
      results[i] = last.lookup(yielded(i));
  return results;
}

/// True when integer ranges prove that `loop` runs at least once.
bool runsAtLeastOnce(scf::ForOp loop, DataFlowSolver &solver) {
  auto rangeOf = [&](Value value) -> std::optional<ConstantIntRanges> {
    auto *state = solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
    if (!state || state->getValue().isUninitialized())
      return std::nullopt;
    return state->getValue().getValue();
  };
  std::optional<ConstantIntRanges> lower = rangeOf(loop.getLowerBound()),
                                   upper = rangeOf(loop.getUpperBound());
  if (!lower || !upper)
    return false;
  auto predicate =
      loop.getUnsignedCmp() ? intrange::CmpPredicate::ult : intrange::CmpPredicate::slt;
  return intrange::evaluatePred(predicate, *lower, *upper).value_or(false);
}

/// Replaces `loop` by its rotated form, under a condition unless `runs`.
void rotate(scf::ForOp loop, const OverlapPlan &plan, bool runs) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Rotation rotation(loop, plan);
  SmallVector<Value> results;
  if (runs) {
    results = rotation.build(builder);
  } else {
    auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    Value nonEmpty =
        arith::CmpIOp::create(builder, loc, predicate, loop.getLowerBound(), loop.getUpperBound());
    auto guard = scf::IfOp::create(
        builder, loc, nonEmpty,
        [&](OpBuilder &inner, Location innerLoc) {
          SmallVector<Value> values = rotation.build(inner);
          scf::YieldOp::create(inner, innerLoc, values);
        },
        [&](OpBuilder &inner, Location innerLoc) {
          scf::YieldOp::create(inner, innerLoc, loop.getInitArgs());
        });
    results.assign(guard.result_begin(), guard.result_end());
  }
  loop.replaceAllUsesWith(results);
  loop.erase();
}
} // namespace

SmallVector<scf::ForOp> tessera::loopsWithDots(KernelOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (!loop.getBody()->getOps<DotOp>().empty())
      loops.push_back(loop);
  });
  return loops;
}

unsigned tessera::overlapLoops(KernelOp kernel,
                               function_ref<void(scf::ForOp, const OverlapRefusal &)> refused) {
  std::vector<std::pair<scf::ForOp, OverlapPlan>> plans;
  for (scf::ForOp loop : loopsWithDots(kernel)) {
    OverlapRefusal refusal;
    FailureOr<OverlapPlan> plan = planOverlap(loop, refusal);
    if (succeeded(plan))
      plans.emplace_back(loop, std::move(*plan));
    else
      refused(loop, refusal);
  }
  if (plans.empty())
    return 0;
  // All ranges before any rewrite, which would leave the solver with stale values.
  DataFlowSolver solver;
  dataflow::loadBaselineAnalyses(solver);
  solver.load<dataflow::IntegerRangeAnalysis>();
  bool solved = succeeded(solver.initializeAndRun(kernel));
  SmallVector<bool> runs;
  for (auto &[loop, plan] : plans)
    runs.push_back(solved && runsAtLeastOnce(loop, solver));
  for (auto [entry, once] : llvm::zip_equal(plans, runs))
    rotate(entry.first, entry.second, once);
  return plans.size();
}
