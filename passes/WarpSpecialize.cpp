//===- WarpSpecialize.cpp - Producer and consumer roles -------------------===//
//
// Implements tile-warp-specialize: each role is a slice of the kernel's program,
// joined by pipes. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/SharedLayout.h"
#include "passes/HopPasses.h"
#include "passes/ResourceModel.h"
#include "passes/RowPartition.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_WARPSPECIALIZE
#include "passes/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// The pipe that a load and the copies that earlier passes made of it share.
struct PipeInfo {
  std::string label;
  RankedTensorType tile;
  bool inLoop = false;
  Value pipe;
};
/// The number that tile-choose-schedule gave the load, or the load itself.
using PipeKey = std::pair<Operation *, int64_t>;

/// Which loads of a kernel go through which pipe.
struct PipePlan {
  llvm::MapVector<PipeKey, PipeInfo> pipes;
  DenseMap<Operation *, PipeKey> loads;

  PipeInfo &pipeOf(tile::LoadOp load) { return pipes.find(loads.lookup(load))->second; }
  bool isPiped(Operation *op) const { return loads.contains(op); }
};

/// Whether a loaded tile is an operand of a dot, directly or transposed.
bool feedsDot(Value tile) {
  return llvm::any_of(tile.getUses(), [](OpOperand &use) {
    if (isa<tile::DotOp>(use.getOwner()))
      return use.getOperandNumber() < 2;
    return isa<tile::TransposeOp>(use.getOwner()) && feedsDot(use.getOwner()->getResult(0));
  });
}

/// Refuses uses of `tile`, the result of a piped load or its transpose, that registers would have to serve.
LogicalResult checkPipedUses(tile::LoadOp load, Value tile) {
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    bool isOperand = isa<tile::DotOp>(user) && use.getOperandNumber() < 2;
    if (isOperand)
      continue;
    if (isa<tile::TransposeOp>(user)) {
      if (failed(checkPipedUses(load, user->getResult(0))))
        return failure();
      continue;
    }
    InFlightDiagnostic diag = user->emitError(
        "uses a loaded tile that is also an operand of a dot, and so lies in shared memory");
    diag.attachNote(load.getLoc()) << "loaded here; load it a second time for this use";
    return diag;
  }
  return success();
}

FailureOr<PipePlan> planPipes(tile::KernelOp kernel) {
  PipePlan plan;
  llvm::DenseMap<StringRef, unsigned> labels;
  WalkResult walk = kernel.walk([&](tile::LoadOp load) -> WalkResult {
    if (!feedsDot(load.getResult()))
      return success();
    if (failed(checkPipedUses(load, load.getResult())))
      return failure();
    auto tile = cast<RankedTensorType>(load.getType());
    if (!hop::getSharedLayout(tile))
      return load.emitError("feeds a dot, so its rows are a multiple of 32 bytes and their number one of 8; "
                            "got ")
             << tile;
    auto number = load->getAttrOfType<IntegerAttr>(kPipeAttrName);
    PipeKey key = number ? PipeKey(nullptr, number.getInt()) : PipeKey(load, 0);
    PipeInfo &info = plan.pipes[key];
    if (info.tile && info.tile != tile)
      return load.emitError("shares a pipe with loads of ") << info.tile << ", but loads " << tile;
    if (!info.tile) {
      auto argument = cast<BlockArgument>(load.getView());
      StringRef name = kernel.getArgumentName(argument.getArgNumber());
      unsigned count = labels[name]++;
      info.label = count ? (name + "." + Twine(count)).str() : name.str();
      info.tile = tile;
    }
    info.inLoop |= load->getParentOfType<scf::ForOp>() != nullptr;
    plan.loads[load] = key;
    return success();
  });
  if (walk.wasInterrupted())
    return failure();
  return plan;
}

//===----------------------------------------------------------------------===//
// The producer: loads, their addresses and the control flow around them
//===----------------------------------------------------------------------===//

class ProducerSlice {
public:
  ProducerSlice(tile::KernelOp kernel, PipePlan &plan) : kernel(kernel), plan(plan) {}

  LogicalResult clone(OpBuilder &builder, IRMapping mapping) {
    if (failed(findNeeded()))
      return failure();
    cloneBlock(kernel.getBody().front(), builder, mapping);
    return success();
  }

private:
  /// Adds what `value` is computed from.
  LogicalResult need(Value value) {
    if (!needed.insert(value))
      return success();
    if (isa<RankedTensorType>(value.getType()))
      return emitError(value.getLoc(), "the address of a load depends on the elements of this tile; a "
                                       "producer has no tiles in registers");
    if (auto argument = dyn_cast<BlockArgument>(value))
      return needArgument(argument);
    Operation *op = value.getDefiningOp();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return needArgument(loop.getRegionIterArg(cast<OpResult>(value).getResultNumber()));
    if (auto conditional = dyn_cast<scf::IfOp>(op)) {
      unsigned i = cast<OpResult>(value).getResultNumber();
      return success(succeeded(needControl(op)) &&
                     succeeded(need(conditional.thenYield().getOperand(i))) &&
                     succeeded(need(conditional.elseYield().getOperand(i))));
    }
    return needOperands(op);
  }

  LogicalResult needArgument(BlockArgument argument) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return success();
    if (failed(needControl(loop)))
      return failure();
    if (argument == loop.getInductionVar())
      return success();
    unsigned i = argument.getArgNumber() - 1;
    needed.insert(argument);
    return success(succeeded(need(loop.getInitArgs()[i])) &&
                   succeeded(need(loop.getYieldedValues()[i])));
  }

  LogicalResult needOperands(Operation *op) {
    for (Value operand : op->getOperands())
      if (failed(need(operand)))
        return failure();
    return success(op->getParentOp() == kernel || succeeded(needControl(op->getParentOp())));
  }

  /// A loop or conditional around something needed: its bounds or condition.
  LogicalResult needControl(Operation *op) {
    if (op == kernel || !control.insert(op))
      return success();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        if (failed(need(bound)))
          return failure();
    } else if (auto conditional = dyn_cast<scf::IfOp>(op)) {
      if (failed(need(conditional.getCondition())))
        return failure();
    } else {
      return op->emitError("holds a load; loads stand in scf.for and scf.if");
    }
    return needControl(op->getParentOp());
  }

  LogicalResult findNeeded() {
    WalkResult walk = kernel.walk([&](tile::LoadOp load) -> WalkResult {
      if (!plan.isPiped(load))
        return success();
      for (Value index : load.getIndices())
        if (failed(need(index)))
          return failure();
      return needControl(load->getParentOp());
    });
    return failure(walk.wasInterrupted());
  }

  void cloneBlock(Block &block, OpBuilder &builder, IRMapping &mapping) {
    for (Operation &op : block.without_terminator()) {
      if (auto load = dyn_cast<tile::LoadOp>(op); load && plan.isPiped(load))
        cloneLoad(load, builder, mapping);
      else if (control.contains(&op))
        cloneControl(&op, builder, mapping);
      else if (llvm::any_of(op.getResults(), [&](Value value) { return needed.contains(value); }))
        builder.clone(op, mapping);
    }
  }

  void cloneLoad(tile::LoadOp load, OpBuilder &builder, IRMapping &mapping) {
    SmallVector<Value> indices;
    for (Value index : load.getIndices())
      indices.push_back(mapping.lookupOrDefault(index));
    hop::PipeLoadOp::create(builder, load.getLoc(), plan.pipeOf(load).pipe,
                            mapping.lookup(load.getView()), indices);
  }

  void cloneControl(Operation *op, OpBuilder &builder, IRMapping &mapping) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return cloneLoop(loop, builder, mapping);
    cloneConditional(cast<scf::IfOp>(op), builder, mapping);
  }

  void cloneLoop(scf::ForOp loop, OpBuilder &builder, IRMapping &mapping) {
    SmallVector<unsigned> kept;
    SmallVector<Value> inits;
    for (unsigned i = 0; i < loop.getNumResults(); ++i)
      if (needed.contains(loop.getRegionIterArg(i))) {
        kept.push_back(i);
        inits.push_back(mapping.lookupOrDefault(loop.getInitArgs()[i]));
      }
    auto clone = scf::ForOp::create(builder, loop.getLoc(), mapping.lookupOrDefault(loop.getLowerBound()),
                                    mapping.lookupOrDefault(loop.getUpperBound()),
                                    mapping.lookupOrDefault(loop.getStep()), inits,
                                    /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
    mapping.map(loop.getInductionVar(), clone.getInductionVar());
    for (auto [position, i] : llvm::enumerate(kept)) {
      mapping.map(loop.getRegionIterArg(i), clone.getRegionIterArg(position));
      mapping.map(loop.getResult(i), clone.getResult(position));
    }
    Block *body = clone.getBody();
    if (!body->empty() && body->back().hasTrait<OpTrait::IsTerminator>())
      body->back().erase();
    OpBuilder inner = OpBuilder::atBlockEnd(body);
    cloneBlock(*loop.getBody(), inner, mapping);
    SmallVector<Value> yields;
    for (unsigned i : kept)
      yields.push_back(mapping.lookupOrDefault(loop.getYieldedValues()[i]));
    scf::YieldOp::create(inner, loop.getLoc(), yields);
  }

  void cloneConditional(scf::IfOp conditional, OpBuilder &builder, IRMapping &mapping) {
    SmallVector<unsigned> kept;
    SmallVector<Type> types;
    for (auto [i, result] : llvm::enumerate(conditional.getResults()))
      if (needed.contains(result)) {
        kept.push_back(i);
        types.push_back(result.getType());
      }
    bool hasElse = conditional.elseBlock() != nullptr;
    auto clone = scf::IfOp::create(builder, conditional.getLoc(), types,
                                   mapping.lookupOrDefault(conditional.getCondition()),
                                   /*addThenBlock=*/true, /*addElseBlock=*/hasElse);
    auto fill = [&](Block *source, Block *target) {
      target->clear();
      OpBuilder inner = OpBuilder::atBlockEnd(target);
      cloneBlock(*source, inner, mapping);
      SmallVector<Value> yields;
      for (unsigned i : kept)
        yields.push_back(mapping.lookupOrDefault(source->getTerminator()->getOperand(i)));
      scf::YieldOp::create(inner, conditional.getLoc(), yields);
    };
    fill(conditional.thenBlock(), clone.thenBlock());
    if (hasElse)
      fill(conditional.elseBlock(), clone.elseBlock());
    for (auto [position, i] : llvm::enumerate(kept))
      mapping.map(conditional.getResult(i), clone.getResult(position));
  }

  tile::KernelOp kernel;
  PipePlan &plan;
  llvm::SetVector<Value> needed;
  llvm::SetVector<Operation *> control;
};

//===----------------------------------------------------------------------===//
// The consumers: everything but the piped loads, on a share of the rows
//===----------------------------------------------------------------------===//

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
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return cloneLoop(loop, builder);
    if (auto conditional = dyn_cast<scf::IfOp>(op))
      return cloneConditional(conditional, builder);
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

  SmallVector<Value> shareIndices(OpBuilder &builder, Operation *op, OperandRange indices,
                                  RankedTensorType shareType) {
    SmallVector<Value> mapped;
    for (Value index : indices)
      mapped.push_back(whole.lookupOrDefault(index));
    Value &row = mapped[mapped.size() - shareType.getRank()];
    Value offset = shareOffset(builder, op->getLoc(), shareType.getDimSize(0));
    row = arith::AddIOp::create(builder, op->getLoc(), row, offset);
    return mapped;
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

  /// Without a producer one thread of the first warpgroup starts the copy.
  void cloneOwnLoad(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
    SmallVector<Value> indices;
    for (Value index : load.getIndices())
      indices.push_back(whole.lookupOrDefault(index));
    auto elected = hop::ElectedOp::create(builder, load.getLoc(), builder.getI1Type(), warpgroup);
    auto guard = scf::IfOp::create(builder, load.getLoc(), elected.getResult(), /*withElseRegion=*/false);
    OpBuilder inner = guard.getThenBodyBuilder();
    hop::PipeLoadOp::create(inner, load.getLoc(), info.pipe, whole.lookup(load.getView()), indices);
  }

  LogicalResult cloneDirectLoad(tile::LoadOp load, OpBuilder &builder) {
    if (!rows.isPartitioned(load.getResult())) {
      cloneGeneric(load, builder);
      return success();
    }
    auto type = cast<RankedTensorType>(rows.shareOf(load.getType()));
    SmallVector<Value> indices = shareIndices(builder, load, load.getIndices(), type);
    auto clone = tile::LoadOp::create(builder, load.getLoc(), type, whole.lookup(load.getView()), indices);
    whole.map(load.getResult(), clone.getResult());
    return success();
  }

  LogicalResult cloneStore(tile::StoreOp store, OpBuilder &builder) {
    Value value = lookup(store.getValueMutable());
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<Value> indices = shareIndices(builder, store, store.getIndices(), type);
    tile::StoreOp::create(builder, store.getLoc(), value, whole.lookup(store.getView()), indices);
    return success();
  }

  LogicalResult cloneTranspose(tile::TransposeOp transpose) {
    auto found = operands.find(transpose.getSource());
    if (found == operands.end())
      return transpose.emitError("transposes a computed tile; only a loaded tile that feeds a dot can be "
                                 "transposed, by the dot's operand order");
    operands[transpose.getResult()] = {found->second.shared, !found->second.transposed};
    return success();
  }

  LogicalResult cloneDot(tile::DotOp dot, OpBuilder &builder) {
    auto b = operands.find(dot.getB());
    if (b == operands.end())
      return dot.emitError("has a computed tile as its second operand; wgmma reads it from shared memory "
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
    auto mma = hop::MmaOp::create(builder, dot.getLoc(), typeOf(dot.getResult()), left, b->second.shared,
                                  acc, transposeA, b->second.transposed);
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
      made = tile::SplatOp::create(builder, op->getLoc(), shareType, whole.lookupOrDefault(splat.getSource()));
    } else {
      auto iota = cast<tile::IotaOp>(op);
      Value start = whole.lookupOrDefault(iota.getStart());
      if (iota.getAxis() == 0)
        start = arith::AddIOp::create(
            builder, op->getLoc(), start,
            shareOffset(builder, op->getLoc(), cast<RankedTensorType>(shareType).getDimSize(0)));
      made = tile::IotaOp::create(builder, op->getLoc(), shareType, start, iota.getAxis());
    }
    share.map(result, made);
    return success();
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
    auto clone = scf::ForOp::create(builder, loop.getLoc(), whole.lookupOrDefault(loop.getLowerBound()),
                                    whole.lookupOrDefault(loop.getUpperBound()),
                                    whole.lookupOrDefault(loop.getStep()), inits,
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

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Refuses a role that would wait for a slot it holds itself: between a wait and its
/// release no more waits on the same pipe may stand than the pipe has slots.
LogicalResult checkHeldSlots(hop::RoleOp role) {
  WalkResult walk = role.walk([&](Block *block) -> WalkResult {
    DenseMap<Value, int64_t> held;
    for (Operation &op : *block) {
      if (auto release = dyn_cast<hop::PipeReleaseOp>(op))
        --held[release.getPipe()];
      auto wait = dyn_cast<hop::PipeWaitOp>(op);
      if (!wait)
        continue;
      int64_t slots = wait.getPipe().getType().getSlots();
      if (++held[wait.getPipe()] > slots)
        return wait.emitError("needs ")
               << held[wait.getPipe()] << " slots of this pipe at once, and it has " << slots
               << "; raise stages";
    }
    return success();
  });
  return failure(walk.wasInterrupted());
}

struct WarpSpecializePass : tessera::impl::WarpSpecializeBase<WarpSpecializePass> {
  void runOnOperation() override {
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<tile::KernelOp>()))
      if (failed(specialize(kernel)))
        return signalPassFailure();
  }

  LogicalResult specialize(tile::KernelOp kernel) {
    tile::ScheduleAttr schedule = kernel.getScheduleAttr();
    if (!schedule || !schedule.isComplete())
      return kernel.emitError("has no complete schedule; run tile-choose-schedule first");
    FailureOr<PipePlan> plan = planPipes(kernel);
    if (failed(plan))
      return failure();
    FailureOr<RowPartition> rows = RowPartition::get(kernel, *schedule.getConsumers());
    if (failed(rows))
      return failure();

    OpBuilder builder(kernel);
    auto target = createKernel(kernel, builder);
    IRMapping arguments;
    arguments.map(kernel.getBody().getArguments(), target.getBody().getArguments());
    builder.setInsertionPointToEnd(&target.getBody().front());
    createPipes(*plan, schedule, kernel.getLoc(), builder);

    bool specialized = *schedule.getWarpSpecialize();
    if (specialized) {
      hop::RoleOp role = createRole(hop::RoleKind::Producer, 1, schedule.getProducerRegisters(),
                                    kernel.getLoc(), builder);
      OpBuilder inner = OpBuilder::atBlockEnd(&role.getBody().front());
      if (failed(ProducerSlice(kernel, *plan).clone(inner, arguments)))
        return failure();
    }
    hop::RoleOp role = createRole(hop::RoleKind::Consumer, *schedule.getConsumers(),
                                  specialized ? schedule.getConsumerRegisters() : std::nullopt,
                                  kernel.getLoc(), builder);
    OpBuilder inner = OpBuilder::atBlockEnd(&role.getBody().front());
    ConsumerSlice consumers(kernel, *plan, *rows, role.getBody().getArgument(0), !specialized);
    if (failed(consumers.clone(inner, arguments)) || failed(checkHeldSlots(role)))
      return failure();
    kernel.erase();
    return success();
  }

  hop::KernelOp createKernel(tile::KernelOp kernel, OpBuilder &builder) {
    auto target = hop::KernelOp::create(builder, kernel.getLoc(), kernel.getSymNameAttr(),
                                        kernel.getArgumentTypesAttr(), kernel.getArgumentNamesAttr(),
                                        kernel.getGridAttr(), kernel.getRequirementsAttr(),
                                        kernel.getScheduleAttr(), /*shared_bytes=*/IntegerAttr());
    Block *body = builder.createBlock(&target.getBody());
    for (BlockArgument argument : kernel.getBody().getArguments())
      body->addArgument(argument.getType(), argument.getLoc());
    return target;
  }

  void createPipes(PipePlan &plan, tile::ScheduleAttr schedule, Location loc, OpBuilder &builder) {
    for (auto &[key, info] : plan.pipes) {
      auto type = hop::PipeType::get(builder.getContext(), info.tile,
                                     info.inLoop ? *schedule.getStages()
                                                 : *schedule.getOuterStages());
      info.pipe = hop::PipeCreateOp::create(builder, loc, type, info.label);
    }
  }

  hop::RoleOp createRole(hop::RoleKind kind, int64_t warpgroups, std::optional<int64_t> registers,
                         Location loc, OpBuilder &builder) {
    auto role = hop::RoleOp::create(builder, loc, kind, warpgroups,
                                    registers ? builder.getI64IntegerAttr(*registers) : IntegerAttr());
    role.getBody().emplaceBlock().addArgument(builder.getIndexType(), loc);
    return role;
  }
};

} // namespace
