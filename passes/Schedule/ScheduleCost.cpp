//===- ScheduleCost.cpp - What schedules of a kernel cost -----------------===//
//
// See ScheduleCost.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/ScheduleCost.h"
#include "dialects/Hop/RegisterPool.h"
#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/MemoryDependenceAnalysis.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Schedule/ScheduleLegality.h"
#include "passes/Schedule/SchedulePreference.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

SmallVector<hop::RegisterRequest> Candidate::registerRequests() const {
  const NumberList &ofConsumers = *fields.consumerRegisters;
  SmallVector<hop::RegisterRequest> requests = {
      {sharesTransposer(fields) ? "the producer and the transposer" : "the producer", 1,
       fields.producerRegisters}};
  if (ofConsumers.isUniform())
    requests.push_back({"the consumers", consumers(), ofConsumers.most()});
  else
    for (auto [i, number] : llvm::enumerate(ofConsumers.getNumbers()))
      requests.push_back({("consumer" + Twine(i)).str(), 1, number});
  for (const Helper *helper : helpers)
    if (helper->hasWarpgroup(fields))
      requests.push_back({("the " + helper->name).str(), 1, registersOfHelpers});
  return requests;
}

int64_t Candidate::entryRegisters() const {
  return isSpecialized() ? hop::entryRegisters(registerRequests())
                         : hop::entryRegisters(consumers());
}

NumberList tessera::neededRegisters(const ScheduleFacts &facts, const Candidate &candidate) {
  if (candidate.isDivided()) {
    const std::optional<DotDivision> &division = facts.divide(candidate.consumers());
    return division
               ? dividedRegisters(facts.getKernel(), *division, *candidate.fields.work, facts.model)
               : NumberList(0);
  }
  return NumberList(consumerRegisters(facts.rotated(candidate.shape), candidate.consumers(),
                                      candidate.isSpecialized(), *candidate.fields.placement,
                                      *candidate.fields.work, facts.model));
}

/// Registers of a thread of each consumer that tiles and what is beside them can have. Those of
/// consumers with different dots have their places from the first step on: 198 fit into 200 at
/// d = 256.
NumberList tessera::usableBy(const ScheduleFacts &facts, const Candidate &candidate) {
  const NumberList &given = *candidate.fields.consumerRegisters;
  return candidate.isDivided() ? given : NumberList(usableRegisters(given.most(), facts.model));
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

int64_t tessera::operandBytes(const ScheduleFacts &facts, const Candidate &candidate) {
  const ScheduleFields &fields = candidate.fields;
  KernelOp program = facts.rotated(candidate.shape);
  int64_t bytes = computedFirstOperands(program, *fields.placement).bytes +
                  computedSecondOperands(program).bytes +
                  transposedBytes(facts.getKernel(), candidate.consumers(),
                                  candidate.hasHelper(RoleTask::Transpose)) +
                  convertedBytes(facts.getKernel());
  if (candidate.isDivided())
    bytes += crossingBytes(facts.getKernel(), *facts.divide(candidate.consumers()));
  return bytes;
}

SharedMemoryUse tessera::sharedUse(const ScheduleFacts &facts, const Candidate &candidate,
                                   const NumberList &stages, const NumberList &outerStages) {
  SharedMemoryUse use = sharedMemoryUse(facts.getKernel(), stages, outerStages, candidate.fields);
  use.operands += candidate.operandBytes;
  use.exchanges += candidate.exchangeBytes;
  return use;
}

std::string tessera::describeUse(const SharedMemoryUse &shared) {
  std::string retries =
      shared.retries ? llvm::formatv(", grid points to run again {0}", shared.retries).str() : "";
  std::string operands =
      shared.operands ? llvm::formatv(", computed operands {0}", shared.operands).str() : "";
  std::string numbers =
      shared.numbers ? llvm::formatv(", numbers of tiles {0}", shared.numbers).str() : "";
  std::string exchanges =
      shared.exchanges ? llvm::formatv(", exchanges of warps {0}", shared.exchanges).str() : "";
  std::string bounds = shared.bounds ? llvm::formatv(", bounds {0}", shared.bounds).str() : "";
  return llvm::formatv("{0} bytes of shared memory (tiles {1}{2}, staging of stores {3}, "
                       "mbarriers {4}{5}{6}{7}{8})",
                       shared.total(), shared.tiles, operands, shared.staging, shared.barriers,
                       retries, numbers, bounds, exchanges)
      .str();
}

std::string tessera::describeUse(const ScheduleFacts &facts, const Candidate &candidate) {
  NumberList usable = usableBy(facts, candidate), needed = candidate.registersNeeded;
  if (usable.isUniform())
    needed = NumberList(needed.most());
  return llvm::formatv("{0} of {1} registers per consumer thread and {2} of {3}", needed, usable,
                       describeUse(sharedUse(facts, candidate)), hopper::sharedMemoryOfBlock)
      .str();
}

//===----------------------------------------------------------------------===//
// Cycles
//===----------------------------------------------------------------------===//

/// Whether a grid point may touch an element that it stores before; a writer stores at its own
/// time.
static bool touchesStored(KernelOp kernel) {
  MemoryDependenceAnalysis order(
      kernel.getBody(), kernel.getBody().getArguments().drop_front(kernel.getNumArguments()),
      kernel.getGrid());
  bool meet = false;
  order.forEachPair(
      [&](const AccessPair &pair) { meet |= pair.earlier.stores && order.mayMeet(pair); });
  return meet;
}

/// Whether the kernel adds tiles to memory, which takes long, and a role that does it in bulk takes
/// all that a launch may have, and fits beside two slots of each loaded tile.
bool tessera::writerPays(const ScheduleFacts &facts, const ScheduleFields &fields) {
  ScheduleFields withWriter = fields;
  withWriter.store = StoreKind::writer;
  SharedMemoryUse use = sharedMemoryUse(facts.getKernel(), fields.stages.value_or(NumberList(2)),
                                        fields.outerStages.value_or(NumberList(1)), withWriter);
  bool fits = use.total() <= hopper::sharedMemoryOfBlock;
  SmallVector<StoredTile> stored = storedTiles(facts.getKernel());
  auto isBulk = [](StoredTile &tile) {
    return llvm::all_of(tile.stores, [&](StoreOp store) {
      return !whyNoBulkStore(store, tile.type) && writesWholeUnits(store);
    });
  };
  bool adds = llvm::any_of(stored, [](StoredTile &tile) { return tile.stores.front().getAdd(); });
  // Of a partial sum each warpgroup has a tile of its own.
  bool isPartial =
      facts.getKernel()
          ->walk([](DotOp dot) {
            return computedTranspose(dot.getA()) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  return fits && adds && !isPartial && !facts.work.gathers && fields.hasProducer() &&
         leavesWriter(fields) && llvm::all_of(stored, isBulk) && !touchesStored(facts.getKernel());
}

/// Where the sums of an iteration take longer on their way to memory than its dots, two blocks that
/// make them together send half as much.
bool tessera::exchangePays(const ScheduleFacts &facts, const ScheduleFields &exchanging) {
  int64_t bytes = 0;
  for (const ReducerSum &sum : facts.work.sums)
    bytes += tileBytes(StoreOp(sum.store).getValue().getType());
  return bytes > facts.budget.dots * facts.model.bytesOfSums && !whyNoExchange(facts, exchanging) &&
         !facts.shareInCluster(exchangingBlocks).refusal;
}

std::optional<std::string> tessera::explainExponentials(const ScheduleFacts &facts, int64_t share) {
  if (!facts.budget.exponentials ||
      facts.budget.functions <= std::max(facts.budget.dots, facts.budget.instructions))
    return std::nullopt;
  return llvm::formatv("polynomial_exp = {0}: an iteration takes {1:F0} cycles of the tensor "
                       "cores, {2:F0} of the "
                       "special functions ({3:F0} without) and {4:F0} of instructions ({5:F0} "
                       "without)",
                       share, facts.budget.dots, facts.budget.functionsWith(share),
                       facts.budget.functions, facts.budget.instructionsWith(share),
                       facts.budget.instructions)
      .str();
}

std::optional<std::string> tessera::explainLead(const ScheduleFacts &facts, ScheduleAttr schedule) {
  if (schedule.getPlacement() != PlacementKind::apart ||
      (schedule.getOverlap() != OverlapKind::One && schedule.getOverlap() != OverlapKind::Lead))
    return std::nullopt;
  return llvm::formatv(
             "overlap = {0}: an iteration takes {1:F0} cycles of the tensor cores, {2:F0} of "
             "them its first dot, and {3:F0} of special functions and instructions; it "
             "pays to issue that dot an iteration ahead from {4:F0} and {5:F0} on",
             stringifyOverlapKind(*schedule.getOverlap()), facts.budget.dots, facts.firstDot,
             facts.budget.functions + facts.budget.instructions, facts.model.leastDotAhead,
             facts.model.leastWorkForLead * facts.budget.dots)
      .str();
}
