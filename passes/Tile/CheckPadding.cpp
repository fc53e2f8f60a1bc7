//===- CheckPadding.cpp - Zeros that fill tiles and count -----------------===//
//
// Implements tile-check-padding. See FunctionPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileBox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/Padding.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILECHECKPADDING
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

static bool isInfinite(Attribute number, bool isNegative) {
  auto real = dyn_cast_or_null<FloatAttr>(number);
  return real && real.getValue().isInfinity() && real.getValue().isNegative() == isNegative;
}

/// Whether no element of `tile` is below 0, as of absolute values and squares.
static bool isNeverNegative(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::MulFOp>(op))
    return op->getOperand(0) == op->getOperand(1);
  auto isZero = [](Value value) { return matchPattern(value, m_AnyZeroFloat()); };
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op))
    return llvm::any_of(op->getOperands(), isZero);
  if (isa<arith::ExtFOp, arith::TruncFOp, math::SqrtOp>(op))
    return isNeverNegative(op->getOperand(0));
  return isa<math::AbsFOp, math::ExpOp, math::Exp2Op>(op);
}

/// Whether elements that are outside of a view change what is reduced.
static bool counts(const Padding &padding, ReduceKind kind, Value source) {
  switch (kind) {
  case ReduceKind::sum:
    return !padding.isZero();
  case ReduceKind::max:
  case ReduceKind::maximum:
    return !isInfinite(padding.value, /*isNegative=*/true) &&
           !(padding.isZero() && isNeverNegative(source));
  case ReduceKind::min:
  case ReduceKind::minimum:
    return !isInfinite(padding.value, /*isNegative=*/false);
  case ReduceKind::product:
    auto number = dyn_cast_or_null<FloatAttr>(padding.value);
    return !number || !number.getValue().isExactlyValue(1.0);
  }
  return true;
}

static StringRef nameOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::sum:
    return "sum";
  case ReduceKind::max:
  case ReduceKind::maximum:
    return "maximum";
  case ReduceKind::min:
  case ReduceKind::minimum:
    return "minimum";
  case ReduceKind::product:
    return "product";
  }
  return "";
}

static std::string describe(Attribute extent) {
  if (auto number = dyn_cast<IntegerAttr>(extent))
    return std::to_string(number.getInt());
  return cast<StringAttr>(extent).getValue().str();
}

namespace {
class TileCheckPaddingPass : public tessera::impl::TileCheckPaddingBase<TileCheckPaddingPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    PaddingAnalysis analysis(getOperation());
    getOperation().walk([&](Operation *op) {
      if (auto reduce = dyn_cast<ReduceOp>(op))
        checkReduced(reduce, reduce.getKind(), analysis.get(reduce.getSource(), reduce.getAxis()));
      else if (auto first = dyn_cast<ReduceIndexOp>(op))
        checkReduced(first, first.getKind(), analysis.get(first.getSource(), first.getAxis()));
      else if (auto all = dyn_cast<ReduceAllOp>(op))
        for (int64_t axis = 0; axis < cast<RankedTensorType>(all.getSource().getType()).getRank();
             ++axis)
          checkReduced(all, all.getKind(), analysis.get(all.getSource(), axis));
      else if (auto scan = dyn_cast<ScanOp>(op); scan && scan.getReverse())
        checkReduced(scan, scan.getKind(), analysis.get(scan.getSource(), scan.getAxis()));
      else if (auto dot = dyn_cast<DotOp>(op))
        checkContracted(dot, analysis.get(dot.getA(), 1), analysis.get(dot.getB(), 0));
      else if (auto store = dyn_cast<StoreOp>(op))
        checkStored(store, analysis);
    });
  }

private:
  template <typename ReductionOp>
  void checkReduced(ReductionOp op, ReduceKind kind, const Padding &padding) {
    if (padding.load && counts(padding, kind, op.getSource()))
      report(op, padding, "count in this " + nameOf(kind));
  }

  /// A product with 0 is 0, whatever the other factor is.
  void checkContracted(DotOp dot, const Padding &a, const Padding &b) {
    if ((a.load || b.load) && !a.isZero() && !b.isZero())
      report(dot, a.load ? a : b, "count in this product");
  }

  /// A store drops what is outside of the same dimension, or of a smaller one.
  void checkStored(StoreOp store, const PaddingAnalysis &analysis) {
    auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
    if (!tile)
      return;
    auto view = cast<ViewType>(store.getView().getType());
    TileBox box(view, tile, store.getBox());
    for (int64_t axis = 0; axis < tile.getRank(); ++axis) {
      Padding padding = analysis.get(store.getValue(), axis);
      auto to = view.getDims()[box.getLastRowDim() + axis];
      auto stored = dyn_cast<IntegerAttr>(to),
           loaded = dyn_cast_or_null<IntegerAttr>(padding.extent);
      bool isDropped =
          to == padding.extent || (stored && loaded && stored.getInt() <= loaded.getInt());
      if (padding.load && !padding.isZero() && !isDropped)
        report(store, padding, "are stored here");
    }
  }

  /// Where the extent is known at launch only it may well be one without a rest.
  void report(Operation *op, const Padding &padding, const Twine &what) {
    bool isKnown = isa<IntegerAttr>(padding.extent);
    KernelOp kernel = getOperation();
    auto argument = cast<BlockArgument>(padding.view);
    InFlightDiagnostic diagnostic = isKnown ? op->emitWarning() : op->emitRemark();
    diagnostic << "elements of '" << kernel.getArgumentName(argument.getArgNumber())
               << "' past its " << describe(padding.extent) << " " << what;
    if (!isKnown)
      diagnostic << " where " << padding.tile << " does not divide " << describe(padding.extent);
    diagnostic << "; hide them by arith.select on a comparison of tile.iota";
    diagnostic.attachNote(padding.load->getLoc())
        << padding.tile << " are loaded here, of which those outside are 0";
    if (padding.change && padding.change != op)
      diagnostic.attachNote(padding.change->getLoc()) << "0 becomes another number here";
  }
};
} // namespace
