//===- ProducerSlice.cpp - The program of the producer -----------------------===//
//
// Loads, their addresses and the control flow around them. See Slices.h.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Schedule/EvenLoops.h"
#include "passes/WarpSpecialize/Slices.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;

namespace {
class ProducerSlice {
public:
  ProducerSlice(tile::KernelOp kernel, PipePlan &plan) : kernel(kernel), plan(plan) {}

  LogicalResult clone(OpBuilder &builder, IRMapping mapping) {
    if (failed(findNeeded()))
      return failure();
    cloneBlock(kernel.getBody().front(), builder, mapping);
    return success();
  }

private:
  /// Adds what `value` is computed from.
  LogicalResult need(Value value) {
    if (!needed.insert(value))
      return success();
    if (isa<RankedTensorType>(value.getType()))
      return emitError(value.getLoc(),
                       "the address of a load depends on the elements of this tile; a "
                       "producer has no tiles in registers");
    if (auto argument = dyn_cast<BlockArgument>(value))
      return needArgument(argument);
    Operation *op = value.getDefiningOp();
    if (auto bound = dyn_cast<tile::CommonBoundOp>(op))
      return need(bound.getLoads());
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return needArgument(loop.getRegionIterArg(cast<OpResult>(value).getResultNumber()));
    if (auto conditional = dyn_cast<scf::IfOp>(op)) {
      unsigned i = cast<OpResult>(value).getResultNumber();
      return success(succeeded(needControl(op)) &&
                     succeeded(need(conditional.thenYield().getOperand(i))) &&
                     succeeded(need(conditional.elseYield().getOperand(i))));
    }
    return needOperands(op);
  }

  LogicalResult needArgument(BlockArgument argument) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return success();
    if (failed(needControl(loop)))
      return failure();
    if (argument == loop.getInductionVar())
      return success();
    unsigned i = argument.getArgNumber() - 1;
    needed.insert(argument);
    return success(succeeded(need(loop.getInitArgs()[i])) &&
                   succeeded(need(loop.getYieldedValues()[i])));
  }

  LogicalResult needOperands(Operation *op) {
    for (Value operand : op->getOperands())
      if (failed(need(operand)))
        return failure();
    return success(op->getParentOp() == kernel || succeeded(needControl(op->getParentOp())));
  }

  /// A loop or conditional around something needed: its bounds or condition.
  LogicalResult needControl(Operation *op) {
    if (op == kernel || !control.insert(op))
      return success();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        if (failed(need(bound)))
          return failure();
    } else if (auto conditional = dyn_cast<scf::IfOp>(op)) {
      if (failed(need(conditional.getCondition())))
        return failure();
    } else if (!isa<tile::SpeculateOp>(op)) {
      return op->emitError("holds a load; loads stand in scf.for and scf.if");
    }
    return needControl(op->getParentOp());
  }

  LogicalResult findNeeded() {
    WalkResult walk = kernel.walk([&](tile::LoadOp load) -> WalkResult {
      if (!plan.isPiped(load))
        return success();
      for (Value index : load.getIndices())
        if (failed(need(index)))
          return failure();
      return needControl(load->getParentOp());
    });
    return failure(walk.wasInterrupted());
  }

  void cloneBlock(Block &block, OpBuilder &builder, IRMapping &mapping) {
    for (Operation &op : block.without_terminator()) {
      if (auto load = dyn_cast<tile::LoadOp>(op); load && plan.isPiped(load))
        cloneLoad(load, builder, mapping);
      else if (control.contains(&op))
        cloneControl(&op, builder, mapping);
      else if (llvm::none_of(op.getResults(), [&](Value value) { return needed.contains(value); }))
        continue;
      else if (auto bound = dyn_cast<tile::CommonBoundOp>(op))
        mapping.map(bound.getResult(), mapping.lookupOrDefault(bound.getLoads()));
      else
        builder.clone(op, mapping);
    }
  }

  void cloneLoad(tile::LoadOp load, OpBuilder &builder, IRMapping &mapping) {
    SmallVector<Value> indices;
    for (Value index : load.getIndices())
      indices.push_back(mapping.lookupOrDefault(index));
    auto copy = hop::PipeLoadOp::create(builder, load.getLoc(), plan.pipeOf(load).pipe,
                                        mapping.lookup(load.getView()), indices, load.getBoxAttr());
    if (Attribute alike = load->getAttr(kAlikeAttrName))
      copy->setAttr(kAlikeAttrName, alike);
  }

  void cloneControl(Operation *op, OpBuilder &builder, IRMapping &mapping) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return cloneLoop(loop, builder, mapping);
    if (auto speculation = dyn_cast<tile::SpeculateOp>(op))
      return cloneSpeculation(speculation, builder, mapping);
    cloneConditional(cast<scf::IfOp>(op), builder, mapping);
  }

  void cloneLoop(scf::ForOp loop, OpBuilder &builder, IRMapping &mapping) {
    SmallVector<unsigned> kept;
    SmallVector<Value> inits;
    for (unsigned i = 0; i < loop.getNumResults(); ++i)
      if (needed.contains(loop.getRegionIterArg(i))) {
        kept.push_back(i);
        inits.push_back(mapping.lookupOrDefault(loop.getInitArgs()[i]));
      }
    auto clone =
        scf::ForOp::create(builder, loop.getLoc(), mapping.lookupOrDefault(loop.getLowerBound()),
                           mapping.lookupOrDefault(loop.getUpperBound()),
                           mapping.lookupOrDefault(loop.getStep()), inits,
                           /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
    mapping.map(loop.getInductionVar(), clone.getInductionVar());
    for (auto [position, i] : llvm::enumerate(kept)) {
      mapping.map(loop.getRegionIterArg(i), clone.getRegionIterArg(position));
      mapping.map(loop.getResult(i), clone.getResult(position));
    }
    Block *body = clone.getBody();
    if (!body->empty() && body->back().hasTrait<OpTrait::IsTerminator>())
      body->back().erase();
    OpBuilder inner = OpBuilder::atBlockEnd(body);
    cloneBlock(*loop.getBody(), inner, mapping);
    SmallVector<Value> yields;
    for (unsigned i : kept)
      yields.push_back(mapping.lookupOrDefault(loop.getYieldedValues()[i]));
    scf::YieldOp::create(inner, loop.getLoc(), yields);
  }

  void cloneSpeculation(tile::SpeculateOp speculation, OpBuilder &builder, IRMapping &mapping) {
    auto attempt = hop::AttemptOp::create(builder, speculation.getLoc());
    OpBuilder fast = OpBuilder::atBlockBegin(&attempt.getFast().emplaceBlock());
    OpBuilder exact = OpBuilder::atBlockBegin(&attempt.getExact().emplaceBlock());
    cloneBlock(speculation.getFast().front(), fast, mapping);
    cloneBlock(speculation.getExact().front(), exact, mapping);
  }

  void cloneConditional(scf::IfOp conditional, OpBuilder &builder, IRMapping &mapping) {
    SmallVector<unsigned> kept;
    SmallVector<Type> types;
    for (auto [i, result] : llvm::enumerate(conditional.getResults()))
      if (needed.contains(result)) {
        kept.push_back(i);
        types.push_back(result.getType());
      }
    bool hasElse = conditional.elseBlock() != nullptr;
    auto clone = scf::IfOp::create(builder, conditional.getLoc(), types,
                                   mapping.lookupOrDefault(conditional.getCondition()),
                                   /*addThenBlock=*/true, /*addElseBlock=*/hasElse);
    auto fill = [&](Block *source, Block *target) {
      target->clear();
      OpBuilder inner = OpBuilder::atBlockEnd(target);
      cloneBlock(*source, inner, mapping);
      SmallVector<Value> yields;
      for (unsigned i : kept)
        yields.push_back(mapping.lookupOrDefault(source->getTerminator()->getOperand(i)));
      scf::YieldOp::create(inner, conditional.getLoc(), yields);
    };
    fill(conditional.thenBlock(), clone.thenBlock());
    if (hasElse)
      fill(conditional.elseBlock(), clone.elseBlock());
    for (auto [position, i] : llvm::enumerate(kept))
      mapping.map(conditional.getResult(i), clone.getResult(position));
  }

  tile::KernelOp kernel;
  PipePlan &plan;
  llvm::SetVector<Value> needed;
  llvm::SetVector<Operation *> control;
};
} // namespace

LogicalResult tessera::cloneProducer(tile::KernelOp kernel, PipePlan &plan, OpBuilder &builder,
                                     const IRMapping &arguments) {
  return ProducerSlice(kernel, plan).clone(builder, arguments);
}
