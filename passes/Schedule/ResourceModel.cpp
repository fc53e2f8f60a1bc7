//===- ResourceModel.cpp - What a kernel needs of shared memory -----------===//

#include "passes/Schedule/ResourceModel.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Analysis/WidenedOperands.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

int64_t tessera::tileBytes(Type type) {
  auto tile = cast<RankedTensorType>(type);
  if (tile.getEncoding())
    if (std::optional<hop::SharedLayout> layout = hop::getSharedLayout(tile))
      return layout->bytes();
  return llvm::divideCeil(tile.getNumElements() * tile.getElementTypeBitWidth(), 8);
}

bool tessera::isKeptTile(LoadOpInterface load) {
  auto kernel = dyn_cast<KernelOp>(load->getParentOp());
  return kernel && isa<LoadOp>(load) && !findSpeculation(kernel) && isSameForAll(kernel, load) &&
         llvm::none_of(load.getView().getUsers(), storesToView);
}

SmallVector<PipedTile> tessera::pipedTiles(KernelOp kernel) {
  llvm::SetVector<Operation *> loads;
  kernel.walk([&](DotOp dot) {
    for (Value operand : {dot.getA(), dot.getB()})
      if (LoadOpInterface load = loadedOperand(operand))
        loads.insert(load);
    if (LoadOpInterface load = widenedLoad(dot.getA()))
      loads.insert(load);
  });
  for (const Conversion &conversion : findConversions(kernel))
    loads.insert(conversion.load);
  SmallVector<PipedTile> tiles;
  llvm::DenseMap<Attribute, size_t> byPipe;
  kernel.walk([&](LoadOpInterface load) {
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
    tile.bytes = llvm::alignTo(tileBytes(pipedType(load)), hopper::tileAlignment);
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
  return type && hop::getSharedLayout(type) && !load.getBox() &&
         isMultipleOf(load.getIndices().back(),
                      8 * hop::bulkStartBytes / type.getElementTypeBitWidth()) &&
         llvm::none_of(load.getView().getUsers(), storesToView);
}

static bool isMatrix(LoadOp load) { return cast<RankedTensorType>(load.getType()).getRank() == 2; }

/// Whether every warpgroup needs all elements of `tile`, of rank 1, in the same registers: it is
/// only repeated for the columns of tiles, as it is or element by element.
static bool isForColumns(Value tile) {
  return llvm::all_of(tile.getUsers(), [](Operation *user) {
    if (auto broadcast = dyn_cast<BroadcastOp>(user))
      return broadcast.getAxis() == 0;
    return OpTrait::hasElementwiseMappableTraits(user) && user->getNumResults() == 1 &&
           isForColumns(user->getResult(0));
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
    if (isMatrix(load) ? !isForAccumulators(load) : !isInLoop || !isForColumns(load.getResult()))
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

/// Adds the slots of the pipes of what arithmetic reads, behind those that `counter` has counted.
static void addFetched(KernelOp kernel, SlotCounter counter, SharedMemoryUse &use) {
  for (LoadOp load : fetchedPipes(kernel)) {
    int64_t slots = isMatrix(load) ? counter.nextInLoop() : counter.ofRows();
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
static void addSums(KernelOp kernel, const ScheduleFields &fields, SharedMemoryUse &use) {
  StoreKind store = *fields.store;
  bool exchanged = exchangesSums(fields);
  llvm::SetVector<std::pair<Value, Type>> operands;
  // Parts of one type that a block adds to one view: an even number takes turns at two places.
  llvm::MapVector<std::pair<Value, Type>, llvm::SmallDenseMap<Block *, int64_t>> parts;
  int64_t ofWriter = 0;
  SmallVector<ReducerSum> sums = findReducerSums(kernel);
  if (hasTicketPasser(sums, fields))
    use.barriers += slotsOfPasses * (sizeof(int32_t) + 2 * hopper::mbarrierBytes);
  for (ReducerSum &sum : sums) {
    operands.insert({sum.store.getView(), sum.operand->getResult(0).getType()});
    SumParts own = partsOf(sum, fields);
    parts[{sum.store.getView(), own.stored}][sum.store->getBlock()] += own.stores();
    ofWriter = std::max(ofWriter, slotsForWriter(sum, fields));
  }
  for (auto &[place, counts] : parts) {
    int64_t places = store == StoreKind::writer ? ofWriter : 0;
    if (store == StoreKind::tma)
      for (auto &[block, count] : counts)
        places = std::max(places, placesOfSums(count, exchanged));
    use.staging += places * llvm::alignTo(tileBytes(place.second), hopper::tileAlignment);
    if (store == StoreKind::writer)
      use.barriers += places * 2 * hopper::mbarrierBytes;
  }
  for (auto [view, type] : operands) {
    int64_t slots = exchanged ? slotsOfExchanged : slotsOfSums;
    int64_t bytes = tileBytes(type) * (exchanged ? exchangingBlocks : 1);
    use.operands += slots * llvm::alignTo(bytes, hopper::tileAlignment);
    use.barriers += slots * 2 * hopper::mbarrierBytes;
  }
}

/// What a block loads beside `tile` in halves: that of the other block's, and its own where the
/// tile has none. Adds what a slot of each takes.
static void addHalves(const PipedTile &tile, int64_t slots, ArrayRef<ReducerSum> exchanged,
                      SharedMemoryUse &use) {
  for (const ReducerSum &sum : exchanged)
    if (llvm::is_contained(tile.loads, loadedOperand(DotOp(sum.dot).getB()))) {
      int64_t halves = slots * (loadsOwnHalf(sum) ? 2 : 1);
      use.tiles += halves * llvm::alignTo(tileBytes(theirHalf(sum)), hopper::tileAlignment);
      use.barriers += halves * 2 * hopper::mbarrierBytes;
      return;
    }
}

/// What stores take that leave in bulk: places of their own, or slots of a writer.
static void addStores(KernelOp kernel, int64_t slots, const ScheduleFields &fields,
                      SharedMemoryUse &use) {
  auto bytesOf = [](Type tile) {
    return llvm::alignTo(tileBytes(cast<RankedTensorType>(tile)), hopper::tileAlignment);
  };
  if (fields.store == StoreKind::writer) {
    for (const StoredTile &tile : storedTiles(kernel)) {
      use.staging += slots * bytesOf(tile.type);
      use.barriers += slots * 2 * hopper::mbarrierBytes;
    }
  } else if (fields.store == StoreKind::tma) {
    kernel.walk([&](StoreOp store) {
      Type type = store.getValue().getType();
      if (leavesInBulk(type))
        use.staging += bytesOf(type);
    });
  }
}

/// What thread blocks keep of the tiles that they walk over, in slots of one value.
static void addWalk(KernelOp kernel, const ScheduleFields &fields, SharedMemoryUse &use) {
  if (findSpeculation(kernel)) {
    int64_t listed = fields.persistent == PersistentKind::None ? 0 : kRetryTiles;
    // Whether the list has entries, in two phases; the verdict on probes, and where it is met for.
    int64_t verdicts = fields.persistent == PersistentKind::Dynamic ? 1 : 0;
    use.retries = llvm::alignTo(4 * (listed + 2 + verdicts), hopper::mbarrierBytes) +
                  (1 + verdicts) * hopper::mbarrierBytes;
  }
  constexpr int64_t bytesOfValue = sizeof(int32_t) + 2 * hopper::mbarrierBytes;
  if (fields.persistent == PersistentKind::Dynamic)
    use.numbers = slotsOfNumbers * bytesOfValue;
  use.bounds = slotsOfBounds * countWords(boundsOfFinder(kernel, fields)) * bytesOfValue;
  // Values lie before the rows that bulk copies fill, which start at a multiple of more bytes.
  auto isRow = [](LoadOp load) { return !isMatrix(load); };
  if ((use.retries || use.numbers || use.bounds) && fields.producer == ProducerKind::All &&
      llvm::any_of(fetchedPipes(kernel), isRow))
    use.tiles += hopper::bulkAlignment - hopper::mbarrierBytes;
}

int64_t tessera::exchangeBytes(KernelOp kernel, int64_t consumers) {
  int64_t bytes = 0;
  constexpr int64_t warpRows = hopper::mmaRows / hopper::warpgroupWarps;
  kernel.walk([&](Operation *op) {
    auto add = [&](int64_t values) {
      bytes += llvm::alignTo(values * hopper::registerBytes, hopper::widestAccess);
    };
    if (auto reduce = dyn_cast<ReduceOp>(op); reduce && reduce.getAxis() == 0) {
      add(cast<RankedTensorType>(reduce.getType()).getNumElements() * hopper::warpgroupWarps *
          consumers);
    } else if (isa<ReduceAllOp>(op)) {
      add(hopper::warpgroupWarps * consumers);
    } else if (auto sent = dyn_cast<FromBlockOp>(op)) {
      add(cast<RankedTensorType>(sent.getType()).getNumElements());
      bytes += hopper::mbarrierBytes;
    } else if (auto scan = dyn_cast<ScanOp>(op)) {
      auto type = cast<RankedTensorType>(scan.getType());
      int64_t words = llvm::divideCeil(type.getElementTypeBitWidth(), 8 * hopper::registerBytes);
      if (scan.getAxis() == 0)
        add(llvm::divideCeil(type.getNumElements(), warpRows) * words * consumers);
    }
  });
  return bytes;
}

SharedMemoryUse tessera::sharedMemoryUse(KernelOp kernel, const NumberList &stages,
                                         const NumberList &outerStages,
                                         const ScheduleFields &fields) {
  SharedMemoryUse use;
  SmallVector<ReducerSum> exchanged;
  if (exchangesSums(fields) && fields.placement != PlacementKind::rows)
    exchanged = findExchangedSums(kernel).sums;
  SlotCounter counter(stages, outerStages);
  for (const PipedTile &tile : pipedTiles(kernel)) {
    int64_t slots = counter.next(tile);
    use.tiles += slots * tile.bytes;
    // Blocks that gather rows for each other wait for their own ones at a barrier more.
    bool isHalved = countBlocks(fields.cluster.value_or(ClusterKind::One)) == 2 &&
                    isa<GatherOp>(tile.loads.front());
    use.barriers += slots * (isHalved ? 3 : 2) * hopper::mbarrierBytes;
    addHalves(tile, slots, exchanged, use);
  }
  if (fields.producer == ProducerKind::All)
    addFetched(kernel, counter, use);
  if (fields.placement != PlacementKind::rows)
    addSums(kernel, fields, use);
  else
    addStores(kernel, outerStages.last(), fields, use);
  addWalk(kernel, fields, use);
  return use;
}

SmallVector<LoadOpInterface> tessera::loadsToTranspose(KernelOp kernel) {
  llvm::SetVector<LoadOpInterface> loads;
  kernel.walk([&](DotOp dot) {
    LoadOpInterface load = loadedOperand(dot.getB());
    if (load && dot.getB() == load.getResult() && !loadedOperand(dot.getA()) &&
        isByteFloat(cast<RankedTensorType>(load.getType()).getElementType()))
      loads.insert(load);
  });
  return loads.takeVector();
}

Operation *tessera::findReadAsLoaded(KernelOp kernel) {
  SmallVector<LoadOpInterface> transposed = loadsToTranspose(kernel);
  Operation *found = nullptr;
  kernel.walk([&](LoadOpInterface load) {
    auto sharesPipe = [&](LoadOpInterface other) {
      return load == other || (load.getPipeAttr() && load.getPipeAttr() == other.getPipeAttr());
    };
    if (llvm::none_of(transposed, sharesPipe))
      return WalkResult::advance();
    for (OpOperand &use : load.getResult().getUses()) {
      auto dot = dyn_cast<DotOp>(use.getOwner());
      if (!dot || use.getOperandNumber() != 1 || loadedOperand(dot.getA())) {
        found = use.getOwner();
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return found;
}

bool tessera::sharesTransposer(const ScheduleFields &fields) {
  return *fields.transpose > 0 && *fields.transpose < hopper::warpgroupWarps;
}

bool tessera::leavesWriter(const ScheduleFields &fields) {
  constexpr int64_t others = 2; // the producer and the writer
  return !sharesTransposer(fields) || *fields.transpose + others <= hopper::warpgroupWarps;
}

/// Whether more is made of `value` than what other ranges take.
static bool leavesRanges(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    bool isScalar = user->getNumRegions() == 0 && isPure(user) &&
                    llvm::none_of(user->getResultTypes(), llvm::IsaPred<ShapedType>);
    return !user->getParentOfType<ReduceRangeOp>() &&
           !(isScalar && llvm::none_of(user->getResults(), leavesRanges));
  });
}

SmallVector<ReduceRangeOp> tessera::boundsOfFinder(KernelOp kernel, const ScheduleFields &fields) {
  SmallVector<ReduceRangeOp> bounds;
  if (fields.hasProducer() && !sharesTransposer(fields) && pipedGathers(kernel).empty())
    kernel.walk([&](ReduceRangeOp range) {
      if (leavesRanges(range.getResult()))
        bounds.push_back(range);
    });
  return bounds;
}

int64_t tessera::countWords(ArrayRef<ReduceRangeOp> bounds) {
  int64_t bits = 0;
  for (ReduceRangeOp bound : bounds)
    bits += bound.getType().getIntOrFloatBitWidth();
  return bits / 32;
}

int64_t tessera::transposedBytes(KernelOp kernel, int64_t consumers, bool isApart) {
  llvm::MapVector<std::pair<Attribute, Type>, int64_t> tiles;
  for (LoadOpInterface load : loadsToTranspose(kernel))
    tiles[{isApart ? load.getPipeAttr() : Attribute(), load.getType()}] = tileBytes(load.getType());
  int64_t bytes = 0;
  for (auto &[key, size] : tiles)
    bytes += isApart ? slotsOfTransposed *
                           (llvm::alignTo(size, hopper::tileAlignment) + 2 * hopper::mbarrierBytes)
                     : llvm::alignTo(consumers * size, hopper::tileAlignment);
  return bytes;
}

/// What one slot of each pipe of converted operands takes.
static int64_t bytesOfConverted(KernelOp kernel) {
  // Copies of a load share its pipe, and what is made of them one behind it.
  llvm::MapVector<std::pair<Attribute, Type>, llvm::SmallDenseMap<Operation *, int64_t>> counts;
  for (Conversion &conversion : findConversions(kernel))
    ++counts[{conversion.load.getPipeAttr(), conversion.getTile().getType()}][conversion.load];
  int64_t bytes = 0;
  for (auto &[key, ofLoads] : counts)
    bytes +=
        llvm::max_element(ofLoads, llvm::less_second())->second *
        (llvm::alignTo(tileBytes(key.second), hopper::tileAlignment) + 2 * hopper::mbarrierBytes);
  return bytes;
}

int64_t tessera::slotsOfConverted(KernelOp kernel) {
  int64_t bytes = mostSlotsOfConverted * bytesOfConverted(kernel);
  for (const PipedTile &tile : pipedTiles(kernel))
    bytes += tile.bytes;
  return bytes <= hopper::sharedMemoryOfBlock ? mostSlotsOfConverted : 1;
}

int64_t tessera::convertedBytes(KernelOp kernel) {
  return slotsOfConverted(kernel) * bytesOfConverted(kernel);
}

int64_t tessera::crossingBytes(KernelOp kernel, const DotDivision &division) {
  DenseSet<Operation *> ofSums;
  for (const ReducerSum &sum : findReducerSums(kernel))
    ofSums.insert(sum.operand);
  llvm::DenseSet<std::tuple<Type, unsigned, unsigned>> pipes;
  int64_t bytes = 0;
  for (const Crossing &crossing : division.getCrossings())
    if (!ofSums.contains(crossing.op) &&
        pipes.insert({crossing.getTile(), crossing.from, crossing.number}).second)
      bytes += slotsOfCrossings *
               (llvm::alignTo(tileBytes(crossing.getTile()), crossing.getTile().getRank() == 2
                                                                 ? hopper::tileAlignment
                                                                 : hopper::bulkAlignment) +
                2 * hopper::mbarrierBytes);
  return bytes;
}

SmallVector<OpOperand *> tessera::stagedOperands(KernelOp kernel,
                                                 const DenseSet<Operation *> &apart) {
  SmallVector<OpOperand *> reads;
  kernel.walk([&](DotOp dot) {
    if (!apart.contains(dot) && isStagedA(dot))
      reads.push_back(&dot.getAMutable());
  });
  return reads;
}

static ComputedOperands buffersOf(ArrayRef<OpOperand *> reads) {
  OperandBuffers buffers(reads);
  ComputedOperands operands;
  if (buffers.getConflict())
    operands.refusal = "a computed tile is made while the one before it is still to be multiplied";
  for (RankedTensorType tile : buffers.getTypes()) {
    if (isByteFloat(tile.getElementType()))
      operands.refusal = "a computed tile of 8-bit elements is multiplied from registers";
    operands.bytes += llvm::alignTo(tileBytes(tile), hopper::tileAlignment);
  }
  return operands;
}

/// What is written to shared memory as it is and what becomes rows there has buffers of its own.
static ComputedOperands buffersOf(ArrayRef<OpOperand *> reads,
                                  function_ref<bool(OpOperand *)> isTransposed) {
  SmallVector<OpOperand *> asTheyAre, transposed;
  for (OpOperand *read : reads)
    (isTransposed(read) ? transposed : asTheyAre).push_back(read);
  ComputedOperands operands = buffersOf(asTheyAre), others = buffersOf(transposed);
  operands.bytes += others.bytes;
  if (!operands.refusal)
    operands.refusal = others.refusal;
  return operands;
}

ComputedOperands tessera::computedFirstOperands(KernelOp kernel, PlacementKind placement) {
  return buffersOf(stagedOperands(kernel, reducerOperations(kernel, placement)),
                   [](OpOperand *read) { return computedTranspose(read->get()) != nullptr; });
}

ComputedOperands tessera::computedSecondOperands(KernelOp kernel) {
  // A product reads the words of a second operand by columns.
  return buffersOf(computedBs(kernel), [](OpOperand *read) {
    return isa<DotOp>(read->getOwner()) &&
           isWordOperand(cast<RankedTensorType>(read->get().getType()));
  });
}
