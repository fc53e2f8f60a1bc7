//===- ReducerSumAnalysis.cpp - Dots that can run in a role of their own --===//

#include "passes/Analysis/ReducerSumAnalysis.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/Analysis/PipeSlots.h"

using namespace mlir;
using namespace tessera;

/// Columns of a part of a sum: 64 rows of them take 32 registers of a thread, and a role that has
/// more takes them from those that compute (docs/lab/backward.md).
static constexpr int64_t mostColumns = 64;

/// Columns of a piece: the widest swizzle, so that its rows lie side by side in shared memory.
static constexpr int64_t pieceColumns = 32;

/// Whether each role can make `value` for itself.
static bool isMadeAnew(Value value) {
  Operation *op = value.getDefiningOp();
  return !isa<RankedTensorType>(value.getType()) ||
         (op && isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp>(op));
}

/// The dot of which `store` adds a function of elements, with what stands between them.
static tile::DotOp findDot(tile::StoreOp store, SmallVector<Operation *> &between) {
  Value value = store.getValue();
  while (Operation *op = value.getDefiningOp()) {
    if (!op->hasOneUse())
      return {};
    between.push_back(op);
    if (auto dot = dyn_cast<tile::DotOp>(op))
      return dot;
    SmallVector<Value> tiles;
    llvm::copy_if(op->getOperands(), std::back_inserter(tiles),
                  [](Value operand) { return !isMadeAnew(operand); });
    if (!OpTrait::hasElementwiseMappableTraits(op) || tiles.size() != 1)
      return {};
    value = tiles.front();
  }
  return {};
}

/// What makes the computed operand of `dot`, with the transpose that only the dot reads; null where
/// it is loaded, a constant, or handed on by a loop.
static Operation *findOperand(tile::DotOp dot, SmallVector<Operation *> &transposes) {
  Value operand = dot.getA();
  if (auto transpose = operand.getDefiningOp<tile::TransposeOp>()) {
    if (!transpose->hasOneUse())
      return nullptr;
    transposes.push_back(transpose);
    operand = transpose.getSource();
  }
  Operation *op = operand.getDefiningOp();
  bool isComputed = op && op->getNumResults() == 1 && op->getNumRegions() == 0 &&
                    !isa<tile::TransposeOp>(op) && !loadedOperand(operand) && !isMadeAnew(operand);
  auto type = cast<RankedTensorType>(operand.getType());
  return isComputed && type.getElementTypeBitWidth() == 16 && hop::getSharedLayout(type) ? op
                                                                                         : nullptr;
}

/// Whether the dot starts at zero, and multiplies a loaded tile in a loop.
static bool isSumOfItsOwn(tile::DotOp dot) {
  return (!dot.getAcc() || matchPattern(dot.getAcc(), m_AnyZeroFloat())) &&
         loadedOperand(dot.getB()) && dot->getParentOfType<scf::ForOp>();
}

/// Whether a slot of shared memory that holds `tile` can be read in `count` parts of its columns,
/// which are whole chunks of its layout.
static bool hasColumnParts(RankedTensorType tile, int64_t count) {
  std::optional<hop::SharedLayout> layout = hop::getSharedLayout(tile);
  return layout && layout->chunks() % count == 0;
}

/// Blocks of a cluster that add to a tile of a sum.
static int64_t addingBlocks(const tile::ScheduleFields &schedule) {
  return exchangesSums(schedule) ? exchangingBlocks : 1;
}

/// Whether threads of their own wait for the tickets of sums.
static bool writersWait(const ReducerSum &sum, const tile::ScheduleFields &schedule) {
  tile::StoreOp store = sum.store;
  return store->getParentOfType<tile::KernelOp>().getFixedSums() &&
         schedule.store == tile::StoreKind::writer &&
         schedule.placement != tile::PlacementKind::rows;
}

SumParts tessera::partsOf(const ReducerSum &sum, const tile::ScheduleFields &schedule) {
  tile::DotOp dot = sum.dot;
  auto type = cast<RankedTensorType>(dot.getType());
  int64_t blocks = addingBlocks(schedule);
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1) / blocks;
  auto part = [&](int64_t count, bool ofRows) -> SumParts {
    SmallVector<int64_t> shape = {ofRows ? rows / count : rows, ofRows ? columns : columns / count};
    auto tile = RankedTensorType::get(shape, type.getElementType());
    bool isAlone = count == 1 && sum.isDotStored() && writersWait(sum, schedule);
    if ((exchangesSums(schedule) || isAlone) && shape[1] % pieceColumns == 0)
      shape[1] = pieceColumns;
    return {count, ofRows, tile, RankedTensorType::get(shape, type.getElementType())};
  };
  if (!sum.isDotStored())
    return part(1, true);
  // A part is the product of one wgmma in depth: 64 rows, and as many columns as leave the role
  // with few accumulators.
  int64_t ofRows = rows / hopper::mmaRows;
  auto operand = cast<RankedTensorType>(sum.operand->getResult(0).getType());
  bool isTransposed = dot.getA() != sum.operand->getResult(0);
  if (ofRows > 1 && (!isTransposed || hasColumnParts(operand, ofRows)))
    return part(ofRows, true);
  tile::LoadOpInterface load = loadedOperand(dot.getB());
  int64_t ofColumns = columns / std::min(columns, mostColumns);
  bool isStraight = dot.getB() == load.getResult();
  if (ofRows == 1 && ofColumns > 1 && columns % ofColumns == 0 && isStraight &&
      hasColumnParts(cast<RankedTensorType>(load.getType()), blocks * ofColumns))
    return part(ofColumns, false);
  return part(1, true);
}

int64_t tessera::placesOfSums(int64_t count, bool ofPieces) {
  return count % 2 == 0 ? 2 : ofPieces && count == 3 ? 3 : 1;
}

bool tessera::dividesTickets(const ReducerSum &sum, int64_t tickets) {
  tile::StoreOp store = sum.store;
  auto view = cast<tile::ViewType>(store.getView().getType());
  int64_t columns = view.getStaticDim(view.getRank() - 1);
  int64_t ofTile = cast<RankedTensorType>(store.getValue().getType()).getDimSize(1);
  return columns != ShapedType::kDynamic && columns % ofTile == 0 && ofTile % tickets == 0;
}

int64_t tessera::slotsForWriter(const ReducerSum &sum, const tile::ScheduleFields &schedule) {
  SumParts parts = partsOf(sum, schedule);
  return writersWait(sum, schedule)
             ? std::max(slotsOfSumParts, placesOfSums(parts.stores(), parts.pieces() > 1))
             : slotsOfSumParts;
}

int64_t tessera::ticketsOf(const tile::ScheduleFields &schedule) { return addingBlocks(schedule); }

bool tessera::hasTicketPasser(ArrayRef<ReducerSum> sums, const tile::ScheduleFields &schedule) {
  return sums.size() == 1 && writersWait(sums.front(), schedule) &&
         tile::StoreOp(sums.front().store)->getParentOfType<scf::ForOp>();
}

/// Whether nothing but other such sums touches the view, whose elements would be another role's.
static bool isOnlyAdded(const ReducerSum &sum, ArrayRef<ReducerSum> sums) {
  return llvm::all_of(tile::StoreOp(sum.store).getView().getUsers(), [&](Operation *user) {
    return llvm::any_of(sums, [&](const ReducerSum &other) { return other.store == user; });
  });
}

SmallVector<ReducerSum> tessera::findReducerSums(tile::KernelOp kernel) {
  SmallVector<ReducerSum> sums;
  size_t dots = 0;
  kernel.walk([&](tile::DotOp) { ++dots; });
  kernel.walk([&](tile::StoreOp store) {
    if (!store.getAdd())
      return;
    ReducerSum sum{store, {}, {store}, nullptr};
    sum.dot = findDot(store, sum.operations);
    if (!sum.dot || !isSumOfItsOwn(sum.dot) || sum.dot->getBlock() != store->getBlock())
      return;
    sum.operand = findOperand(sum.dot, sum.operations);
    if (sum.operand)
      sums.push_back(std::move(sum));
  });
  SmallVector<ReducerSum> found;
  llvm::copy_if(sums, std::back_inserter(found),
                [&](const ReducerSum &sum) { return isOnlyAdded(sum, sums); });
  if (found.size() == dots)
    found.clear();
  return found;
}

llvm::DenseSet<Operation *> tessera::reducerOperations(tile::KernelOp kernel,
                                                       tile::PlacementKind placement) {
  llvm::DenseSet<Operation *> operations;
  if (placement != tile::PlacementKind::rows)
    for (const ReducerSum &sum : findReducerSums(kernel))
      operations.insert_range(sum.operations);
  return operations;
}
