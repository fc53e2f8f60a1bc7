//===- ResourceModel.cpp - What a kernel needs of a Hopper SM -------------===//

#include "passes/Schedule/ResourceModel.h"
#include "dialects/Hop/FragmentLayout.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/Analysis/ApartSums.h"
#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/Speculation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Bytes of a tile, elements packed.
static int64_t tileBytes(Type type) {
  auto tile = cast<RankedTensorType>(type);
  return llvm::divideCeil(tile.getNumElements() * tile.getElementTypeBitWidth(), 8);
}

bool tessera::isKeptTile(LoadOp load) {
  auto kernel = dyn_cast<KernelOp>(load->getParentOp());
  return kernel && !findSpeculation(kernel) && isSameForAll(kernel, load) &&
         llvm::none_of(load.getView().getUsers(), llvm::IsaPred<StoreOp, ScatterAddOp>);
}

int64_t PipedTile::countSlots(const StageCounts &stages, size_t &loopTiles,
                              int64_t outerStages) const {
  return inLoop ? stages.of(loopTiles++) : isKept ? 1 : outerStages;
}

SmallVector<PipedTile> tessera::pipedTiles(KernelOp kernel) {
  llvm::SetVector<Operation *> loads;
  kernel.walk([&](DotOp dot) {
    for (Value operand : {dot.getA(), dot.getB()})
      if (LoadOp load = loadedOperand(operand))
        loads.insert(load);
  });
  for (const Conversion &conversion : findConversions(kernel))
    loads.insert(conversion.load);
  SmallVector<PipedTile> tiles;
  llvm::DenseMap<Attribute, size_t> byPipe;
  kernel.walk([&](LoadOp load) {
    if (!loads.contains(load))
      return;
    Attribute pipe = load.getPipeAttr();
    auto [entry, isNew] = byPipe.try_emplace(pipe, tiles.size());
    if (!pipe || isNew) {
      entry->second = tiles.size();
      tiles.emplace_back();
    }
    PipedTile &tile = tiles[entry->second];
    tile.loads.push_back(load);
    tile.bytes = llvm::alignTo(tileBytes(load.getType()), hopper::tileAlignment);
    tile.inLoop |= load->getParentOfType<scf::ForOp>() != nullptr;
  });
  for (PipedTile &tile : tiles)
    tile.isKept = tile.loads.size() == 1 && isKeptTile(tile.loads.front());
  return tiles;
}

/// Whether a producer can load the tile in bulk ahead of time: nothing of its view is stored
/// before.
static bool canComeInBulk(LoadOp load) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  return type && hop::getSharedLayout(type) &&
         cast<ViewType>(load.getView().getType()).getRank() > 1 && !load.getBox() &&
         isMultipleOf(load.getIndices().back(),
                      8 * hop::bulkStartBytes / type.getElementTypeBitWidth()) &&
         llvm::none_of(load.getView().getUsers(), llvm::IsaPred<StoreOp>);
}

static bool isMatrix(LoadOp load) { return cast<RankedTensorType>(load.getType()).getRank() == 2; }

/// Whether every warpgroup needs all elements of the tile, of rank 1, in the same registers.
static bool isForColumns(LoadOp load) {
  return llvm::all_of(load->getUsers(), [](Operation *user) {
    auto broadcast = dyn_cast<BroadcastOp>(user);
    return broadcast && broadcast.getAxis() == 0;
  });
}

/// Whether warpgroups can take their rows of the tile into registers as those of an accumulator.
static bool isForAccumulators(LoadOp load) {
  auto type = cast<RankedTensorType>(load.getType());
  unsigned bits = type.getElementTypeBitWidth();
  return (bits == 16 || bits == 32) && type.getDimSize(0) % hopper::mmaRows == 0 &&
         !load->use_empty() && llvm::all_of(load->getUses(), [](OpOperand &use) {
           Operation *user = use.getOwner();
           bool begins = isa<DotOp>(user) && use.getOperandNumber() == 2;
           return begins || user->hasTrait<OpTrait::Elementwise>() ||
                  isa<ReduceOp, ReduceAllOp, scf::ForOp, scf::YieldOp>(user);
         });
}

SmallVector<LoadOp> tessera::fetchedLoads(KernelOp kernel) {
  auto multiplies = [](scf::ForOp loop) {
    return loop.getBody()->walk([](DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
  };
  SmallVector<LoadOp> possible;
  llvm::DenseSet<Operation *> converted;
  for (const Conversion &conversion : findConversions(kernel))
    converted.insert(conversion.load);
  llvm::DenseSet<std::pair<Value, Type>> matrices;
  kernel.walk([&](LoadOp load) {
    if (converted.contains(load) || !canComeInBulk(load))
      return;
    auto loop = load->getParentOfType<scf::ForOp>();
    bool isInLoop = loop && multiplies(loop);
    if (isMatrix(load) ? !isForAccumulators(load) : !isInLoop || !isForColumns(load))
      return;
    if (isInLoop && isMatrix(load))
      matrices.insert({load.getView(), load.getType()});
    possible.push_back(load);
  });
  llvm::erase_if(possible, [&](LoadOp load) {
    return isMatrix(load) && !matrices.contains({load.getView(), load.getType()});
  });
  return possible;
}

/// The first load of each pipe of what arithmetic reads.
static SmallVector<LoadOp> fetchedPipes(KernelOp kernel) {
  llvm::SmallDenseSet<Attribute> pipes;
  SmallVector<LoadOp> loads = fetchedLoads(kernel);
  llvm::erase_if(loads, [&](LoadOp load) {
    return load.getPipeAttr() && !pipes.insert(load.getPipeAttr()).second;
  });
  return loads;
}

size_t tessera::countFetchedMatrices(KernelOp kernel) {
  return llvm::count_if(fetchedPipes(kernel), isMatrix);
}

/// Adds the slots of the pipes of what arithmetic reads, behind `loopTiles` others of loops.
static void addFetched(KernelOp kernel, const StageCounts &stages, size_t loopTiles,
                       SharedMemoryUse &use) {
  for (LoadOp load : fetchedPipes(kernel)) {
    int64_t slots = stages.of(isMatrix(load) ? loopTiles++ : 0);
    use.tiles +=
        slots * llvm::alignTo(tileBytes(load.getType()),
                              isMatrix(load) ? hopper::tileAlignment : hopper::bulkAlignment);
    use.barriers += slots * 2 * hopper::mbarrierBytes;
  }
}

SmallVector<StoredTile> tessera::storedTiles(KernelOp kernel) {
  SmallVector<StoredTile> tiles;
  kernel.walk([&](StoreOp store) {
    if (!leavesInBulk(store.getValue().getType()))
      return;
    auto type = cast<RankedTensorType>(store.getValue().getType());
    auto known = llvm::find_if(tiles, [&](StoredTile &tile) {
      return tile.type == type && tile.stores.front().getView() == store.getView();
    });
    if (known == tiles.end())
      tiles.push_back({{store}, type});
    else
      known->stores.push_back(store);
  });
  return tiles;
}

/// What a role that makes sums gets and hands on: a pipe for the operands of those that are added
/// to one view, and room for their parts where they leave in bulk.
static void addSums(KernelOp kernel, StoreKind store, SharedMemoryUse &use) {
  llvm::SetVector<std::pair<Value, Type>> operands;
  // Parts of one type that a block adds to one view: an even number takes turns at two places.
  llvm::MapVector<std::pair<Value, Type>, llvm::SmallDenseMap<Block *, int64_t>> parts;
  for (ApartSum &sum : findApartSums(kernel)) {
    operands.insert({sum.store.getView(), sum.operand->getResult(0).getType()});
    SumParts own = partsOf(sum);
    parts[{sum.store.getView(), own.tile}][sum.store->getBlock()] += own.count;
  }
  for (auto &[place, counts] : parts)
    if (store == StoreKind::tma)
      use.staging +=
          (llvm::any_of(counts, [](auto &count) { return count.second % 2 == 0; }) ? 2 : 1) *
          llvm::alignTo(tileBytes(place.second), hopper::tileAlignment);
  for (auto [view, type] : operands) {
    use.operands += slotsOfSums * llvm::alignTo(tileBytes(type), hopper::tileAlignment);
    use.barriers += slotsOfSums * 2 * hopper::mbarrierBytes;
  }
}

/// What stores take that leave in bulk: places of their own, or slots of a writer.
static void addStores(KernelOp kernel, int64_t outerStages, const ScheduleFields &fields,
                      SharedMemoryUse &use) {
  auto bytesOf = [](Type tile) {
    return llvm::alignTo(tileBytes(cast<RankedTensorType>(tile)), hopper::tileAlignment);
  };
  if (fields.store == StoreKind::writer) {
    for (const StoredTile &tile : storedTiles(kernel)) {
      use.staging += outerStages * bytesOf(tile.type);
      use.barriers += outerStages * 2 * hopper::mbarrierBytes;
    }
  } else if (fields.store == StoreKind::tma && fields.staging != StagingKind::shared) {
    kernel.walk([&](StoreOp store) {
      Type type = store.getValue().getType();
      if (leavesInBulk(type))
        use.staging += bytesOf(type);
    });
  }
}

/// What thread blocks keep of the tiles that they walk over, in slots of one value.
static void addWalk(KernelOp kernel, const ScheduleFields &fields, SharedMemoryUse &use) {
  if (findSpeculation(kernel))
    use.retries = 4 * (kRetryTiles + 2) + hopper::mbarrierBytes;
  if (fields.persistent == PersistentKind::Dynamic)
    use.numbers = slotsOfNumbers * (sizeof(int32_t) + 2 * hopper::mbarrierBytes);
  // Values lie before the rows that bulk copies fill, which start at a multiple of more bytes.
  auto isRow = [](LoadOp load) { return !isMatrix(load); };
  if ((use.retries || use.numbers) && fields.loads == LoadKind::pipe &&
      llvm::any_of(fetchedPipes(kernel), isRow))
    use.tiles += hopper::bulkAlignment - hopper::mbarrierBytes;
}

SharedMemoryUse tessera::sharedMemoryUse(KernelOp kernel, const StageCounts &stages,
                                         int64_t outerStages, const ScheduleFields &fields) {
  SharedMemoryUse use;
  size_t loopTiles = 0;
  for (const PipedTile &tile : pipedTiles(kernel)) {
    int64_t slots = tile.countSlots(stages, loopTiles, outerStages);
    use.tiles += slots * tile.bytes;
    use.barriers += slots * 2 * hopper::mbarrierBytes;
  }
  if (fields.loads == LoadKind::pipe)
    addFetched(kernel, stages, loopTiles, use);
  if (fields.placement == PlacementKind::apart)
    addSums(kernel, *fields.store, use);
  else
    addStores(kernel, outerStages, fields, use);
  addWalk(kernel, fields, use);
  return use;
}

/// The slots that tiles of `part` take in a pipe of `tile`, one for each of `consumers`
/// warpgroups; 0 when a slot has no room for one.
static int64_t slotsToLend(RankedTensorType tile, RankedTensorType part, int64_t consumers) {
  std::optional<hop::SharedLayout> slot = hop::getSharedLayout(tile),
                                   layout = hop::getSharedLayout(part);
  return slot && layout ? hop::slotsForTiles(*slot, *layout, consumers) : 0;
}

std::optional<std::string> tessera::whyNoSlotsToLend(KernelOp kernel, const StageCounts &stages,
                                                     int64_t outerStages, int64_t consumers) {
  std::optional<std::string> refusal;
  kernel.walk([&](StoreOp store) {
    if (!leavesInBulk(store.getValue().getType()))
      return;
    auto tile = cast<RankedTensorType>(store.getValue().getType());
    auto part = RankedTensorType::get({tile.getDimSize(0) / consumers, tile.getDimSize(1)},
                                      tile.getElementType());
    size_t loopTiles = 0;
    int64_t fewest = 0;
    for (const PipedTile &piped : pipedTiles(kernel)) {
      int64_t slots = piped.countSlots(stages, loopTiles, outerStages);
      LoadOp load = piped.loads.front();
      int64_t needed = slotsToLend(cast<RankedTensorType>(load.getType()), part, consumers);
      if (needed && needed <= slots)
        return;
      fewest = needed && fewest ? std::min(needed, fewest) : std::max(needed, fewest);
    }
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "staging = shared takes slots that have room for " << part << " of each warpgroup, ";
    if (fewest)
      os << fewest << " of a pipe; use more stages or staging = own";
    else
      os << "and no tile that is loaded for a dot has; use staging = own";
    refusal = text;
  });
  return refusal;
}

SmallVector<LoadOp> tessera::loadsToTranspose(KernelOp kernel) {
  llvm::SetVector<LoadOp> loads;
  kernel.walk([&](DotOp dot) {
    LoadOp load = loadedOperand(dot.getB());
    if (load && dot.getB() == load.getResult() && !loadedOperand(dot.getA()) &&
        isByteFloat(cast<RankedTensorType>(load.getType()).getElementType()))
      loads.insert(load);
  });
  return loads.takeVector();
}

bool tessera::sharesTransposer(const ScheduleFields &fields) {
  constexpr int64_t ofWarpgroup = hopper::warpgroupThreads / hopper::warpThreads;
  return fields.transpose == TransposeKind::apart && *fields.transposerWarps < ofWarpgroup;
}

int64_t tessera::transposedBytes(KernelOp kernel, int64_t consumers, TransposeKind transpose) {
  bool isApart = transpose == TransposeKind::apart;
  llvm::MapVector<std::pair<Attribute, Type>, int64_t> tiles;
  for (LoadOp load : loadsToTranspose(kernel))
    tiles[{isApart ? load.getPipeAttr() : Attribute(), load.getType()}] = tileBytes(load.getType());
  int64_t bytes = 0;
  for (auto &[key, size] : tiles)
    bytes += isApart ? slotsOfTransposed *
                           (llvm::alignTo(size, hopper::tileAlignment) + 2 * hopper::mbarrierBytes)
                     : llvm::alignTo(consumers * size, hopper::tileAlignment);
  return bytes;
}

int64_t tessera::convertedBytes(KernelOp kernel) {
  // Copies of a load share its pipe, and what is made of them one behind it.
  llvm::MapVector<std::pair<Attribute, Type>, llvm::SmallDenseMap<Operation *, int64_t>> counts;
  for (Conversion &conversion : findConversions(kernel))
    ++counts[{conversion.load.getPipeAttr(), conversion.getTile().getType()}][conversion.load];
  int64_t bytes = 0;
  for (auto &[key, ofLoads] : counts)
    bytes +=
        llvm::max_element(ofLoads, llvm::less_second())->second * slotsOfConverted *
        (llvm::alignTo(tileBytes(key.second), hopper::tileAlignment) + 2 * hopper::mbarrierBytes);
  return bytes;
}

/// The computed operands of the dots of `kernel` that are in shared memory.
static SmallVector<OpOperand *> findStagedOperands(KernelOp kernel, OperandKind operands,
                                                   const DenseSet<Operation *> &apart) {
  SmallVector<OpOperand *> reads;
  kernel.walk([&](DotOp dot) {
    if (!apart.contains(dot) && !loadedOperand(dot.getA()) &&
        (operands == OperandKind::shared || computedTranspose(dot.getA())))
      reads.push_back(&dot.getAMutable());
  });
  return reads;
}

ComputedOperands tessera::computedOperands(KernelOp kernel, OperandKind kind,
                                           PlacementKind placement) {
  OperandBuffers buffers(findStagedOperands(kernel, kind, apartOperations(kernel, placement)));
  ComputedOperands operands;
  if (buffers.getTiles().empty())
    operands.refusal = "no dot of the kernel multiplies a computed tile";
  else if (buffers.getConflict())
    operands.refusal = "a computed tile is made while the one before it is still to be multiplied";
  for (RankedTensorType tile : buffers.getTypes()) {
    if (isByteFloat(tile.getElementType()))
      operands.refusal = "a computed tile of 8-bit elements is multiplied from registers";
    operands.bytes += llvm::alignTo(tileBytes(tile), hopper::tileAlignment);
  }
  return operands;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

RegisterSplit tessera::registerSplit(int64_t consumers, bool warpSpecialize,
                                     const CostModel &model) {
  if (!warpSpecialize)
    return {0, hop::entryRegisters(consumers)};
  return model.registers[consumers - 1];
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
                   DenseSet<Operation *> elsewhere)
      : consumers(consumers), inSharedMemory(std::move(inSharedMemory)),
        elsewhere(std::move(elsewhere)) {}
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
    bool isPiped = isa_and_nonnull<LoadOp, TransposeOp>(op) && loadedOperand(part) &&
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

int64_t RegisterPressure::registersOf(Value value) const {
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
    addRoots(dot.getB(), during);
    during.insert(dot.getResult());
    peakSoFar = std::max(peakSoFar, registersOf(during));
  }
  for (Value operand : op.getOperands())
    addRoots(operand, live);

  // A thread adds its elements to a reduction as it makes them: those that nothing reads after it
  // are never there all at once.
  if (isa<ReduceOp, ReduceAllOp>(op)) {
    peakSoFar = std::max(peakSoFar, registersOf(after));
    return false;
  }
  // Without a producer a thread loads elements where it works on them.
  bool isLoadedAsUsed = layout && loadsFromView(&op);
  return dot || (!op.hasTrait<OpTrait::Elementwise>() && !isa<BroadcastOp>(op) && !isLoadedAsUsed &&
                 !followsFromScalars(&op));
}

int64_t RegisterPressure::peak(Block &block, ValueSet live) {
  int64_t highest = 0;
  for (Operation &op : llvm::reverse(block)) {
    if (elsewhere.contains(&op))
      continue;
    int64_t after = registersOf(live);
    if (step(op, live, highest))
      highest = std::max({highest, after, registersOf(live)});
  }
  return highest;
}

int64_t tessera::consumerRegisters(KernelOp kernel, int64_t consumers, bool warpSpecialize,
                                   OperandKind operands, PlacementKind placement,
                                   const CostModel &model) {
  int64_t loading = warpSpecialize ? 0 : model.loadingRegisters;
  DenseSet<Value> inSharedMemory;
  DenseSet<Operation *> elsewhere = apartOperations(kernel, placement);
  OperandBuffers buffers(findStagedOperands(kernel, operands, elsewhere));
  for (const Conversion &conversion : findConversions(kernel)) {
    elsewhere.insert_range(conversion.operations);
    inSharedMemory.insert(conversion.getTile());
    for (Operation *user : conversion.getTile().getUsers())
      if (isa<TransposeOp>(user))
        inSharedMemory.insert(user->getResult(0));
  }
  for (const OperandBuffers::Tile &tile : buffers.getTiles())
    if (!tile.isReadElsewhere)
      inSharedMemory.insert(tile.values.begin(), tile.values.end());
  RegisterPressure pressure(consumers, std::move(inSharedMemory), std::move(elsewhere));
  return model.fixedRegisters + loading + pressure.peak(kernel.getBody().front(), {});
}

int64_t tessera::reducerRegisters(KernelOp kernel, const CostModel &model) {
  int64_t most = 0;
  for (const ApartSum &sum : findApartSums(kernel))
    most = std::max(most, partsOf(sum).tile.getNumElements() / hopper::warpgroupThreads);
  return llvm::alignTo(most + model.besideSums, hopper::roleRegisterStep);
}

int64_t tessera::directRegisters(KernelOp kernel, hop::LayoutAttr layout, const VectorAxes &axes,
                                 const CostModel &model) {
  RegisterPressure pressure(layout, axes);
  return model.fixedRegisters + pressure.peak(kernel.getBody().front(), {});
}

int64_t tessera::widestDotRegisters(KernelOp kernel, const CostModel &model) {
  int64_t widest = 0;
  kernel->walk([&](DotOp dot) {
    int64_t columns = std::min<int64_t>(cast<RankedTensorType>(dot.getType()).getDimSize(1),
                                        hopper::mostMmaColumns);
    widest = std::max(widest, columns * hopper::mmaRows / hopper::warpgroupThreads);
  });
  return widest ? widest + model.besideAccumulators : 0;
}
