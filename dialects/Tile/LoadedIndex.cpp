//===- LoadedIndex.cpp - Indices that come from memory --------------------===//

#include "dialects/Tile/LoadedIndex.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;

/// The values that `argument` of a loop stands for, or is bounded by.
static void addSources(BlockArgument argument, llvm::SetVector<Value> &values) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    if (argument == loop.getInductionVar()) {
      values.insert(loop->operand_begin(), loop->operand_begin() + loop.getNumControlOperands());
      return;
    }
    values.insert(loop.getTiedLoopInit(argument)->get());
    values.insert(loop.getTiedLoopYieldedValue(argument)->get());
  } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    unsigned i = argument.getArgNumber();
    if (argument.getOwner() == loop.getBeforeBody()) {
      values.insert(loop.getInits()[i]);
      values.insert(loop.getYieldedValues()[i]);
    } else {
      values.insert(loop.getConditionOp().getArgs()[i]);
    }
  }
}

static void addSources(OpResult result, llvm::SetVector<Value> &values) {
  Operation *op = result.getOwner();
  unsigned i = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    values.insert(loop.getRegionIterArg(i));
  else if (auto loop = dyn_cast<scf::WhileOp>(op))
    values.insert(loop.getConditionOp().getArgs()[i]);
  else if (op->getNumRegions() == 0)
    values.insert(op->operand_begin(), op->operand_end());
  else // a conditional
    for (Region &region : op->getRegions())
      if (!region.empty() && region.front().getTerminator()->getNumOperands() > i)
        values.insert(region.front().getTerminator()->getOperand(i));
}

/// An argument that no loop has, and no grid, whose indices are of that type.
static bool isNumberOfKernel(BlockArgument argument) {
  return !isa<LoopLikeOpInterface>(argument.getOwner()->getParentOp()) &&
         isa<IntegerType>(argument.getType());
}

/// Whether `index` is computed from something that `isSource`.
static bool comesFrom(Value index, llvm::function_ref<bool(Value)> isSource) {
  llvm::SetVector<Value> values;
  values.insert(index);
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    if (isSource(value))
      return true;
    if (auto argument = dyn_cast<BlockArgument>(value))
      addSources(argument, values);
    else
      addSources(cast<OpResult>(value), values);
  }
  return false;
}

static bool isLoaded(Value value) {
  Operation *op = value.getDefiningOp();
  return op && tile::loadsFromView(op);
}

bool tile::comesFromMemory(Value index) { return comesFrom(index, isLoaded); }

bool tile::comesFromOutside(Value index) {
  return comesFrom(index, [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return isLoaded(value) || (argument && isNumberOfKernel(argument));
  });
}
