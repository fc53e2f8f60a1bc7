//===- ConsumerRules.cpp - What forbids consumers their share ---------------===//
//
// The part of ScheduleSearch that decides whether the consumers of a candidate
// can divide the rows, take turns and have the registers that they need.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ApartSums.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/RowPartition.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Schedule/ScheduleSearch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Threading.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// The rows of a dot that `consumers` warpgroups cannot share, or 0.
int64_t ScheduleSearch::indivisibleRows(int64_t consumers, PlacementKind placement) const {
  int64_t indivisible = 0;
  // Consumers with different dots have all rows each.
  int64_t shares = placement == PlacementKind::divided ? 1 : consumers;
  DenseSet<Operation *> apart = apartOperations(kernel, placement);
  kernel->walk([&](DotOp dot) {
    if (apart.contains(dot))
      return;
    // Of a transposed computed operand the contracted rows are divided.
    int64_t rows = computedTranspose(dot.getA())
                       ? cast<RankedTensorType>(dot.getA().getType()).getDimSize(1)
                       : cast<RankedTensorType>(dot.getType()).getDimSize(0);
    if (rows % (shares * hopper::mmaRows) != 0)
      indivisible = rows;
  });
  for (OpOperand *operand : computedBs(kernel)) {
    int64_t rows = cast<RankedTensorType>(operand->get().getType()).getDimSize(0);
    if (rows % (shares * hopper::mmaRows) != 0)
      indivisible = rows;
  }
  return indivisible;
}

/// Whether the rows of a store cannot be divided among `consumers` warpgroups in parts that are
/// boxes.
bool ScheduleSearch::cutsBox(int64_t consumers, PlacementKind placement) const {
  if (placement == PlacementKind::divided)
    return false;
  DenseSet<Operation *> apart = apartOperations(kernel, placement);
  return kernel
      ->walk([&](StoreOp store) {
        return apart.contains(store) || RowPartition::divides(store, consumers)
                   ? WalkResult::advance()
                   : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Why `consumers` warpgroups cannot each have a share of the tiles, as tile-warp-specialize will
/// find it: some tile is needed whole, or divided in another way.
const std::optional<std::string> &ScheduleSearch::rejectDivision(int64_t consumers,
                                                                 PlacementKind placement) {
  auto [entry, isNew] = divisions.try_emplace({consumers, placement});
  if (!isNew || placement == PlacementKind::divided)
    return entry->second;
  // The two regions of a speculation become whole programs only later: of one of these it asks.
  OwningOpRef<KernelOp> exact;
  KernelOp program = kernel;
  if (findSpeculation(kernel)) {
    exact = kernel.clone();
    takeExactRegion(program = *exact);
  }
  std::optional<std::string> &reason = entry->second;
  // Kernels are scheduled side by side, and a handler sees what is said of all of them.
  ScopedDiagnosticHandler capture(
      kernel.getContext(), [&, own = llvm::get_threadid()](Diagnostic &error) {
        if (llvm::get_threadid() != own)
          return failure();
        if (reason)
          return success();
        reason = error.str();
        if (auto place = error.getLocation()->findInstanceOf<FileLineColLoc>())
          reason = llvm::formatv("line {0}: {1}", place.getLine(), *reason).str();
        return success();
      });
  (void)RowPartition::get(program, consumers, apartOperations(program, placement));
  return reason;
}

SmallVector<hop::RegisterRequest> ScheduleSearch::Candidate::registerRequests() const {
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
      requests.push_back({("the " + helper->name).str(), 1, fields.helperRegisters});
  return requests;
}

int64_t ScheduleSearch::Candidate::entryRegisters() const {
  return isSpecialized() ? hop::entryRegisters(registerRequests())
                         : hop::entryRegisters(consumers());
}

/// Why the roles of `candidate` cannot have the registers that they ask for.
static std::optional<std::string> rejectRegisters(const ScheduleSearch::Candidate &candidate) {
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

/// Why the warpgroups of `candidate` cannot take its tiles or its turns.
std::optional<std::string> ScheduleSearch::rejectTurns(const Candidate &candidate) const {
  const ScheduleFields &fields = candidate.fields;
  if (fields.persistent == PersistentKind::None && fields.order &&
      fields.order != OrderKind::Linear)
    return "the order of tiles is the launch's with persistent = none; use static or dynamic, or "
           "order = "
           "linear";
  tile::KernelOp own = kernel;
  if (fields.order == OrderKind::Narrow && own.getGrid().size() != 2)
    return llvm::formatv(
               "order = narrow is for a grid of two dimensions, and this one has {0}; use "
               "order = linear",
               own.getGrid().size())
        .str();
  if (candidate.sharing.takesProducer && !candidate.isSpecialized())
    return "the loops around what a cluster loads together run longer in some of its blocks, which "
           "takes a producer that loads for all of them; use warp_specialize = true or cluster = 1";
  if (fields.persistent == PersistentKind::Dynamic && !candidate.isSpecialized())
    return "persistent = dynamic needs a producer, which fetches the next tile; with "
           "warp_specialize = "
           "false use static";
  if (*fields.pingpong && candidate.consumers() < 2)
    return "ping-pong takes two consumers or more that take turns";
  if (*fields.pingpong && work.computesB)
    return "ping-pong keeps warpgroups apart that meet where they compute operand b of a dot "
           "together; use pingpong = false";
  if (*fields.pingpong && !canTakeTurns)
    return worksBetweenDots
               ? "ping-pong needs work between dependent dots in a loop that holds no other loop"
               : "ping-pong needs a loop with work between dependent dots, and the kernel has none";
  return std::nullopt;
}

/// Why a consumer of `candidate` cannot hold its tiles.
std::optional<std::string> ScheduleSearch::rejectNeeds(const Candidate &candidate) const {
  const NumberList &budget = *candidate.fields.consumerRegisters;
  const NumberList &needed = candidate.registersNeeded;
  NumberList usable = usableBy(candidate);
  // With one number for all, the one that needs the most decides.
  if (budget.isUniform()) {
    if (needed.most() <= usable.most())
      return std::nullopt;
    return llvm::formatv("a consumer thread needs {0} registers and can use {1} of its {2}",
                         needed.most(), usable.most(), budget.most())
        .str();
  }
  for (int64_t i = 0; i < candidate.consumers(); ++i)
    if (needed.of(i) > usable.of(i))
      return llvm::formatv("a thread of consumer{0} needs {1} registers and has {2}", i,
                           needed.of(i), budget.of(i))
          .str();
  return std::nullopt;
}

/// Why the rows, the turns or the rules of helpers forbid `candidate`.
std::optional<std::string> ScheduleSearch::rejectRules(const Candidate &candidate) {
  int64_t consumers = candidate.consumers();
  PlacementKind placement = *candidate.fields.placement;
  if (std::optional<std::string> reason =
          work.whyNot(candidate.fields, *candidate.fields.speculate))
    return reason;
  if (candidate.isDivided() && !divide(consumers))
    return dotDivisions[consumers].second;
  if (std::optional<std::string> reason = rejectLead(candidate))
    return reason;
  if (std::optional<std::string> reason = rejectLoads(candidate))
    return reason;
  if (int64_t indivisible = indivisibleRows(consumers, placement))
    return llvm::formatv("{0} rows of a dot cannot be divided among {1} warpgroups in multiples "
                         "of 64",
                         indivisible, consumers)
        .str();
  if (cutsBox(consumers, placement))
    return llvm::formatv("the rows of a store cannot be divided among {0} warpgroups in parts that "
                         "are boxes of the view",
                         consumers)
        .str();
  if (std::optional<std::string> reason = rejectTurns(candidate))
    return reason;
  if (std::optional<std::string> reason = rejectStaging(candidate))
    return reason;
  if (std::optional<std::string> reason = rejectSums(candidate))
    return reason;
  if (std::optional<std::string> reason = computedSecondOperands(rotated(candidate)).refusal)
    return "operand b of a dot is computed, and goes through shared memory: " + *reason +
           "; use overlap = 1";
  return std::nullopt;
}

/// Why the registers forbid `candidate`.
std::optional<std::string> ScheduleSearch::rejectBudget(const Candidate &candidate) const {
  if (std::optional<std::string> reason = rejectRegisters(candidate))
    return reason;
  if (std::optional<std::string> reason = rejectNeeds(candidate))
    return reason;
  // Products of consumers with different dots are cut into columns that fit.
  int64_t entry = candidate.entryRegisters();
  if (int64_t widest = widestDotRegisters(kernel); widest > entry && !candidate.isDivided())
    return llvm::formatv("ptxas wants {0} registers for the widest dot, and with {1} warpgroups a "
                         "thread starts with {2}",
                         widest, candidate.warpgroups(), entry)
        .str();
  return std::nullopt;
}

std::optional<ScheduleSearch::Reason> ScheduleSearch::rejectConsumers(const Candidate &candidate) {
  if (std::optional<std::string> reason = rejectRules(candidate))
    return Reason{*reason};
  if (std::optional<std::string> reason = rejectBudget(candidate))
    return Reason{*reason, RefusalKind::Registers};
  if (const std::optional<std::string> &reason =
          rejectDivision(candidate.consumers(), *candidate.fields.placement))
    return Reason{*reason};
  return std::nullopt;
}
