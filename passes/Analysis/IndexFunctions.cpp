//===- IndexFunctions.cpp - What is computed of an index alone ------------===//

#include "passes/Analysis/IndexFunctions.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Longer functions and sums are not looked through: operations share operands, so that the number
/// of ways through them has no bound.
constexpr size_t kMostOperations = 64;
constexpr unsigned kDeepestSum = 6;

namespace {
/// How much an index tile changes from a row, and from a column, to the next.
struct IndexSteps {
  int64_t row = 0, column = 0;
};
} // namespace

/// Whether all elements of `tile` are one number.
static bool isUniformTile(Value tile) {
  DenseElementsAttr constant;
  return tile.getDefiningOp<SplatOp>() ||
         (matchPattern(tile, m_Constant(&constant)) && constant.isSplat());
}

static bool isTileOfRank2(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2;
}

/// The steps of a tile of i32 that is made of tile.iota and of uniform ones by sums and
/// differences.
static std::optional<IndexSteps> findIndexSteps(Value tile, unsigned depth = kDeepestSum) {
  Operation *op = tile.getDefiningOp();
  if (!op || !isTileOfRank2(tile) || !getElementTypeOrSelf(tile.getType()).isInteger(32))
    return std::nullopt;
  if (isUniformTile(tile))
    return IndexSteps{};
  if (auto iota = dyn_cast<IotaOp>(op)) {
    auto type = cast<RankedTensorType>(iota.getType());
    if (iota.getPeriodOrExtent() != type.getDimSize(iota.getAxis()))
      return std::nullopt;
    return iota.getAxis() == 0 ? IndexSteps{1, 0} : IndexSteps{0, 1};
  }
  if (depth == 0 || !isa<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  std::optional<IndexSteps> a = findIndexSteps(op->getOperand(0), depth - 1),
                            b = findIndexSteps(op->getOperand(1), depth - 1);
  if (!a || !b)
    return std::nullopt;
  int64_t sign = isa<arith::AddIOp>(op) ? 1 : -1;
  return IndexSteps{a->row + sign * b->row, a->column + sign * b->column};
}

std::optional<SmallVector<Value>> tessera::findElementOperands(Operation *op, bool loads) {
  if (!op || op->getNumResults() != 1 || op->getNumRegions() != 0)
    return std::nullopt;
  auto isTile = [](Value value) { return isa<RankedTensorType>(value.getType()); };
  if (auto gather = loads ? dyn_cast<GatherElementsOp>(op) : GatherElementsOp())
    return llvm::filter_to_vector<4>(gather.getIndices(), isTile);
  if (!OpTrait::hasElementwiseMappableTraits(op) || !llvm::all_of(op->getOperands(), isTile))
    return std::nullopt;
  return SmallVector<Value>(op->getOperands());
}

Value tessera::findIndexOf(Value tile, bool loads) {
  llvm::SetVector<Value> values;
  values.insert(tile);
  Value index;
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    if (isUniformTile(value) || value == index)
      continue;
    if (std::optional<IndexSteps> steps = findIndexSteps(value)) {
      if (index || !steps->row || !steps->column)
        return {};
      index = value;
      continue;
    }
    std::optional<SmallVector<Value>> operands = findElementOperands(value.getDefiningOp(), loads);
    if (!operands || !isTileOfRank2(value) || values.size() > kMostOperations)
      return {};
    values.insert(operands->begin(), operands->end());
  }
  return index == tile ? Value() : index;
}

SmallVector<Operation *> tessera::operationsOn(Value index, Value tile) {
  llvm::SetVector<Operation *> found;
  auto visit = [&](Value value, auto &&self) -> void {
    Operation *op = value.getDefiningOp();
    if (value == index || isUniformTile(value) || found.contains(op))
      return;
    std::optional<SmallVector<Value>> operands = findElementOperands(op, /*loads=*/true);
    for (Value operand : *operands)
      self(operand, self);
    found.insert(op);
  };
  visit(tile, visit);
  return found.takeVector();
}

bool tessera::isSpecialFunction(Operation *op) {
  if (!getElementTypeOrSelf(op->getResult(0).getType()).isF32())
    return false;
  return isa<arith::DivFOp, SigmoidOp>(op) ||
         (isa<math::MathDialect>(op->getDialect()) &&
          !isa<math::AbsFOp, math::FloorOp, math::CeilOp, math::FmaOp>(op));
}

bool tessera::mayBeApproximate(Operation *op) {
  auto flags = dyn_cast<arith::ArithFastMathInterface>(op);
  return flags && arith::bitEnumContainsAll(flags.getFastMathFlagsAttr().getValue(),
                                            arith::FastMathFlags::afn);
}
