//===- ConsumerSlice.cpp - The program of the consumers ----------------------===//
//
// Everything but the piped loads, on a share of the rows. See Slices.h.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileBox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Schedule/ResourceModel.h"
#include "passes/WarpSpecialize/Slices.h"

using namespace mlir;
using namespace tessera;

namespace {
class ConsumerSlice {
public:
  ConsumerSlice(tile::KernelOp kernel, PipePlan &plan, const RowPartition &rows, Value warpgroup,
                bool loadsItself)
      : kernel(kernel), plan(plan), rows(rows), warpgroup(warpgroup), loadsItself(loadsItself) {}

  LogicalResult clone(OpBuilder &builder, const IRMapping &arguments) {
    whole = arguments;
    if (failed(cloneBlock(kernel.getBody().front(), builder)))
      return failure();
    releaseSlots();
    return success();
  }

private:
  /// A piped tile, and whether a transpose stands between it and its use.
  struct Operand {
    Value shared;
    bool transposed = false;
  };

  Value lookup(OpOperand &operand) {
    Value value = operand.get();
    if (isa<RankedTensorType>(value.getType()) && RowPartition::isRematerializable(value) &&
        rows.wantsPartitioned(operand))
      return share.lookup(value);
    return whole.lookupOrDefault(value);
  }

  Type typeOf(Value value) {
    return rows.isPartitioned(value) ? rows.shareOf(value.getType()) : value.getType();
  }

  LogicalResult cloneBlock(Block &block, OpBuilder &builder) {
    for (Operation &op : block.without_terminator())
      if (failed(cloneOp(&op, builder)))
        return failure();
    return success();
  }

  LogicalResult cloneOp(Operation *op, OpBuilder &builder) {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      return plan.isPiped(load) ? clonePipedLoad(load, builder) : cloneDirectLoad(load, builder);
    if (auto transpose = dyn_cast<tile::TransposeOp>(op))
      return cloneTranspose(transpose);
    if (auto dot = dyn_cast<tile::DotOp>(op))
      return cloneDot(dot, builder);
    if (auto store = dyn_cast<tile::StoreOp>(op))
      return cloneStore(store, builder);
    if (auto skip = dyn_cast<tile::SkipLoadsOp>(op))
      return cloneSkip(skip, builder);
    if (auto bound = dyn_cast<tile::CommonBoundOp>(op)) {
      whole.map(bound.getResult(), whole.lookupOrDefault(bound.getOwn()));
      return success();
    }
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return cloneLoop(loop, builder);
    if (auto conditional = dyn_cast<scf::IfOp>(op))
      return cloneConditional(conditional, builder);
    if (auto speculation = dyn_cast<tile::SpeculateOp>(op))
      return cloneSpeculation(speculation, builder);
    if (op->getNumRegions() != 0)
      return op->emitError("is not supported in a kernel; control flow is scf.for and scf.if");
    if (op->getNumResults() == 1 && RowPartition::isRematerializable(op->getResult(0)) &&
        isa<RankedTensorType>(op->getResult(0).getType()))
      return cloneRematerializable(op, builder);
    cloneGeneric(op, builder);
    return success();
  }

  /// Row `warpgroup * rows` of a tile that is divided into shares of `rows`.
  Value shareOffset(OpBuilder &builder, Location loc, int64_t shareRows) {
    Value extent = arith::ConstantIndexOp::create(builder, loc, shareRows);
    return arith::MulIOp::create(builder, loc, warpgroup, extent);
  }

  Value remainder(OpBuilder &builder, Location loc, Value value, int64_t divisor) {
    return arith::RemUIOp::create(builder, loc, value,
                                  arith::ConstantIndexOp::create(builder, loc, divisor));
  }

  /// Moves an access to the warpgroup's share of the rows. The indices, and the box if it has one.
  template <typename AccessOp>
  std::pair<SmallVector<Value>, DenseI64ArrayAttr> shareOf(OpBuilder &builder, AccessOp op,
                                                           Type type) {
    SmallVector<Value> indices;
    for (Value index : op.getIndices())
      indices.push_back(whole.lookupOrDefault(index));
    Location loc = op.getLoc();
    tile::TileBox box(op.getView().getType(), cast<RankedTensorType>(type), op.getBox());
    // RowPartition has checked that there are such boxes.
    tile::BoxSlice slice = *box.slice(rows.getParts());
    Value offset = shareOffset(builder, loc, slice.step);
    for (int64_t dim = slice.dim; dim >= box.getFirstRowDim(); --dim) {
      bool carries = dim > box.getFirstRowDim();
      Value digit = carries ? remainder(builder, loc, offset, box.getExtent(dim)) : offset;
      indices[dim] = arith::AddIOp::create(builder, loc, indices[dim], digit);
      if (carries)
        offset = arith::DivUIOp::create(
            builder, loc, offset, arith::ConstantIndexOp::create(builder, loc, box.getExtent(dim)));
    }
    return {indices, op.getBox() ? builder.getDenseI64ArrayAttr(slice.part.getExtents())
                                 : DenseI64ArrayAttr()};
  }

  LogicalResult clonePipedLoad(tile::LoadOp load, OpBuilder &builder) {
    PipeInfo &info = plan.pipeOf(load);
    if (loadsItself)
      cloneOwnLoad(load, info, builder);
    auto type = hop::SharedType::get(load.getContext(), info.tile, info.tile.getDimSize(0));
    auto wait = hop::PipeWaitOp::create(builder, load.getLoc(), type, info.pipe);
    operands[load.getResult()] = {wait.getTile(), false};
    waits.push_back(wait);
    return success();
  }

  /// Takes tiles that other grid points need from their pipes. The warps of the warpgroup meet for
  /// each, so that one thread can give the slot back for all.
  LogicalResult cloneSkip(tile::SkipLoadsOp skip, OpBuilder &builder) {
    if (loadsItself)
      return skip.emitError("skips tiles that a producer loads for other grid points, and "
                            "warp_specialize = false has none; use warp_specialize = true");
    Location loc = skip.getLoc();
    auto constant = [&](int64_t value) {
      return arith::ConstantIndexOp::create(builder, loc, value).getResult();
    };
    auto loop = scf::ForOp::create(builder, loc, constant(0),
                                   whole.lookupOrDefault(skip.getTimes()), constant(1));
    OpBuilder inner = OpBuilder::atBlockBegin(loop.getBody());
    for (int64_t number : skip.getPipes()) {
      auto pipe = plan.pipes.find(PipeKey(nullptr, number));
      if (pipe == plan.pipes.end())
        return skip.emitError("skips tiles of loads with tile.pipe = ")
               << number << ", of which the kernel has none";
      PipeInfo &info = pipe->second;
      auto type = hop::SharedType::get(skip.getContext(), info.tile, info.tile.getDimSize(0));
      Value tile = hop::PipeWaitOp::create(inner, loc, type, info.pipe);
      hop::WarpgroupSyncOp::create(inner, loc);
      hop::PipeReleaseOp::create(inner, loc, info.pipe, tile);
    }
    return success();
  }

  /// Without a producer one thread of the first warpgroup starts the copy.
  void cloneOwnLoad(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
    SmallVector<Value> indices;
    for (Value index : load.getIndices())
      indices.push_back(whole.lookupOrDefault(index));
    auto elected = hop::ElectedOp::create(builder, load.getLoc(), builder.getI1Type(), warpgroup);
    auto guard =
        scf::IfOp::create(builder, load.getLoc(), elected.getResult(), /*withElseRegion=*/false);
    OpBuilder inner = guard.getThenBodyBuilder();
    hop::PipeLoadOp::create(inner, load.getLoc(), info.pipe, whole.lookup(load.getView()), indices,
                            load.getBoxAttr());
  }

  LogicalResult cloneDirectLoad(tile::LoadOp load, OpBuilder &builder) {
    if (!rows.isPartitioned(load.getResult())) {
      cloneGeneric(load, builder);
      return success();
    }
    auto [indices, box] = shareOf(builder, load, load.getType());
    auto clone = tile::LoadOp::create(builder, load.getLoc(), rows.shareOf(load.getType()),
                                      whole.lookup(load.getView()), indices, box);
    clone->setDiscardableAttrs(load->getDiscardableAttrDictionary());
    whole.map(load.getResult(), clone.getResult());
    return success();
  }

  LogicalResult cloneStore(tile::StoreOp store, OpBuilder &builder) {
    Value value = lookup(store.getValueMutable());
    auto [indices, box] = shareOf(builder, store, store.getValue().getType());
    tile::StoreOp::create(builder, store.getLoc(), value, whole.lookup(store.getView()), indices,
                          box);
    return success();
  }

  /// Tiles in registers are not transposed: those that are computed, and those that are loaded for
  /// something else than a dot.
  LogicalResult refuseTranspose(tile::TransposeOp transpose) {
    tile::LoadOp load = loadedOperand(transpose.getResult());
    if (!load)
      return transpose.emitError(
          "transposes a computed tile; only a loaded tile that feeds a dot can be "
          "transposed, by the dot's operand order");
    InFlightDiagnostic error =
        transpose.emitError("transposes a loaded tile that no dot reads as it is: for arithmetic "
                            "it is in registers, and only the operand of a dot can be transposed");
    if (transpose->use_empty())
      return error;
    error.attachNote((*transpose->user_begin())->getLoc())
        << "read here; compute with the tile as it is loaded and make the transposed product, "
           "B^T A^T for A B, or let the view have the other order of dimensions";
    return error;
  }

  LogicalResult cloneTranspose(tile::TransposeOp transpose) {
    auto found = operands.find(transpose.getSource());
    if (found == operands.end())
      return refuseTranspose(transpose);
    operands[transpose.getResult()] = {found->second.shared, !found->second.transposed};
    return success();
  }

  LogicalResult cloneDot(tile::DotOp dot, OpBuilder &builder) {
    auto b = operands.find(dot.getB());
    if (b == operands.end())
      return dot.emitError(
          "has a computed tile as its second operand; wgmma reads it from shared memory "
          "(PTX ISA 9.7.15.5), so it must be a loaded tile; exchange the operands?");
    Value left;
    bool transposeA = false;
    if (auto a = operands.find(dot.getA()); a != operands.end()) {
      transposeA = a->second.transposed;
      left = sliceRows(a->second.shared, dot.getLoc(), builder);
    } else {
      left = lookup(dot.getAMutable());
    }
    Value acc = dot.getAcc() ? lookup(dot.getAccMutable()[0]) : Value();
    auto mma = hop::MmaOp::create(builder, dot.getLoc(), typeOf(dot.getResult()), left,
                                  b->second.shared, acc, transposeA, b->second.transposed);
    whole.map(dot.getResult(), mma.getResult());
    return success();
  }

  Value sliceRows(Value shared, Location loc, OpBuilder &builder) {
    if (rows.getParts() == 1)
      return shared;
    auto type = cast<hop::SharedType>(shared.getType());
    auto slice = hop::SharedType::get(type.getContext(),
                                      cast<RankedTensorType>(rows.shareOf(type.getTile())),
                                      type.getStoredRows());
    return hop::SliceOp::create(builder, loc, slice, shared, warpgroup);
  }

  /// Makes a constant, splat or iota in both forms; what is unused goes away later.
  LogicalResult cloneRematerializable(Operation *op, OpBuilder &builder) {
    builder.clone(*op, whole);
    Value result = op->getResult(0);
    auto type = cast<RankedTensorType>(result.getType());
    if (rows.getParts() == 1 || type.getRank() == 0 || type.getDimSize(0) % rows.getParts() != 0)
      return success();
    Type shareType = rows.shareOf(type);
    Value made;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!dense || !dense.isSplat())
        return op->emitError("is a constant tile of different elements; build it from tile.iota");
      made = arith::ConstantOp::create(builder, op->getLoc(),
                                       dense.resizeSplat(cast<ShapedType>(shareType)));
    } else if (auto splat = dyn_cast<tile::SplatOp>(op)) {
      made = tile::SplatOp::create(builder, op->getLoc(), shareType,
                                   whole.lookupOrDefault(splat.getSource()));
    } else {
      made = makeShare(cast<tile::IotaOp>(op), cast<RankedTensorType>(shareType), builder);
    }
    share.map(result, made);
    return success();
  }

  Value makeShare(tile::IotaOp iota, RankedTensorType shareType, OpBuilder &builder) {
    Location loc = iota.getLoc();
    Value start = whole.lookupOrDefault(iota.getStart());
    IntegerAttr period = iota.getPeriodAttr();
    int64_t shareRows = shareType.getDimSize(0), extent = iota.getPeriodOrExtent();
    if (iota.getAxis() == 0 && shareRows % extent != 0) {
      // The share is part of a period; RowPartition has checked that periods hold whole shares.
      Value offset = shareOffset(builder, loc, shareRows);
      if (extent < shareRows * rows.getParts())
        offset = remainder(builder, loc, offset, extent);
      start = arith::AddIOp::create(builder, loc, start, offset);
      period = {};
    }
    return tile::IotaOp::create(builder, loc, shareType, start, iota.getAxis(), period);
  }

  void cloneGeneric(Operation *op, OpBuilder &builder) {
    OperationState state(op->getLoc(), op->getName());
    for (OpOperand &operand : op->getOpOperands())
      state.operands.push_back(lookup(operand));
    for (Value result : op->getResults())
      state.types.push_back(typeOf(result));
    state.addAttributes(op->getAttrs());
    Operation *clone = builder.create(state);
    whole.map(op->getResults(), clone->getResults());
  }

  LogicalResult cloneLoop(scf::ForOp loop, OpBuilder &builder) {
    SmallVector<Value> inits;
    for (OpOperand &init : loop.getInitArgsMutable())
      inits.push_back(lookup(init));
    auto clone = scf::ForOp::create(
        builder, loop.getLoc(), whole.lookupOrDefault(loop.getLowerBound()),
        whole.lookupOrDefault(loop.getUpperBound()), whole.lookupOrDefault(loop.getStep()), inits,
        /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
    whole.map(loop.getInductionVar(), clone.getInductionVar());
    whole.map(loop.getRegionIterArgs(), clone.getRegionIterArgs());
    whole.map(loop.getResults(), clone.getResults());
    return fillBlock(*loop.getBody(), *clone.getBody());
  }

  LogicalResult cloneConditional(scf::IfOp conditional, OpBuilder &builder) {
    SmallVector<Type> types;
    for (Value result : conditional.getResults())
      types.push_back(typeOf(result));
    bool hasElse = conditional.elseBlock() != nullptr;
    auto clone = scf::IfOp::create(builder, conditional.getLoc(), types,
                                   whole.lookupOrDefault(conditional.getCondition()),
                                   /*addThenBlock=*/true, /*addElseBlock=*/hasElse);
    whole.map(conditional.getResults(), clone.getResults());
    if (failed(fillBlock(*conditional.thenBlock(), *clone.thenBlock())))
      return failure();
    return hasElse ? fillBlock(*conditional.elseBlock(), *clone.elseBlock()) : success();
  }

  /// A tile is in doubt as soon as its predicate is known.
  LogicalResult cloneSpeculation(tile::SpeculateOp speculation, OpBuilder &builder) {
    auto attempt = hop::AttemptOp::create(builder, speculation.getLoc());
    OpBuilder fast = OpBuilder::atBlockBegin(&attempt.getFast().emplaceBlock());
    OpBuilder exact = OpBuilder::atBlockBegin(&attempt.getExact().emplaceBlock());
    if (failed(cloneBlock(speculation.getFast().front(), fast)) ||
        failed(cloneBlock(speculation.getExact().front(), exact)))
      return failure();
    tile::YieldIfOp yield = speculation.getFastYield();
    Value valid = lookup(yield.getConditionMutable());
    if (Operation *def = valid.getDefiningOp(); def && def->getBlock() == fast.getBlock())
      fast.setInsertionPointAfter(def);
    hop::DoubtOp::create(fast, yield.getLoc(), valid);
    return success();
  }

  LogicalResult fillBlock(Block &source, Block &target) {
    target.clear();
    OpBuilder inner = OpBuilder::atBlockEnd(&target);
    if (failed(cloneBlock(source, inner)))
      return failure();
    SmallVector<Value> yields;
    for (OpOperand &operand : source.getTerminator()->getOpOperands())
      yields.push_back(lookup(operand));
    scf::YieldOp::create(inner, source.getTerminator()->getLoc(), yields);
    return success();
  }

  /// Releases each slot after its last reader in the block of its wait.
  void releaseSlots() {
    for (hop::PipeWaitOp wait : waits) {
      Operation *last = wait;
      auto extend = [&](Value value, auto &self) -> void {
        for (Operation *user : value.getUsers()) {
          Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*user);
          if (last->isBeforeInBlock(ancestor))
            last = ancestor;
          if (isa<hop::SliceOp>(user))
            self(user->getResult(0), self);
        }
      };
      extend(wait.getTile(), extend);
      OpBuilder builder(last->getBlock(), std::next(last->getIterator()));
      hop::PipeReleaseOp::create(builder, wait.getLoc(), wait.getPipe(), wait.getTile());
    }
  }

  tile::KernelOp kernel;
  PipePlan &plan;
  const RowPartition &rows;
  Value warpgroup;
  bool loadsItself;
  IRMapping whole; ///< every value; in a warpgroup's share where it is partitioned
  IRMapping share; ///< the share of tiles that are made anew for each use
  DenseMap<Value, Operand> operands;
  SmallVector<hop::PipeWaitOp> waits;
};
} // namespace

LogicalResult tessera::cloneConsumer(tile::KernelOp kernel, PipePlan &plan,
                                     const RowPartition &rows, Value warpgroup, bool loadsItself,
                                     OpBuilder &builder, const IRMapping &arguments) {
  return ConsumerSlice(kernel, plan, rows, warpgroup, loadsItself).clone(builder, arguments);
}
