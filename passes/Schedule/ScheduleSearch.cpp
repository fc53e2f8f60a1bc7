//===- ScheduleSearch.cpp - Which schedules of a kernel fit the machine ---===//

#include "passes/Schedule/ScheduleSearch.h"
#include "dialects/Hop/RegisterPool.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/ExchangedSums.h"
#include "passes/Analysis/Speculation.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Whether `loop` scales what a dot accumulates onto and that has more than `columns`.
static bool scalesWideAccumulator(scf::ForOp loop, int64_t columns) {
  return llvm::any_of(loop.getBody()->getOps<DotOp>(), [&](DotOp dot) {
    Operation *scaling = dot.getAcc() ? dot.getAcc().getDefiningOp() : nullptr;
    return scaling && OpTrait::hasElementwiseMappableTraits(scaling) &&
           cast<RankedTensorType>(dot.getType()).getDimSize(1) > columns;
  });
}

/// Warpgroups take turns at the steps of a loop, not at those of the loops around it.
static bool isInnermost(scf::ForOp loop) {
  return !loop.getBody()->walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Whether an integer is computed from an element that is loaded, as the length of a list.
/// `comesFromMemory` also follows bounds that a loop searches for, whose kernels are not measured
/// with more slots.
static bool isLoaded(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() != 0)
    return false;
  return isa<LoadOp>(op) || llvm::any_of(op->getOperands(), isLoaded);
}

/// How many loops there are around a tile.
static size_t depthOf(const PipedTile &tile) {
  size_t depth = 0;
  for (LoadOpInterface load : tile.loads) {
    size_t own = 0;
    for (Operation *op = load; (op = op->getParentOfType<scf::ForOp>());)
      ++own;
    depth = std::max(depth, own);
  }
  return depth;
}

ScheduleSearch::ScheduleSearch(KernelOp kernel, const CostModel &model)
    : kernel(kernel), model(model), work(kernel) {
  multiplies = kernel.walk([](DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
  for (scf::ForOp loop : loopsWithDots(kernel)) {
    multipliesInLoops = true;
    scalesWideTiles |= scalesWideAccumulator(loop, model.wideColumns);
    worksBetweenDots |= hasDependentDots(loop);
    canTakeTurns |= hasDependentDots(loop) && isInnermost(loop);
    size_t dots = llvm::range_size(loop.getBody()->getOps<DotOp>());
    severalDots |= dots > 1;
    // Loops of more dots, as those of gradients, are not measured with more slots.
    countsFromMemory |= dots == 2 && isLoaded(loop.getUpperBound());
  }
  // Where the tensor cores are busy for much longer than the special functions, or for much
  // shorter, turns cost more than they bring.
  CycleBudget all = cycleBudget(loopsWithDots(kernel), model);
  turnsPay = all.dots < model.mostDotsForTurns * all.functions &&
             all.functions < model.mostFunctionsForTurns * all.dots;
  budget = cycleBudget(firstLoopsWithDots(kernel), model);
  for (scf::ForOp loop : firstLoopsWithDots(kernel))
    if (firstDot == 0)
      firstDot = dotCycles(*loop.getBody()->getOps<DotOp>().begin());
  leadPays = budget.functions + budget.instructions >= model.leastWorkForLead * budget.dots &&
             firstDot >= model.leastDotAhead;
  SmallVector<size_t> depths;
  for (const PipedTile &tile : pipedTiles(kernel)) {
    if (tile.inLoop)
      depths.push_back(depthOf(tile));
    tilesInLoops += tile.inLoop;
    loadsOutside |= !tile.inLoop;
    outerTiles += !tile.inLoop && !tile.isKept;
  }
  fetchedMatrices = countFetchedMatrices(kernel);
  deepestFirst = llvm::to_vector(llvm::seq(tilesInLoops + fetchedMatrices));
  depths.resize(deepestFirst.size());
  llvm::stable_sort(deepestFirst, [&](size_t a, size_t b) { return depths[a] > depths[b]; });
  accumulators = DotDivision::countAccumulators(kernel);
  ordered = findOrderedSums(kernel);
  findsBounds = kernel.walk([](ReduceRangeOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (findsBounds)
    leastOfProducer = model.boundingRegisters;
}

const ScheduleSearch::Copy &ScheduleSearch::overlapped(const OverlapShape &shape) {
  auto [entry, isNew] = copies.try_emplace(shape.kind, Copy());
  Copy &copy = entry->second;
  if (!isNew)
    return copy;
  copy.refusal = "the kernel has no loop with dots";
  copy.kernel = kernel.clone();
  bool any = overlapLoops(copy.kernel, shape, [&](scf::ForOp, const OverlapRefusal &refusal) {
    copy.refusal = refusal.reason;
  });
  if (!any) {
    copy.kernel->erase();
    copy.kernel = nullptr;
  }
  return copy;
}

/// Why the kernel cannot be overlapped in this shape.
std::optional<std::string> ScheduleSearch::rejectShape(const OverlapShape &shape) {
  if (shape.changesLoops() && !overlapped(shape).kernel)
    return overlapped(shape).refusal;
  return std::nullopt;
}

bool tessera::hasDots(KernelOp kernel) {
  return kernel.walk([](DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// The kernel as `candidate` runs its loops.
KernelOp ScheduleSearch::rotated(const Candidate &candidate) {
  return candidate.shape.changesLoops() ? overlapped(candidate.shape).kernel : kernel;
}

NumberList ScheduleSearch::neededRegisters(const Candidate &candidate) {
  if (candidate.isDivided()) {
    const std::optional<DotDivision> &division = divide(candidate.consumers());
    return division ? dividedRegisters(kernel, *division, *candidate.fields.work, model)
                    : NumberList(0);
  }
  return NumberList(consumerRegisters(rotated(candidate), candidate.consumers(),
                                      candidate.isSpecialized(), *candidate.fields.placement,
                                      *candidate.fields.work, model));
}

SharedMemoryUse ScheduleSearch::sharedUse(const Candidate &candidate, const NumberList &stages,
                                          const NumberList &outerStages) const {
  SharedMemoryUse use = sharedMemoryUse(kernel, stages, outerStages, candidate.fields);
  use.operands += candidate.operandBytes;
  use.exchanges += candidate.exchangeBytes;
  return use;
}

int64_t ScheduleSearch::operandBytes(const Candidate &candidate) {
  const ScheduleFields &fields = candidate.fields;
  KernelOp program = rotated(candidate);
  int64_t bytes =
      stagedOperandBytes(program, *fields.placement) + computedSecondOperands(program).bytes +
      transposedBytes(kernel, candidate.consumers(), candidate.hasHelper(RoleTask::Transpose)) +
      convertedBytes(kernel);
  if (candidate.isDivided())
    bytes += crossingBytes(kernel, *divide(candidate.consumers()));
  return bytes;
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

ScheduleSearch::Candidate ScheduleSearch::makeCandidate(const ScheduleFields &requested,
                                                        bool warpSpecialize,
                                                        const OverlapShape &shape,
                                                        int64_t consumers) {
  const ClusterSharing &sharing = shareInCluster(blocksOf(requested));
  RegisterSplit split = registerSplit(consumers, warpSpecialize, model);
  if (warpSpecialize)
    split = takeProducer(
        split, consumers,
        requested.producerRegisters.value_or(std::max(split.producer, leastOfProducer)));
  ScheduleFields fields = requested;
  fields.consumers = consumers;
  fields.warpSpecialize = warpSpecialize;
  fields.work = requested.work.value_or(WorkKind::tiles);
  if (!fields.store && work.gathers && ordersSums(fields))
    fields.store = StoreKind::writer;
  leaveForHelpers(split, fields);
  fields.consumerRegisters = requested.consumerRegisters.value_or(NumberList(split.consumer));
  bool choosesLoads = !fields.loads && fields.placement == PlacementKind::rows;
  if (!fields.loads)
    fields.loads = sharing.evened.empty() && (!choosesLoads || (warpSpecialize && fetchedMatrices))
                       ? LoadKind::pipe
                       : LoadKind::direct;
  fields.overlap = shape.kind;
  if (!fields.polynomialExp)
    fields.polynomialExp = fastestShare(budget, model);
  // Dots that run ahead keep the tensor cores busy during the work of their own warpgroup; turns
  // would only serialise the warpgroups (measured: 0.85 of the speed without).
  bool runsAhead = shape.leadsAlone() || shape.getStageOfWork() > 0;
  if (!fields.pingpong)
    fields.pingpong = warpSpecialize && consumers > 1 && canTakeTurns && !work.computesB &&
                      !runsAhead && fields.placement == PlacementKind::rows &&
                      fields.transpose == 0 && turnsPay;
  if (!fields.store)
    fields.store = fields.placement != PlacementKind::rows    ? chooseStoreOfSums(fields)
                   : writerPays(fields) || ordersSums(fields) ? StoreKind::writer
                                                              : StoreKind::direct;
  fields.speculate = findSpeculation(kernel) != nullptr;
  fields.producerRegisters = std::max(split.producer, hopper::leastRoleRegisters);
  return {fields,
          shape,
          choosesLoads,
          /*choosesRegisters=*/!requested.consumerRegisters,
          work.list(fields),
          sharing};
}

/// Registers of a thread of each consumer that tiles and what is beside them can have. Those of
/// consumers with different dots have their places from the first step on: 198 fit into 200 at
/// d = 256.
NumberList ScheduleSearch::usableBy(const Candidate &candidate) const {
  const NumberList &budget = *candidate.fields.consumerRegisters;
  return candidate.isDivided() ? budget : NumberList(usableRegisters(budget.most(), model));
}

/// Where no loop multiplies, a block does one thing after the other with a tile: it waits,
/// multiplies, works and stores. Other blocks fill its waits, so that consumers get no more
/// registers than leave room for as many as shared memory holds. Returns how many blocks share a
/// multiprocessor then.
int64_t ScheduleSearch::makeRoomForOthers(Candidate &candidate) const {
  ScheduleFields &fields = candidate.fields;
  if (!candidate.choosesRegisters || !multiplies || multipliesInLoops ||
      !candidate.helpers.empty() || *fields.persistent == PersistentKind::Dynamic ||
      blocksOf(fields) > 1)
    return 1;
  int64_t warpgroups = candidate.warpgroups(), threads = warpgroups * hopper::warpgroupThreads;
  int64_t bytes = sharedUse(candidate).total();
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
    if (widestDotRegisters(kernel) <= given &&
        candidate.registersNeeded.most() <= usableRegisters(registers, model)) {
      fields.consumerRegisters = NumberList(registers);
      return blocks;
    }
  }
  return 1;
}

/// The schedule of a candidate whose rows, turns and registers fit, if shared memory does.
std::optional<ScheduleAttr> ScheduleSearch::complete(Candidate candidate) {
  ScheduleFields &fields = candidate.fields;
  chooseWalk(fields);
  candidate.operandBytes = operandBytes(candidate);
  if (multiplies)
    candidate.exchangeBytes = exchangeBytes(rotated(candidate), candidate.consumers());
  std::optional<NumberList> stagesAsked = fields.stages;
  fields.stages = findStages(candidate);
  // With one slot no load runs ahead of the dots.
  if (candidate.choosesLoads && fields.loads == LoadKind::pipe &&
      (!fields.stages || fields.stages->of(0) == 1)) {
    Candidate direct = candidate;
    direct.fields.stages = stagesAsked;
    direct.fields.loads = LoadKind::direct;
    std::optional<NumberList> stages = findStages(direct);
    if (!fields.stages || (stages && stages->of(0) > 1)) {
      fields.loads = LoadKind::direct;
      fields.stages = stages;
    }
  }
  if (!fields.stages)
    return std::nullopt;
  chooseOuterStages(candidate);
  int64_t blocks = makeRoomForOthers(candidate);
  use = describeUse(candidate);
  if (blocks > 1)
    use += llvm::formatv("; {0} thread blocks share a multiprocessor", blocks).str();
  return fields.get(kernel.getContext());
}

std::optional<std::string> ScheduleSearch::explainExponentials(int64_t share) const {
  if (!budget.exponentials || budget.functions <= std::max(budget.dots, budget.instructions))
    return std::nullopt;
  return llvm::formatv("polynomial_exp = {0}: an iteration takes {1:F0} cycles of the tensor "
                       "cores, {2:F0} of the "
                       "special functions ({3:F0} without) and {4:F0} of instructions ({5:F0} "
                       "without)",
                       share, budget.dots, budget.functionsWith(share), budget.functions,
                       budget.instructionsWith(share), budget.instructions)
      .str();
}

/// Whether a candidate can have what is requested, as far as that depends on the kernel alone.
bool ScheduleSearch::admits(const ScheduleFields &requested) {
  if (requested.sums == SumsKind::fixed && ordered.refused) {
    rejections.push_back({"sums = fixed", "a store " + ordered.refusal + "; use sums = any"});
    return false;
  }
  if (requested.placement == PlacementKind::divided && accumulators < 2) {
    divide(2);
    rejections.push_back({"placement = divided", dotDivisions[2].second});
    return false;
  }
  if (std::optional<std::string> reason = rejectExchange(requested)) {
    rejections.push_back({"cluster = exchange", *reason});
    return false;
  }
  if (!admitsOuterStages(requested))
    return false;
  if (const std::optional<std::string> &refusal = shareInCluster(blocksOf(requested)).refusal) {
    rejections.push_back(
        {llvm::formatv("cluster = {0}", stringifyClusterKind(*requested.cluster)).str(), *refusal});
    return false;
  }
  if (!requested.polynomialExp || *requested.polynomialExp == 0 || budget.exponentials)
    return true;
  rejections.push_back({llvm::formatv("polynomial_exp = {0}", *requested.polynomialExp).str(),
                        "no loop with dots has an exponential whose results are only rounded to 16 "
                        "bits and summed; use polynomial_exp = 0"});
  return false;
}

/// Calls `take` with each candidate whose rows, turns and registers fit, the most preferred first,
/// until it returns false.
void ScheduleSearch::forEachCandidate(ScheduleFields requested,
                                      function_ref<bool(const Candidate &)> take) {
  if (!multiplies && !fixFields(requested))
    return;
  bool mayExchange = !requested.cluster;
  requested.setFixedDefaults();
  if (!multiplies) {
    for (const Candidate &candidate : directCandidates(requested))
      if (!take(candidate))
        return;
    return;
  }
  if (!admits(requested))
    return;
  // Registers of roles are asked for where there are roles.
  std::optional<bool> specialized = requested.warpSpecialize;
  if (!specialized && (requested.producerRegisters || requested.consumerRegisters))
    specialized = true;
  auto tryExchanged = [&] {
    ScheduleFields exchanging = requested;
    exchanging.cluster = ClusterKind::Exchange;
    return !exchangePays(exchanging) ||
           forEachPlaced(exchanging, PlacementKind::divided, /*warpSpecialize=*/true, take);
  };
  auto tryPlaced = [&](PlacementKind placement, bool warpSpecialize) {
    bool exchanges = mayExchange && placement == PlacementKind::divided && warpSpecialize;
    return (!exchanges || tryExchanged()) &&
           forEachPlaced(requested, placement, warpSpecialize, take);
  };
  bool mayDivide = isDividedLast(requested, specialized);
  // Where sums are the limit, halving them is worth more than dots of one role.
  if (mayDivide && mayExchange && !tryExchanged())
    return;
  for (bool warpSpecialize : choices<bool>(specialized, {true, false}))
    for (PlacementKind placement : placements(requested, warpSpecialize))
      if (!tryPlaced(placement, warpSpecialize))
        return;
  if (mayDivide)
    forEachPlaced(requested, PlacementKind::divided, /*warpSpecialize=*/true, take);
}

/// Likewise the candidates with `placement`; false when `take` returned false.
bool ScheduleSearch::forEachPlaced(ScheduleFields requested, PlacementKind placement,
                                   bool warpSpecialize,
                                   function_ref<bool(const Candidate &)> take) {
  requested.placement = placement;
  for (int64_t warps : transposers(requested, warpSpecialize)) {
    requested.transpose = warps;
    for (OverlapKind overlap : overlaps(requested))
      if (!forEachCount(requested, warpSpecialize, {overlap}, take))
        return false;
  }
  return true;
}

/// "transpose = 3, " where a role of its own transposes.
static std::string nameTransposer(const ScheduleFields &fields) {
  return *fields.transpose == 0 ? "" : llvm::formatv("transpose = {0}, ", *fields.transpose).str();
}

static std::string nameShape(const OverlapShape &shape) {
  return ("overlap = " + stringifyOverlapKind(shape.kind)).str();
}

/// Likewise the candidates of `shape`; false when `take` returned false.
bool ScheduleSearch::forEachCount(const ScheduleFields &requested, bool warpSpecialize,
                                  const OverlapShape &shape,
                                  function_ref<bool(const Candidate &)> take) {
  if (std::optional<std::string> reason = rejectShape(shape)) {
    if (rejections.empty())
      rejections.push_back({nameShape(shape), *reason});
    return true;
  }
  for (int64_t consumers : choices<int64_t>(requested.consumers, model.consumers)) {
    // A count that the author did not ask for and that the rows or the dots forbid is no candidate.
    bool isDivided = requested.placement == PlacementKind::divided;
    if (!requested.consumers && (indivisibleRows(consumers, *requested.placement) ||
                                 cutsBox(consumers, *requested.placement) ||
                                 (isDivided && (consumers < 2 || consumers > accumulators))))
      continue;
    Candidate candidate = makeCandidate(requested, warpSpecialize, shape, consumers);
    candidate.registersNeeded = neededRegisters(candidate);
    std::optional<Reason> reason = rejectConsumers(candidate);
    if (!reason && !take(candidate))
      return false;
    if (!reason)
      continue;
    ScheduleRejection rejection{llvm::formatv("warp_specialize = {0}, {1}{2}{3}, consumers = {4}",
                                              warpSpecialize ? "true" : "false",
                                              candidate.isDivided()    ? "placement = divided, "
                                              : candidate.hasReducer() ? "placement = apart, "
                                                                       : "",
                                              nameTransposer(candidate.fields), nameShape(shape),
                                              consumers),
                                reason->text, reason->kind};
    // With blocks that exchange sums and without it is the same.
    if (!llvm::is_contained(rejections, rejection))
      rejections.push_back(std::move(rejection));
  }
  return true;
}

std::optional<ScheduleAttr> ScheduleSearch::run(ScheduleAttr requested) {
  rejections.clear();
  std::optional<ScheduleAttr> found;
  forEachCandidate(requested.getFields(), [&](const Candidate &candidate) {
    found = complete(candidate);
    // Shared memory depends on nothing else that differs between candidates.
    return !found && candidate.shape.leadsAlone();
  });
  return found;
}

SmallVector<ScheduleAttr> ScheduleSearch::list(ScheduleAttr requested, size_t most) {
  SmallVector<ScheduleAttr> found;
  std::optional<Candidate> first;
  auto add = [&](Candidate candidate, bool turns, bool polynomials) {
    if (!turns && !requested.getPingpong())
      candidate.fields.pingpong = false;
    if (!polynomials && !requested.getPolynomialExp())
      candidate.fields.polynomialExp = 0;
    std::optional<ScheduleAttr> schedule = complete(candidate);
    if (schedule && found.size() < most && !llvm::is_contained(found, *schedule))
      found.push_back(*schedule);
  };
  forEachCandidate(requested.getFields(), [&](const Candidate &candidate) {
    bool isFirst = found.empty();
    add(candidate, true, true);
    if (isFirst) {
      add(candidate, false, true);
      add(candidate, true, false);
    }
    add(candidate, false, false);
    for (const Candidate &uneven : withUnevenConsumers(candidate, requested.getFields()))
      add(uneven, true, true);
    if (isFirst)
      for (const Candidate &more : withMoreForProducer(candidate, requested.getFields()))
        add(more, true, true);
    if (isFirst)
      first = candidate;
    return found.size() < most;
  });
  if (first && !requested.getWork() && hasDots(kernel)) {
    first->fields.work = WorkKind::elements;
    add(*first, true, true);
  }
  return found;
}

/// `candidate` with more registers for its producer, where those are a choice and consumers can do
/// with what is left.
std::vector<ScheduleSearch::Candidate>
ScheduleSearch::withMoreForProducer(const Candidate &candidate, const ScheduleFields &requested) {
  std::vector<Candidate> found;
  if (!candidate.isSpecialized() || requested.producerRegisters)
    return found;
  for (int64_t more : model.moreForProducer) {
    ScheduleFields fields = candidate.fields;
    fields.producerRegisters = *fields.producerRegisters + more;
    fields.consumerRegisters = requested.consumerRegisters;
    fields.helperRegisters = requested.helperRegisters;
    Candidate given = makeCandidate(fields, true, candidate.shape, candidate.consumers());
    given.choosesLoads = candidate.choosesLoads;
    given.registersNeeded = candidate.registersNeeded;
    if (!rejectConsumers(given))
      found.push_back(given);
  }
  return found;
}

/// `candidate` with more registers for one of the consumers that have different dots, the one that
/// needs the most first, where those are a choice and the others can do with what is left.
std::vector<ScheduleSearch::Candidate>
ScheduleSearch::withUnevenConsumers(const Candidate &candidate, const ScheduleFields &requested) {
  std::vector<Candidate> found;
  if (!candidate.isDivided() || requested.consumerRegisters)
    return found;
  int64_t consumers = candidate.consumers(), given = candidate.fields.consumerRegisters->most();
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, consumers));
  llvm::stable_sort(order, [&](int64_t a, int64_t b) {
    return candidate.registersNeeded.of(a) > candidate.registersNeeded.of(b);
  });
  for (int64_t favoured : order)
    for (int64_t more : model.moreForConsumer) {
      int64_t less = llvm::alignTo(llvm::divideCeil(more, consumers - 1), hopper::roleRegisterStep);
      SmallVector<int64_t> registers(consumers, given - less);
      registers[favoured] = given + less * (consumers - 1);
      if (given - less < hopper::leastRoleRegisters ||
          registers[favoured] > hopper::mostThreadRegisters)
        continue;
      Candidate uneven = candidate;
      uneven.fields.consumerRegisters = NumberList::get(registers);
      if (!rejectConsumers(uneven))
        found.push_back(uneven);
    }
  return found;
}
