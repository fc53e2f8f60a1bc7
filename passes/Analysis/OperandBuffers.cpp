//===- OperandBuffers.cpp - Computed operands in shared memory ------------===//

#include "passes/Analysis/OperandBuffers.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;

tile::LoadOp tessera::loadedOperand(Value operand) {
  while (auto transpose = operand.getDefiningOp<tile::TransposeOp>())
    operand = transpose.getSource();
  return operand.getDefiningOp<tile::LoadOp>();
}

tile::TransposeOp tessera::computedTranspose(Value operand) {
  return loadedOperand(operand) ? tile::TransposeOp() : operand.getDefiningOp<tile::TransposeOp>();
}

//===----------------------------------------------------------------------===//
// Which values are one tile
//===----------------------------------------------------------------------===//

/// What a loop or a conditional hands on: what it takes, and what it makes of it.
using Handover = SmallVector<Value, 4>;

/// The values that iteration argument `i` of `loop` stands for.
static Handover carriedBy(scf::ForOp loop, unsigned i) {
  return {loop.getInitArgs()[i], loop.getRegionIterArg(i), loop.getYieldedValues()[i],
          loop.getResult(i)};
}

static Handover chosenBy(scf::IfOp conditional, unsigned i) {
  return {conditional.getResult(i), conditional.thenYield().getOperand(i),
          conditional.elseYield().getOperand(i)};
}

/// What makes `value` from others without computing.
static std::optional<Handover> sourceOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument == loop.getInductionVar())
      return std::nullopt;
    return carriedBy(loop, argument.getArgNumber() - loop.getNumInductionVars());
  }
  unsigned i = cast<OpResult>(value).getResultNumber();
  if (auto loop = value.getDefiningOp<scf::ForOp>())
    return carriedBy(loop, i);
  if (auto conditional = value.getDefiningOp<scf::IfOp>())
    return chosenBy(conditional, i);
  return std::nullopt;
}

/// Where `use` hands its value on.
static std::optional<Handover> targetOf(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return carriedBy(loop, use.getOperandNumber() - loop.getNumControlOperands());
  if (!isa<scf::YieldOp>(op))
    return std::nullopt;
  if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp()))
    return carriedBy(loop, use.getOperandNumber());
  if (auto conditional = dyn_cast<scf::IfOp>(op->getParentOp()))
    return chosenBy(conditional, use.getOperandNumber());
  return std::nullopt;
}

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
        tile.isReadElsewhere |= !targetOf(use) && !llvm::is_contained(tile.reads, &use);
  assignBuffers();
}

/// Adds `value` and all that it is handed on from and to.
void OperandBuffers::collect(Tile &tile, Value value) {
  tile.values.insert(value);
  for (size_t i = 0; i < tile.values.size(); ++i) {
    Value current = tile.values[i];
    if (std::optional<Handover> source = sourceOf(current))
      tile.values.insert(source->begin(), source->end());
    else
      tile.made.push_back(current);
    for (OpOperand &use : current.getUses())
      if (std::optional<Handover> target = targetOf(use))
        tile.values.insert(target->begin(), target->end());
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
        bool matters = targetOf(use) || llvm::is_contained(kept.reads, &use);
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
