//===- WidenedOperands.cpp - First operands that are extended from 8 bits -===//

#include "passes/Analysis/WidenedOperands.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/Analysis/RowPartition.h"
#include "passes/Analysis/TileFlow.h"
#include "passes/Analysis/VectorAxes.h"

using namespace mlir;
using namespace tessera;

/// What reads `tile` otherwise than dots do as first operands, once it is extended and transposed
/// or not; null where nothing does.
static Operation *findOtherUser(Value tile, bool isExtended) {
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    if (isa<tile::DotOp>(user) && isExtended && use.getOperandNumber() == 0)
      continue;
    bool extends = !isExtended && isa<arith::ExtFOp>(user) &&
                   getElementTypeOrSelf(user->getResult(0)).getIntOrFloatBitWidth() == 16;
    if (!extends && !isa<tile::TransposeOp>(user))
      return user;
    if (Operation *other = findOtherUser(user->getResult(0), isExtended || extends))
      return other;
  }
  return nullptr;
}

/// Whether a dot reads `tile`, extended and transposed or not.
static bool isMultiplied(Value tile) {
  return llvm::any_of(tile.getUsers(), [](Operation *user) {
    return isa<tile::DotOp>(user) ||
           (isa<arith::ExtFOp, tile::TransposeOp>(user) && isMultiplied(user->getResult(0)));
  });
}

/// Whether lanes can take the tile of `load`, of 8 bits: 32 columns of a row at a time, or 32 rows
/// of 16 columns.
static bool fitsLanes(tile::LoadOpInterface load) {
  constexpr int64_t unit = 32;
  auto type = dyn_cast<RankedTensorType>(load.getType());
  return type && tile::isByteFloat(type.getElementType()) && type.getRank() == 2 &&
         type.getDimSize(0) % unit == 0 && type.getDimSize(1) % unit == 0;
}

/// What keeps a tile that lanes can take out of registers, whatever goes with its rows.
static std::optional<WideningObstacle> findObstacle(tile::LoadOpInterface load) {
  if (!isMultipleOf(load.getIndices().back(), hop::bulkStartBytes))
    return WideningObstacle{"its first column is not known to be a multiple of 16", "one that is"};
  auto users = load.getView().getUsers();
  if (auto store = llvm::find_if(users, tile::storesToView); store != users.end())
    return WideningObstacle{"the kernel stores to its view", "another view for what is stored",
                            *store};
  if (Operation *other = findOtherUser(load.getResult(), /*isExtended=*/false))
    return WideningObstacle{"other operations read it too", "another load for these", other};
  return std::nullopt;
}

/// Whether the tile of `load` can be extended in registers, whatever goes with its rows.
static bool canWiden(tile::LoadOpInterface load) {
  return fitsLanes(load) && isMultiplied(load.getResult()) && !findObstacle(load);
}

/// The load that makes `operand` so; null for others.
static tile::LoadOpInterface findWidenable(Value operand) {
  bool isExtended = false;
  while (Operation *op = operand.getDefiningOp()) {
    if (auto load = dyn_cast<tile::LoadOpInterface>(op))
      return isExtended && canWiden(load) ? load : tile::LoadOpInterface();
    if (!isa<tile::TransposeOp, arith::ExtFOp>(op))
      break;
    isExtended |= isa<arith::ExtFOp>(op);
    operand = op->getOperand(0);
  }
  return {};
}

tile::LoadOpInterface tessera::widenedLoad(Value operand) {
  tile::LoadOpInterface load = findWidenable(operand);
  return load && isWidened(load) ? load : tile::LoadOpInterface();
}

/// Adds the first operands that `tile` is made, of which its columns are rows if `isTransposed`.
static void collectTransposed(Value tile, bool isTransposed, llvm::SetVector<Value> &operands) {
  for (Operation *user : tile.getUsers())
    if (isa<tile::TransposeOp, arith::ExtFOp>(user))
      collectTransposed(user->getResult(0), isTransposed != isa<tile::TransposeOp>(user), operands);
    else if (isTransposed)
      operands.insert(tile);
}

/// Whether the schedule lets warpgroups share the rows of dots, and not in whole blocks of them:
/// then each has some of those that the dots sum over, which are computed ones.
static bool dividesSums(tile::LoadOpInterface load, const tile::ScheduleFields &fields) {
  int64_t shares =
      fields.placement == tile::PlacementKind::divided ? 1 : fields.consumers.value_or(1);
  return cast<RankedTensorType>(load.getType()).getDimSize(1) % (shares * hopper::mmaRows) != 0;
}

/// What keeps a tile that can be extended in registers out of them: what goes with its columns.
static std::optional<WideningObstacle> findObstacleBeside(tile::LoadOpInterface load,
                                                          const tile::ScheduleFields &fields) {
  llvm::SetVector<Value> transposed;
  collectTransposed(load.getResult(), /*isTransposed=*/false, transposed);
  if (transposed.empty())
    return std::nullopt;
  if (dividesSums(load, fields))
    return WideningObstacle{"consumers share what the dot sums over",
                            "multiples of 64 of its columns for each consumer"};
  if (Operation *ordered = PairedRows(load).findOrdered())
    return WideningObstacle{"its columns come in pairs, and what goes with them has them in order",
                            "a result of its own", ordered};
  return std::nullopt;
}

static bool isWidened(tile::LoadOpInterface load, const tile::ScheduleFields &fields) {
  return canWiden(load) && !findObstacleBeside(load, fields);
}

bool tessera::isWidened(tile::LoadOpInterface load) {
  return ::isWidened(load, load->getParentOfType<tile::KernelOp>().getScheduleFields());
}

tile::LoadOpInterface tessera::findWidenedOtherwise(tile::KernelOp kernel,
                                                    const tile::ScheduleFields &fields) {
  tile::LoadOpInterface found;
  kernel.walk([&](tile::LoadOpInterface load) {
    if (::isWidened(load, fields) == isWidened(load))
      return WalkResult::advance();
    found = load;
    return WalkResult::interrupt();
  });
  return found;
}

std::optional<WideningObstacle> tessera::whyStaged(tile::DotOp dot) {
  bool isTransposed = false, isExtended = false;
  Value operand = dot.getA();
  while (Operation *op = operand.getDefiningOp()) {
    if (!isa<tile::TransposeOp, arith::ExtFOp>(op))
      break;
    isTransposed ^= isa<tile::TransposeOp>(op);
    isExtended |= isa<arith::ExtFOp>(op);
    operand = op->getOperand(0);
  }
  auto load = operand.getDefiningOp<tile::LoadOpInterface>();
  if (!load || !isTransposed || !isExtended || !fitsLanes(load))
    return std::nullopt;
  std::optional<WideningObstacle> obstacle = findObstacle(load);
  return obstacle
             ? obstacle
             : findObstacleBeside(load, dot->getParentOfType<tile::KernelOp>().getScheduleFields());
}

//===----------------------------------------------------------------------===//
// What has the columns as rows
//===----------------------------------------------------------------------===//

/// The first operand of a product, the second one, and what is added.
static std::optional<std::array<Value, 3>> operandsOf(Operation *op) {
  if (auto mma = dyn_cast<hop::MmaOp>(op))
    return std::array<Value, 3>{mma.getA(), mma.getB(), mma.getAcc()};
  if (auto dot = dyn_cast<tile::DotOp>(op))
    return std::array<Value, 3>{dot.getA(), dot.getB(), dot.getAcc()};
  return std::nullopt;
}

/// The tiles of `op` that have the rows of `tile`.
static SmallVector<Value> rowsIn(Operation *op, Value tile) {
  SmallVector<Value> alike;
  if (auto product = operandsOf(op)) {
    auto [a, b, acc] = *product;
    if (tile != b)
      alike = {a, op->getResult(0)};
    if (tile != b && acc)
      alike.push_back(acc);
    return alike;
  }
  auto reduce = dyn_cast<tile::ReduceOp>(op);
  auto broadcast = dyn_cast<tile::BroadcastOp>(op);
  bool isOfColumns = (reduce && reduce.getAxis() == 0) || (broadcast && broadcast.getAxis() == 0);
  if (isOfColumns || isa<tile::TransposeOp>(op) || op->getNumRegions() ||
      op->hasTrait<OpTrait::IsTerminator>())
    return alike;
  llvm::append_range(alike, op->getOperands());
  llvm::append_range(alike, op->getResults());
  return alike;
}

void PairedRows::close(function_ref<bool(Value)> belongs) {
  closeOverAlike(tiles, rowsIn, [&](Value value) { return isTile(value) && belongs(value); });
}

PairedRows::PairedRows(hop::RoleOp role) {
  role.walk([&](hop::FetchOp fetch) {
    if (fetch.getTransposed())
      tiles.insert(fetch.getTile());
  });
  close([](Value) { return true; });
}

/// Constants, splats and iotas are made anew for each use.
PairedRows::PairedRows(tile::LoadOpInterface load) {
  collectTransposed(load.getResult(), /*isTransposed=*/false, tiles);
  size_t before;
  do {
    before = tiles.size();
    close([](Value value) { return !RowPartition::isRematerializable(value); });
    for (Value tile : llvm::to_vector(tiles.getArrayRef()))
      if (tile::LoadOpInterface other = findWidenable(tile))
        collectTransposed(other.getResult(), /*isTransposed=*/false, tiles);
  } while (tiles.size() != before);
}

/// Whether the first operand `a` of the product `op` lies in shared memory, or goes there.
static bool isInMemory(Operation *op, Value a) {
  if (auto mma = dyn_cast<hop::MmaOp>(op); mma && mma.getTransposeA())
    return true;
  auto type = dyn_cast<RankedTensorType>(a.getType());
  return !type || isWordOperand(type) || loadedOperand(a) ||
         (a.getDefiningOp<tile::TransposeOp>() && !findWidenable(a));
}

/// Whether `use` needs the rows of its tile in order.
static bool readsInOrder(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto product = operandsOf(op))
    return use.getOperandNumber() == 1 || isInMemory(op, product->front());
  if (isa<tile::TransposeOp>(op))
    return !llvm::all_of(op->getUsers(), llvm::IsaPred<tile::StoreOp>) &&
           !findWidenable(op->getResult(0));
  return isa<hop::ColumnsOp>(op);
}

/// Whether `tile` has four elements of 8 bits to a register, as other rows have them.
static bool hasFourToRegister(Value tile) {
  Operation *op = tile.getDefiningOp();
  auto fetch = dyn_cast_or_null<hop::FetchOp>(op);
  return tile::isByteFloat(getElementTypeOrSelf(tile)) && !isa_and_nonnull<tile::TransposeOp>(op) &&
         !(fetch && fetch.getTransposed());
}

Operation *PairedRows::findOrdered() const {
  for (Value tile : tiles) {
    Operation *op = tile.getDefiningOp();
    auto product = op ? operandsOf(op) : std::nullopt;
    if (op && (hasFourToRegister(tile) || (product && isInMemory(op, product->front()))))
      return op;
    for (OpOperand &use : tile.getUses())
      if (readsInOrder(use))
        return use.getOwner();
  }
  return nullptr;
}
