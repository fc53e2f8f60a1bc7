//===- RoleAssignment.cpp - Which operation belongs to which role ------------===//
//
// See RoleAssignment.h.
//
//===----------------------------------------------------------------------===//

#include "passes/WarpSpecialize/RoleAssignment.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;

FailureOr<RoleAssignment> RoleAssignment::get(tile::KernelOp kernel, PipePlan &plan,
                                              ArrayRef<RoleSpec> roles, unsigned rest) {
  RoleAssignment assignment(kernel, plan, roles);
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    if (!plan.isPiped(op) || plan.isHandedOver(op))
      return success();
    // The indices, and the ticket or the numbers of gathered rows; not the tile.
    SetVector<Value> place(op->operand_begin() + 1, op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), place);
    if (!isa<tile::StoreOp>(op))
      return assignment.assignCopy(op, place.getArrayRef(), plan.fillerOf(plan.pipeOf(op)));
    return assignment.assignCopy(op, place.getArrayRef(), plan.roleOf(RoleTask::Store));
  });
  if (walk.wasInterrupted())
    return failure();
  if (roles.front().task == RoleTask::Load && roles.front().isElected() &&
      failed(assignment.assignPrefetches(0)))
    return failure();
  for (unsigned role = 0; role < roles.size(); ++role)
    if (failed(assignment.assignHelp(role)))
      return failure();
  if (failed(assignment.assignRest(rest)))
    return failure();
  return assignment;
}

template <typename Key>
bool RoleAssignment::insert(llvm::DenseMap<Key, RoleSet> &sets, Key key, unsigned role) {
  RoleSet &set = sets.try_emplace(key, roles.size()).first->second;
  if (set.test(role))
    return false;
  set.set(role);
  return true;
}

/// Gives `role` the operation, what it is computed from, and the control flow around it.
LogicalResult RoleAssignment::assign(Operation *op, unsigned role) {
  if (!insert(operations, op, role))
    return success();
  SetVector<Value> captured;
  if (isa<tile::ReduceRangeOp>(op))
    getUsedValuesDefinedAbove(op->getRegions(), captured);
  if (failed(needAll(captured.getArrayRef(), role)))
    return failure();
  auto bound = dyn_cast<tile::CommonBoundOp>(op);
  if (failed(bound ? need(boundOf(bound, roles[role]), role) : needAll(op->getOperands(), role)))
    return failure();
  return assignControl(op->getParentOp(), role);
}

/// `role` copies between global memory and the slots of a pipe, for which it needs the address.
LogicalResult RoleAssignment::assignCopy(Operation *access, ValueRange indices, unsigned role) {
  insert(operations, access, role);
  return success(succeeded(needAll(indices, role)) &&
                 succeeded(assignControl(access->getParentOp(), role)));
}

/// What `index` is computed from, by arithmetic on scalars alone, is there in each role: grid
/// indices, extents, and induction variables.
static bool isArithmetic(Value index) {
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return !loop || argument == loop.getInductionVar();
  }
  Operation *op = index.getDefiningOp();
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         !isa<RankedTensorType>(index.getType()) && llvm::all_of(op->getOperands(), isArithmetic);
}

/// Whether `role` runs the control flow around `load` anyway, and knows its place by arithmetic.
bool RoleAssignment::knowsPlace(tile::LoadOp load, unsigned role) const {
  for (Operation *op = load->getParentOp(); op != kernel; op = op->getParentOp())
    if (!runs(role, op))
      return false;
  return llvm::all_of(load.getIndices(), isArithmetic);
}

/// Whether `load` is of a scalar in each iteration of a loop that multiplies.
static bool isOfIteration(tile::LoadOp load) {
  auto loop = dyn_cast<scf::ForOp>(load->getParentOp());
  return loop && !isa<RankedTensorType>(load.getType()) &&
         !loop.getBody()->getOps<tile::DotOp>().empty() &&
         llvm::any_of(load.getIndices(), [&](Value v) { return !loop.isDefinedOutsideOfLoop(v); });
}

/// Whether `load` is of a scalar, or of values that lie along the last dimension of the view.
static bool isOfOneRow(tile::LoadOp load) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  std::optional<ArrayRef<int64_t>> box = load.getBox();
  return !(type && type.getRank() > 1) &&
         (!box || llvm::all_of(box->drop_back(), [](int64_t extent) { return extent == 1; }));
}

/// Where the others load a scalar in each iteration, as the scale of a block, has `role`, which is
/// ahead of them, bring these into the L2 cache, and the rows of values that the kernel loads
/// beside. Elsewhere it gains nothing (docs/lab/fp8.md). Not what the kernel stores.
LogicalResult RoleAssignment::assignPrefetches(unsigned role) {
  DenseSet<Value> stored;
  kernel.walk([&](Operation *op) {
    if (tile::storesToView(op))
      stored.insert(op->getOperand(1));
  });
  SmallVector<tile::LoadOp> loads;
  kernel.walk([&](tile::LoadOp load) {
    if (!isa<tile::GatherRunsOp>(load->getParentOp()) && !plan->isPiped(load) && isOfOneRow(load) &&
        !stored.contains(load.getView()) && !has(role, load.getResult()) && knowsPlace(load, role))
      loads.push_back(load);
  });
  if (llvm::none_of(loads, isOfIteration))
    return success();
  for (tile::LoadOp load : loads) {
    insert(prefetched, load.getOperation(), role);
    if (failed(assignCopy(load, load.getIndices(), role)))
      return failure();
  }
  return success();
}

/// `role` hands a result to the role that stores it.
LogicalResult RoleAssignment::assignResult(tile::StoreOp store, unsigned role) {
  insert(operations, store.getOperation(), role);
  return success(succeeded(need(store.getValue(), role)) &&
                 succeeded(assignControl(store->getParentOp(), role)));
}

LogicalResult RoleAssignment::assignSums(unsigned role) {
  for (const ReducerSum &sum : plan->sums)
    if (failed(assign(sum.store, role)))
      return failure();
  return success();
}

LogicalResult RoleAssignment::assignTransposes(unsigned role) {
  WalkResult walk = kernel.walk([&](tile::LoadOpInterface load) -> WalkResult {
    bool isTransposed = plan->isPiped(load) && plan->pipeOf(load).isTransposed;
    return isTransposed ? assignReads(load, role) : success();
  });
  return failure(walk.wasInterrupted());
}

/// Gives `role` what goes through the pipes that it fills.
LogicalResult RoleAssignment::assignMade(unsigned role) {
  for (auto [access, pipe] : plan->accesses)
    if (plan->pipes.find(pipe)->second.maker == roles[role].task && failed(assign(access, role)))
      return failure();
  return success();
}

LogicalResult RoleAssignment::assignPart(unsigned role) {
  for (Operation *op : plan->division->operationsOf(*roles[role].part)) {
    bool isWait = plan->isPiped(op) &&
                  (isa<tile::LoadOpInterface>(op) || (plan->isHandedOver(op) && !fills(role, op)));
    if (failed(isWait ? assignReads(op, role) : assign(op, role)))
      return failure();
  }
  return success();
}

/// Gives `role` what it does for the others.
LogicalResult RoleAssignment::assignHelp(unsigned role) {
  switch (roles[role].task) {
  case RoleTask::Sum:
    return assignSums(role);
  case RoleTask::Transpose:
    return assignTransposes(role);
  case RoleTask::Convert:
  case RoleTask::FindBounds:
    return assignMade(role);
  case RoleTask::Compute:
    return roles[role].part ? assignPart(role) : success();
  case RoleTask::Load:
  case RoleTask::Store:
    return success();
  }
  llvm_unreachable("covered switch");
}

/// A role that reads a pipe waits for each tile that goes through it, and lets those pass that are
/// loaded for other grid points.
LogicalResult RoleAssignment::assignReads(Operation *access, unsigned role) {
  PipeKey pipe = plan->accesses.lookup(access);
  if (!insert(readers, pipe, role))
    return success();
  for (auto [other, ofOther] : plan->accesses) {
    if (ofOther != pipe)
      continue;
    insert(operations, other, role);
    if (failed(assignControl(other->getParentOp(), role)))
      return failure();
  }
  WalkResult walk = kernel.walk([&](tile::SkipLoadsOp skip) -> WalkResult {
    bool skips = !pipe.first && llvm::is_contained(skip.getPipes(), pipe.second);
    return skips ? assign(skip, role) : success();
  });
  return failure(walk.wasInterrupted());
}

/// Gives `role` what no role has yet.
LogicalResult RoleAssignment::assignRest(unsigned role) {
  WalkResult walk = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    // Where another role makes the tile, this one waits for it if it needs it.
    if (plan->isHandedOver(op)) {
      if (fills(role, op) && failed(assign(op, role)))
        return failure();
      return isa<tile::ReduceRangeOp>(op) ? WalkResult::skip() : WalkResult::advance();
    }
    // Where another role reads the tiles, this one does if it needs them.
    if (isa<tile::LoadOpInterface>(op) && plan->isPiped(op))
      return readers.contains(plan->accesses.lookup(op)) || succeeded(assignReads(op, role))
                 ? WalkResult::skip() // what says where its runs lie
                 : WalkResult::interrupt();
    if (auto store = dyn_cast<tile::StoreOp>(op);
        store && plan->isPiped(store) && plan->pipeOf(store).maker != RoleTask::Sum)
      return assignResult(store, role);
    bool isAssigned = operations.contains(op);
    if (isa<tile::ReduceRangeOp>(op)) // with what is in it
      return isAssigned || succeeded(assign(op, role)) ? WalkResult::skip()
                                                       : WalkResult::interrupt();
    if (op == kernel || isa<scf::YieldOp, tile::YieldOp, tile::ReturnOp>(op) || isAssigned)
      return success();
    if (op->getNumRegions() == 0)
      return assign(op, role);
    return assignControl(op, role);
  });
  if (walk.wasInterrupted())
    return failure();
  // What nothing reads is handed on too; the clean-up removes it.
  walk = kernel.walk([&](Operation *op) -> WalkResult {
    for (const Handover &handover : getHandovers(op))
      if (!values.contains(handover.to.front()) && failed(need(handover.to.front(), role)))
        return failure();
    return success();
  });
  return failure(walk.wasInterrupted());
}

/// A loop or conditional around something of `role`: its bounds or condition.
LogicalResult RoleAssignment::assignControl(Operation *op, unsigned role) {
  if (op == kernel || !insert(operations, op, role))
    return success();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (failed(needAll({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}, role)))
      return failure();
  } else if (auto conditional = dyn_cast<scf::IfOp>(op)) {
    if (failed(need(conditional.getCondition(), role)))
      return failure();
  } else if (auto speculation = dyn_cast<tile::SpeculateOp>(op)) {
    if (speculation.getNumResults() != 0)
      return op->emitError("has results; run tile-complete-speculation first");
  } else if (roles[role].isElected()) {
    return op->emitError("holds a ")
           << (isLoader(role) ? "load; loads" : "store; stores") << " stand in scf.for and scf.if";
  } else {
    return op->emitError("is not supported in a kernel; control flow is scf.for and scf.if");
  }
  return assignControl(op->getParentOp(), role);
}

LogicalResult RoleAssignment::needAll(ValueRange values, unsigned role) {
  for (Value value : values)
    if (failed(need(value, role)))
      return failure();
  return success();
}

/// Gives `role` what `value` is computed from.
LogicalResult RoleAssignment::need(Value value, unsigned role) {
  if (!insert(values, value, role))
    return success();
  if (roles[role].isElected() && isa<RankedTensorType>(value.getType()))
    return emitError(value.getLoc())
           << "the address of a " << (isLoader(role) ? "load" : "store")
           << " depends on the elements of this tile; a "
           << (isLoader(role) ? "producer" : "writer") << " has no tiles in registers";
  // An scf.while is no control flow of a kernel, which assign() says.
  if (std::optional<Handover> handover = findHandoverTo(value);
      handover && !isa<scf::WhileOp>(handover->op))
    return needHandover(*handover, role);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop ? assignControl(loop, role) : success();
  }
  Operation *op = value.getDefiningOp();
  bool isLoaded = isa<tile::LoadOpInterface>(op) && plan->isPiped(op);
  if (isLoaded || (plan->isHandedOver(op) && !fills(role, op)))
    return assignReads(op, role);
  return assign(op, role);
}

/// Gives `role` what a loop or conditional hands on: its control, and by the argument of the body
/// the result too.
LogicalResult RoleAssignment::needHandover(const Handover &handover, unsigned role) {
  return success(succeeded(assignControl(handover.op, role)) &&
                 succeeded(need(handover.to.front(), role)) &&
                 succeeded(needAll(handover.from, role)));
}
