//===- AssignLayouts.cpp - Register layouts of a consumer's tiles ---------===//
//
// Implements hop-assign-layouts. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Tile/Reductions.h"
#include "lib/Support/ElementTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/RowPartition.h"
#include "passes/Analysis/ScfFlow.h"
#include "passes/Analysis/TileLayout.h"
#include "passes/Analysis/WidenedOperands.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Hop/Staged/OtherLayouts.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using hop::LayoutAttr;
using tile::ReduceKind;

namespace {

/// Which tiles of rank 1 may stay what each thread combined of its own elements: see the pass
/// description.
class PartialReductions {
public:
  explicit PartialReductions(hop::RoleOp role) {
    for (ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min, ReduceKind::maximum,
                            ReduceKind::minimum})
      findPartial(kind, reachedBy(role, kind));
  }

  /// How the threads' parts are combined; nothing for what each thread has whole.
  std::optional<ReduceKind> lookup(Value value) const {
    auto found = kinds.find(value);
    return found == kinds.end() ? std::nullopt : std::optional(found->second);
  }

  /// The value by whose parts `use` goes on, if those of its operand are parts.
  static Value continuation(OpOperand &use) {
    Operation *op = use.getOwner();
    // scf.while carries whole elements alone.
    if (std::optional<Handover> handover = findHandoverOf(use))
      return isa<scf::WhileOp>(handover->op) ? Value()
             : isa<scf::YieldOp>(op)         ? handover->to.back()
                                             : handover->to.front();
    return tile::findCombined(op) || isa<arith::MulFOp>(op) ? op->getResult(0) : Value();
  }

private:
  /// What goes on with the parts of reductions of `kind`, and is not made of parts of another.
  llvm::SetVector<Value> reachedBy(hop::RoleOp role, ReduceKind kind) {
    llvm::SetVector<Value> reached;
    auto add = [&](Value value) {
      if (value && isVector(value) && !kinds.contains(value) &&
          cast<RankedTensorType>(value.getType()).getElementType().isF32())
        reached.insert(value);
    };
    role.walk([&](tile::ReduceOp reduce) {
      if (reduce.getKind() == kind)
        add(reduce.getResult());
    });
    for (size_t i = 0; i < reached.size(); ++i) {
      Value value = reached[i];
      if (std::optional<Handover> handover = findHandoverTo(value))
        add(handover->to.front());
      for (OpOperand &use : value.getUses())
        add(continuation(use));
    }
    return reached;
  }

  void findPartial(ReduceKind kind, llvm::SetVector<Value> partial) {
    bool changed;
    do {
      changed = false;
      for (Value value : llvm::to_vector(partial.getArrayRef()))
        if (!staysPartial(value, kind, partial) || isNeededWhole(value, partial)) {
          partial.remove(value);
          changed = true;
        }
    } while (changed);
    for (Value value : partial)
      kinds[value] = kind;
  }

  /// True for a reduction with which nothing goes on by parts, and when a loop that carries rows
  /// would have to combine the parts in every iteration, for something else than the reduction it
  /// carries.
  static bool isNeededWhole(Value value, const llvm::SetVector<Value> &partial) {
    auto goesOn = [&](OpOperand &use) { return partial.contains(continuation(use)); };
    if (value.getDefiningOp<tile::ReduceOp>() && llvm::none_of(value.getUses(), goesOn))
      return true;
    Operation *parent = value.getParentBlock()->getParentOp();
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop)
      loop = parent->getParentOfType<scf::ForOp>();
    if (!loop || llvm::none_of(loop.getRegionIterArgs(), isVector))
      return false;
    return !llvm::all_of(value.getUses(), goesOn);
  }

  static bool staysPartial(Value value, ReduceKind kind, const llvm::SetVector<Value> &partial) {
    auto isPart = [&](Value other) { return partial.contains(other); };
    if (std::optional<Handover> handover = findHandoverTo(value)) {
      // The result of a loop is what its body is given; of a conditional one branch suffices.
      if (value != handover->to.front())
        return isPart(handover->to.front());
      return isa<BlockArgument>(value) ? isPart(handover->from.back())
                                       : llvm::any_of(handover->from, isPart);
    }
    return TypeSwitch<Operation *, bool>(value.getDefiningOp())
        .Case([&](tile::ReduceOp reduce) { return reduce.getKind() == kind; })
        .Case([&](arith::MulFOp mul) {
          return kind == ReduceKind::sum && isPart(mul.getLhs()) != isPart(mul.getRhs());
        })
        // Partial as soon as one side is; the other side is then spread too.
        .Default([&](Operation *op) {
          return tile::findCombined(op) == kind && llvm::any_of(op->getOperands(), isPart);
        });
  }

  DenseMap<Value, ReduceKind> kinds;
};

class LayoutAssigner {
public:
  LayoutAssigner(hop::RoleOp role, LayoutAttr layout, const VectorAxes &axes,
                 const PartialReductions &partial, const PairedRows &paired)
      : role(role), layout(layout), axes(axes), partial(partial), paired(paired),
        ofBytes(layout.isAccumulator() ? LayoutAttr::getByteAccumulator(role.getContext())
                                       : layout) {}

  void run() {
    SmallVector<Operation *> ops;
    role.walk<WalkOrder::PreOrder>([&](Operation *op) {
      ops.push_back(op);
      for (Value result : op->getResults())
        retype(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            retype(argument);
    });
    for (Operation *op : ops) {
      convertOperands(op);
      if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
        op = splitRounding(op);
      else if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
        op = splitExtension(op);
      if (isa<arith::TruncFOp, arith::ExtFOp>(op))
        rearrange(op);
      if (auto gather = dyn_cast<hop::GatherOp>(op))
        gather.setLayoutAttr(layout);
      // These may replace the operation.
      if (auto reduce = dyn_cast<tile::ReduceOp>(op))
        combineWarps(reduce);
      else if (auto reduce = dyn_cast<tile::ReduceAllOp>(op))
        combineAll(reduce);
      else if (auto scan = dyn_cast<tile::ScanOp>(op))
        scanWarps(scan);
      else if (auto sent = dyn_cast<tile::FromBlockOp>(op))
        sendToBlock(sent);
    }
  }

private:
  /// That of a tile of rank 2.
  LayoutAttr layoutOf(Value tile) {
    if (isExchanged(tile)) {
      auto load = tile.getDefiningOp<tile::LoadOp>();
      return exchangeAxes(layoutOf(load ? (*load->user_begin())->getResult(0)
                                        : tile.getDefiningOp()->getOperand(0)));
    }
    bool isOfBytes = tile::isByteFloat(getElementTypeOrSelf(tile)) && !paired.contains(tile);
    return isOfBytes ? ofBytes : commonLayout(tile);
  }

  /// That of tiles with the rows of `tile`, but for elements of 8 bits.
  LayoutAttr commonLayout(Value tile) {
    return paired.contains(tile) ? LayoutAttr::getRowPairs(role.getContext()) : layout;
  }

  void retype(Value value) {
    if (!isTile(value))
      return;
    auto type = cast<RankedTensorType>(value.getType());
    LayoutAttr ofValue = type.getRank() == 2 ? layoutOf(value)
                                             : commonLayout(value)
                                                   .getSlice(axes.lookup(value))
                                                   .withPartial(partial.lookup(value).has_value());
    RankedTensorType laidOut = hop::withLayout(type, ofValue);
    value.setType(laidOut);
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
        constant.setValueAttr(dense.reshape(laidOut));
  }

  /// How the parts that `operand`'s owner takes are combined; nothing where it takes whole rows.
  std::optional<ReduceKind> wanted(OpOperand &operand) {
    Value next = PartialReductions::continuation(operand);
    std::optional<ReduceKind> kind = next ? partial.lookup(next) : std::nullopt;
    // The factor that is itself partial stays so, the other one is whole.
    if (isa<arith::MulFOp>(operand.getOwner()) && kind != partial.lookup(operand.get()))
      return std::nullopt;
    return kind;
  }

  void convertOperands(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (!isVector(value))
        continue;
      std::optional<ReduceKind> given = partial.lookup(value), target = wanted(operand);
      if (given == target)
        continue;
      OpBuilder builder(op);
      if (given)
        value = combineBefore(op, value, *given);
      operand.set(target ? spread(builder, value, *target) : value);
    }
    // A product by a row value keeps its result's type; only MulF mixes layouts.
    if (auto mul = dyn_cast<arith::MulFOp>(op); mul && isVector(mul.getResult()))
      makeProduct(mul);
  }

  /// Integers become f32 and then elements of 8 bits, whose layout is another one. Canonicalization
  /// makes one conversion of both.
  Operation *splitRounding(Operation *op) {
    Type to = op->getResult(0).getType();
    if (!isTile(op->getResult(0)) ||
        hop::getLayout(to) == hop::getLayout(op->getOperand(0).getType()))
      return op;
    OpBuilder builder(op);
    auto integers = cast<RankedTensorType>(op->getOperand(0).getType());
    Operation *floats = builder.clone(*op);
    floats->getResult(0).setType(integers.clone(builder.getF32Type()));
    auto rounded = arith::TruncFOp::create(builder, op->getLoc(), to, floats->getResult(0));
    op->replaceAllUsesWith(rounded);
    op->erase();
    return rounded;
  }

  /// Elements of 8 bits become f32 and then integers.
  Operation *splitExtension(Operation *op) {
    OpOperand &operand = op->getOpOperand(0);
    Type to = op->getResult(0).getType();
    if (!isTile(op->getResult(0)) || hop::getLayout(to) == hop::getLayout(operand.get().getType()))
      return op;
    OpBuilder builder(op);
    Type floats = cast<RankedTensorType>(to).clone(builder.getF32Type());
    auto extended = arith::ExtFOp::create(builder, op->getLoc(), floats, operand.get());
    operand.set(extended);
    return extended;
  }

  /// A conversion to or from elements of 8 bits has their layout on both sides.
  void rearrange(Operation *op) {
    OpOperand &operand = op->getOpOperand(0);
    auto from = cast<RankedTensorType>(operand.get().getType()),
         to = cast<RankedTensorType>(op->getResult(0).getType());
    if (hop::getLayout(from) == hop::getLayout(to))
      return;
    if (isa<arith::TruncFOp>(op)) {
      OpBuilder builder(op);
      Type type = hop::withLayout(from, ofBytes);
      operand.set(hop::RearrangeOp::create(builder, op->getLoc(), type, operand.get()));
      return;
    }
    OpBuilder builder(op->getBlock(), std::next(op->getIterator()));
    op->getResult(0).setType(hop::withLayout(to, ofBytes));
    auto extended = hop::RearrangeOp::create(builder, op->getLoc(), to, op->getResult(0));
    op->getResult(0).replaceAllUsesExcept(extended, extended);
  }

  /// A reduction of rows that several warps hold gives parts, which are combined behind it.
  void combineWarps(tile::ReduceOp reduce) {
    LayoutAttr whole = hop::getLayout(reduce.getType());
    if (whole.getPartial() || whole.getWarpParts() == 1)
      return;
    reduce.getResult().setType(
        hop::withLayout(cast<RankedTensorType>(reduce.getType()), whole.withPartial(true)));
    OpBuilder builder(reduce->getBlock(), std::next(reduce->getIterator()));
    Value combined = combine(builder, reduce.getResult(), reduce.getKind());
    reduce.getResult().replaceAllUsesExcept(combined, combined.getDefiningOp());
  }

  /// Parts of whole elements.
  Value spread(OpBuilder &builder, Value value, ReduceKind kind) {
    LayoutAttr whole = hop::getLayout(value.getType());
    auto type = hop::withLayout(cast<RankedTensorType>(value.getType()), whole.withPartial(true));
    // Zero is its own partial sum, and every number its own maximum and minimum.
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
          dense && dense.isSplat() &&
          (kind != ReduceKind::sum || dense.getSplatValue<APFloat>().isZero()))
        return arith::ConstantOp::create(builder, constant.getLoc(), dense.reshape(type));
    return hop::ConvertLayoutOp::create(builder, value.getLoc(), type, kind, value);
  }

  /// Whole elements of their parts for `op`. Parts of several warps meet once for all uses, outside
  /// of the loops that the value stands before.
  Value combineBefore(Operation *op, Value value, ReduceKind kind) {
    OpBuilder builder(op);
    if (hop::getLayout(value.getType()).getWarpParts() == 1)
      return combine(builder, value, kind);
    Value &whole = combined[value];
    if (whole)
      return whole;
    builder.setInsertionPoint(value.getParentBlock()->findAncestorOpInBlock(*op));
    return whole = combine(builder, value, kind);
  }

  /// Whole elements of their parts.
  Value combine(OpBuilder &builder, Value value, ReduceKind kind) {
    auto type = cast<RankedTensorType>(value.getType());
    Type whole = hop::wholeOf(type);
    if (hop::getLayout(type).getWarpParts() == 1)
      return hop::ConvertLayoutOp::create(builder, value.getLoc(), whole, kind, value);
    Value exchange = makeExchange(value, hop::CombineOp::getSlots(type, role));
    return hop::CombineOp::create(builder, value.getLoc(), whole, kind, value, exchange);
  }

  /// Where the warps hand `value` on.
  Value makeExchange(Value value, int64_t slots) {
    OpBuilder outside(role);
    auto slot = RankedTensorType::get({1}, outside.getI32Type());
    return hop::BufferOp::create(outside, value.getLoc(),
                                 hop::BufferType::get(outside.getContext(), slot, slots),
                                 "exchange", /*offset=*/IntegerAttr(), /*zeroed=*/false);
  }

  void combineAll(tile::ReduceAllOp reduce) {
    OpBuilder builder(reduce);
    Value exchange =
        makeExchange(reduce.getSource(), role.getNumWarpgroups() * hopper::warpgroupWarps);
    auto combined = hop::CombineAllOp::create(builder, reduce.getLoc(), reduce.getType(),
                                              reduce.getKind(), reduce.getSource(), exchange);
    reduce.replaceAllUsesWith(combined.getResult());
    reduce.erase();
  }

  /// Warps that hold different places along the axis of a scan hand on what they combined.
  void scanWarps(tile::ScanOp scan) {
    auto source = cast<RankedTensorType>(scan.getSource().getType());
    int64_t slots = hop::ScanOp::getSlots(source, scan.getAxis(), role.getNumWarpgroups());
    if (slots == 0)
      return;
    OpBuilder builder(scan);
    Value exchange = makeExchange(scan.getSource(), slots);
    auto scanned =
        hop::ScanOp::create(builder, scan.getLoc(), source, scan.getKind(), scan.getSource(),
                            scan.getAxis(), scan.getExclusive(), scan.getReverse(), exchange);
    scan.replaceAllUsesWith(scanned.getResult());
    scan.erase();
  }

  /// A tile of another block has a place in this one, and a barrier that counts its bytes.
  void sendToBlock(tile::FromBlockOp sent) {
    OpBuilder builder(sent), outside(role);
    Value source = sent.getSource();
    auto type = cast<RankedTensorType>(source.getType());
    Value buffer = makeExchange(source, hop::FromBlockOp::getSlots(type, role));
    Value arrived = hop::BarriersOp::create(
        outside, sent.getLoc(), hop::BarriersType::get(outside.getContext(), 1), "arrived",
        /*count=*/1, IntegerAttr());
    Value received = hop::FromBlockOp::create(builder, sent.getLoc(), type, source,
                                              sent.getDistance(), buffer, arrived);
    sent.replaceAllUsesWith(received);
    sent.erase();
  }

  /// partial * row: the operands' types differ, so say that the row value is taken as it is.
  void makeProduct(arith::MulFOp mul) {
    if (!hop::getLayout(mul.getType()).getPartial())
      return;
    OpBuilder builder(mul);
    auto type = cast<RankedTensorType>(mul.getType());
    for (OpOperand &operand : mul->getOpOperands())
      if (!hop::getLayout(operand.get().getType()).getPartial())
        operand.set(hop::RowFactorOp::create(builder, mul.getLoc(), type, operand.get()));
  }

  hop::RoleOp role;
  LayoutAttr layout; ///< of tiles of rank 2
  const VectorAxes &axes;
  const PartialReductions &partial;
  const PairedRows &paired;
  LayoutAttr ofBytes;              ///< of tiles of rank 2 with elements of 8 bits
  DenseMap<Value, Value> combined; ///< by hop.combine, of its operands
};

struct AssignLayoutsPass : tessera::impl::AssignLayoutsBase<AssignLayoutsPass> {
  void runOnOperation() override {
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      if (!role.isElected() && failed(assign(role)))
        return signalPassFailure();
  }

  LogicalResult assign(hop::RoleOp role) {
    if (!hasTiles(role))
      return success();
    rematerialize(role);
    bool multiplies =
        role.walk([](hop::MmaOp) { return WalkResult::interrupt(); }).wasInterrupted();
    VectorAxes axes(/*usual=*/multiplies ? 0 : 1);
    if (failed(checkTypes(role)) || failed(axes.run(role)))
      return failure();
    LayoutAttr layout = LayoutAttr::getAccumulator(&getContext());
    if (multiplies) {
      if (failed(checkExtents(role, axes)))
        return failure();
    } else if (!(layout = chooseLayout(role, axes))) {
      return failure();
    }
    PartialReductions partial(role);
    PairedRows paired(role);
    if (Operation *op = paired.findOrdered())
      return op->emitError("takes in order the rows of a product whose first operand is extended "
                           "from 8 bits and transposed, and registers have these in pairs; store "
                           "the product, and go on in a kernel of its own");
    LayoutAssigner(role, layout, axes, partial, paired).run();
    return success();
  }

  /// Whether threads of the role hold tiles; one that transposes in shared memory has none.
  static bool hasTiles(hop::RoleOp role) {
    auto visit = [](Operation *op) {
      bool has = llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>) ||
                 llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>);
      return has ? WalkResult::interrupt() : WalkResult::advance();
    };
    return role.walk(visit).wasInterrupted();
  }

  LayoutAttr chooseLayout(hop::RoleOp role, const VectorAxes &axes) {
    std::string refusal;
    LayoutAttr layout =
        chooseTileLayout(&getContext(), commonExtents(role, axes), role.getNumWarpgroups(),
                         getOperation().getTileBlocks(), refusal);
    if (!layout)
      role.emitError(refusal);
    return layout;
  }

  /// A constant, splat or iota costs nothing, so each use has its own: uses may want
  /// different layouts. Constants may stand outside the role.
  void rematerialize(hop::RoleOp role) {
    SmallVector<OpOperand *> uses;
    role.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (isTile(operand.get()) && RowPartition::isRematerializable(operand.get()))
          uses.push_back(&operand);
    });
    for (OpOperand *use : uses) {
      Operation *def = use->get().getDefiningOp();
      OpBuilder builder(use->getOwner());
      Operation *copy = builder.clone(*def);
      // Folding makes constants without a place; that of the use serves in errors.
      if (isa<UnknownLoc>(copy->getLoc()))
        copy->setLoc(use->getOwner()->getLoc());
      use->set(copy->getResult(0));
      if (def->use_empty())
        def->erase();
    }
  }

  /// Rows are spread in blocks of 64 and columns of 8, for rank 1 as for rank 2.
  LogicalResult checkExtents(hop::RoleOp role, const VectorAxes &axes) {
    WalkResult walk = role.walk([&](Operation *op) -> WalkResult {
      for (Value result : op->getResults())
        if (isTile(result) && failed(checkExtents(op, result, axes)))
          return failure();
      return success();
    });
    return failure(walk.wasInterrupted());
  }

  LogicalResult checkExtents(Operation *op, Value tile, const VectorAxes &axes) {
    auto type = cast<RankedTensorType>(tile.getType());
    if (type.getRank() == 2) {
      int64_t columns = tile::isByteFloat(type.getElementType())
                            ? LayoutAttr::getByteAccumulator(&getContext()).getExtent(1)
                            : hopper::mmaColumns;
      bool exchanges = isExchanged(tile);
      if (type.getDimSize(exchanges) % hopper::mmaRows == 0 &&
          type.getDimSize(!exchanges) % columns == 0)
        return success();
      return op->emitError("makes a tile of ")
             << type.getDimSize(0) << "x" << type.getDimSize(1)
             << " for each warpgroup; registers hold multiples of 64 rows and " << columns
             << " columns";
    }
    bool isColumn = axes.lookup(tile) == 1;
    int64_t extent = type.getDimSize(0), unit = isColumn ? hopper::mmaColumns : hopper::mmaRows;
    if (extent % unit == 0)
      return success();
    return op->emitError("makes a tile of ")
           << extent << (isColumn ? " columns" : " rows")
           << " for each warpgroup; registers hold multiples of " << unit;
  }

  LogicalResult checkTypes(hop::RoleOp role) {
    WalkResult walk = role.walk([](Operation *op) -> WalkResult {
      if (auto reduce = dyn_cast<tile::ReduceAllOp>(op); reduce && !reduce.getType().isF32())
        return op->emitError("reduces ") << reduce.getType() << "; extend it to f32 first";
      for (Value result : op->getResults()) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        if (!type)
          continue;
        Type element = type.getElementType();
        if (!type.hasStaticShape() ||
            !(tile::ViewType::isElementType(element) || element.isInteger(1)))
          return op->emitError("makes a tile ")
                 << type << "; tiles in registers have a static shape and elements "
                 << listTypes(&ElementType::type, ", ") << " or i1";
        if (type.getNumElements() == 0)
          return op->emitError("makes a tile without elements, ") << type;
        if (type.getRank() == 1 && tile::isByteFloat(type.getElementType()))
          return op->emitError("makes a tile of rank 1 of ")
                 << type.getElementType() << "; elements of 8 bits are kept as tiles of rank 2";
        if (type.getRank() < 1 || type.getRank() > 2)
          return op->emitError("makes a tile of rank ") << type.getRank()
                                                        << "; tiles in registers have rank "
                                                           "1 or 2";
      }
      return success();
    });
    return failure(walk.wasInterrupted());
  }
};

} // namespace
