//===- Padding.cpp - Elements of tiles that lie outside of a view ---------===//

#include "passes/Analysis/Padding.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/ScfFlow.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

static bool isZeroNumber(Attribute number) {
  if (auto real = dyn_cast_or_null<FloatAttr>(number))
    return real.getValue().isZero();
  auto integer = dyn_cast_or_null<IntegerAttr>(number);
  return integer && integer.getValue().isZero();
}

bool Padding::isZero() const { return load && isZeroNumber(value); }

/// 0 of what is no tile of rank 1 or 2, which passes behind refuse.
static int64_t getRank(Value value) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  return tile && tile.getRank() <= 2 ? tile.getRank() : 0;
}

/// The number that all elements of `value` are; null where it is no constant.
static Attribute getConstant(Value value) {
  if (auto splat = value.getDefiningOp<SplatOp>())
    value = splat.getSource();
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return {};
  auto elements = dyn_cast<DenseElementsAttr>(constant);
  if (!elements)
    return constant;
  return elements.isSplat() ? elements.getSplatValue<Attribute>() : Attribute();
}

/// The axis of the operand of `op` that becomes `axis` of its result; none where the result has no
/// such axis of it.
static std::optional<int64_t> getOperandAxis(Operation *op, int64_t axis) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return static_cast<int64_t>(broadcast.getAxis()) == axis ? std::nullopt : std::optional(0);
  if (isa<TransposeOp>(op))
    return 1 - axis;
  return OpTrait::hasElementwiseMappableTraits(op) ? std::optional(axis) : std::nullopt;
}

/// Whether `value` is made of the places of elements along `axis`.
static bool isOfPlace(Value value, int64_t axis) {
  llvm::SetVector<std::pair<Value, int64_t>> parts;
  parts.insert({value, axis});
  for (size_t i = 0; i < parts.size(); ++i) {
    auto [part, along] = parts[i];
    Operation *op = part.getDefiningOp();
    if (!op || getRank(part) == 0)
      continue;
    auto iota = dyn_cast<IotaOp>(op);
    if (iota && (getRank(part) == 1 || static_cast<int64_t>(iota.getAxis()) == along))
      return true;
    if (std::optional<int64_t> from = getOperandAxis(op, along))
      for (Value operand : op->getOperands())
        parts.insert({operand, *from});
  }
  return false;
}

/// Whether `value` is a comparison of places along `axis`, or a number that one chooses.
static bool isMask(Value value, int64_t axis) {
  auto isCondition = [](Value value) { return getElementTypeOrSelf(value).isInteger(1); };
  if (isCondition(value))
    return isOfPlace(value, axis);
  Operation *op = value.getDefiningOp();
  return op && op->getNumOperands() > 0 && isCondition(op->getOperand(0)) &&
         isOfPlace(op->getOperand(0), axis);
}

/// Whether `op` may hide elements by their places along `axis`: by a choice or a product.
static bool mayHide(Operation *op, int64_t axis) {
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isMask(select.getCondition(), axis);
  return isa<arith::MulFOp, arith::MulIOp, arith::AndIOp>(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return isMask(operand, axis); });
}

/// What `op` makes of numbers, of which those that are null are not known; null where that is not
/// known either.
static Attribute evaluate(Operation *op, ArrayRef<Attribute> numbers) {
  Attribute first = numbers.front();
  bool isProduct = isa<arith::MulFOp, arith::MulIOp, arith::AndIOp>(op);
  if (isProduct && llvm::any_of(numbers, isZeroNumber))
    return *llvm::find_if(numbers, isZeroNumber);
  if (isa<arith::DivFOp>(op) && isZeroNumber(first) && !isZeroNumber(numbers[1]))
    return first;
  if (isa<arith::SelectOp>(op))
    return numbers[1] == numbers[2] ? numbers[1] : Attribute();
  if (llvm::is_contained(numbers, Attribute()))
    return {};
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<Attribute> operands;
  for (auto [number, operand] : llvm::zip_equal(numbers, op->getOperands())) {
    auto tile = dyn_cast<RankedTensorType>(operand.getType());
    operands.push_back(tile ? Attribute(DenseElementsAttr::get(tile, number)) : number);
  }
  // Folding may change the operation.
  OwningOpRef<Operation *> copy(op->clone());
  SmallVector<OpFoldResult> folded;
  if (!result || failed(copy->fold(operands, folded)) || folded.empty())
    return {};
  // What it does not change it gives as it is.
  if (auto same = dyn_cast<Value>(folded.front())) {
    for (auto [number, operand] : llvm::zip_equal(numbers, copy->getOperands()))
      if (operand == same)
        return number;
    return {};
  }
  auto elements = dyn_cast_or_null<DenseElementsAttr>(cast<Attribute>(folded.front()));
  return elements && elements.isSplat() ? elements.getSplatValue<Attribute>() : Attribute();
}

/// A number that is the same everywhere is that outside of a view too.
Padding PaddingAnalysis::get(Value tile, int64_t axis) const {
  auto found = states.find(tile);
  if (found != states.end())
    return found->second[axis];
  Padding none;
  none.value = getConstant(tile);
  return none;
}

/// Whether a tile that begins at `start` is not known to end inside of a view of `extent`. Where
/// these have a common factor the author's loops and grids end with the view.
bool PaddingAnalysis::mayReachOutside(Value start, int64_t tile, Attribute extent) {
  if (auto number = dyn_cast<IntegerAttr>(extent)) {
    APInt first;
    if (matchPattern(start, m_ConstantInt(&first)))
      return first.getSExtValue() + tile > number.getInt();
    return number.getInt() % tile != 0 || !isMultipleOf(start, tile);
  }
  ArrayAttr requirements = kernel.getRequirementsAttr();
  bool isMultiple =
      requirements && llvm::any_of(requirements, [&](Attribute requirement) {
        auto divides = dyn_cast<DividesAttr>(requirement);
        return divides && divides.getDividend() == extent && divides.getFactor() % tile == 0;
      });
  return !isMultiple || !isMultipleOf(start, tile);
}

PaddingAnalysis::Axes PaddingAnalysis::visitLoad(LoadOp load) {
  Axes axes;
  auto tile = dyn_cast<RankedTensorType>(load.getType());
  if (!tile)
    return axes;
  auto view = cast<ViewType>(load.getView().getType());
  TileBox box(view, tile, load.getBox());
  for (int64_t axis = 0; axis < tile.getRank(); ++axis) {
    int64_t dim = box.getLastRowDim() + axis, extent = box.getExtent(dim);
    axes[axis].isInside = !mayReachOutside(load.getIndices()[dim], extent, view.getDims()[dim]);
    if (!axes[axis].isInside)
      axes[axis] = Padding{load, load.getView(), view.getDims()[dim], extent,
                           Builder(load.getContext()).getZeroAttr(tile.getElementType())};
  }
  return axes;
}

/// Of values of which one is taken; those of which nothing is known yet do not count.
Padding PaddingAnalysis::join(ValueRange values, int64_t axis) const {
  std::optional<Padding> joined;
  for (Value value : values) {
    if (!states.contains(value))
      continue;
    Padding own = get(value, axis);
    bool isSame = !joined || joined->value == own.value;
    bool isInside = own.isInside && (!joined || joined->isInside);
    if (!joined || (own.load && (!joined->load || own.change)))
      joined = own;
    if (!isSame)
      joined->value = {};
    joined->isInside = isInside;
  }
  return joined.value_or(Padding());
}

/// A product has rows of the first operand and columns of the second, of zeros where those are.
PaddingAnalysis::Axes PaddingAnalysis::visitDot(DotOp dot) {
  Axes axes = {get(dot.getA(), 0), get(dot.getB(), 1)};
  for (int64_t axis : {0, 1}) {
    bool addsZero = !dot.getAcc() || isZeroNumber(get(dot.getAcc(), axis).value);
    axes[axis].value = isZeroNumber(axes[axis].value) && addsZero
                           ? Builder(dot.getContext()).getF32FloatAttr(0.0f)
                           : Attribute();
  }
  return axes;
}

PaddingAnalysis::Axes PaddingAnalysis::visitReduced(Value source, int64_t axis, ReduceKind kind) {
  Padding kept = get(source, 1 - axis);
  if (kind == ReduceKind::sum && !isZeroNumber(kept.value))
    kept.value = {};
  return {kept, Padding()};
}

/// Past the end of its axis a scan goes on with what it has; from the end a sum of zeros is zero.
PaddingAnalysis::Axes PaddingAnalysis::visitScan(ScanOp scan) {
  Axes axes;
  bool isSum = scan.getKind() == ReduceKind::sum;
  for (int64_t axis = 0; axis < getRank(scan.getResult()); ++axis) {
    axes[axis] = get(scan.getSource(), axis);
    bool staysZero = isSum && (scan.getReverse() || axis != static_cast<int64_t>(scan.getAxis()));
    if (staysZero && isZeroNumber(axes[axis].value))
      continue;
    axes[axis].value = {};
    if (axes[axis].load && !axes[axis].change)
      axes[axis].change = scan;
  }
  return axes;
}

Padding PaddingAnalysis::visitElementwise(Operation *op, int64_t axis) {
  Padding padding;
  SmallVector<Attribute> numbers;
  bool isInside = false;
  for (Value operand : op->getOperands()) {
    Padding own = get(operand, axis);
    numbers.push_back(own.value);
    isInside |= own.isInside;
    if (own.load && (!padding.load || own.change))
      padding = own;
  }
  if (padding.load && mayHide(op, axis))
    return {};
  if (isInside && isa<arith::AddFOp, arith::AddIOp>(op) && padding.isZero())
    padding = {};
  padding.isInside = isInside && !padding.load;
  padding.value = evaluate(op, numbers);
  if (padding.load && !padding.change && !padding.isZero())
    padding.change = op;
  return padding;
}

PaddingAnalysis::Axes PaddingAnalysis::visit(Operation *op, Value result) {
  if (auto load = dyn_cast<LoadOp>(op))
    return visitLoad(load);
  if (auto dot = dyn_cast<DotOp>(op))
    return visitDot(dot);
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return visitReduced(reduce.getSource(), reduce.getAxis(), reduce.getKind());
  if (auto scan = dyn_cast<ScanOp>(op))
    return visitScan(scan);
  Axes axes;
  for (int64_t axis = 0; axis < getRank(result); ++axis) {
    axes[axis].value = getConstant(result);
    std::optional<int64_t> from = getOperandAxis(op, axis);
    if (from && OpTrait::hasElementwiseMappableTraits(op))
      axes[axis] = visitElementwise(op, axis);
    else if (from)
      axes[axis] = get(op->getOperand(0), *from);
  }
  return axes;
}

/// Adds to what is known of `value`. It only gets padding and loses that this is one number.
bool PaddingAnalysis::add(Value value, const Axes &axes) {
  if (getRank(value) == 0)
    return false;
  auto [entry, isNew] = states.try_emplace(value, axes);
  bool isChanged = isNew;
  for (auto [known, now] : llvm::zip_equal(entry->second, axes)) {
    if (now.load && !known.load) {
      known = now;
      isChanged = true;
    }
    if (known.isInside && !now.isInside) {
      known.isInside = false;
      isChanged = true;
    }
    if (known.value && known.value != now.value) {
      known.value = {};
      known.change = now.change;
      isChanged = true;
    }
  }
  return isChanged;
}

/// Both regions of a speculation give each of its results.
static SmallVector<Handover> getAllHandovers(Operation *op) {
  auto speculation = dyn_cast<SpeculateOp>(op);
  if (!speculation)
    return getHandovers(op);
  SmallVector<Handover> handovers;
  Operation *first = speculation.getFast().front().getTerminator(),
            *exact = speculation.getExact().front().getTerminator();
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    handovers.push_back({op, {first->getOperand(i + 1), exact->getOperand(i)}, {result}});
  return handovers;
}

PaddingAnalysis::PaddingAnalysis(KernelOp kernel) : kernel(kernel) {
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (const Handover &handover : getAllHandovers(op))
        for (Value to : handover.to)
          isChanged |= add(to, {join(handover.from, 0), join(handover.from, 1)});
      if (auto first = dyn_cast<ReduceIndexOp>(op))
        isChanged |= add(first.getValue(),
                         visitReduced(first.getSource(), first.getAxis(), first.getKind()));
      if (op->getNumResults() == 1 && op->getNumRegions() == 0)
        isChanged |= add(op->getResult(0), visit(op, op->getResult(0)));
    });
  }
}
