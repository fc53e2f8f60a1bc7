//===- ExchangeAxes.cpp - Dots of few rows, computed transposed -----------===//
//
// Implements tile-exchange-axes. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Tile/RewriteNotes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Analysis/RowPartition.h"
#include "passes/Analysis/TileFlow.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

namespace tessera {
#define GEN_PASS_DEF_TILEEXCHANGEAXES
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

static bool isTileOfRank2(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2;
}

/// Whether a wgmma has the columns of `value` as rows and its rows as columns, but not its rows as
/// rows.
static bool hasFewRows(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  return rows % hopper::mmaRows != 0 && rows % hopper::mmaColumns == 0 &&
         columns % hopper::mmaRows == 0;
}

static RankedTensorType exchanged(Type type) {
  auto tile = cast<RankedTensorType>(type);
  return RankedTensorType::get({tile.getDimSize(1), tile.getDimSize(0)}, tile.getElementType());
}

namespace {
class AxisExchange {
public:
  explicit AxisExchange(KernelOp kernel) : kernel(kernel) {}

  void run() {
    collect();
    if (tiles.empty() || !canExchange())
      return;
    makeAnew();
    for (Value tile : tiles)
      setType(tile);
    kernel.walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      exchange(op);
  }

private:
  /// What is computed of few rows, and the tiles that have their form.
  void collect() {
    bool any = false;
    kernel.walk([&](DotOp dot) { any |= hasFewRows(dot.getResult()); });
    if (!any)
      return;
    kernel.walk([&](Operation *op) {
      bool isComputed = isa<DotOp>(op) || OpTrait::hasElementwiseMappableTraits(op);
      if (isComputed && op->getNumResults() == 1 && isExchangeable(op->getResult(0)) &&
          hasFewRows(op->getResult(0)))
        tiles.insert(op->getResult(0));
    });
    closeOverAlike(tiles, alikeIn, isExchangeable);
  }

  /// Constants, splats and iotas are made anew for each use.
  static bool isExchangeable(Value value) {
    return isTileOfRank2(value) && !RowPartition::isRematerializable(value);
  }

  /// The tiles of `op` that have the form of `tile`.
  static SmallVector<Value> alikeIn(Operation *op, Value tile) {
    SmallVector<Value> alike;
    if (auto dot = dyn_cast<DotOp>(op)) {
      if (Value acc = dot.getAcc(); acc && (tile == acc || tile == dot.getResult()))
        alike = {acc, dot.getResult()};
    } else if (keepsForm(op)) {
      llvm::append_range(alike, op->getOperands());
      llvm::append_range(alike, op->getResults());
    }
    return alike;
  }

  /// Whether `op`, which makes or takes an exchanged tile, has such a form.
  bool hasForm(Operation *op) const {
    if (auto dot = dyn_cast<DotOp>(op))
      return tiles.contains(dot.getResult());
    return isa<ReduceOp, BroadcastOp, LoadOp, StoreOp, MaskedMaxOp, scf::ForOp, scf::IfOp,
               scf::YieldOp, SpeculateOp, YieldOp, YieldIfOp>(op) ||
           keepsForm(op);
  }

  /// What has few rows and is not exchanged, tile-choose-schedule refuses.
  bool canExchange() const {
    for (Value tile : tiles) {
      SmallVector<Operation *> touching(tile.getUsers());
      if (Operation *op = tile.getDefiningOp())
        touching.push_back(op);
      for (Operation *op : touching)
        if (!hasForm(op)) {
          op->emitRemark("has no form with rows as columns, in which dots of few rows could be "
                         "computed");
          return false;
        }
    }
    return true;
  }

  /// Gives each use by an exchanged operation a constant, splat or iota of its own.
  void makeAnew() {
    SmallVector<OpOperand *> uses;
    kernel.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (isTileOfRank2(operand.get()) && RowPartition::isRematerializable(operand.get()) &&
            wantsExchanged(operand))
          uses.push_back(&operand);
    });
    for (OpOperand *use : uses) {
      OpBuilder builder(use->getOwner());
      Operation *copy = builder.clone(*use->get().getDefiningOp());
      use->set(copy->getResult(0));
      tiles.insert(copy->getResult(0));
    }
  }

  bool wantsExchanged(OpOperand &operand) const {
    Operation *op = operand.getOwner();
    if (std::optional<Handover> handover = findTileHandoverOf(operand))
      return tiles.contains(handover->to.back());
    if (auto dot = dyn_cast<DotOp>(op))
      return operand.getOperandNumber() == 2 && tiles.contains(dot.getResult());
    if (!keepsForm(op))
      return false;
    auto isExchanged = [&](Value value) { return tiles.contains(value); };
    return llvm::any_of(op->getResults(), isExchanged) ||
           llvm::any_of(op->getOperands(), isExchanged);
  }

  /// What `op`, which makes a tile of `type` now, is of what was written.
  static std::string describe(Operation *op, RankedTensorType type) {
    return llvm::formatv(
        "the tile of {0}x{1} is computed transposed{2}, for its rows are too few to "
        "be those of a dot",
        type.getDimSize(1), type.getDimSize(0),
        isa<DotOp>(op) ? ", with a as operand b and b as operand a" : "");
  }

  static void setType(Value tile) {
    // A tile is loaded as it is stored.
    if (tile.getDefiningOp<LoadOp>())
      return;
    RankedTensorType type = exchanged(tile.getType());
    if (Operation *op = tile.getDefiningOp())
      addRewriteNote(op, describe(op, type));
    tile.setType(type);
    if (auto constant = tile.getDefiningOp<arith::ConstantOp>())
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type));
  }

  /// The transpose of `operand` of `op`, as it was.
  Value transposeOf(Value operand, Operation *op) {
    if (tiles.contains(operand) && !operand.getDefiningOp<LoadOp>())
      return operand;
    if (auto transpose = operand.getDefiningOp<TransposeOp>())
      return transpose.getSource();
    OpBuilder builder(op);
    return TransposeOp::create(builder, op->getLoc(), exchanged(operand.getType()), operand);
  }

  void exchange(Operation *op) {
    auto isExchanged = [&](Value value) { return tiles.contains(value); };
    TypeSwitch<Operation *>(op)
        .Case([&](DotOp dot) {
          if (!isExchanged(dot.getResult()))
            return;
          Value a = transposeOf(dot.getB(), dot), b = transposeOf(dot.getA(), dot);
          dot.getAMutable().assign(a);
          dot.getBMutable().assign(b);
        })
        .Case([&](ReduceOp reduce) {
          if (isExchanged(reduce.getSource()))
            reduce.setAxis(1 - reduce.getAxis());
        })
        .Case([&](MaskedMaxOp max) {
          if (!isExchanged(max.getSource()))
            return;
          // A thread has so few elements of it that no step is worth leaving out.
          ImplicitLocOpBuilder builder(max.getLoc(), max);
          Value own = ReduceOp::create(builder, max.getType(), ReduceKind::maximum, max.getSource(),
                                       /*axis=*/0, /*limit=*/FloatAttr());
          max.replaceAllUsesWith(arith::MaximumFOp::create(builder, max.getOld(), own).getResult());
          max.erase();
        })
        .Case([&](ScanOp scan) {
          if (isExchanged(scan.getResult()))
            scan.setAxis(1 - scan.getAxis());
        })
        .Case([&](BroadcastOp broadcast) {
          if (isExchanged(broadcast.getResult()))
            broadcast.setAxis(1 - broadcast.getAxis());
        })
        .Case([&](IotaOp iota) {
          if (isExchanged(iota.getResult()))
            iota.setAxis(1 - iota.getAxis());
        })
        .Case([&](LoadOp load) {
          if (!isExchanged(load.getResult()))
            return;
          OpBuilder builder(load->getBlock(), std::next(load->getIterator()));
          auto transpose = TransposeOp::create(builder, load.getLoc(), exchanged(load.getType()),
                                               load.getResult());
          load.getResult().replaceUsesWithIf(transpose, [&](OpOperand &use) {
            return !isa<TransposeOp, StoreOp>(use.getOwner()) &&
                   !(isa<DotOp>(use.getOwner()) && use.getOperandNumber() < 2);
          });
          tiles.insert(transpose.getResult());
        })
        .Case([&](StoreOp store) {
          if (!isExchanged(store.getValue()) || store.getValue().getDefiningOp<LoadOp>())
            return;
          OpBuilder builder(store);
          store.getValueMutable().assign(TransposeOp::create(
              builder, store.getLoc(), exchanged(store.getValue().getType()), store.getValue()));
        });
  }

  KernelOp kernel;
  /// The tiles that are exchanged.
  llvm::SetVector<Value> tiles;
  SmallVector<Operation *> ops;
};

struct TileExchangeAxesPass : tessera::impl::TileExchangeAxesBase<TileExchangeAxesPass> {
  void runOnOperation() override { AxisExchange(getOperation()).run(); }
};
} // namespace
