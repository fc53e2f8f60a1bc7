//===- ConsumerRules.cpp - What forbids consumers their share ---------------===//
//
// The part of ScheduleSearch that decides whether the consumers of a candidate
// can divide the rows, take turns and have the registers that they need.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ApartSums.h"
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
  // The two regions of a speculation become whole programs only later.
  if (!isNew || findSpeculation(kernel) || placement == PlacementKind::divided)
    return entry->second;
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
  (void)RowPartition::get(kernel, consumers, apartOperations(kernel, placement));
  return reason;
}

int64_t ScheduleSearch::Candidate::entryRegisters() const {
  return isSpecialized() ? hop::entryRegisters(warpgroups(), registers.consumer)
                         : hop::entryRegisters(consumers());
}

/// Why the roles of `candidate` cannot have the registers that they ask for.
static std::optional<std::string> rejectRegisters(const ScheduleSearch::Candidate &candidate) {
  const RegisterSplit &split = candidate.registers;
  SmallVector<hop::RegisterRequest> requests = {
      {sharesTransposer(candidate.fields) ? "the producer and the transposer" : "the producer", 1,
       split.producer},
      {"the consumers", candidate.consumers(), split.consumer}};
  if (candidate.hasHelperWarpgroup())
    requests.push_back({candidate.hasReducer        ? "the reducer"
                        : candidate.hasTransposer() ? "the transposer"
                                                    : "the converter",
                        1, candidate.fields.reducerRegisters});
  if (candidate.isSpecialized())
    return hop::whyPoolTooSmall(requests);
  if (split.consumer <= candidate.entryRegisters())
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
  if (*fields.pingpong && !canTakeTurns)
    return worksBetweenDots
               ? "ping-pong needs work between dependent dots in a loop that holds no other loop"
               : "ping-pong needs a loop with work between dependent dots, and the kernel has none";
  return std::nullopt;
}

/// Why the rows, the turns or the registers forbid `candidate`.
std::optional<std::string> ScheduleSearch::rejectConsumers(const Candidate &candidate) {
  int64_t consumers = candidate.consumers();
  PlacementKind placement = *candidate.fields.placement;
  if (std::optional<std::string> reason = rejectPlacement(candidate))
    return reason;
  if (std::optional<std::string> reason = rejectLead(candidate))
    return reason;
  if (std::optional<std::string> reason = rejectTransposer(candidate))
    return reason;
  if (std::optional<std::string> reason = rejectConverter(candidate))
    return reason;
  if (std::optional<std::string> reason = rejectGathers(candidate))
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
  if (candidate.fields.operands == OperandKind::shared)
    if (std::optional<std::string> reason =
            computedOperands(rotated(candidate), OperandKind::shared, placement).refusal)
      return *reason + "; use operands = registers";
  if (std::optional<std::string> reason = rejectRegisters(candidate))
    return reason;
  int64_t budget = candidate.registers.consumer, needed = candidate.registersNeeded;
  if (int64_t usable = usableBy(candidate); needed > usable)
    return llvm::formatv("a consumer thread needs {0} registers and can use {1} of its {2}", needed,
                         usable, budget)
        .str();
  // Products of consumers with different dots are cut into columns that fit.
  int64_t entry = candidate.entryRegisters();
  if (int64_t widest = widestDotRegisters(kernel, model); widest > entry && !candidate.isDivided())
    return llvm::formatv("ptxas wants {0} registers for the widest dot, and with {1} warpgroups a "
                         "thread starts with {2}",
                         widest, candidate.warpgroups(), entry)
        .str();
  return rejectDivision(consumers, placement);
}
