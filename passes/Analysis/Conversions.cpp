//===- Conversions.cpp - Operands that are converted on their way ----------===//

#include "passes/Analysis/Conversions.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/Analysis/PtxasRegisters.h"
#include "passes/Analysis/TileLayout.h"
#include "passes/Analysis/WidenedOperands.h"
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

/// Whether each role makes `vector`, of a number for each row, for itself: of numbers and what it
/// loads, in the order of no store.
static bool isMadeAlone(Value vector, DenseSet<Value> &seen) {
  // A refusal anywhere ends the walk.
  if (!seen.insert(vector).second)
    return true;
  auto type = dyn_cast<RankedTensorType>(vector.getType());
  if (!type || isMadeOfNumbers(vector))
    return true;
  Operation *op = vector.getDefiningOp();
  if (!op || type.getRank() != 1)
    return false;
  bool loads = tile::loadsFromView(op);
  if (loads ? llvm::any_of(op->getOperand(0).getUsers(), tile::storesToView)
            : !isa<tile::IotaOp>(op) && !OpTrait::hasElementwiseMappableTraits(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isMadeAlone(operand, seen); });
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
    if (!checkWidth() || !checkUses(operand) || !checkLayout(operand) ||
        !checkLayout(load.getResult()) || !checkParts(operand))
      return std::nullopt;
    return Conversion{load, operations.takeVector(), rowVectors};
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
    if (auto iota = dyn_cast<tile::IotaOp>(op); iota && !iota.getPeriod())
      return ofBytes.push_back(value), true;
    if (followed.try_emplace(op, false).second)
      followed[op] = followOperation(op, value);
    return followed[op];
  }

  bool followOperation(Operation *op, Value value) {
    if (auto from = dyn_cast<tile::LoadOpInterface>(op)) {
      if (load && load != from)
        return refuse(value, "is the second loaded tile");
      load = from;
      return true;
    }
    if (isa<tile::DotOp>(op))
      return refuse(value, "is the result of a dot, for which no converter waits");
    if (isa<tile::TransposeOp>(op))
      return refuse(value, "is transposed before it is converted; transpose what is converted");
    if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
      return followRows(broadcast);
    if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
      return refuse(value, "is not computed element by element");
    bool isFollowed = true;
    for (Value operand : op->getOperands())
      isFollowed &= follow(operand);
    if (isFollowed)
      operations.insert(op);
    return isFollowed;
  }

  bool followRows(tile::BroadcastOp broadcast) {
    Value vector = broadcast.getSource();
    DenseSet<Value> seen;
    if (broadcast.getAxis() != 1 || !isMadeAlone(vector, seen))
      return refuse(broadcast, "is not a number for each row that a role can load by itself");
    ofBytes.push_back(broadcast);
    operations.insert(broadcast);
    ++rowVectors;
    return true;
  }

  /// Those who multiply tiles of more bits compute with numbers of rows and columns themselves.
  bool checkWidth() {
    if (ofBytes.empty() || tile::isByteFloat(getElementTypeOrSelf(load.getType())))
      return true;
    return refuse(ofBytes.front(), "says something of rows or columns, of a tile of more than 8 "
                                   "bits");
  }

  /// Consumers have nothing that is made of the loaded tile, but the last one in shared memory.
  bool checkUses(Value tile) {
    llvm::SetVector<Value> ofLoaded;
    ofLoaded.insert(load.getResult());
    for (Operation *op : operations)
      if (op->getResult(0) != tile && llvm::any_of(op->getOperands(), [&](Value operand) {
            return ofLoaded.contains(operand);
          }))
        ofLoaded.insert(op->getResult(0));
    for (Value value : ofLoaded)
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
    if (type.getRank() != 2 || !hop::getSharedLayout(type))
      return refuse(tile, "goes through shared memory, where its rows are a multiple of 32 bytes "
                          "and their number one of 8");
    TileExtents extents;
    extents.rows = type.getDimSize(0);
    extents.columns = type.getDimSize(1);
    extents.sharedBytes =
        llvm::divideCeil(std::max(type.getElementTypeBitWidth(),
                                  getElementTypeOrSelf(load.getType()).getIntOrFloatBitWidth()),
                         8);
    std::string reason;
    return isDividedFromShared(extents, reason) || refuse(tile, reason);
  }

  /// What is cut by columns has numbers of all rows beside the elements of a part.
  bool checkParts(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType());
    int64_t parts = countConvertedParts(type, /*ofColumns=*/true);
    if (!rowVectors || type.getNumElements() <= parts * kMostConverted * hopper::warpgroupThreads)
      return true;
    return refuse(ofBytes.front(), "is of too many rows for a role that converts " +
                                       Twine(type.getDimSize(1) / parts) + " columns at a time");
  }

  ConversionRefusal &refusal;
  tile::LoadOpInterface load;
  llvm::SetVector<Operation *> operations;
  /// What only tiles of 8 bits are converted with.
  SmallVector<Value> ofBytes;
  unsigned rowVectors = 0;
  /// Whether what makes an operation was collected.
  llvm::DenseMap<Operation *, bool> followed;
};
} // namespace

std::optional<Conversion> tessera::findConversion(Value operand, ConversionRefusal &refusal) {
  return ConversionFinder(refusal).run(operand);
}

int64_t tessera::countConvertedParts(RankedTensorType tile, bool ofColumns) {
  constexpr int64_t mostElements = 64 * hopper::warpgroupThreads, leastRows = 32,
                    leastColumns = hopper::widestSwizzle;
  int64_t least = ofColumns ? leastColumns : leastRows, parts = 1;
  while (tile.getDimSize(ofColumns) % (2 * parts * least) == 0 &&
         tile.getNumElements() > parts * mostElements)
    parts *= 2;
  return parts;
}

tile::LoadOpInterface tessera::loadOfB(tile::DotOp dot) {
  if (tile::LoadOpInterface load = loadedOperand(dot.getB()))
    return load;
  ConversionRefusal refusal;
  std::optional<Conversion> conversion = findConversion(dot.getB(), refusal);
  return conversion ? tile::LoadOpInterface(conversion->load) : tile::LoadOpInterface();
}

/// Whether the elements of `tile` go to second operands of dots that `load` is converted for.
static bool isConverted(Value tile, tile::LoadOpInterface load, DenseSet<Operation *> &seen) {
  return llvm::any_of(tile.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto dot = dyn_cast<tile::DotOp>(user))
      return use.getOperandNumber() == 1 && loadOfB(dot) == load;
    bool goesOn = isa<tile::TransposeOp>(user) ||
                  (OpTrait::hasElementwiseMappableTraits(user) && user->getNumResults() == 1);
    return goesOn && seen.insert(user).second && isConverted(user->getResult(0), load, seen);
  });
}

bool tessera::isLoadedForDots(tile::LoadOpInterface load) {
  DenseSet<Operation *> seen;
  return feedsDot(load.getResult()) || isWidened(load) || isConverted(load.getResult(), load, seen);
}

SmallVector<tile::GatherOp> tessera::pipedGathers(tile::KernelOp kernel) {
  SmallVector<tile::GatherOp> gathers;
  kernel.walk([&](tile::GatherOp gather) {
    if (isLoadedForDots(gather))
      gathers.push_back(gather);
  });
  return gathers;
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

OperandWay tessera::wayOf(OpOperand &operand) {
  ConversionRefusal refusal;
  if (loadedOperand(operand.get()))
    return OperandWay::Loaded;
  bool isB = operand.getOperandNumber() == 1;
  return isB && findConversion(operand.get(), refusal) ? OperandWay::Converted
                                                       : OperandWay::Computed;
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
  SmallVector<Operation *> open;
  for (const Conversion &conversion : findConversions(program)) {
    operations.insert_range(conversion.operations);
    llvm::append_range(open, conversion.operations);
  }
  auto isOfThem = [&](Operation *op) { return operations.contains(op); };
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands()) {
      Operation *op = operand.getDefiningOp();
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (op && type && (isa<tile::SplatOp>(op) || type.getRank() == 1) &&
          llvm::all_of(op->getUsers(), isOfThem) && operations.insert(op).second)
        open.push_back(op);
    }
  return operations;
}
