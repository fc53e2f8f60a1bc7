//===- ScheduleLegality.cpp - Which schedules of a kernel are legal -------===//
//
// See ScheduleLegality.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/ScheduleLegality.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/Analysis/RowPartition.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Schedule/ScheduleCost.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// The rows of a dot that `consumers` warpgroups cannot share, or 0.
static int64_t indivisibleRows(const ScheduleFacts &facts, int64_t consumers,
                               PlacementKind placement) {
  int64_t indivisible = 0;
  // Consumers with different dots have all rows each.
  int64_t shares = placement == PlacementKind::divided ? 1 : consumers;
  DenseSet<Operation *> apart = reducerOperations(facts.getKernel(), placement);
  facts.getKernel()->walk([&](DotOp dot) {
    if (apart.contains(dot))
      return;
    // Of a transposed computed operand the contracted rows are divided.
    int64_t rows = computedTranspose(dot.getA())
                       ? cast<RankedTensorType>(dot.getA().getType()).getDimSize(1)
                       : cast<RankedTensorType>(dot.getType()).getDimSize(0);
    if (rows % (shares * hopper::mmaRows) != 0)
      indivisible = rows;
  });
  for (OpOperand *operand : computedBs(facts.getKernel())) {
    int64_t rows = cast<RankedTensorType>(operand->get().getType()).getDimSize(0);
    if (rows % (shares * hopper::mmaRows) != 0)
      indivisible = rows;
  }
  return indivisible;
}

/// Whether the rows of a store cannot be divided among `consumers` warpgroups in parts that are
/// boxes.
static bool cutsBox(const ScheduleFacts &facts, int64_t consumers, PlacementKind placement) {
  if (placement == PlacementKind::divided)
    return false;
  DenseSet<Operation *> apart = reducerOperations(facts.getKernel(), placement);
  return facts.getKernel()
      ->walk([&](StoreOp store) {
        return apart.contains(store) || RowPartition::divides(store, consumers)
                   ? WalkResult::advance()
                   : WalkResult::interrupt();
      })
      .wasInterrupted();
}

bool tessera::isNoCount(const ScheduleFacts &facts, int64_t consumers, PlacementKind placement) {
  return indivisibleRows(facts, consumers, placement) || cutsBox(facts, consumers, placement) ||
         (placement == PlacementKind::divided && (consumers < 2 || consumers > facts.accumulators));
}

std::optional<std::string> tessera::whyNoExchange(const ScheduleFacts &facts,
                                                  const ScheduleFields &requested) {
  if (!exchangesSums(requested))
    return std::nullopt;
  if (ExchangedSums found = findExchangedSums(facts.getKernel()); found.refused)
    return "a store " + found.refusal + "; use cluster = 1";
  return std::nullopt;
}

/// Why a list of `slots` is not for a kernel that loads so many `tiles`, in loops or elsewhere.
static std::string describeMisfit(const NumberList &slots, size_t tiles, StringRef where) {
  return llvm::formatv("the kernel loads {0} tiles {1}, and the list has {2} numbers", tiles, where,
                       slots.getNumbers().size());
}

std::optional<ScheduleRejection> tessera::fixPoint(const ScheduleFacts &facts,
                                                   ScheduleFields &requested) {
  int64_t blocks = countPointBlocks(facts.getKernel());
  if (blocks == 1)
    return std::nullopt;
  ClusterKind own = blocks == 2   ? ClusterKind::Two
                    : blocks == 4 ? ClusterKind::Four
                                  : ClusterKind::Eight;
  if (!facts.multiplies)
    return ScheduleRejection{
        llvm::formatv("cluster = {0}", blocks).str(),
        "the blocks of a cluster have parts of a range, and no dot is left: without dots they have "
        "the tiles of a grid point together; leave 'cluster' out of the tile.split_reduce"};
  if (requested.cluster.value_or(own) != own)
    return ScheduleRejection{
        llvm::formatv("cluster = {0}", stringifyClusterKind(*requested.cluster)).str(),
        llvm::formatv("a range has parts for {0} blocks of a cluster; use cluster = {0}", blocks)};
  if (requested.persistent.value_or(PersistentKind::None) != PersistentKind::None)
    return ScheduleRejection{
        llvm::formatv("persistent = {0}", stringifyPersistentKind(*requested.persistent)).str(),
        "the blocks of a cluster have parts of a range, and meet once; use persistent = none"};
  requested.cluster = own;
  requested.persistent = PersistentKind::None;
  return std::nullopt;
}

std::optional<ScheduleRejection> tessera::whyNoCandidate(const ScheduleFacts &facts,
                                                         const ScheduleFields &requested) {
  if (requested.placement == PlacementKind::divided && facts.accumulators < 2)
    return ScheduleRejection{"placement = divided", facts.whyNotDivided(2)};
  if (std::optional<std::string> reason = whyNoExchange(facts, requested))
    return ScheduleRejection{"cluster = exchange", *reason};
  if (int64_t blocks = blocksOf(requested); blocks > 4 && countPointBlocks(facts.getKernel()) == 1)
    return ScheduleRejection{
        llvm::formatv("cluster = {0}", blocks).str(),
        "so many blocks have tiles together, and those of dots are loaded for at "
        "most 4; use cluster = 4"};
  if (requested.outerStages && !requested.outerStages->fits(facts.outerTiles))
    return ScheduleRejection{
        llvm::formatv("outer_stages = {0}", *requested.outerStages).str(),
        describeMisfit(*requested.outerStages, facts.outerTiles, "once for each tile of the grid")};
  if (const std::optional<std::string> &refusal = facts.shareInCluster(blocksOf(requested)).refusal)
    return ScheduleRejection{
        llvm::formatv("cluster = {0}", stringifyClusterKind(*requested.cluster)).str(), *refusal};
  if (!requested.polynomialExp || *requested.polynomialExp == 0 || facts.budget.exponentials)
    return std::nullopt;
  return ScheduleRejection{llvm::formatv("polynomial_exp = {0}", *requested.polynomialExp).str(),
                           "no loop with dots has an exponential whose results are only rounded to "
                           "16 bits and summed; use polynomial_exp = 0"};
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// Why tiles that arithmetic reads cannot come through pipes.
static std::optional<std::string> whyNoPipes(const Candidate &candidate) {
  if (candidate.fields.producer != ProducerKind::All)
    return std::nullopt;
  // tile-even-loops lets the tiles of dots pass that only other blocks need.
  if (!candidate.sharing.evened.empty())
    return "producer = all has no room for loops that run longer in other blocks of a cluster; use "
           "producer = operands or cluster = 1";
  return std::nullopt;
}

/// Why the first dots of `candidate` cannot run ahead by themselves.
static std::optional<std::string> whyNoLead(const Candidate &candidate) {
  if (!candidate.shape.leadsAlone())
    return std::nullopt;
  if (!candidate.isSpecialized())
    return "overlap = lead keeps tiles that a producer loads a step ahead; use "
           "producer = operands or overlap = 1";
  // tile-even-loops lets the tiles of other blocks pass behind the loop.
  if (!candidate.sharing.evened.empty())
    return "overlap = lead has no room for loops that run longer in other blocks of a "
           "cluster; use overlap = 1 or cluster = 1";
  if (candidate.isDivided())
    return "overlap = lead takes the first and the last dot of a step in one role; use "
           "placement = apart or overlap = 1";
  if (*candidate.fields.pingpong)
    return "overlap = lead leaves no turn to take; use pingpong = false or overlap = 1";
  return std::nullopt;
}

/// Why the warpgroups of `candidate` cannot take its tiles or its turns.
static std::optional<std::string> whyNoTurns(const ScheduleFacts &facts,
                                             const Candidate &candidate) {
  const ScheduleFields &fields = candidate.fields;
  if (fields.persistent == PersistentKind::None && fields.order &&
      fields.order != OrderKind::Linear)
    return "the order of tiles is the launch's with persistent = none; use static or dynamic, or "
           "order = linear";
  tile::KernelOp own = facts.getKernel();
  if (fields.order == OrderKind::Narrow && own.getGrid().size() != 2)
    return llvm::formatv(
               "order = narrow is for a grid of two dimensions, and this one has {0}; use "
               "order = linear",
               own.getGrid().size())
        .str();
  if (candidate.sharing.takesProducer && !candidate.isSpecialized())
    return "the loops around what a cluster loads together run longer in some of its blocks, which "
           "takes a producer that loads for all of them; use producer = operands or cluster = 1";
  if (fields.persistent == PersistentKind::Dynamic && !candidate.isSpecialized())
    return "persistent = dynamic needs a producer, which fetches the next tile; with "
           "producer = none use static";
  if (*fields.pingpong && candidate.consumers() < 2)
    return "ping-pong takes two consumers or more that take turns";
  if (*fields.pingpong && facts.work.computesB)
    return "ping-pong keeps warpgroups apart that meet where they compute operand b of a dot "
           "together; use pingpong = false";
  if (*fields.pingpong && !facts.canTakeTurns)
    return facts.worksBetweenDots
               ? "ping-pong needs work between dependent dots in a loop that holds no other loop"
               : "ping-pong needs a loop with work between dependent dots, and the kernel has none";
  return std::nullopt;
}

/// Why the sums of `candidate` cannot have the order that is asked for.
static std::optional<std::string> whyNoOrder(const ScheduleFacts &facts,
                                             const Candidate &candidate) {
  const ScheduleFields &fields = candidate.fields;
  if (!facts.ordersSums)
    return std::nullopt;
  if (!candidate.isSpecialized() ||
      fields.persistent.value_or(PersistentKind::Dynamic) != PersistentKind::Dynamic)
    return "sums in a fixed order wait for thread blocks with smaller numbers, and one of these "
           "may not have started unless numbers are drawn at the start; use persistent = dynamic "
           "with "
           "producer = operands, or leave fixed_sums out";
  bool exchanges = exchangesSums(fields);
  if (*fields.cluster != ClusterKind::One && !exchanges)
    return "in a cluster a number is that of several blocks, and sums in a fixed order take one "
           "for each, or blocks that make them together; use cluster = 1 or exchange, or leave "
           "fixed_sums out";
  if (exchanges && !llvm::all_of(facts.work.sums, [&](const ReducerSum &sum) {
        return dividesTickets(sum, ticketsOf(fields));
      }))
    return "sums in a fixed order that two blocks make together have tickets for parts of their "
           "columns, which takes a view of as many as whole tiles have; use cluster = 1 or leave "
           "fixed_sums out";
  bool areApart = llvm::all_of(facts.ordered.sums, [&](const OrderedSum &sum) {
    return llvm::any_of(facts.work.sums,
                        [&](const ReducerSum &apart) { return apart.store == sum.store; });
  });
  bool isApart = candidate.hasReducer() && areApart && fields.store != StoreKind::direct &&
                 facts.work.areSumsBulk;
  if (!isApart && (candidate.hasReducer() || fields.store != StoreKind::writer))
    return "sums in a fixed order are added by copies of one thread, which waits for their "
           "tickets; use store = writer, placement = apart with store = tma, or leave fixed_sums "
           "out";
  return std::nullopt;
}

/// Why the rows, the turns or the rules of helpers forbid `candidate`.
static std::optional<std::string> whyForbidden(const ScheduleFacts &facts,
                                               const Candidate &candidate) {
  int64_t consumers = candidate.consumers();
  PlacementKind placement = *candidate.fields.placement;
  if (std::optional<std::string> reason =
          facts.work.whyNot(candidate.fields, *candidate.fields.speculate))
    return reason;
  if (candidate.isDivided() && !facts.divide(consumers))
    return facts.whyNotDivided(consumers);
  if (std::optional<std::string> reason = whyNoLead(candidate))
    return reason;
  if (std::optional<std::string> reason = whyNoPipes(candidate))
    return reason;
  if (int64_t indivisible = indivisibleRows(facts, consumers, placement))
    return llvm::formatv("{0} rows of a dot cannot be divided among {1} warpgroups in multiples "
                         "of 64",
                         indivisible, consumers)
        .str();
  if (cutsBox(facts, consumers, placement))
    return llvm::formatv("the rows of a store cannot be divided among {0} warpgroups in parts that "
                         "are boxes of the view",
                         consumers)
        .str();
  if (std::optional<std::string> reason = whyNoTurns(facts, candidate))
    return reason;
  if (std::optional<std::string> reason = whyNoOrder(facts, candidate))
    return reason;
  KernelOp program = facts.rotated(candidate.shape);
  auto whyNot = [](char operand, const ComputedOperands &operands) -> std::optional<std::string> {
    if (!operands.refusal)
      return std::nullopt;
    return llvm::formatv("operand {0} of a dot is computed, and goes through shared memory: {1}; "
                         "use overlap = 1",
                         operand, *operands.refusal)
        .str();
  };
  if (std::optional<std::string> reason = whyNot('a', computedFirstOperands(program, placement)))
    return reason;
  return whyNot('b', computedSecondOperands(program));
}

/// Why the roles of `candidate` cannot have the registers that they ask for.
static std::optional<std::string> whyNoRegisters(const Candidate &candidate) {
  const NumberList &ofConsumers = *candidate.fields.consumerRegisters;
  if (!ofConsumers.isUniform() && !candidate.isDivided())
    return "a list of registers is for consumers of different programs; use one number for "
           "consumer_registers, or placement = divided";
  if (!ofConsumers.fits(candidate.consumers()))
    return llvm::formatv("the list of consumer_registers has {0} numbers, and there are {1} "
                         "consumers",
                         ofConsumers.getNumbers().size(), candidate.consumers())
        .str();
  if (candidate.isSpecialized())
    return hop::whyPoolTooSmall(candidate.registerRequests());
  if (ofConsumers.most() <= candidate.entryRegisters())
    return std::nullopt;
  return llvm::formatv("without a producer the warpgroups take what the launch gives each of {0} "
                       "threads, {1} registers; use at most so many per consumer thread",
                       candidate.consumers() * hopper::warpgroupThreads, candidate.entryRegisters())
      .str();
}

/// Why a consumer of `candidate` cannot hold its tiles.
static std::optional<std::string> whyTooFewRegisters(const ScheduleFacts &facts,
                                                     const Candidate &candidate) {
  const NumberList &given = *candidate.fields.consumerRegisters;
  const NumberList &needed = candidate.registersNeeded;
  NumberList usable = usableBy(facts, candidate);
  // With one number for all, the one that needs the most decides.
  if (given.isUniform()) {
    if (needed.most() <= usable.most())
      return std::nullopt;
    return llvm::formatv("a consumer thread needs {0} registers and can use {1} of its {2}",
                         needed.most(), usable.most(), given.most())
        .str();
  }
  for (int64_t i = 0; i < candidate.consumers(); ++i)
    if (needed.of(i) > usable.of(i))
      return llvm::formatv("a thread of consumer{0} needs {1} registers and has {2}", i,
                           needed.of(i), given.of(i))
          .str();
  return std::nullopt;
}

/// Why the registers forbid `candidate`.
static std::optional<std::string> whyOverBudget(const ScheduleFacts &facts,
                                                const Candidate &candidate) {
  if (std::optional<std::string> reason = whyNoRegisters(candidate))
    return reason;
  if (std::optional<std::string> reason = whyTooFewRegisters(facts, candidate))
    return reason;
  // Products of consumers with different dots are cut into columns that fit, and so are those of a
  // consumer whose registers the schedule says: cut, they read operand a again.
  int64_t entry = candidate.entryRegisters();
  if (int64_t widest = widestDotRegisters(facts.getKernel());
      widest > entry && !candidate.isDivided() && candidate.choosesRegisters)
    return llvm::formatv("ptxas wants {0} registers for the widest dot, and with {1} warpgroups a "
                         "thread starts with {2}",
                         widest, candidate.warpgroups(), entry)
        .str();
  return std::nullopt;
}

std::optional<Reason> tessera::whyNot(const ScheduleFacts &facts, const Candidate &candidate) {
  if (std::optional<std::string> reason = whyForbidden(facts, candidate))
    return Reason{*reason};
  if (std::optional<std::string> reason = whyOverBudget(facts, candidate))
    return Reason{*reason, RefusalKind::Registers};
  if (const std::optional<std::string> &reason =
          facts.whyNoShares(candidate.consumers(), *candidate.fields.placement))
    return Reason{*reason};
  return std::nullopt;
}

std::optional<ScheduleRejection> tessera::whyNotSlots(const ScheduleFacts &facts,
                                                      const Candidate &candidate,
                                                      const NumberList &stages,
                                                      const NumberList &outerStages) {
  const ScheduleFields &fields = candidate.fields;
  int64_t overlap = candidate.shape.getStages();
  std::string text;
  llvm::raw_string_ostream(text) << "stages = " << stages;
  size_t tiles = facts.pipesInLoops(fields);
  if (!stages.fits(tiles))
    return ScheduleRejection{text, describeMisfit(stages, tiles, "in loops")};
  if (candidate.shape.leadsAlone() && stages.of(0) < 2)
    return ScheduleRejection{text, "with overlap = lead a tile is kept while the next one is read, "
                                   "which takes stages = 2 or more; or use overlap = 1"};
  if (!candidate.sharing.runsAhead(stages, overlap))
    return ScheduleRejection{
        text, llvm::formatv("in a cluster tiles are loaded up to {0} iterations ahead of a block "
                            "whose loop is shorter, which takes stages = {0} or more; or use "
                            "cluster = 1",
                            overlap)
                  .str()};
  SharedMemoryUse shared = sharedUse(facts, candidate, stages, outerStages);
  if (shared.total() <= hopper::sharedMemoryOfBlock)
    return std::nullopt;
  return ScheduleRejection{llvm::formatv("{0}, outer_stages = {1}, store = {2}", text, outerStages,
                                         stringifyStoreKind(*fields.store))
                               .str(),
                           llvm::formatv("it takes {0}, and a CTA can have {1}",
                                         describeUse(shared), hopper::sharedMemoryOfBlock)
                               .str(),
                           RefusalKind::SharedMemory};
}
