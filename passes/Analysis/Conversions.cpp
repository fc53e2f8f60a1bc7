//===- Conversions.cpp - Operands that are converted on their way ----------===//

#include "passes/Analysis/Conversions.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/OperandBuffers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;

/// Whether each role makes `value` for itself, of numbers alone.
static bool isMadeOfNumbers(Value value) {
  Operation *op = value.getDefiningOp();
  DenseElementsAttr elements;
  return !isa<RankedTensorType>(value.getType()) || (op && isa<tile::SplatOp>(op)) ||
         (matchPattern(value, m_Constant(&elements)) && elements.isSplat());
}

namespace {
/// Follows a tile to the loaded one that it is made of.
class ConversionFinder {
public:
  explicit ConversionFinder(ConversionRefusal &refusal) : refusal(refusal) {}

  std::optional<Conversion> run(Value operand) {
    while (auto transpose = operand.getDefiningOp<tile::TransposeOp>())
      operand = transpose.getSource();
    if (!follow(operand))
      return std::nullopt;
    if (!load)
      return refuse(operand, "is made of numbers, and of no loaded tile"), std::nullopt;
    if (!checkUses(operand) || !checkLayout(operand) || !checkLayout(load.getResult()))
      return std::nullopt;
    return Conversion{load, operations.takeVector()};
  }

private:
  /// Of several reasons the first is told, but for a dot, which no other way to write the rest
  /// would do away with.
  bool refuse(Value value, const Twine &reason) {
    Operation *op = value.getDefiningOp();
    if (refusal.reason.empty() || isa_and_nonnull<tile::DotOp>(op))
      refusal = {op ? op : value.getParentBlock()->getParentOp(), reason.str()};
    return false;
  }

  /// Collects what makes `value`, sources first. Goes on behind what it refuses.
  bool follow(Value value) {
    if (isMadeOfNumbers(value))
      return true;
    Operation *op = value.getDefiningOp();
    if (!op)
      return refuse(value, "is handed on by a loop");
    if (followed.try_emplace(op, false).second)
      followed[op] = followOperation(op, value);
    return followed[op];
  }

  bool followOperation(Operation *op, Value value) {
    if (auto from = dyn_cast<tile::LoadOp>(op)) {
      if (load && load != from)
        return refuse(value, "is the second loaded tile");
      load = from;
      return true;
    }
    if (isa<tile::DotOp>(op))
      return refuse(value, "is the result of a dot, for which no converter waits");
    if (isa<tile::TransposeOp>(op))
      return refuse(value, "is transposed before it is converted; transpose what is converted");
    if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
      return refuse(value, "is not computed element by element");
    bool isFollowed = true;
    for (Value operand : op->getOperands())
      isFollowed &= follow(operand);
    if (isFollowed)
      operations.insert(op);
    return isFollowed;
  }

  /// Consumers have none of the tiles on the way, and the last one in shared memory alone.
  bool checkUses(Value tile) {
    SmallVector<Value> onTheWay = {load.getResult()};
    for (Operation *op : operations)
      if (op->getResult(0) != tile)
        onTheWay.push_back(op->getResult(0));
    for (Value value : onTheWay)
      for (Operation *user : value.getUsers())
        if (!operations.contains(user))
          return refuse(
              user->getNumResults() ? Value(user->getResult(0)) : value,
              "reads a tile that is converted on its way to a dot; load it again for this");
    return isReadByDots(tile);
  }

  bool isReadByDots(Value tile) {
    for (OpOperand &use : tile.getUses()) {
      Operation *user = use.getOwner();
      if (isa<tile::DotOp>(user) && use.getOperandNumber() < 2)
        continue;
      if (!isa<tile::TransposeOp>(user))
        return refuse(tile, "is read by other operations than dots; load and compute it again for "
                            "them");
      if (!isReadByDots(user->getResult(0)))
        return false;
    }
    return true;
  }

  bool checkLayout(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType());
    if (type.getRank() == 2 && hop::getSharedLayout(type))
      return true;
    return refuse(tile, "goes through shared memory, where its rows are a multiple of 32 bytes and "
                        "their number one of 8");
  }

  ConversionRefusal &refusal;
  tile::LoadOp load;
  llvm::SetVector<Operation *> operations;
  /// Whether what makes an operation was collected.
  llvm::DenseMap<Operation *, bool> followed;
};
} // namespace

std::optional<Conversion> tessera::findConversion(Value operand, ConversionRefusal &refusal) {
  return ConversionFinder(refusal).run(operand);
}

tile::LoadOpInterface tessera::loadOfB(tile::DotOp dot) {
  if (tile::LoadOpInterface load = loadedOperand(dot.getB()))
    return load;
  ConversionRefusal refusal;
  std::optional<Conversion> conversion = findConversion(dot.getB(), refusal);
  return conversion ? tile::LoadOpInterface(conversion->load) : tile::LoadOpInterface();
}

OpOperand *tessera::computedB(tile::DotOp dot) {
  if (loadOfB(dot))
    return nullptr;
  OpOperand *operand = &dot.getBMutable();
  while (auto transpose = operand->get().getDefiningOp<tile::TransposeOp>())
    operand = &transpose.getSourceMutable();
  return operand;
}

SmallVector<OpOperand *> tessera::computedBs(Operation *program) {
  SmallVector<OpOperand *> operands;
  program->walk([&](tile::DotOp dot) {
    OpOperand *operand = computedB(dot);
    if (operand && !llvm::is_contained(operands, operand))
      operands.push_back(operand);
  });
  return operands;
}

SmallVector<Conversion> tessera::findConversions(Operation *program) {
  llvm::MapVector<Value, Conversion> found;
  program->walk([&](tile::DotOp dot) {
    ConversionRefusal refusal;
    if (loadedOperand(dot.getB()))
      return;
    if (std::optional<Conversion> conversion = findConversion(dot.getB(), refusal)) {
      Value tile = conversion->getTile();
      found.insert({tile, std::move(*conversion)});
    }
  });
  SmallVector<Conversion> conversions;
  for (auto &[tile, conversion] : found)
    conversions.push_back(std::move(conversion));
  return conversions;
}

llvm::DenseSet<Operation *> tessera::conversionOperations(Operation *program) {
  llvm::DenseSet<Operation *> operations;
  for (const Conversion &conversion : findConversions(program))
    operations.insert_range(conversion.operations);
  SmallVector<Operation *> splats;
  for (Operation *op : operations)
    for (Value operand : op->getOperands())
      if (auto splat = operand.getDefiningOp<tile::SplatOp>();
          splat && llvm::all_of(splat->getUsers(),
                                [&](Operation *user) { return operations.contains(user); }))
        splats.push_back(splat);
  operations.insert_range(splats);
  return operations;
}
