//===- LoopLead.cpp - A loop whose step issues the first dot of the next one ===//

#include "passes/Schedule/LoopLead.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
using OrderedOpSet = llvm::SetVector<Operation *>;

/// Finds out what of one loop can run ahead.
class LeadPlanner {
public:
  LeadPlanner(scf::ForOp loop, const DenseSet<Operation *> &elsewhere, OverlapRefusal &refusal)
      : loop(loop), body(loop.getBody()), elsewhere(elsewhere), refusal(refusal) {}

  FailureOr<LeadPlan> run();

private:
  LogicalResult refuse(Operation *op, const Twine &reason) {
    refusal = {op, reason.str()};
    return failure();
  }
  Operation *definingOp(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && op->getBlock() == body ? op : nullptr;
  }
  OrderedOpSet sourcesOf(ValueRange roots) const;
  LogicalResult checkAhead(const OrderedOpSet &sources);
  LogicalResult checkLoad(LoadOp load);
  bool variesWithin(Value value);

  scf::ForOp loop;
  Block *body;
  const DenseSet<Operation *> &elsewhere;
  OverlapRefusal &refusal;
};
} // namespace

/// What of the same iteration `roots` are computed from.
OrderedOpSet LeadPlanner::sourcesOf(ValueRange roots) const {
  OrderedOpSet found;
  SmallVector<Value> work(roots);
  while (!work.empty())
    if (Operation *op = definingOp(work.pop_back_val()); op && found.insert(op))
      llvm::append_range(work, inputsOf(op));
  return found;
}

/// Whether `value` differs from iteration to iteration.
bool LeadPlanner::variesWithin(Value value) { return !loop.isDefinedOutsideOfLoop(value); }

/// A tile past the end of the loop is loaded and not used: what lies outside of a view is 0, along
/// the dimensions of the tile.
LogicalResult LeadPlanner::checkLoad(LoadOp load) {
  auto tile = dyn_cast<RankedTensorType>(load.getType());
  size_t outer = tile ? load.getIndices().size() - tile.getRank() : load.getIndices().size();
  for (Value index : load.getIndices().take_front(outer))
    if (variesWithin(index))
      return refuse(load, "an outer index of the load depends on the iteration, so that behind the "
                          "last one it would lie outside of the view");
  if (load.getBox())
    return refuse(load, "a box behind the last iteration would lie outside of the view");
  if (llvm::any_of(load.getView().getUsers(), storesToView))
    return refuse(load, "the kernel stores to the view, which a load ahead would not see");
  return success();
}

LogicalResult LeadPlanner::checkAhead(const OrderedOpSet &sources) {
  for (Operation *op : sources) {
    if (llvm::any_of(inputsOf(op), [&](Value input) {
          auto argument = dyn_cast<BlockArgument>(input);
          return argument && argument.getOwner() == body && argument != loop.getInductionVar();
        }))
      return refuse(op, "the first dot needs a result of the iteration before");
    if (auto load = dyn_cast<LoadOp>(op)) {
      if (failed(checkLoad(load)))
        return failure();
    } else if (!isPure(op) || op->getNumRegions() != 0) {
      return refuse(op, "the first dot needs what cannot be computed behind the last iteration");
    }
  }
  return success();
}

FailureOr<LeadPlan> LeadPlanner::run() {
  LeadPlan plan;
  for (auto dot : body->getOps<DotOp>()) {
    if (elsewhere.contains(dot))
      continue;
    if (!plan.first)
      plan.first = dot;
    plan.last = dot;
  }
  if (!plan.first || plan.first == plan.last)
    return refuse(loop, "the loop has no two dots of one role in its own body");
  OrderedOpSet needed = sourcesOf(plan.last.getOperands());
  if (!needed.contains(plan.first))
    return refuse(plan.first, "the last dot of the loop does not depend on the first one");
  OrderedOpSet sources = sourcesOf(plan.first->getResults());
  if (failed(checkAhead(sources)))
    return failure();
  for (Operation &op : body->without_terminator()) {
    if (!sources.contains(&op) || isRemade(loop, &op))
      continue;
    plan.ahead.push_back(&op);
    auto load = dyn_cast<LoadOp>(op);
    if (!load)
      continue;
    // Transposes are ways to read the tile.
    SmallVector<Operation *> users(load->getUsers());
    bool isKept = false;
    while (!users.empty()) {
      Operation *user = users.pop_back_val();
      if (isa<TransposeOp>(user))
        llvm::append_range(users, user->getUsers());
      isKept |= !sources.contains(user) && !isa<TransposeOp>(user);
    }
    if (!isKept)
      continue;
    if (!load.getPipe())
      return refuse(load, "dots of two steps read the tile, and it has no pipe that could keep it; "
                          "run tile-choose-schedule first");
    plan.kept.push_back(load);
  }
  return plan;
}

FailureOr<LeadPlan> tessera::planLead(scf::ForOp loop, const DenseSet<Operation *> &elsewhere,
                                      OverlapRefusal &refusal) {
  return LeadPlanner(loop, elsewhere, refusal).run();
}

namespace {
/// Writes the loop that a plan describes.
class LeadWriter {
public:
  LeadWriter(scf::ForOp loop, const LeadPlan &plan) : loop(loop), plan(plan) {
    ahead.insert_range(plan.ahead);
  }
  void run();

private:
  bool isKept(Operation *op) const {
    return llvm::any_of(plan.kept, [&](LoadOp load) { return op == load.getOperation(); });
  }
  void findCarried();
  Value get(Value value, IRMapping &mapping, OpBuilder &builder);
  void clone(Operation *op, IRMapping &mapping, OpBuilder &builder);
  void writeAhead(ArrayRef<Operation *> ops, IRMapping &mapping, OpBuilder &builder);
  SmallVector<Value> carriedOf(const IRMapping &mapping) const {
    return llvm::map_to_vector(carried, [&](Value value) { return mapping.lookup(value); });
  }
  void writeBody(scf::ForOp target);
  /// Whether `op` only makes a tile of what no store of the kernel changes.
  static bool movesToUsers(Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      return llvm::none_of(load.getView().getUsers(), storesToView);
    return isa<TransposeOp>(op);
  }

  scf::ForOp loop;
  const LeadPlan &plan;
  DenseSet<Operation *> ahead;
  SmallVector<Value> carried; ///< tiles that a step makes for the next one
};
} // namespace

/// Tiles that the step itself reads, other than those that it loads again.
void LeadWriter::findCarried() {
  for (Operation *op : plan.ahead) {
    if (isa<LoadOp, TransposeOp>(op))
      continue;
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !ahead.contains(loop.getBody()->findAncestorOpInBlock(*user));
          }))
        carried.push_back(result);
  }
}

/// `value` in the iteration of `mapping`; index arithmetic, loads and transposes are made there.
Value LeadWriter::get(Value value, IRMapping &mapping, OpBuilder &builder) {
  if (mapping.contains(value) || loop.isDefinedOutsideOfLoop(value))
    return mapping.lookupOrDefault(value);
  clone(value.getDefiningOp(), mapping, builder);
  return mapping.lookup(value);
}

void LeadWriter::clone(Operation *op, IRMapping &mapping, OpBuilder &builder) {
  for (Value input : inputsOf(op))
    mapping.map(input, get(input, mapping, builder));
  builder.clone(*op, mapping);
}

void LeadWriter::writeAhead(ArrayRef<Operation *> ops, IRMapping &mapping, OpBuilder &builder) {
  for (Operation *op : ops) {
    clone(op, mapping, builder);
    if (isKept(op))
      mapping.lookup(op->getResult(0)).getDefiningOp<LoadOp>().setAhead(true);
  }
}

void LeadWriter::writeBody(scf::ForOp target) {
  OpBuilder builder = OpBuilder::atBlockEnd(target.getBody());
  IRMapping now, next;
  size_t old = loop.getNumRegionIterArgs();
  now.map(loop.getInductionVar(), target.getInductionVar());
  now.map(loop.getRegionIterArgs(), target.getRegionIterArgs().take_front(old));
  for (auto [value, argument] :
       llvm::zip_equal(carried, target.getRegionIterArgs().drop_front(old)))
    now.map(value, argument);
  for (Operation &op : loop.getBody()->without_terminator()) {
    // Loads and transposes stand before what reads them, and so does index arithmetic.
    if (ahead.contains(&op) || isRemade(loop, &op) || movesToUsers(&op))
      continue;
    if (&op != plan.last) {
      clone(&op, now, builder);
      continue;
    }
    // What the first dot begins with is there before this dot is issued: ptxas serialises products
    // between which registers are written (C7515).
    for (Value input : inputsOf(&op))
      now.map(input, get(input, now, builder));
    Value following =
        arith::AddIOp::create(builder, loop.getLoc(), target.getInductionVar(), loop.getStep());
    next.map(loop.getInductionVar(), following);
    ArrayRef<Operation *> ops = plan.ahead;
    writeAhead(ops.drop_back(), next, builder);
    clone(&op, now, builder);
    writeAhead(ops.take_back(), next, builder);
  }
  SmallVector<Value> yields;
  for (Value value : loop.getYieldedValues())
    yields.push_back(get(value, now, builder));
  llvm::append_range(yields, carriedOf(next));
  scf::YieldOp::create(builder, loop.getLoc(), yields);
}

void LeadWriter::run() {
  findCarried();
  OpBuilder builder(loop);
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  writeAhead(plan.ahead, first, builder);
  SmallVector<Value> inits(loop.getInitArgs());
  llvm::append_range(inits, carriedOf(first));
  auto target = scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(),
                                   loop.getUpperBound(), loop.getStep(), inits,
                                   /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  target->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  target.getBody()->clear();
  writeBody(target);
  if (!plan.kept.empty()) {
    SmallVector<int64_t> pipes = llvm::map_to_vector(
        plan.kept, [](LoadOp load) { return static_cast<int64_t>(*load.getPipe()); });
    Value once = arith::ConstantIndexOp::create(builder, loop.getLoc(), 1);
    SkipLoadsOp::create(builder, loop.getLoc(), pipes, once);
  }
  loop.replaceAllUsesWith(target.getResults().take_front(loop.getNumResults()));
  loop.erase();
}

unsigned tessera::leadLoops(KernelOp kernel,
                            function_ref<void(scf::ForOp, const OverlapRefusal &)> refused) {
  DenseSet<Operation *> elsewhere = reducerOperations(kernel, PlacementKind::apart);
  unsigned count = 0;
  for (scf::ForOp loop : loopsWithDots(kernel)) {
    OverlapRefusal refusal;
    FailureOr<LeadPlan> plan = planLead(loop, elsewhere, refusal);
    if (failed(plan)) {
      refused(loop, refusal);
      continue;
    }
    LeadWriter(loop, *plan).run();
    ++count;
  }
  return count;
}
