//===- LoopRotation.cpp - A loop whose step runs several iterations at once ===//

#include "passes/Schedule/LoopRotation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;

SmallVector<Value> tessera::inputsOf(Operation *op) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values.takeVector();
}

bool tessera::isRemade(scf::ForOp loop, Operation *op) {
  if (!op || op->getBlock() != loop.getBody() || op->getNumRegions() != 0 || !isPure(op) ||
      !llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndex(); }))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return operand == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(operand) ||
           isRemade(loop, operand.getDefiningOp());
  });
}

namespace {
/// A value of the body in an iteration, counted from the first one, or from the current step: 0 is
/// the iteration whose stage 0 it runs, -1 the one before.
using Instance = std::pair<Value, int>;

/// What the steps of a loop read of each other.
class Rotation {
public:
  Rotation(scf::ForOp loop, const RotationPlan &plan)
      : loop(loop), plan(plan), depth(plan.stages - 1) {
    findCarried();
  }

  /// The values that replace the loop's.
  SmallVector<Value> build(ImplicitLocOpBuilder &builder, bool runsLongEnough);

private:
  std::optional<unsigned> stageOf(Value value) const {
    auto found = plan.stage.find(value.getDefiningOp());
    return found == plan.stage.end() ? std::nullopt : std::optional(found->second);
  }
  Value yieldOf(Value argument) {
    return loop.getTiedLoopYieldedValue(cast<BlockArgument>(argument))->get();
  }
  bool isIterArg(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == loop.getBody() && argument != loop.getInductionVar();
  }
  using Maker = llvm::function_ref<SmallVector<Value>()>;

  void findCarried();
  void require(Value value, int age);
  Value advance(ImplicitLocOpBuilder &builder, Value from, int steps);
  Value inductionPastEnd(ImplicitLocOpBuilder &builder);
  SmallVector<Value> buildPrologue(ImplicitLocOpBuilder &builder);
  scf::ForOp buildSteady(ImplicitLocOpBuilder &builder, ValueRange inits);
  SmallVector<Value> buildEpilogue(ImplicitLocOpBuilder &builder, ValueRange handedOn);
  SmallVector<Value> buildPipeline(ImplicitLocOpBuilder &builder);
  SmallVector<Value> buildShort(ImplicitLocOpBuilder &builder, int i, ValueRange values);
  SmallVector<Value> buildIfExists(ImplicitLocOpBuilder &builder, int i, Maker then,
                                   Maker otherwise);

  scf::ForOp loop;
  const RotationPlan &plan;
  /// Steps before the first, and after the last, that runs every stage.
  int depth;
  /// Values of earlier steps that a step reads, as instances at its start; what becomes iter_args.
  SmallVector<Instance> carried;
  llvm::DenseSet<Instance> isCarried;
};

/// Values by instance at one place of the program, computed there when they can be.
class Scope {
public:
  /// Makes the induction value of iteration `i`.
  using InductionMaker = llvm::function_ref<Value(int)>;

  Scope(scf::ForOp loop, bool fromFirst, InductionMaker induction)
      : loop(loop), fromFirst(fromFirst), induction(induction) {}

  void define(Instance instance, Value value) { known[instance] = value; }

  Value get(Instance instance, OpBuilder &builder) {
    auto [value, iteration] = instance;
    if (loop.isDefinedOutsideOfLoop(value))
      return value;
    if (Value found = known.lookup(instance))
      return found;
    if (value == loop.getInductionVar())
      return known[instance] = induction(iteration);
    if (auto argument = dyn_cast<BlockArgument>(value))
      return fromFirst && iteration == 0
                 ? loop.getTiedLoopInit(argument)->get()
                 : get({loop.getTiedLoopYieldedValue(argument)->get(), iteration - 1}, builder);
    assert(isRemade(loop, value.getDefiningOp()) && "read before the plan computes it");
    clone(value.getDefiningOp(), iteration, builder);
    return known.lookup(instance);
  }

  /// Clones `op` of the body for `iteration`.
  void clone(Operation *op, int iteration, OpBuilder &builder) {
    IRMapping mapping;
    for (Value input : inputsOf(op))
      mapping.map(input, get({input, iteration}, builder));
    Operation *copy = builder.clone(*op, mapping);
    for (auto [result, value] : llvm::zip_equal(op->getResults(), copy->getResults()))
      define({result, iteration}, value);
  }

private:
  scf::ForOp loop;
  bool fromFirst;
  InductionMaker induction;
  llvm::DenseMap<Instance, Value> known;
};
} // namespace

/// Notes that a step reads `value` of the iteration `age` before its own.
void Rotation::require(Value value, int age) {
  std::optional<unsigned> stage = stageOf(value);
  Value yielded;
  if (stage) {
    if (age <= static_cast<int>(*stage))
      return;
  } else if (isIterArg(value)) {
    yielded = yieldOf(value);
    std::optional<unsigned> yieldedAt = stageOf(yielded);
    if (yieldedAt && age + 1 <= static_cast<int>(*yieldedAt))
      return;
  } else {
    return;
  }
  if (!isCarried.insert({value, -age}).second)
    return;
  carried.emplace_back(value, -age);
  // What the step hands on: the same value of the iteration that is then as old.
  if (age > 0)
    require(value, age - 1);
  else
    require(yielded, 0);
}

void Rotation::findCarried() {
  for (Operation *op : plan.order)
    for (Value input : inputsOf(op))
      require(input, plan.stage.lookup(op));
  for (auto [argument, result] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults())) {
    std::optional<unsigned> stage = stageOf(yieldOf(argument));
    if (!result.use_empty() && (!stage || *stage == 0))
      require(argument, 0);
  }
  // Iter_args of the loop first, in their order, then what crosses, in the order of the body.
  llvm::sort(carried, [&](const Instance &a, const Instance &b) {
    auto place = [&](Value value) -> std::pair<int, int> {
      if (auto argument = dyn_cast<BlockArgument>(value))
        return {0, argument.getArgNumber()};
      auto body = llvm::map_range(*loop.getBody(), [](Operation &op) { return &op; });
      return {1, std::distance(body.begin(), llvm::find(body, value.getDefiningOp()))};
    };
    return std::pair(place(a.first), -a.second) < std::pair(place(b.first), -b.second);
  });
}

/// `from` after `steps` more iterations, or before when negative.
Value Rotation::advance(ImplicitLocOpBuilder &builder, Value from, int steps) {
  if (steps == 0)
    return from;
  Value distance = loop.getStep();
  if (std::abs(steps) != 1) {
    auto factor = builder.getIntegerAttr(from.getType(), std::abs(steps));
    distance = arith::MulIOp::create(builder, distance, arith::ConstantOp::create(builder, factor));
  }
  return steps > 0 ? arith::AddIOp::create(builder, from, distance).getResult()
                   : arith::SubIOp::create(builder, from, distance).getResult();
}

/// The induction value that the iteration after the last one would have.
Value Rotation::inductionPastEnd(ImplicitLocOpBuilder &builder) {
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  if (matchPattern(step, m_One()))
    return upper;
  Value distance = arith::SubIOp::create(builder, upper, lower);
  Value steps = loop.getUnsignedCmp()
                    ? arith::CeilDivUIOp::create(builder, distance, step).getResult()
                    : arith::CeilDivSIOp::create(builder, distance, step).getResult();
  return arith::AddIOp::create(builder, lower, arith::MulIOp::create(builder, steps, step));
}

/// The initial values of what is carried, after the steps that have no iteration for some stage.
SmallVector<Value> Rotation::buildPrologue(ImplicitLocOpBuilder &builder) {
  auto induction = [&](int i) { return advance(builder, loop.getLowerBound(), i); };
  Scope scope(loop, /*fromFirst=*/true, induction);
  for (int step = 0; step < depth; ++step)
    for (Operation *op : plan.order)
      if (int stage = plan.stage.lookup(op); stage <= step)
        scope.clone(op, step - stage, builder);
  SmallVector<Value> inits;
  for (auto [value, iteration] : carried)
    inits.push_back(scope.get({value, depth + iteration}, builder));
  return inits;
}

scf::ForOp Rotation::buildSteady(ImplicitLocOpBuilder &builder, ValueRange inits) {
  Value start = advance(builder, loop.getLowerBound(), depth);
  auto steady = scf::ForOp::create(builder, start, loop.getUpperBound(), loop.getStep(), inits,
                                   /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  steady->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  OpBuilder::InsertionGuard guard(builder);
  Block *body = steady.getBody();
  if (inits.empty())
    body->getTerminator()->erase();
  builder.setInsertionPointToEnd(body);
  auto induction = [&](int i) { return advance(builder, steady.getInductionVar(), i); };
  Scope scope(loop, /*fromFirst=*/false, induction);
  for (auto [instance, argument] : llvm::zip_equal(carried, steady.getRegionIterArgs()))
    scope.define(instance, argument);
  for (Operation *op : plan.order)
    scope.clone(op, -static_cast<int>(plan.stage.lookup(op)), builder);
  SmallVector<Value> next;
  for (auto [value, iteration] : carried)
    next.push_back(scope.get({value, iteration + 1}, builder));
  scf::YieldOp::create(builder, next);
  return steady;
}

/// The values of the old loop's results, after the steps that finish the iterations begun.
SmallVector<Value> Rotation::buildEpilogue(ImplicitLocOpBuilder &builder, ValueRange handedOn) {
  Value end;
  auto induction = [&](int i) {
    if (!end)
      end = inductionPastEnd(builder);
    return advance(builder, end, i);
  };
  Scope scope(loop, /*fromFirst=*/false, induction);
  for (auto [instance, value] : llvm::zip_equal(carried, handedOn))
    scope.define(instance, value);
  for (int step = 0; step < depth; ++step)
    for (Operation *op : plan.order)
      if (int stage = plan.stage.lookup(op); stage > step)
        scope.clone(op, step - stage, builder);
  SmallVector<Value> results;
  for (auto [argument, result] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults()))
    results.push_back(result.use_empty() ? loop.getTiedLoopInit(argument)->get()
                                         : scope.get({argument, 0}, builder));
  return results;
}

SmallVector<Value> Rotation::buildPipeline(ImplicitLocOpBuilder &builder) {
  SmallVector<Value> inits = buildPrologue(builder);
  scf::ForOp steady = buildSteady(builder, inits);
  return buildEpilogue(builder, steady.getResults());
}

/// What `then` makes when iteration `i` of the loop exists, else what `otherwise` makes.
SmallVector<Value> Rotation::buildIfExists(ImplicitLocOpBuilder &builder, int i, Maker then,
                                           Maker otherwise) {
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value induction = advance(builder, loop.getLowerBound(), i);
  Value exists = arith::CmpIOp::create(builder, predicate, induction, loop.getUpperBound());
  auto fill = [&](Maker make) {
    return [&builder, make](OpBuilder &inner, Location loc) {
      OpBuilder::InsertionGuard guard(builder);
      builder.restoreInsertionPoint(inner.saveInsertionPoint());
      SmallVector<Value> values = make();
      scf::YieldOp::create(builder, loc, values);
    };
  };
  auto conditional = scf::IfOp::create(builder, exists, fill(then), fill(otherwise));
  return llvm::to_vector_of<Value>(conditional.getResults());
}

/// The iterations from `i` on, one after another, of a loop too short for the pipeline.
SmallVector<Value> Rotation::buildShort(ImplicitLocOpBuilder &builder, int i, ValueRange values) {
  if (i == depth - 1)
    return values;
  auto iterate = [&]() -> SmallVector<Value> {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), advance(builder, loop.getLowerBound(), i));
    mapping.map(loop.getRegionIterArgs(), values);
    for (Operation &op : loop.getBody()->without_terminator())
      builder.clone(op, mapping);
    SmallVector<Value> next;
    for (Value value : loop.getYieldedValues())
      next.push_back(mapping.lookupOrDefault(value));
    return buildShort(builder, i + 1, next);
  };
  return buildIfExists(builder, i, iterate, [&] { return SmallVector<Value>(values); });
}

SmallVector<Value> Rotation::build(ImplicitLocOpBuilder &builder, bool runsLongEnough) {
  if (runsLongEnough)
    return buildPipeline(builder);
  return buildIfExists(
      builder, depth - 1, [&] { return buildPipeline(builder); },
      [&] { return buildShort(builder, 0, loop.getInitArgs()); });
}

SmallVector<Value> tessera::rotateLoop(scf::ForOp loop, const RotationPlan &plan,
                                       bool runsLongEnough, OpBuilder &builder) {
  ImplicitLocOpBuilder located(loop.getLoc(), builder);
  return Rotation(loop, plan).build(located, runsLongEnough);
}

Operation *tessera::findPrematureUse(scf::ForOp loop, const RotationPlan &plan) {
  llvm::DenseMap<Operation *, size_t> place;
  for (auto [i, op] : llvm::enumerate(plan.order))
    place[op] = i;
  for (Operation *op : plan.order)
    for (Value input : inputsOf(op)) {
      // The step of `op` runs the iteration in which `input` was made `age` stages late.
      int age = plan.stage.lookup(op);
      auto argument = dyn_cast<BlockArgument>(input);
      while (argument && argument.getOwner() == loop.getBody() &&
             argument != loop.getInductionVar() && age <= static_cast<int>(plan.stages)) {
        input = loop.getTiedLoopYieldedValue(argument)->get();
        argument = dyn_cast<BlockArgument>(input);
        ++age;
      }
      auto made = plan.stage.find(input.getDefiningOp());
      if (made == plan.stage.end())
        continue;
      int stage = made->second;
      if (stage > age || (stage == age && place.lookup(made->first) >= place.lookup(op)))
        return op;
    }
  return nullptr;
}
