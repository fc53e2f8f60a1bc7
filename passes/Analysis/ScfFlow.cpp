//===- ScfFlow.cpp - Values that loops and conditionals hand on -----------===//

#include "passes/Analysis/ScfFlow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;

SmallVector<Value, 4> Handover::values() const {
  SmallVector<Value, 4> all(from.begin(), from.end());
  llvm::append_range(all, to);
  return all;
}

SmallVector<Handover> tessera::getHandovers(Operation *op) {
  SmallVector<Handover> handovers;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [init, yielded, argument, result] :
         llvm::zip_equal(loop.getInitArgs(), loop.getYieldedValues(), loop.getRegionIterArgs(),
                         loop.getResults()))
      handovers.push_back({op, {init, yielded}, {argument, result}});
  } else if (auto conditional = dyn_cast<scf::IfOp>(op)) {
    for (auto [i, result] : llvm::enumerate(conditional.getResults()))
      handovers.push_back(
          {op,
           {conditional.thenYield().getOperand(i), conditional.elseYield().getOperand(i)},
           {result}});
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [init, yielded, argument] :
         llvm::zip_equal(loop.getInits(), loop.getYieldedValues(), loop.getBeforeArguments()))
      handovers.push_back({op, {init, yielded}, {argument}});
    for (auto [passed, argument, result] : llvm::zip_equal(
             loop.getConditionOp().getArgs(), loop.getAfterArguments(), loop.getResults()))
      handovers.push_back({op, {passed}, {argument, result}});
  }
  return handovers;
}

std::optional<Handover> tessera::findHandoverTo(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    op = value.getParentBlock()->getParentOp();
  if (!op)
    return std::nullopt;
  for (Handover &handover : getHandovers(op))
    if (llvm::is_contained(handover.to, value))
      return handover;
  return std::nullopt;
}

/// The number of the handover in `op`, or in the operation that it ends, which `use` is part of.
static std::optional<unsigned> numberOf(OpOperand &use) {
  unsigned operand = use.getOperandNumber();
  Operation *op = use.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    unsigned bounds = loop.getNumControlOperands();
    return operand < bounds ? std::nullopt : std::optional(operand - bounds);
  }
  if (isa<scf::WhileOp, scf::YieldOp>(op))
    return operand;
  // Of scf.condition the first operand decides; the others follow the values of the iteration.
  if (auto condition = dyn_cast<scf::ConditionOp>(op); condition && operand > 0)
    return condition->getParentOfType<scf::WhileOp>().getInits().size() + operand - 1;
  return std::nullopt;
}

std::optional<Handover> tessera::findHandoverOf(OpOperand &use) {
  std::optional<unsigned> number = numberOf(use);
  if (!number)
    return std::nullopt;
  Operation *op = use.getOwner();
  bool isTerminator = op->hasTrait<OpTrait::IsTerminator>();
  SmallVector<Handover> handovers = getHandovers(isTerminator ? op->getParentOp() : op);
  return *number < handovers.size() ? std::optional(handovers[*number]) : std::nullopt;
}
