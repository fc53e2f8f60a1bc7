//===- RegisterModel.cpp - What a kernel needs of the registers -----------===//

#include "passes/Schedule/RegisterModel.h"
#include "dialects/Hop/FragmentLayout.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/PtxasRegisters.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/Schedule/ResourceModel.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

RegisterSplit tessera::registerSplit(int64_t consumers, bool warpSpecialize,
                                     const CostModel &model) {
  if (!warpSpecialize)
    return {0, hop::entryRegisters(consumers)};
  return {model.producerRegisters[consumers - 1], model.consumerRegisters[consumers - 1]};
}

int64_t tessera::usableRegisters(int64_t budget, const CostModel &model) {
  return std::min(budget - budget / model.registersPerSpare, hopper::mostThreadRegisters);
}

namespace {
using ValueSet = llvm::SetVector<Value>;

/// Liveness of the tiles of a kernel, in registers per consumer thread.
class RegisterPressure {
public:
  RegisterPressure(int64_t consumers, DenseSet<Value> inSharedMemory,
                   DenseSet<Operation *> elsewhere, WorkKind work)
      : consumers(consumers), byElements(work == WorkKind::elements),
        inSharedMemory(std::move(inSharedMemory)), elsewhere(std::move(elsewhere)) {}
  /// Of tiles of one layout, that of no product.
  RegisterPressure(hop::LayoutAttr layout, const VectorAxes &axes)
      : consumers(1), layout(layout), axes(&axes) {}

  /// The peak inside `block`, given what lives after its terminator.
  int64_t peak(Block &block, ValueSet live);

private:
  int64_t elementsOf(Value value) const;
  int64_t registersOf(Value value) const;
  int64_t registersOf(const ValueSet &live) const;
  bool isColumnSlice(Value value) const;
  void addRoots(Value value, ValueSet &live) const;
  bool step(Operation &op, ValueSet &live, int64_t &peakSoFar);
  int64_t peakInRegions(Operation &op, const ValueSet &across);

  int64_t consumers;
  bool byElements = false;
  DenseSet<Value> inSharedMemory;
  DenseSet<Operation *> elsewhere; ///< of another role
  hop::LayoutAttr layout;
  const VectorAxes *axes = nullptr;
};
} // namespace

/// True for tiles that are recomputed from scalars wherever they are used:
/// constants, splats, iotas and integer arithmetic and comparisons on them.
static bool followsFromScalars(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<SplatOp, IotaOp>(op))
    return true;
  auto isInteger = [](Type type) { return getElementTypeOrSelf(type).isIntOrIndex(); };
  return isPure(op) && op->getNumRegions() == 0 && op->getNumResults() == 1 &&
         llvm::all_of(op->getOperandTypes(), isInteger) && isInteger(op->getResult(0).getType());
}

/// Adds to `live` the tiles in registers from which `value` is made: a
/// broadcast is a way to read its source, a mask its operands.
void RegisterPressure::addRoots(Value value, ValueSet &live) const {
  ValueSet parts;
  parts.insert(value);
  for (size_t i = 0; i < parts.size(); ++i) {
    Value part = parts[i];
    if (!isa<RankedTensorType>(part.getType()))
      continue;
    Operation *op = part.getDefiningOp();
    bool isPiped = isa_and_nonnull<LoadOpInterface, TransposeOp>(op) && loadedOperand(part) &&
                   llvm::any_of(op->getUsers(), llvm::IsaPred<DotOp, TransposeOp>);
    if (op && (isa<BroadcastOp>(op) || followsFromScalars(op)))
      parts.insert(op->operand_begin(), op->operand_end());
    else if (!isPiped && !inSharedMemory.contains(part))
      live.insert(part);
  }
}

/// True for a rank-1 tile with an element per column of the tiles it goes
/// with, found by following elementwise operations to a reduction or broadcast.
bool RegisterPressure::isColumnSlice(Value value) const {
  llvm::SetVector<Value> related;
  related.insert(value);
  for (size_t i = 0; i < related.size(); ++i) {
    Value current = related[i];
    Operation *def = current.getDefiningOp();
    if (auto reduce = dyn_cast_or_null<ReduceOp>(def)) {
      if (reduce.getAxis() == 0)
        return true;
      continue;
    }
    for (Operation *user : current.getUsers()) {
      if (auto broadcast = dyn_cast<BroadcastOp>(user)) {
        if (broadcast.getAxis() == 0)
          return true;
      } else if (user->hasTrait<OpTrait::Elementwise>()) {
        related.insert(user->result_begin(), user->result_end());
      }
    }
    if (def && def->hasTrait<OpTrait::Elementwise>())
      for (Value operand : def->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          related.insert(operand);
  }
  return false;
}

/// Whether each warpgroup has a part of every element of `value`: a dot made it that contracts
/// divided rows.
static bool isPartialSum(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument == loop.getInductionVar())
      return false;
    value = loop.getYieldedValues()[argument.getArgNumber() - loop.getNumInductionVars()];
  }
  while (auto loop = value.getDefiningOp<scf::ForOp>())
    value = loop.getYieldedValues()[cast<OpResult>(value).getResultNumber()];
  auto dot = value.getDefiningOp<DotOp>();
  return dot && computedTranspose(dot.getA());
}

/// Elements of `value` that a thread holds.
int64_t RegisterPressure::elementsOf(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  if (layout && type.getRank() != 0) {
    hop::LayoutAttr own = type.getRank() == 2 ? layout : layout.getSlice(axes->lookup(value));
    return hop::FragmentLayout(hop::withLayout(type, own)).size();
  }
  if (type.getRank() == 2)
    return llvm::divideCeil(type.getNumElements(),
                            (isPartialSum(value) ? 1 : consumers) * hopper::warpgroupThreads);
  if (isColumnSlice(value))
    return llvm::divideCeil(type.getNumElements(), hopper::lanesPerRow);
  return 2 * llvm::divideCeil(type.getNumElements(), consumers * hopper::mmaRows);
}

/// Whether `value` is what tile.masked_max makes, on its way through a loop. Iterations without a
/// mask do not touch it, and ptxas finds room for it in others: tiles of 256x64 of packed sequences
/// have 108 registers of 109 by this model without it, and fit the same 112 with it.
static bool isMaskedMax(Value value) {
  if (isa<BlockArgument>(value))
    return !value.use_empty() && llvm::all_of(value.getUsers(), llvm::IsaPred<MaskedMaxOp>);
  return isa<MaskedMaxOp>(value.getDefiningOp());
}

int64_t RegisterPressure::registersOf(Value value) const {
  if (isMaskedMax(value))
    return 0;
  auto type = cast<RankedTensorType>(value.getType());
  unsigned bits = type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth();
  return llvm::divideCeil(elementsOf(value) * bits, 32);
}

int64_t RegisterPressure::registersOf(const ValueSet &live) const {
  int64_t sum = 0;
  for (Value value : live)
    sum += registersOf(value);
  return sum;
}

/// The peak in the regions of `op` while `across` lives through it.
int64_t RegisterPressure::peakInRegions(Operation &op, const ValueSet &across) {
  int64_t highest = 0;
  for (Region &region : op.getRegions())
    for (Block &block : region)
      highest = std::max(highest, peak(block, across));
  return highest;
}

/// Turns `live` after `op` into `live` before it. Returns true when elementwise
/// work, which runs element by element in the registers of its operands, cannot
/// be going on across `op`, so that the sums count there.
bool RegisterPressure::step(Operation &op, ValueSet &live, int64_t &peakSoFar) {
  ValueSet after = live;
  for (Value result : op.getResults())
    live.remove(result);
  if (op.getNumRegions() != 0) {
    ValueSet captured;
    getUsedValuesDefinedAbove(op.getRegions(), captured);
    // A loop reads what it captures in every iteration, a branch until its last use.
    if (isa<LoopLikeOpInterface>(op))
      for (Value value : captured)
        addRoots(value, live);
    peakSoFar = std::max(peakSoFar, peakInRegions(op, live));
    for (Value value : captured)
      addRoots(value, live);
  }
  auto dot = dyn_cast<DotOp>(op);
  // The operands stay in place until the accumulator is complete, and the accumulator is updated in
  // place unless it lives on. What it is made of is written there before.
  if (dot) {
    ValueSet during = live;
    addRoots(dot.getA(), during);
    if (!computedB(dot))
      addRoots(dot.getB(), during);
    during.insert(dot.getResult());
    peakSoFar = std::max(peakSoFar, registersOf(during));
  }
  // The numbers of rows that a pipe brings are in the registers of the role that fills it.
  auto gather = dyn_cast<GatherOp>(op);
  if (!gather || !isLoadedForDots(gather))
    for (Value operand : op.getOperands())
      addRoots(operand, live);

  // A thread adds its elements to a reduction as it makes them: those that nothing reads after it
  // are never there all at once. Work by elements goes on with those of a sum one by one; what
  // needs a maximum waits for all.
  if (isa<ReduceOp, ReduceAllOp, MaskedMaxOp>(op)) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!byElements || !reduce || reduce.getKind() != ReduceKind::sum)
      peakSoFar = std::max(peakSoFar, registersOf(after));
    return false;
  }
  // What has to do with scalars alone, as a load of a slope, may stand anywhere.
  auto isTile = [](Type type) { return isa<RankedTensorType>(type); };
  if (op.getNumRegions() == 0 && llvm::none_of(op.getOperandTypes(), isTile) &&
      llvm::none_of(op.getResultTypes(), isTile))
    return false;
  // Without a producer a thread loads elements where it works on them.
  bool isLoadedAsUsed = (layout || byElements) && loadsFromView(&op);
  if (byElements && isa<ScatterAddOp>(op))
    return false;
  return dot || (!op.hasTrait<OpTrait::Elementwise>() && !isa<BroadcastOp>(op) && !isLoadedAsUsed &&
                 !followsFromScalars(&op));
}

int64_t RegisterPressure::peak(Block &block, ValueSet live) {
  int64_t highest = 0;
  for (Operation &op : llvm::reverse(block)) {
    if (elsewhere.contains(&op)) {
      // What another role hands over is there from here on.
      for (Value result : op.getResults())
        live.remove(result);
      continue;
    }
    int64_t after = registersOf(live);
    if (step(op, live, highest))
      highest = std::max({highest, after, registersOf(live)});
  }
  return highest;
}

/// Adds what a converter does, and the tiles that it makes.
static void leaveToConverter(KernelOp kernel, DenseSet<Value> &inSharedMemory,
                             DenseSet<Operation *> &elsewhere) {
  elsewhere.insert_range(conversionOperations(kernel));
  for (const Conversion &conversion : findConversions(kernel)) {
    inSharedMemory.insert(conversion.getTile());
    for (Operation *user : conversion.getTile().getUsers())
      if (isa<TransposeOp>(user))
        inSharedMemory.insert(user->getResult(0));
  }
}

int64_t tessera::consumerRegisters(KernelOp kernel, int64_t consumers, bool warpSpecialize,
                                   PlacementKind placement, WorkKind work, const CostModel &model) {
  int64_t loading = warpSpecialize ? 0 : model.loadingRegisters;
  DenseSet<Value> inSharedMemory;
  DenseSet<Operation *> elsewhere = reducerOperations(kernel, placement);
  OperandBuffers buffers(stagedOperands(kernel, elsewhere));
  leaveToConverter(kernel, inSharedMemory, elsewhere);
  for (const OperandBuffers &each : {buffers, OperandBuffers(computedBs(kernel))})
    for (const OperandBuffers::Tile &tile : each.getTiles())
      if (!tile.isReadElsewhere)
        inSharedMemory.insert(tile.values.begin(), tile.values.end());
  RegisterPressure pressure(consumers, std::move(inSharedMemory), std::move(elsewhere), work);
  return model.fixedRegisters + loading + pressure.peak(kernel.getBody().front(), {});
}

NumberList tessera::dividedRegisters(KernelOp kernel, const DotDivision &division, WorkKind work,
                                     const CostModel &model) {
  SmallVector<int64_t> needed;
  for (unsigned consumer = 0; consumer < division.getConsumers(); ++consumer) {
    DenseSet<Value> notInRegisters;
    DenseSet<Operation *> elsewhere;
    leaveToConverter(kernel, notInRegisters, elsewhere);
    auto add = [&](Value value) {
      Operation *op = value.getDefiningOp();
      bool isFromOther = op && division.has(consumer, value) && !division.runs(consumer, op) &&
                         op->getNumRegions() == 0;
      if (!division.has(consumer, value) ||
          (isFromOther && !division.takesIntoRegisters(consumer, op)))
        notInRegisters.insert(value);
    };
    kernel.walk([&](Operation *op) {
      if (op != kernel && op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
          !division.runs(consumer, op))
        elsewhere.insert(op);
      llvm::for_each(op->getResults(), add);
      for (Region &region : op->getRegions())
        llvm::for_each(region.getArguments(), add);
    });
    RegisterPressure pressure(/*consumers=*/1, std::move(notInRegisters), std::move(elsewhere),
                              work);
    needed.push_back(model.fixedRegisters + pressure.peak(kernel.getBody().front(), {}));
  }
  return *NumberList::get(needed);
}

int64_t tessera::reducerRegisters(ArrayRef<ReducerSum> sums, const ScheduleFields &fields) {
  int64_t most = 0;
  for (const ReducerSum &sum : sums)
    most = std::max(most, partsOf(sum, fields).tile.getNumElements() / hopper::warpgroupThreads);
  return llvm::alignTo(most + kBesideSums, hopper::roleRegisterStep);
}

int64_t tessera::gatheringRegisters(KernelOp kernel, const CostModel &model) {
  int64_t rows = 0;
  for (GatherOp gather : pipedGathers(kernel))
    rows = std::max(rows, cast<RankedTensorType>(gather.getType()).getDimSize(0));
  return llvm::alignTo(model.gatheringRegisters +
                           llvm::divideCeil(rows, 16) * model.gatheringRegistersOf16Rows,
                       hopper::roleRegisterStep);
}

int64_t tessera::directRegisters(KernelOp kernel, hop::LayoutAttr layout, const VectorAxes &axes,
                                 const CostModel &model) {
  RegisterPressure pressure(layout, axes);
  return model.fixedRegisters + pressure.peak(kernel.getBody().front(), {});
}

int64_t tessera::widestDotRegisters(KernelOp kernel) {
  int64_t widest = 0;
  kernel->walk([&](DotOp dot) {
    int64_t columns = std::min<int64_t>(cast<RankedTensorType>(dot.getType()).getDimSize(1),
                                        hopper::mostMmaColumns);
    widest = std::max(widest, columns * hopper::mmaRows / hopper::warpgroupThreads);
  });
  return widest ? widest + kBesideAccumulators : 0;
}
