//===- CutRows.cpp - Grid points that have fewer rows ---------------------===//

#include "passes/Tile/CutRows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
/// The rows of a kernel without dots: which values have them, and whether each is by itself.
class RowCut {
public:
  RowCut(KernelOp kernel, int64_t rows, bool addsIndex)
      : kernel(kernel), rows(rows), addsIndex(addsIndex) {}

  /// Whether rows can be cut, along which grid dimension and how many columns there are.
  bool analyze();
  void apply(int64_t part);
  int64_t getColumns() const { return columns; }

private:
  static RankedTensorType tileOf(Value value) {
    return dyn_cast<RankedTensorType>(value.getType());
  }
  static bool isVector(Value value) { return tileOf(value) && tileOf(value).getRank() == 1; }
  bool separateMasks();
  void separateConstants();
  bool visit(Operation *op);
  bool visitLoop(scf::ForOp loop);
  bool visitElementwise(Operation *op);
  bool visitStore(StoreOp store);
  bool unify(Value left, Value right);
  bool hasRows(Value value);
  bool findGridDim(StoreOp store);
  std::pair<Value, Value> takeIndex(OpBuilder &builder, int64_t part);
  void cut(Value value, int64_t part);
  void shift(Operation *op, unsigned operand, Value offset);

  KernelOp kernel;
  const int64_t rows;
  const bool addsIndex;
  int64_t columns = 0;
  std::optional<unsigned> gridDim;
  /// Vectors that are alike: an element for each row, or none is.
  llvm::EquivalenceClasses<void *> alike;
  SmallVector<Value> ofRows, ofColumns;
  SmallVector<StoreOp> stores;
};
} // namespace

bool RowCut::unify(Value left, Value right) {
  if (!tileOf(left) || !tileOf(right))
    return tileOf(left) == tileOf(right);
  if (isVector(left))
    alike.unionSets(left.getAsOpaquePointer(), right.getAsOpaquePointer());
  return true;
}

/// Whether the value has a row, or an element, for each row.
bool RowCut::hasRows(Value value) {
  if (!tileOf(value))
    return false;
  if (!isVector(value))
    return true;
  return llvm::any_of(ofRows, [&](Value known) {
    return alike.isEquivalent(known.getAsOpaquePointer(), value.getAsOpaquePointer());
  });
}

/// Whether an access has no box, or one whose rows are those of a single dimension.
template <typename AccessOp>
static bool isPlain(AccessOp access, Value tile) {
  DenseI64ArrayAttr box = access.getBoxAttr();
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  return !box || (type && box.asArrayRef().take_back(type.getRank()) == type.getShape() &&
                  llvm::all_of(box.asArrayRef().drop_back(type.getRank()),
                               [](int64_t extent) { return extent == 1; }));
}

/// A constant vector may stand for both rows and columns.
void RowCut::separateConstants() {
  kernel.walk([&](Operation *op) {
    if (!isa<arith::ConstantOp, SplatOp>(op) || !isVector(op->getResult(0)))
      return;
    OpBuilder builder(op);
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses()))
      use.set(builder.clone(*op)->getResult(0));
  });
}

bool RowCut::visitLoop(scf::ForOp loop) {
  for (auto [i, result] : llvm::enumerate(loop.getResults()))
    if (!unify(result, loop.getInitArgs()[i]) || !unify(result, loop.getRegionIterArg(i)) ||
        !unify(result, loop.getYieldedValues()[i]))
      return false;
  return true;
}

/// The elements of each row of the result follow from those of the operands.
bool RowCut::visitElementwise(Operation *op) {
  if (op->getNumResults() != 1 || !op->hasTrait<OpTrait::Elementwise>())
    return false;
  for (Value operand : op->getOperands())
    if (tileOf(operand) && !unify(op->getResult(0), operand))
      return false;
  return true;
}

/// Rows of the store begin at the grid index times the rows of a tile, along the dimension that the
/// grid index covers. So grid points behind its end have nothing to store.
bool RowCut::findGridDim(StoreOp store) {
  ViewType view = store.getView().getType();
  unsigned dim = view.getRank() - tileOf(store.getValue()).getRank();
  auto start = store.getIndices()[dim].getDefiningOp<arith::MulIOp>();
  APInt factor;
  for (unsigned i = 0; start && i < kernel.getGridRank(); ++i) {
    GridDimAttr grid = kernel.getGridDim(i);
    bool isStart = start.getLhs() == kernel.getGridIndex(i) &&
                   matchPattern(start.getRhs(), m_ConstantInt(&factor)) && factor == rows;
    if (!isStart || grid.getDivisor() != rows || grid.getExtent() != view.getDims()[dim])
      continue;
    bool isSame = !gridDim || *gridDim == i;
    gridDim = i;
    return isSame;
  }
  return false;
}

bool RowCut::visitStore(StoreOp store) {
  stores.push_back(store);
  return tileOf(store.getValue()) && isPlain(store, store.getValue()) && !store.getTicketed() &&
         (addsIndex || findGridDim(store));
}

bool RowCut::visit(Operation *op) {
  for (Value result : op->getResults()) {
    RankedTensorType type = tileOf(result);
    if (type && (type.getRank() > 2 || (type.getRank() == 2 && type.getDimSize(0) != rows)))
      return false;
    if (type && type.getRank() == 2)
      columns = std::max(columns, type.getDimSize(1));
  }
  auto isScalar = [](Value value) { return !tileOf(value); };
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitLoop(loop);
  if (isa<scf::IfOp>(op) && op->getNumResults() == 0)
    return true;
  if (llvm::all_of(op->getOperands(), isScalar) && llvm::all_of(op->getResults(), isScalar))
    return isMemoryEffectFree(op) || isa<LoadOp>(op);
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](StoreOp store) { return visitStore(store); })
      .Case([&](LoadOp load) { return isPlain(load, load.getResult()) && !load.getPipe(); })
      .Case([&](IotaOp iota) { return !iota.getPeriod(); })
      .Case<arith::ConstantOp, SplatOp, scf::YieldOp>([](auto) { return true; })
      .Case([&](BroadcastOp broadcast) {
        (broadcast.getAxis() == 1 ? ofRows : ofColumns).push_back(broadcast.getSource());
        return true;
      })
      .Case([&](ReduceOp reduce) {
        ofRows.push_back(reduce.getResult());
        return reduce.getAxis() == 1 && !isVector(reduce.getSource());
      })
      .Default([&](Operation *other) { return visitElementwise(other); });
}

/// Bounds of iterations are those of the whole tile, whose parts have been computed: its masks keep
/// their rows. Gives whether they need no tile that is cut.
bool RowCut::separateMasks() {
  bool areSeparate = true;
  kernel.walk([&](VisitsOp visits) {
    OpBuilder builder = OpBuilder::atBlockBegin(&visits.getBody().front());
    visits.getBody().walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands()) {
        bool isOwn = visits.getBody().isAncestor(operand.get().getParentRegion());
        if (isOwn || !tileOf(operand.get()))
          continue;
        auto constant = operand.get().getDefiningOp<arith::ConstantOp>();
        areSeparate &= static_cast<bool>(constant);
        if (constant)
          operand.set(builder.clone(*constant)->getResult(0));
      }
    });
  });
  return areSeparate;
}

/// Calls `visit` with what is computed of rows.
static WalkResult walkRows(KernelOp kernel, function_ref<WalkResult(Operation *)> visit) {
  return kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<VisitsOp>(op))
      return WalkResult::skip();
    return isa<ReturnOp>(op) ? WalkResult::advance() : visit(op);
  });
}

bool RowCut::analyze() {
  if (!separateMasks())
    return false;
  separateConstants();
  WalkResult walk = walkRows(kernel, [&](Operation *op) {
    return visit(op) ? WalkResult::advance() : WalkResult::interrupt();
  });
  // A vector of the columns would be stored by the grid points of all rows.
  return !walk.wasInterrupted() && (addsIndex || gridDim) &&
         llvm::none_of(ofColumns, [&](Value value) { return hasRows(value); }) &&
         llvm::all_of(stores, [&](StoreOp store) { return hasRows(store.getValue()); });
}

void RowCut::cut(Value value, int64_t part) {
  RankedTensorType type = tileOf(value);
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = part;
  value.setType(cast<RankedTensorType>(type.clone(shape)));
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue())
                              .resizeSplat(cast<ShapedType>(value.getType())));
}

void RowCut::shift(Operation *op, unsigned operand, Value offset) {
  OpBuilder builder(op);
  op->setOperand(operand,
                 arith::AddIOp::create(builder, op->getLoc(), op->getOperand(operand), offset));
}

/// The number of a part among those of a tile, and of the tile where the grid counts them. Parts
/// are grid points then.
std::pair<Value, Value> RowCut::takeIndex(OpBuilder &builder, int64_t part) {
  Location loc = kernel.getLoc();
  SmallVector<Attribute> grid(kernel.getGrid().getValue());
  if (addsIndex) {
    Value number = kernel.getBody().addArgument(builder.getIndexType(), loc);
    grid.push_back(
        GridDimAttr::get(kernel.getContext(), builder.getI64IntegerAttr(rows / part), 1));
    kernel.setGridAttr(builder.getArrayAttr(grid));
    if (std::optional<ArrayAttr> names = kernel.getGridNames()) {
      SmallVector<Attribute> all(names->getValue());
      all.push_back(builder.getStringAttr("rows"));
      kernel.setGridNamesAttr(builder.getArrayAttr(all));
    }
    return {number, Value()};
  }
  BlockArgument index = kernel.getGridIndex(*gridDim);
  Value parts = arith::ConstantIndexOp::create(builder, loc, rows / part);
  Value tile = arith::DivUIOp::create(builder, loc, index, parts);
  Value number = arith::RemUIOp::create(builder, loc, index, parts);
  grid[*gridDim] =
      GridDimAttr::get(kernel.getContext(), kernel.getGridDim(*gridDim).getExtent(), part);
  kernel.setGridAttr(builder.getArrayAttr(grid));
  return {number, tile};
}

void RowCut::apply(int64_t part) {
  OpBuilder builder(kernel.getContext());
  builder.setInsertionPointToStart(&kernel.getBody().front());
  Location loc = kernel.getLoc();
  auto [number, tile] = takeIndex(builder, part);
  Value rowsOfPart = arith::ConstantIndexOp::create(builder, loc, part);
  Value offset = arith::MulIOp::create(builder, loc, number, rowsOfPart);
  if (tile) {
    SmallPtrSet<Operation *, 2> own{tile.getDefiningOp(), number.getDefiningOp()};
    kernel.getGridIndex(*gridDim).replaceAllUsesExcept(tile, own);
  }

  SmallVector<Value> values;
  walkRows(kernel, [&](Operation *op) {
    llvm::append_range(values, op->getResults());
    if (auto loop = dyn_cast<scf::ForOp>(op))
      llvm::append_range(values, loop.getRegionIterArgs());
    // Where rows begin.
    Value tileOfOp = isa<StoreOp>(op)      ? op->getOperand(0)
                     : op->getNumResults() ? op->getResult(0)
                                           : Value();
    if (!tileOfOp || !hasRows(tileOfOp))
      return WalkResult::advance();
    int64_t rank = tileOf(tileOfOp).getRank();
    if (isa<LoadOp, StoreOp>(op)) {
      shift(op, op->getNumOperands() - rank, offset);
      op->removeAttr("box");
    } else if (auto iota = dyn_cast<IotaOp>(op); iota && iota.getAxis() == 0)
      shift(op, 0, offset);
    return WalkResult::advance();
  });
  for (Value value : values)
    if (hasRows(value))
      cut(value, part);
}

int64_t tessera::cutRows(KernelOp kernel, int64_t rows, int64_t elements, bool addsIndex) {
  RowCut cut(kernel, rows, addsIndex);
  if (!cut.analyze())
    return rows;
  int64_t part = rows;
  while (part % 2 == 0 && part * cut.getColumns() > elements)
    part /= 2;
  if (part < rows)
    cut.apply(part);
  return part;
}
