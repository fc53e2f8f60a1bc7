//===- ValueSlice.cpp - What some values of a kernel are computed from ----===//

#include "lib/Explain/ValueSlice.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::explain;

bool ValueSlice::addArgument(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber();
  if (owner == kernel && number >= kernel.getNumArguments()) {
    gridDims.insert(number - kernel.getNumArguments());
    return true;
  }
  if (owner == kernel) {
    std::string name = kernel.getArgumentName(number).str();
    if (isKnown(number))
      return true;
    if (isa<tile::ViewType>(argument.getType()))
      return refuse("it depends on elements of '" + name + "'; give --input " + name + "=FILE.npy");
    return refuse("it depends on '" + name + "'; give --set " + name + "=VALUE");
  }
  auto loop = dyn_cast<scf::ForOp>(owner);
  if (!loop || argument != loop.getInductionVar())
    return refuse("it depends on what a loop carries from one iteration to the next");
  if (!add(loop.getLowerBound()))
    return false;
  steps.push_back({loop, /*begins=*/true});
  return true;
}

bool ValueSlice::addOperation(Operation *op) {
  if (isa<arith::ConstantOp>(op) || !operations.insert(op).second)
    return true;
  for (Value operand : op->getOperands())
    if (!add(operand))
      return false;
  // Its regions run with it, from what is defined around it.
  WalkResult walk = op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp()) && !add(operand))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return false;
  steps.push_back({op, /*begins=*/false});
  return true;
}

bool ValueSlice::add(Value value) {
  if (!seen.insert(value).second)
    return problem.empty();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return addArgument(argument);
  return addOperation(value.getDefiningOp());
}

LogicalResult ValueSlice::run(interp::Frame &frame, size_t first, size_t past) const {
  for (const Step &step : ArrayRef(steps).slice(first, past - first)) {
    if (step.begins) {
      auto loop = cast<scf::ForOp>(step.op);
      frame.set(loop.getInductionVar(), interp::Ints{frame.scalar(loop.getLowerBound())});
    } else if (failed((*frame.program.handlers.lookup(step.op))(frame, step.op))) {
      return failure();
    }
  }
  return success();
}
