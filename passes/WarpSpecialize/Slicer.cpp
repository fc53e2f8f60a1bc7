//===- Slicer.cpp - The program of a role ------------------------------------===//
//
// Operations of a role in their order, and the control flow around them. See Slicer.h.
//
//===----------------------------------------------------------------------===//

#include "passes/WarpSpecialize/Slicer.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

LogicalResult Slicer::slice(Block &program, OpBuilder &builder) {
  if (failed(cloneBlock(program, builder)))
    return failure();
  sinkCrossings();
  releaseSlots();
  return success();
}

Value Slicer::lookup(OpOperand &operand) {
  Value value = operand.get();
  if (isa<RankedTensorType>(value.getType()) && RowPartition::isRematerializable(value) &&
      rows.wantsPartitioned(operand))
    return share.lookup(value);
  return whole.lookupOrDefault(value);
}

Type Slicer::typeOf(Value value) {
  return rows.isPartitioned(value) ? rows.shareOf(value.getType()) : value.getType();
}

LogicalResult Slicer::cloneBlock(Block &block, OpBuilder &builder) {
  for (Operation &op : block.without_terminator()) {
    if (plan.handsOverLate)
      writeLate(&op, builder);
    if (assignment.runs(role, &op) && failed(clone(&op, builder)))
      return failure();
  }
  return success();
}

LogicalResult Slicer::clone(Operation *op, OpBuilder &builder) {
  // The last step of a conversion writes all of it.
  if (steps.contains(op) && !plan.isHandedOver(op))
    return success();
  if (!plan.isHandedOver(op))
    return cloneOwn(op, builder);
  PipeInfo &info = plan.pipeOf(op);
  if (auto bound = dyn_cast<tile::ReduceRangeOp>(op))
    return writeBound(bound, info, builder), success();
  if (steps.contains(op))
    return writeConversion(plan.conversions.find(op)->second, info, builder), success();
  if (assignment.fills(role, op))
    return writeOperand(op, info, builder);
  return writeCrossing(op, info, builder), success();
}

LogicalResult Slicer::cloneOwn(Operation *op, OpBuilder &builder) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::LoadOp load) { return cloneLoad(load, builder); })
      .Case([&](tile::GatherOp gather) { return cloneGather(gather, builder), success(); })
      .Case([&](tile::GatherRunsOp gather) { return cloneRuns(gather, builder), success(); })
      .Case([&](tile::SkipLoadsOp skip) { return cloneSkip(skip, builder); })
      .Case([&](tile::CommonBoundOp bound) {
        whole.map(bound.getResult(), whole.lookupOrDefault(boundOf(bound, spec)));
        return success();
      })
      .Case([&](tile::TransposeOp transpose) { return cloneTranspose(transpose, builder); })
      .Case([&](arith::ExtFOp ext) { return cloneExtension(ext, builder), success(); })
      .Case([&](tile::DotOp dot) { return cloneDot(dot, builder); })
      .Case([&](tile::StoreOp store) { return cloneStore(store, builder), success(); })
      .Case([&](scf::ForOp loop) { return cloneLoop(loop, builder); })
      .Case([&](scf::IfOp conditional) { return cloneConditional(conditional, builder); })
      .Case([&](tile::SpeculateOp speculation) { return cloneSpeculation(speculation, builder); })
      .Case([&](tile::ReduceRangeOp) { return builder.clone(*op, whole), success(); })
      .Default([&](Operation *) -> LogicalResult {
        if (op->getNumResults() == 1 && RowPartition::isRematerializable(op->getResult(0)) &&
            isa<RankedTensorType>(op->getResult(0).getType()))
          return cloneRematerializable(op, builder);
        cloneGeneric(op, builder);
        return success();
      });
}

void Slicer::cloneGeneric(Operation *op, OpBuilder &builder) {
  OperationState state(op->getLoc(), op->getName());
  for (OpOperand &operand : op->getOpOperands())
    state.operands.push_back(lookup(operand));
  for (Value result : op->getResults())
    state.types.push_back(typeOf(result));
  state.addAttributes(op->getAttrs());
  Operation *clone = builder.create(state);
  whole.map(op->getResults(), clone->getResults());
}

LogicalResult Slicer::cloneLoop(scf::ForOp loop, OpBuilder &builder) {
  SmallVector<unsigned> kept;
  SmallVector<Value> inits;
  for (auto [i, init] : llvm::enumerate(loop.getInitArgsMutable()))
    if (assignment.has(role, loop.getRegionIterArg(i))) {
      kept.push_back(i);
      inits.push_back(lookup(init));
    }
  auto clone = scf::ForOp::create(
      builder, loop.getLoc(), whole.lookupOrDefault(loop.getLowerBound()),
      whole.lookupOrDefault(loop.getUpperBound()), whole.lookupOrDefault(loop.getStep()), inits,
      /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  whole.map(loop.getInductionVar(), clone.getInductionVar());
  for (auto [position, i] : llvm::enumerate(kept)) {
    whole.map(loop.getRegionIterArg(i), clone.getRegionIterArg(position));
    whole.map(loop.getResult(i), clone.getResult(position));
  }
  return fillBlock(*loop.getBody(), *clone.getBody(), kept);
}

LogicalResult Slicer::cloneConditional(scf::IfOp conditional, OpBuilder &builder) {
  SmallVector<unsigned> kept;
  SmallVector<Type> types;
  for (auto [i, result] : llvm::enumerate(conditional.getResults()))
    if (assignment.has(role, result)) {
      kept.push_back(i);
      types.push_back(typeOf(result));
    }
  bool hasElse = conditional.elseBlock() != nullptr;
  auto clone = scf::IfOp::create(builder, conditional.getLoc(), types,
                                 whole.lookupOrDefault(conditional.getCondition()),
                                 /*addThenBlock=*/true, /*addElseBlock=*/hasElse);
  for (auto [position, i] : llvm::enumerate(kept))
    whole.map(conditional.getResult(i), clone.getResult(position));
  if (failed(fillBlock(*conditional.thenBlock(), *clone.thenBlock(), kept)))
    return failure();
  return hasElse ? fillBlock(*conditional.elseBlock(), *clone.elseBlock(), kept) : success();
}

/// A tile is in doubt as soon as its predicate is known.
LogicalResult Slicer::cloneSpeculation(tile::SpeculateOp speculation, OpBuilder &builder) {
  auto attempt = hop::AttemptOp::create(builder, speculation.getLoc());
  OpBuilder fast = OpBuilder::atBlockBegin(&attempt.getFast().emplaceBlock());
  OpBuilder exact = OpBuilder::atBlockBegin(&attempt.getExact().emplaceBlock());
  if (failed(cloneBlock(speculation.getFast().front(), fast)) ||
      failed(cloneBlock(speculation.getExact().front(), exact)))
    return failure();
  tile::YieldIfOp yield = speculation.getFastYield();
  if (!assignment.runs(role, yield))
    return success();
  Value valid = lookup(yield.getConditionMutable());
  if (Operation *def = valid.getDefiningOp(); def && def->getBlock() == fast.getBlock())
    fast.setInsertionPointAfter(def);
  hop::DoubtOp::create(fast, yield.getLoc(), valid);
  return success();
}

/// Writes the body `source` of a loop or conditional, which hands on the values `kept`.
LogicalResult Slicer::fillBlock(Block &source, Block &target, ArrayRef<unsigned> kept) {
  target.clear();
  OpBuilder inner = OpBuilder::atBlockEnd(&target);
  if (failed(cloneBlock(source, inner)))
    return failure();
  Operation *terminator = source.getTerminator();
  SmallVector<Value> yields;
  for (unsigned i : kept)
    yields.push_back(lookup(terminator->getOpOperand(i)));
  scf::YieldOp::create(inner, terminator->getLoc(), yields);
  return success();
}
