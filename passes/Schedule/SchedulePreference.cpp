//===- SchedulePreference.cpp - Which values are tried, and when ----------===//
//
// See SchedulePreference.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/SchedulePreference.h"
#include "dialects/Hop/RegisterPool.h"
#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Analysis/PtxasRegisters.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Analysis/WidenedOperands.h"
#include "passes/Schedule/ScheduleCost.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Whether loops need not be rotated.
static bool keepsSteps(const ScheduleFields &requested) {
  return OverlapShape{requested.overlap.value_or(OverlapKind::One)}.getStages() == 1;
}

/// The placements to try, the preferred one first: a sum apart waits for its memory while the other
/// dots go on.
SmallVector<PlacementKind> tessera::placements(const ScheduleFacts &facts,
                                               const ScheduleFields &requested,
                                               bool warpSpecialize) {
  if (requested.placement)
    return {*requested.placement};
  bool isOpen = !facts.work.sums.empty() && !facts.work.converts && !facts.work.gathers &&
                warpSpecialize && keepsSteps(requested) && !findSpeculation(facts.getKernel());
  return isOpen ? SmallVector<PlacementKind>{PlacementKind::apart, PlacementKind::rows}
                : SmallVector<PlacementKind>{PlacementKind::rows};
}

/// Whether consumers with different dots are a choice where nothing else fits.
bool tessera::isDividedLast(const ScheduleFacts &facts, const ScheduleFields &requested,
                            std::optional<bool> specialized) {
  ScheduleFields divided = requested;
  divided.placement = PlacementKind::divided;
  // What the facts say of operands holds for such consumers too.
  return !requested.placement && facts.accumulators > 1 &&
         !findWidenedOtherwise(facts.getKernel(), divided) &&
         ((!facts.work.gathers && !facts.work.converts) || facts.work.sums.empty()) &&
         specialized.value_or(true) && keepsSteps(requested) &&
         !requested.pingpong.value_or(false) && !findSpeculation(facts.getKernel());
}

/// What a step may work on, the preferred first. `3` gains nothing where another warpgroup fills
/// the tensor cores (`./dev bench ablation`, docs/lab/schedules.md). A wide accumulator is scaled
/// before the next dot, while the first dots of the step run: after it, the scaling would hold them
/// up. A dot that runs ahead by itself takes no registers, as a tile is dead by then, but copies of
/// operands, a wait more in each step, and a tile more than the loop has. So it is tried where the
/// work between the dots is long enough that the tensor cores would be idle, and that dot too.
SmallVector<OverlapKind> tessera::overlaps(const ScheduleFacts &facts,
                                           const ScheduleFields &requested) {
  if (requested.overlap)
    return {*requested.overlap};
  if (requested.placement == PlacementKind::apart && facts.leadPays)
    return {OverlapKind::Lead, OverlapKind::One};
  if (requested.placement != PlacementKind::rows)
    return {OverlapKind::One};
  return {facts.scalesWideTiles ? OverlapKind::Scaled : OverlapKind::Two, OverlapKind::One};
}

/// The warps that transpose loaded tiles, the preferred first: apart each tile is transposed once,
/// and under the products.
SmallVector<int64_t> tessera::transposers(const ScheduleFacts &facts,
                                          const ScheduleFields &requested, bool warpSpecialize) {
  if (requested.transpose)
    return {*requested.transpose};
  bool isOpen = warpSpecialize && requested.placement == PlacementKind::rows &&
                !facts.work.converts && !facts.work.gathers && facts.work.transposes;
  SmallVector<int64_t> warps;
  if (isOpen)
    llvm::append_range(warps, facts.model.transposerWarps);
  warps.push_back(0);
  return warps;
}

/// How the sums of a reducer leave. A thread waits for tickets longer than it copies, and a writer
/// waits while the reducer goes on. Only an order that is asked for makes a launch refuse rows that
/// bulk copies do not take.
StoreKind tessera::chooseStoreOfSums(const ScheduleFacts &facts, const ScheduleFields &fields) {
  if (facts.work.sums.empty() || !facts.work.areSumsBulk)
    return StoreKind::direct;
  if (facts.ordersSums)
    return StoreKind::writer;
  bool areWhole = llvm::all_of(facts.work.sums,
                               [](const ReducerSum &sum) { return writesWholeUnits(sum.store); });
  return areWhole ? StoreKind::tma : StoreKind::direct;
}

/// Leaves the roles beside the consumers `ofHelpers` registers, which it takes from the consumers
/// of `split`.
static void leaveForHelpers(const ScheduleFacts &facts, int64_t ofHelpers,
                            const ScheduleFields &fields, RegisterSplit &split) {
  bool gathers = facts.work.gathers && fields.hasProducer();
  int64_t warpgroups = facts.work.countWarpgroups(fields);
  if (!gathers && warpgroups == 0 && !sharesTransposer(fields))
    return;
  bool sumsApart = facts.work.isGiven(RoleTask::Sum, fields);
  bool writes = sumsApart && fields.store == StoreKind::writer;
  bool copiesRuns = facts.work.converts && facts.work.runs > 2;
  // What the fourth or fifth warpgroup leaves is scarce; the producer gets by with the least.
  if (!sumsApart || writes)
    split.producer = fields.producerRegisters.value_or(
        gathers                    ? gatheringRegisters(facts.getKernel(), facts.model)
        : sharesTransposer(fields) ? std::max(ofHelpers, facts.model.sharedTransposerRegisters)
        : writes                   ? kOfWriter
        : copiesRuns               ? std::max(facts.model.registersOfRuns, facts.leastOfProducer)
                                   : facts.leastOfProducer);
  int64_t all = *fields.consumers + 1 + warpgroups, pool = all * hop::entryRegisters(all);
  int64_t left = std::max<int64_t>(pool - split.producer - warpgroups * ofHelpers, 0);
  split.consumer =
      std::clamp<int64_t>(llvm::alignDown(left / *fields.consumers, hopper::roleRegisterStep),
                          hopper::leastRoleRegisters, split.consumer);
}

/// `split` with `wanted` for the producer: what more it takes, the consumers have less.
static RegisterSplit takeProducer(RegisterSplit split, int64_t consumers, int64_t wanted) {
  split.producer = wanted;
  int64_t pool = (consumers + 1) * hop::entryRegisters(consumers + 1);
  int64_t left = llvm::alignDown((pool - split.producer) / consumers, 8);
  if (left >= split.producer)
    split.consumer = std::min(split.consumer, left);
  return split;
}

Candidate tessera::makeCandidate(const ScheduleFacts &facts, const ScheduleFields &requested,
                                 bool warpSpecialize, const OverlapShape &shape,
                                 int64_t consumers) {
  const ClusterSharing &sharing = facts.shareInCluster(blocksOf(requested));
  RegisterSplit split = registerSplit(consumers, warpSpecialize, facts.model);
  if (warpSpecialize)
    split = takeProducer(
        split, consumers,
        requested.producerRegisters.value_or(std::max(split.producer, facts.leastOfProducer)));
  ScheduleFields fields = requested;
  fields.consumers = consumers;
  bool choosesLoads = warpSpecialize && !fields.producer && fields.placement == PlacementKind::rows;
  if (!warpSpecialize)
    fields.producer = ProducerKind::None;
  else if (!fields.producer)
    fields.producer = sharing.evened.empty() && (!choosesLoads || facts.fetchedMatrices)
                          ? ProducerKind::All
                          : ProducerKind::Operands;
  fields.work = requested.work.value_or(WorkKind::tiles);
  if (!fields.store)
    fields.store = fields.placement != PlacementKind::rows ? chooseStoreOfSums(facts, fields)
                   : writerPays(facts, fields) || facts.ordersSums ? StoreKind::writer
                                                                   : StoreKind::direct;
  int64_t ofHelpers = facts.work.registers(fields);
  leaveForHelpers(facts, ofHelpers, fields, split);
  fields.consumerRegisters = requested.consumerRegisters.value_or(NumberList(split.consumer));
  fields.overlap = shape.kind;
  if (!fields.polynomialExp)
    fields.polynomialExp = fastestShare(facts.budget, facts.model);
  // Dots that run ahead keep the tensor cores busy during the work of their own warpgroup; turns
  // would only serialise the warpgroups (measured: 0.85 of the speed without).
  bool runsAhead = shape.leadsAlone() || shape.getStageOfWork() > 0;
  if (!fields.pingpong)
    fields.pingpong = warpSpecialize && consumers > 1 && facts.canTakeTurns &&
                      !facts.work.computesB && !runsAhead &&
                      fields.placement == PlacementKind::rows && fields.transpose == 0 &&
                      facts.turnsPay;
  fields.speculate = findSpeculation(facts.getKernel()) != nullptr;
  fields.producerRegisters = std::max(split.producer, hopper::leastRoleRegisters);
  return {fields,
          shape,
          choosesLoads,
          /*choosesRegisters=*/!requested.consumerRegisters,
          facts.work.list(fields),
          ofHelpers,
          sharing};
}

//===----------------------------------------------------------------------===//
// The grid
//===----------------------------------------------------------------------===//

/// Tiles begin with the grid point that comes to them first, where each walks up: so the one whose
/// loop begins last goes first, and nobody waits for one that has further to go. Where all begin
/// alike, those of other indices come in between, so that neighbours do not start together. Where
/// they do not, the longest of a section come last and wait for each other at its end; a smaller
/// section has fewer of them. That pays where they begin several steps apart
/// (docs/lab/fixed-sums.md).
static void chooseOrderOfSums(const ScheduleFacts &facts, ScheduleFields &fields) {
  if (!fields.persistent)
    fields.persistent = PersistentKind::Dynamic;
  Trend begin = Trend::Constant;
  int64_t apart = 0;
  for (const OrderedSum &sum : facts.ordered.sums)
    if (sum.dim == 0 && begin == Trend::Constant) {
      begin = beginTrend(facts.getKernel(), sum);
      apart = tilesApart(facts.getKernel(), sum) * (exchangesSums(fields) ? exchangingBlocks : 1);
    }
  if (!fields.order)
    fields.order = begin == Trend::Increasing ? OrderKind::Descending : OrderKind::Ascending;
  if (!fields.section)
    fields.section = begin == Trend::Constant || apart <= 1 ? 2 : 1;
}

/// Tiles of unequal work are handed out one by one, the longest first. Where there is work between
/// dots those of equal work are too, but for a grid with hardly more tiles than multiprocessors:
/// asking for another one takes longer than it gains there (docs/lab/tiles.md).
void tessera::chooseWalk(const ScheduleFacts &facts, ScheduleFields &fields) {
  if (facts.ordersSums)
    chooseOrderOfSums(facts, fields);
  KernelOp own = facts.getKernel(); // accessors of operations are not const
  Trend trend = workTrend(facts.getKernel(), 0);
  bool varies = trend != Trend::Constant;
  // Without work between dots all blocks keep step, and taking turns at the tiles keeps what they
  // share in the L2 cache.
  // An order that the author asks for needs blocks that walk over tiles, producer or not.
  bool isOrdered = fields.order && *fields.order != OrderKind::Linear;
  bool isFew = TileDialect::FewTilesAttrHelper(own.getContext()).isAttrPresent(own),
       handsOut = varies || (facts.worksBetweenDots && !isFew);
  if (!fields.persistent)
    fields.persistent = fields.hasProducer() && !facts.work.gathers && handsOut
                            ? PersistentKind::Dynamic
                        : fields.hasProducer() || isOrdered ? PersistentKind::Static
                                                            : PersistentKind::None;
  bool walks = *fields.persistent != PersistentKind::None, ofTwo = own.getGrid().size() == 2;
  // Of a sliding window the first tiles are short, as nothing is before the sequence, or the last.
  bool slides = trend == Trend::Sliding, cutOff = slides && endsAreCutOff(facts.getKernel(), 0),
       shortFirst = walks && (trend == Trend::Increasing || (slides && !cutOff)),
       longFirst = walks && (trend == Trend::Decreasing || cutOff),
       shares = walks && !shortFirst && !longFirst && sharesAlongBoth(facts.getKernel());
  if (!fields.section)
    fields.section = shares && !ofTwo ? facts.model.sectionOfShared : 2;
  if (!fields.order)
    fields.order = shortFirst        ? OrderKind::Descending
                   : longFirst       ? OrderKind::Ascending
                   : shares && ofTwo ? OrderKind::Narrow
                   : shares          ? OrderKind::Ascending
                                     : OrderKind::Linear;
}

/// Where no loop multiplies, a block does one thing after the other with a tile: it waits,
/// multiplies, works and stores. Other blocks fill its waits, so that consumers get no more
/// registers than leave room for as many as shared memory holds. Returns how many blocks share a
/// multiprocessor then.
int64_t tessera::makeRoomForOthers(const ScheduleFacts &facts, Candidate &candidate) {
  ScheduleFields &fields = candidate.fields;
  if (!candidate.choosesRegisters || !facts.multiplies || facts.multipliesInLoops ||
      !candidate.helpers.empty() || *fields.persistent == PersistentKind::Dynamic ||
      blocksOf(fields) > 1)
    return 1;
  int64_t warpgroups = candidate.warpgroups(), threads = warpgroups * hopper::warpgroupThreads;
  int64_t bytes = sharedUse(facts, candidate).total();
  int64_t blocks =
      std::min(hopper::sharedMemoryOfMultiprocessor / (bytes + hopper::sharedMemoryOfSystem),
               hopper::threadsOfMultiprocessor / threads);
  for (; blocks > 1; --blocks) {
    int64_t given = hop::registersOfResident(threads, blocks);
    int64_t left = candidate.isSpecialized()
                       ? (warpgroups * given - *fields.producerRegisters) / candidate.consumers()
                       : given;
    int64_t registers = std::min<int64_t>(llvm::alignDown(left, hopper::roleRegisterStep),
                                          fields.consumerRegisters->most());
    if (widestDotRegisters(facts.getKernel()) <= given &&
        candidate.registersNeeded.most() <= usableRegisters(registers, facts.model)) {
      fields.consumerRegisters = NumberList(registers);
      return blocks;
    }
  }
  return 1;
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

SmallVector<NumberList> tessera::stageChoices(const ScheduleFacts &facts,
                                              const ScheduleFields &requested) {
  if (requested.stages)
    return {*requested.stages};
  SmallVector<NumberList> stages;
  size_t tiles = facts.pipesInLoops(requested);
  int64_t most = !facts.tilesInLoops      ? 1
                 : facts.findsBounds      ? facts.model.mostStagesOfBounds
                 : facts.countsFromMemory ? facts.model.mostStagesOfLists
                 : facts.severalDots      ? facts.model.mostStagesBetweenDots
                                          : facts.model.mostStages;
  for (int64_t i = most; i >= 1; --i) {
    stages.push_back(NumberList(i));
    // Where one slot more for all is too much, those have it that come first in the innermost
    // loops.
    if (requested.placement != PlacementKind::divided || i == 1 || tiles > NumberList::kMost)
      continue;
    auto order =
        llvm::filter_to_vector(facts.deepestFirst, [&](size_t tile) { return tile < tiles; });
    for (size_t ahead = tiles; ahead-- > 1;) {
      SmallVector<int64_t> counts(tiles, i - 1);
      for (size_t tile : ArrayRef(order).take_front(ahead))
        counts[tile] = i;
      stages.push_back(*NumberList::get(counts));
    }
  }
  return stages;
}

NumberList tessera::outerStagesBeside(const ScheduleFacts &facts, const ScheduleFields &fields,
                                      const NumberList &stages) {
  // Blocks that exchange operands wait for each other, for which the third slot makes up.
  bool spare = !fields.stages && facts.severalDots && stages.of(0) > 2 && !exchangesSums(fields);
  return fields.outerStages.value_or(NumberList(spare ? 2 : 1));
}

void tessera::chooseOuterStages(const ScheduleFacts &facts, Candidate &candidate) {
  ScheduleFields &fields = candidate.fields;
  if (fields.outerStages)
    return;
  // A second slot lets the next tile's loads start before this tile's last reader is done.
  bool pays = *fields.persistent != PersistentKind::None && facts.loadsOutside;
  SmallVector<NumberList, 2> choices = {NumberList(2)};
  // Loops of windows are short, and the role that makes sums gives its tile back last.
  bool endsOften = workTrend(facts.getKernel(), 0) == Trend::Sliding;
  if (endsOften && fields.placement == PlacementKind::apart && facts.outerTiles == 2)
    choices.push_back(*NumberList::get({2, 1}));
  auto fits = [&](const NumberList &outer) {
    return sharedUse(facts, candidate, *fields.stages, outer).total() <=
           hopper::sharedMemoryOfBlock;
  };
  const NumberList *first = pays ? llvm::find_if(choices, fits) : choices.end();
  fields.outerStages = first == choices.end() ? NumberList(1) : *first;
}
