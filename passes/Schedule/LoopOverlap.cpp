//===- LoopOverlap.cpp - Software pipelining of loops with dots -----------===//

#include "passes/Schedule/LoopOverlap.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/Utils/InferIntRangeCommon.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/WidenedOperands.h"
#include "passes/Schedule/LoopLead.h"
#include "passes/Schedule/ResourceModel.h"
#include <vector>

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
using OpSet = llvm::DenseSet<Operation *>;

/// The operations of one loop body and how they depend on each other.
class BodyGraph {
public:
  explicit BodyGraph(scf::ForOp loop)
      : body(loop.getBody()), conversions(conversionOperations(loop)) {
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

  /// `roots` and everything of the same iteration that they are computed from.
  OpSet sources(ArrayRef<Value> roots) const {
    OpSet found;
    SmallVector<Value> work(roots);
    while (!work.empty())
      if (Operation *op = definingOp(work.pop_back_val()); op && found.insert(op).second)
        llvm::append_range(work, inputsOf(op));
    return found;
  }

  /// Adds to `set` every operation that is computed from one of it.
  void closeOverUsers(OpSet &set) const {
    for (Operation *op : ops)
      if (llvm::any_of(inputsOf(op), [&](Value v) { return set.contains(definingOp(v)); }))
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

  /// Whether `op` makes an operand of a loaded tile, in a role of its own or where it is
  /// multiplied.
  bool isConversion(Operation *op) const {
    LoadOpInterface load =
        isa<arith::ExtFOp>(op) ? loadedOperand(op->getOperand(0)) : LoadOpInterface();
    return conversions.contains(op) || (load && isWidened(load));
  }

  Block *const body;

private:
  OpSet conversions;
  SmallVector<Operation *> ops;
};

/// Whether `op` is a dot, or a loop or a branch that has some.
bool multiplies(Operation *op) {
  return op->walk([](DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// The dots of the body, and loops of dots, whose products read what another one of the same
/// iteration computed. A dot that only accumulates onto another one is not dependent: the machine
/// chains accumulations without a wait.
OpSet dependentDots(const BodyGraph &graph) {
  OpSet dots, dependent;
  for (Operation *op : graph.getOps())
    if (multiplies(op))
      dots.insert(op);
  for (Operation *op : dots) {
    auto dot = dyn_cast<DotOp>(op);
    OpSet sources = graph.sources(dot ? SmallVector<Value>{dot.getA(), dot.getB()} : inputsOf(op));
    if (llvm::any_of(sources, [&](Operation *source) { return dots.contains(source); }))
      dependent.insert(op);
  }
  return dependent;
}

/// Whether a loop around `loop` has dots of its own. They wait for it, and so do those of other
/// iterations, so that none runs under the work of `loop`.
bool isInLoopOfDots(scf::ForOp loop) {
  auto outer = loop->getParentOfType<scf::ForOp>();
  return outer && (!outer.getBody()->getOps<DotOp>().empty() || isInLoopOfDots(outer));
}

/// Whether elementwise work of the body reads what a dot of the body itself made.
bool worksOnDots(const BodyGraph &graph) {
  return llvm::any_of(graph.getOps(), [&](Operation *op) {
    return !multiplies(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
      return isa_and_nonnull<DotOp>(graph.definingOp(operand));
    });
  });
}

/// Whether `op` makes a tile that only names the rows of gathers for dots.
bool namesRows(Operation *op) {
  return op->getNumResults() == 1 && isa<RankedTensorType>(op->getResult(0).getType()) &&
         op->getNumRegions() == 0 && !op->use_empty() &&
         llvm::all_of(op->getUsers(), [](Operation *user) {
           auto gather = dyn_cast<GatherOp>(user);
           return (gather && isLoadedForDots(gather)) || namesRows(user);
         });
}

/// Loads, transposes, conversions of operands, index arithmetic and the numbers of rows: what may
/// run late when only late operations use it.
bool followsItsUsers(const BodyGraph &graph, Operation *op) {
  if (isa<LoadOp, GatherOp, GatherRunsOp, TransposeOp>(op) || graph.isConversion(op) ||
      namesRows(op))
    return true;
  return isPure(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndex(); });
}

/// The last stage: the dependent dots, what depends on them, and what only they use.
OpSet lateOps(const BodyGraph &graph, const OpSet &dependent) {
  OpSet late = dependent;
  graph.closeOverUsers(late);
  for (Operation *op : llvm::reverse(graph.getOps())) {
    if (!followsItsUsers(graph, op))
      continue;
    SmallVector<Operation *> users = graph.users(op);
    if (!users.empty() && llvm::all_of(users, [&](Operation *user) { return late.contains(user); }))
      late.insert(op);
  }
  return late;
}

/// What needs a result of the last stage of the iteration before.
OpSet joiningOps(const BodyGraph &graph, const OpSet &late) {
  llvm::DenseSet<Value> lateArguments;
  auto yield = cast<scf::YieldOp>(graph.body->getTerminator());
  for (auto [argument, value] :
       llvm::zip_equal(graph.body->getArguments().drop_front(), yield.getOperands()))
    if (late.contains(graph.definingOp(value)))
      lateArguments.insert(argument);
  OpSet joining;
  for (Operation *op : graph.getOps())
    if (!late.contains(op) && llvm::any_of(inputsOf(op), [&](Value v) {
          return lateArguments.contains(v) || joining.contains(graph.definingOp(v));
        }))
      joining.insert(op);
  return joining;
}

/// The view that `op` loads or stores, or null.
Value accessedView(Operation *op) {
  if (auto load = dyn_cast<LoadOpInterface>(op))
    return load.getView();
  return isa<StoreOp, ScatterOp>(op) ? op->getOperand(1) : Value();
}

using StageMap = llvm::DenseMap<Operation *, unsigned>;

/// A store of the body that the rotation would move past an access of the same
/// view, or null.
Operation *reorderedStore(const BodyGraph &graph, const RotationPlan &plan) {
  llvm::DenseMap<Operation *, size_t> place;
  for (auto [i, op] : llvm::enumerate(plan.order))
    place[op] = i;
  /// An access and the operation of the body that it is part of, in program order.
  SmallVector<std::pair<Operation *, Operation *>> accesses;
  for (Operation *op : graph.getOps())
    op->walk([&](Operation *nested) {
      if (accessedView(nested))
        accesses.emplace_back(nested, op);
    });
  for (auto [i, first] : llvm::enumerate(accesses))
    for (auto second : ArrayRef(accesses).drop_front(i + 1)) {
      if (accessedView(first.first) != accessedView(second.first))
        continue;
      bool staysInOrder = plan.stage.lookup(first.second) == plan.stage.lookup(second.second) &&
                          place.lookup(first.second) <= place.lookup(second.second);
      for (auto access : {first, second})
        if (storesToView(access.first) && !staysInOrder)
          return access.first;
    }
  return nullptr;
}

/// Appends `ops` to `order` in the order of the body, but each operation that
/// follows its users right before the first of them.
void appendLazily(const BodyGraph &graph, const OpSet &ops, SmallVectorImpl<Operation *> &order) {
  OpSet done;
  auto append = [&](auto &self, Operation *op) -> void {
    if (!ops.contains(op) || !done.insert(op).second)
      return;
    for (Value input : inputsOf(op))
      if (Operation *source = graph.definingOp(input))
        self(self, source);
    order.push_back(op);
  };
  for (Operation *op : graph.getOps())
    if (!followsItsUsers(graph, op))
      append(append, op);
  for (Operation *op : graph.getOps())
    append(append, op);
}

/// True for the rounding of a tile that only the last stage reads. Done under a
/// dot that reads the value before it, it would need a second set of registers,
/// which ptxas does not give (C7513).
bool packsLateOperand(const BodyGraph &graph, Operation *op, const OpSet &late) {
  if (!isa<arith::TruncFOp>(op))
    return false;
  SmallVector<Operation *> users = graph.users(op);
  return !users.empty() &&
         llvm::all_of(users, [&](Operation *user) { return late.contains(user); });
}

/// Divides the body of one loop into stages and orders a step.
class OverlapPlanner {
public:
  OverlapPlanner(scf::ForOp loop, const OverlapShape &shape, OverlapRefusal &refusal)
      : loop(loop), graph(loop), shape(shape), refusal(refusal) {}

  FailureOr<RotationPlan> run();

private:
  LogicalResult refuse(Operation *op, const Twine &reason) {
    refusal = {op, reason.str()};
    return failure();
  }
  LogicalResult checkDots();
  void classify();
  void moveJoins();
  /// The stage of the work on what the leading dots made: where no dot waits for it, it is the
  /// last.
  unsigned getStageOfWork() const { return dependent.empty() ? 1 : shape.getStageOfWork(); }
  unsigned getStages() const { return dependent.empty() ? 2 : shape.getStages(); }
  LogicalResult checkStages();
  void order(RotationPlan &plan);

  scf::ForOp loop;
  BodyGraph graph;
  const OverlapShape &shape;
  OverlapRefusal &refusal;
  /// The dots that read what another dot made; with all that is of their stage; what needs a
  /// result of it from the iteration before; the other dots with what they need.
  OpSet dependent, late, joining, leading;
  StageMap stages;
};
} // namespace

LogicalResult OverlapPlanner::checkDots() {
  for (Operation *op : graph.getOps())
    if (op->getNumRegions() != 0 && dependent.contains(op))
      return refuse(op, "a dot lies in a nested region of the loop's body and reads what was "
                        "computed from another dot of the same iteration");
  if (!dependent.empty())
    return success();
  if (!isInLoopOfDots(loop))
    return refuse(loop, "no dot of the loop reads what was computed from another dot of the "
                        "same iteration");
  if (!worksOnDots(graph))
    return refuse(loop, "no dot of the loop reads what was computed from another dot of the "
                        "same iteration, and no other work reads what a dot made");
  return success();
}

void OverlapPlanner::classify() {
  late = lateOps(graph, dependent);
  joining = joiningOps(graph, late);
  for (Operation *op : graph.getOps())
    if (multiplies(op) && !late.contains(op)) {
      OpSet sources = graph.sources(llvm::to_vector_of<Value>(op->getResults()));
      leading.insert(sources.begin(), sources.end());
    }
  // A leading dot that accumulates onto a late result still has to join.
  for (Operation *op : joining)
    leading.erase(op);
  for (Operation *op : graph.getOps())
    stages[op] = leading.contains(op) ? 0 : late.contains(op) ? getStages() - 1 : getStageOfWork();
}

/// Moves what the shape wants before the later dots into their stage.
void OverlapPlanner::moveJoins() {
  OpSet moved;
  for (Operation *op : graph.getOps())
    if (shape.scalesLate() && joining.contains(op))
      moved.insert(op);
  // A broadcast is a way to read its source, which is what crosses to the other stage.
  for (Operation *op : llvm::reverse(graph.getOps()))
    if (isa<BroadcastOp, SplatOp>(op) &&
        llvm::all_of(graph.users(op), [&](Operation *user) { return moved.contains(user); }))
      moved.insert(op);
  for (Operation *op : moved) {
    late.insert(op);
    joining.erase(op);
    stages[op] = getStages() - 1;
  }
}

/// Says why the stages cannot be rotated with profit or at all.
LogicalResult OverlapPlanner::checkStages() {
  for (Operation *op : graph.getOps()) {
    if (!dependent.contains(op))
      continue;
    auto dot = cast<DotOp>(op);
    OpSet sources = graph.sources({dot.getA(), dot.getB()});
    for (Operation *source : graph.getOps())
      if (sources.contains(source) && joining.contains(source))
        return refuse(source, "the operands of a dot need the result of that dot in the iteration "
                              "before, so its work cannot run under the next iteration's");
    for (LoadOpInterface load : {loadedOperand(dot.getA()), loadOfB(dot)})
      if (load && load->getBlock() == graph.body && !late.contains(load))
        return refuse(load, "the tile feeds dots of both stages and would have to be kept from one "
                            "iteration to the next; load it again for the later dot");
  }
  return success();
}

/// Dots are issued in the order in which their results are needed: those of the
/// leading ones in this step, or, when they run ahead, in the next.
void OverlapPlanner::order(RotationPlan &plan) {
  OpSet independent, joins;
  for (Operation *op : graph.getOps()) {
    if (leading.contains(op) || late.contains(op))
      continue;
    bool isJoin = joining.contains(op) || packsLateOperand(graph, op, late);
    (isJoin ? joins : independent).insert(op);
  }
  SmallVector<Operation *> ordered;
  bool workIsLater = getStageOfWork() > 0;
  appendLazily(graph, workIsLater ? late : leading, ordered);
  appendLazily(graph, workIsLater ? leading : late, ordered);
  for (const OpSet *set : {&independent, &joins})
    llvm::copy_if(graph.getOps(), std::back_inserter(ordered),
                  [&](Operation *op) { return set->contains(op); });
  for (Operation *op : ordered) {
    if (isRemade(loop, op))
      continue;
    plan.order.push_back(op);
    plan.stage[op] = stages.lookup(op);
  }
}

FailureOr<RotationPlan> OverlapPlanner::run() {
  dependent = dependentDots(graph);
  if (failed(checkDots()))
    return failure();
  classify();
  if (failed(checkStages()))
    return failure();
  moveJoins();
  RotationPlan plan;
  plan.stages = getStages();
  order(plan);
  if (Operation *store = reorderedStore(graph, plan)) {
    (void)refuse(store, "the store would move past another access of the same view");
    return failure();
  }
  if (Operation *op = findPrematureUse(loop, plan)) {
    (void)refuse(op, "it needs a result that a step computes after it");
    return failure();
  }
  return plan;
}

bool tessera::hasDependentDots(scf::ForOp loop) { return !dependentDots(BodyGraph(loop)).empty(); }

FailureOr<RotationPlan> tessera::planOverlap(scf::ForOp loop, const OverlapShape &shape,
                                             OverlapRefusal &refusal) {
  return OverlapPlanner(loop, shape, refusal).run();
}

namespace {
/// Whether integer ranges prove that `loop` runs at least `count` times.
bool runsAtLeast(int64_t count, scf::ForOp loop, DataFlowSolver &solver) {
  auto rangeOf = [&](Value value) -> std::optional<ConstantIntRanges> {
    auto *state = solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
    if (!state || state->getValue().isUninitialized())
      return std::nullopt;
    return state->getValue().getValue();
  };
  std::optional<ConstantIntRanges> last = rangeOf(loop.getLowerBound()),
                                   upper = rangeOf(loop.getUpperBound()),
                                   step = rangeOf(loop.getStep());
  if (!last || !upper || !step)
    return false;
  for (int64_t i = 1; i < count; ++i)
    last = intrange::inferAdd({*last, *step}, intrange::OverflowFlags::Nsw);
  auto predicate =
      loop.getUnsignedCmp() ? intrange::CmpPredicate::ult : intrange::CmpPredicate::slt;
  return intrange::evaluatePred(predicate, *last, *upper).value_or(false);
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

unsigned tessera::overlapLoops(KernelOp kernel, const OverlapShape &shape,
                               function_ref<void(scf::ForOp, const OverlapRefusal &)> refused) {
  if (shape.leadsAlone())
    return leadLoops(kernel, refused);
  std::vector<std::pair<scf::ForOp, RotationPlan>> plans;
  for (scf::ForOp loop : loopsWithDots(kernel)) {
    OverlapRefusal refusal;
    auto inner = llvm::find_if(plans, [&](auto &each) { return loop->isAncestor(each.first); });
    if (inner != plans.end()) {
      refused(loop, {inner->first, "the loop of dots in it overlaps, and steps of several "
                                   "iterations would each hold a copy of that"});
      continue;
    }
    FailureOr<RotationPlan> plan = planOverlap(loop, shape, refusal);
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
    runs.push_back(solved && runsAtLeast(plan.stages - 1, loop, solver));
  for (auto [entry, longEnough] : llvm::zip_equal(plans, runs)) {
    OpBuilder builder(entry.first);
    entry.first.replaceAllUsesWith(rotateLoop(entry.first, entry.second, longEnough, builder));
    entry.first.erase();
  }
  return plans.size();
}
