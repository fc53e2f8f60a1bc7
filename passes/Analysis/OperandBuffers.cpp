//===- OperandBuffers.cpp - Computed operands in shared memory ------------===//

#include "passes/Analysis/OperandBuffers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/ScfFlow.h"
#include "passes/Analysis/WidenedOperands.h"

using namespace mlir;
using namespace tessera;

tile::LoadOpInterface tessera::loadedOperand(Value operand) {
  while (auto transpose = operand.getDefiningOp<tile::TransposeOp>())
    operand = transpose.getSource();
  return operand.getDefiningOp<tile::LoadOpInterface>();
}

RankedTensorType tessera::pipedType(tile::LoadOpInterface load) {
  auto tile = cast<RankedTensorType>(load.getType());
  auto own = dyn_cast<tile::LoadOp>(load.getOperation());
  if (!own || !own.getWide())
    return tile;
  return RankedTensorType::get(tile.getShape(), tile.getElementType(),
                               tile::WideAttr::get(tile.getContext()));
}

bool tessera::feedsDot(Value tile) {
  return llvm::any_of(tile.getUses(), [](OpOperand &use) {
    if (isa<tile::DotOp>(use.getOwner()))
      return use.getOperandNumber() < 2;
    return isa<tile::TransposeOp>(use.getOwner()) && feedsDot(use.getOwner()->getResult(0));
  });
}

tile::TransposeOp tessera::computedTranspose(Value operand) {
  auto transpose = operand.getDefiningOp<tile::TransposeOp>();
  return loadedOperand(operand) || widenedLoad(operand) ? tile::TransposeOp() : transpose;
}

bool tessera::isWordOperand(RankedTensorType tile) { return tile.getElementType().isF32(); }

bool tessera::isRoundedOperand(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  return type && isWordOperand(type) && !tile.getDefiningOp<arith::ExtFOp>();
}

bool tessera::isStagedA(tile::DotOp dot) {
  if (loadedOperand(dot.getA()))
    return false;
  return computedTranspose(dot.getA()) ||
         isWordOperand(cast<RankedTensorType>(dot.getA().getType()));
}

//===----------------------------------------------------------------------===//
// Which values are one tile
//===----------------------------------------------------------------------===//

OperandBuffers::OperandBuffers(ArrayRef<OpOperand *> reads) {
  DenseMap<Value, size_t> tileOf;
  for (OpOperand *read : reads) {
    auto known = tileOf.find(read->get());
    if (known == tileOf.end()) {
      Tile &tile = tiles.emplace_back();
      collect(tile, read->get());
      for (Value value : tile.values)
        tileOf[value] = tiles.size() - 1;
    }
    tiles[tileOf[read->get()]].reads.push_back(read);
  }
  for (Tile &tile : tiles)
    for (Value value : tile.values)
      for (OpOperand &use : value.getUses())
        tile.isReadElsewhere |= !findHandoverOf(use) && !llvm::is_contained(tile.reads, &use);
  assignBuffers();
}

/// Adds `value` and all that it is handed on from and to.
void OperandBuffers::collect(Tile &tile, Value value) {
  tile.values.insert(value);
  for (size_t i = 0; i < tile.values.size(); ++i) {
    Value current = tile.values[i];
    auto add = [&](const Handover &handover) { tile.values.insert_range(handover.values()); };
    if (std::optional<Handover> handover = findHandoverTo(current))
      add(*handover);
    else
      tile.made.push_back(current);
    for (OpOperand &use : current.getUses())
      if (std::optional<Handover> handover = findHandoverOf(use))
        add(*handover);
  }
}

//===----------------------------------------------------------------------===//
// Which tiles are needed at the same time
//===----------------------------------------------------------------------===//

/// Whether `use` may happen after `op`, with the value that it has at `op`.
static bool isUsedAfter(OpOperand &use, Operation *op) {
  Block *home = use.get().getParentBlock();
  Operation *user = use.getOwner();
  Operation *outermost = home->findAncestorOpInBlock(*op);
  // Elsewhere, or before the value is made, it has no value yet.
  Operation *maker = use.get().getDefiningOp();
  if (!outermost || (maker && !maker->isBeforeInBlock(outermost)))
    return false;
  // A loop around both, which does not make the value anew, comes back to the use.
  for (Operation *parent = op->getParentOp(); parent && parent != home->getParentOp();
       parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent) && parent->isProperAncestor(user))
      return true;
  for (Operation *here = op;; here = here->getParentOp()) {
    Operation *there = here->getBlock()->findAncestorOpInBlock(*user);
    // In different branches of a conditional there is no way from one to the other.
    if (there)
      return there != here && here->isBeforeInBlock(there);
    if (here == outermost)
      return false;
  }
}

/// A value of `written` that is made while one of `kept` is still to be read.
std::optional<OperandBuffers::Conflict> OperandBuffers::findConflict(const Tile &written,
                                                                     const Tile &kept) {
  for (Value made : written.made)
    for (Value value : kept.values)
      for (OpOperand &use : value.getUses()) {
        bool matters = findHandoverOf(use) || llvm::is_contained(kept.reads, &use);
        if (value != made && matters && made.getDefiningOp() &&
            isUsedAfter(use, made.getDefiningOp()))
          return Conflict{made, value};
      }
  return std::nullopt;
}

/// Gives each tile the first buffer in which no other tile of its type is in its way.
void OperandBuffers::assignBuffers() {
  for (size_t i = 0; i < tiles.size(); ++i) {
    Tile &tile = tiles[i];
    if (!conflict)
      conflict = findConflict(tile, tile);
    auto type = cast<RankedTensorType>(tile.values.front().getType());
    auto isFree = [&](size_t buffer) {
      return types[buffer] == type &&
             llvm::none_of(ArrayRef(tiles).take_front(i), [&](auto &other) {
               return other.buffer == buffer &&
                      (findConflict(tile, other) || findConflict(other, tile));
             });
    };
    tile.buffer = 0;
    while (tile.buffer < types.size() && !isFree(tile.buffer))
      ++tile.buffer;
    if (tile.buffer == types.size())
      types.push_back(type);
  }
}
