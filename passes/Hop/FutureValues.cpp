//===- FutureValues.cpp - Values of later iterations -------------------------===//

#include "passes/Hop/FutureValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;

Value FutureValues::get(Value value, int64_t ahead) {
  auto key = std::make_pair(value, ahead);
  if (auto known = made.find(key); known != made.end())
    return known->second;
  Value result = make(value, ahead);
  return made[key] = result;
}

Value FutureValues::inductionAt(int64_t ahead) {
  Location loc = loop.getLoc();
  Value result = induction;
  for (int64_t i = 0; i < ahead; ++i)
    result = arith::AddIOp::create(builder, loc, result, loop.getStep());
  return result;
}

Value FutureValues::isRun(int64_t ahead, Value end) {
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  return arith::CmpIOp::create(builder, loop.getLoc(), predicate, inductionAt(ahead),
                               end ? end : loop.getUpperBound());
}

Value FutureValues::make(Value value, int64_t ahead) {
  if (loop.isDefinedOutsideOfLoop(value))
    return value;
  if (value == loop.getInductionVar())
    return inductionAt(ahead);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != loop.getBody())
      return {};
    if (ahead == 0)
      return arguments[argument.getArgNumber() - 1];
    return get(loop.getTiedLoopYieldedValue(argument)->get(), ahead - 1);
  }
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != loop.getBody() || !isPure(op) || op->getNumRegions() != 0)
    return {};
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value mapped = get(operand, ahead);
    if (!mapped)
      return {};
    mapping.map(operand, mapped);
  }
  return builder.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
}
