//===- HiddenElements.cpp - Scores that a mask may hide -------------------===//

#include "passes/Analysis/HiddenElements.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;

/// Masks take -inf, or the least number of a type, of which f16 has the largest.
static constexpr double hidingScore = -1.0e4;

/// Whether `value` is one number, and one that hides what has it as a score.
static bool isHidingConstant(Value value) {
  if (auto splat = value.getDefiningOp<tile::SplatOp>())
    value = splat.getSource();
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return false;
  if (auto elements = dyn_cast<SplatElementsAttr>(constant))
    constant = elements.getSplatValue<Attribute>();
  auto number = dyn_cast<FloatAttr>(constant);
  return number && number.getValueAsDouble() <= hidingScore;
}

/// Adds what `argument`, which a loop carries, begins with and goes on as.
static bool addCarried(BlockArgument argument, llvm::SetVector<Value> &values) {
  auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  OpOperand *init = loop ? loop.getTiedLoopInit(argument) : nullptr;
  if (!init)
    return false;
  values.insert(init->get());
  values.insert(loop.getTiedLoopYieldedValue(argument)->get());
  return true;
}

/// Adds those operands of `op` from which its elements have what differs among the columns. False
/// where these may be anything.
static bool addOperands(Operation *op, llvm::SetVector<Value> &values) {
  if (isa<tile::DotOp, tile::IotaOp, tile::SplatOp, tile::ReduceOp, arith::ConstantOp>(op))
    return true;
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    if (broadcast.getAxis() == 0)
      values.insert(broadcast.getSource());
    return true;
  }
  if (!OpTrait::hasElementwiseMappableTraits(op) && !isa<tile::TransposeOp>(op))
    return false;
  for (Value operand : op->getOperands())
    if (isa<FloatType>(getElementTypeOrSelf(operand)))
      values.insert(operand);
  return true;
}

bool tessera::mayHideElements(Value tile) {
  llvm::SetVector<Value> values;
  values.insert(tile);
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (!addCarried(argument, values))
        return true;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (isa<arith::SelectOp>(op) && llvm::any_of(op->getOperands(), isHidingConstant))
      return true;
    if (!addOperands(op, values))
      return true;
  }
  return false;
}
