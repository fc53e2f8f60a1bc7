//===- PlacementChoice.cpp - What runs in roles of its own -----------------===//
//
// The part of ScheduleSearch that decides which helpers there are to be (Helpers.h), and what they
// leave to the others.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/ExchangedSums.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Schedule/ScheduleSearch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Whether loops need not be rotated.
static bool keepsSteps(const ScheduleFields &requested) {
  return OverlapShape{requested.overlap.value_or(OverlapKind::One)}.getStages() == 1;
}

/// The placements to try, the preferred one first: a sum apart waits for its memory while the other
/// dots go on.
SmallVector<PlacementKind> ScheduleSearch::placements(const ScheduleFields &requested,
                                                      bool warpSpecialize) const {
  if (requested.placement)
    return {*requested.placement};
  if (requested.helperRegisters && loadsToTranspose(kernel).empty() && !work.converts)
    return {PlacementKind::apart};
  bool isOpen = !work.sums.empty() && !work.converts && !work.gathers && warpSpecialize &&
                keepsSteps(requested) && !findSpeculation(kernel);
  return isOpen ? SmallVector<PlacementKind>{PlacementKind::apart, PlacementKind::rows}
                : SmallVector<PlacementKind>{PlacementKind::rows};
}

/// Whether consumers with different dots are a choice where nothing else fits.
bool ScheduleSearch::isDividedLast(const ScheduleFields &requested,
                                   std::optional<bool> specialized) const {
  return !requested.placement && accumulators > 1 &&
         ((!work.gathers && !work.converts) || work.sums.empty()) && specialized.value_or(true) &&
         keepsSteps(requested) && !requested.pingpong.value_or(false) && !findSpeculation(kernel) &&
         (!requested.helperRegisters || !work.sums.empty() || work.converts);
}

/// The division of the dots among `consumers` with different programs.
const std::optional<DotDivision> &ScheduleSearch::divide(int64_t consumers) {
  auto [entry, isNew] = dotDivisions.try_emplace(consumers);
  auto &[division, reason] = entry->second;
  if (!isNew)
    return division;
  DivisionRefusal refusal;
  division = DotDivision::get(kernel, consumers, refusal);
  if (!division) {
    reason = refusal.reason;
    if (auto place = refusal.op->getLoc()->findInstanceOf<FileLineColLoc>();
        place && refusal.op != kernel)
      reason = llvm::formatv("line {0}: {1}", place.getLine(), reason).str();
  }
  return division;
}

/// What a step may work on, the preferred first. `3` gains nothing where another warpgroup fills
/// the tensor cores (`./dev bench ablation`, docs/lab/schedules.md). A wide accumulator is scaled
/// before the next dot, while the first dots of the step run: after it, the scaling would hold them
/// up. A dot that runs ahead by itself takes no registers, as a tile is dead by then, but copies of
/// operands, a wait more in each step, and a tile more than the loop has. So it is tried where the
/// work between the dots is long enough that the tensor cores would be idle, and that dot too.
SmallVector<OverlapKind> ScheduleSearch::overlaps(const ScheduleFields &requested) const {
  if (requested.overlap)
    return {*requested.overlap};
  if (requested.placement == PlacementKind::apart && leadPays)
    return {OverlapKind::Lead, OverlapKind::One};
  if (requested.placement != PlacementKind::rows)
    return {OverlapKind::One};
  return {scalesWideTiles ? OverlapKind::Scaled : OverlapKind::Two, OverlapKind::One};
}

std::optional<std::string> ScheduleSearch::explainLead(ScheduleAttr schedule) const {
  if (schedule.getPlacement() != PlacementKind::apart ||
      (schedule.getOverlap() != OverlapKind::One && schedule.getOverlap() != OverlapKind::Lead))
    return std::nullopt;
  return llvm::formatv(
             "overlap = {0}: an iteration takes {1:F0} cycles of the tensor cores, {2:F0} of "
             "them its first dot, and {3:F0} of special functions and instructions; it "
             "pays to issue that dot an iteration ahead from {4:F0} and {5:F0} on",
             stringifyOverlapKind(*schedule.getOverlap()), budget.dots, firstDot,
             budget.functions + budget.instructions, model.leastDotAhead,
             model.leastWorkForLead * budget.dots)
      .str();
}

/// The warps that transpose loaded tiles, the preferred first: apart each tile is transposed once,
/// and under the products.
SmallVector<int64_t> ScheduleSearch::transposers(const ScheduleFields &requested,
                                                 bool warpSpecialize) const {
  if (requested.transpose)
    return {*requested.transpose};
  bool isOpen = warpSpecialize && requested.placement == PlacementKind::rows && !work.converts &&
                !work.gathers && work.transposes;
  SmallVector<int64_t> warps;
  if (isOpen)
    llvm::append_range(warps, model.transposerWarps);
  warps.push_back(0);
  return warps;
}

/// What a thread of the helpers needs that `fields` have, of which the one that needs the most
/// decides.
int64_t ScheduleSearch::registersOfHelpers(const ScheduleFields &fields) const {
  int64_t most = hopper::leastRoleRegisters;
  if (work.isGiven(RoleTask::Store, fields))
    most = model.writerRegisters;
  if (work.isGiven(RoleTask::Sum, fields)) {
    // With a writer the reducer needs no addresses, and has as many less.
    bool writes = fields.store.value_or(chooseStoreOfSums(fields)) == StoreKind::writer;
    most = reducerRegisters(kernel, fields, model) - (writes ? hopper::roleRegisterStep : 0);
  }
  if (sharesTransposer(fields))
    most = std::max(most, fields.producerRegisters.value_or(model.sharedTransposerRegisters));
  else if (work.isGiven(RoleTask::Transpose, fields))
    most = std::max(most, model.transposerRegisters);
  if (!work.converts)
    return most;
  return std::max(most, model.converterRegisters +
                            (work.convertsRows ? model.registersOfConvertedRows : 0));
}

/// Gives the roles beside the consumers what they need, and takes it from the consumers of `split`.
void ScheduleSearch::leaveForHelpers(RegisterSplit &split, ScheduleFields &fields) const {
  bool gathers = work.gathers && *fields.warpSpecialize;
  int64_t warpgroups = work.countWarpgroups(fields);
  if (!fields.helperRegisters)
    fields.helperRegisters = registersOfHelpers(fields);
  if (!gathers && warpgroups == 0 && !sharesTransposer(fields))
    return;
  bool sumsApart = work.isGiven(RoleTask::Sum, fields);
  bool writes = sumsApart && fields.store.value_or(chooseStoreOfSums(fields)) == StoreKind::writer;
  // What the fourth or fifth warpgroup leaves is scarce; the producer gets by with the least.
  if (!sumsApart || writes)
    split.producer =
        fields.producerRegisters.value_or(gathers ? gatheringRegisters(kernel, model)
                                          : sharesTransposer(fields) ? *fields.helperRegisters
                                          : writes                   ? model.writerRegisters
                                                                     : leastOfProducer);
  int64_t all = *fields.consumers + 1 + warpgroups, pool = all * hop::entryRegisters(all);
  int64_t left = std::max<int64_t>(pool - split.producer - warpgroups * *fields.helperRegisters, 0);
  split.consumer =
      std::clamp<int64_t>(llvm::alignDown(left / *fields.consumers, hopper::roleRegisterStep),
                          hopper::leastRoleRegisters, split.consumer);
}

/// Why tiles that arithmetic reads cannot come through pipes.
std::optional<std::string> ScheduleSearch::rejectLoads(const Candidate &candidate) const {
  if (candidate.fields.loads != LoadKind::pipe)
    return std::nullopt;
  if (!candidate.isSpecialized())
    return "loads = pipe needs a producer, which loads ahead of time; use warp_specialize = true "
           "or loads = direct";
  // tile-even-loops lets the tiles of dots pass that only other blocks need.
  if (!candidate.sharing.evened.empty())
    return "loads = pipe has no room for loops that run longer in other blocks of a cluster; use "
           "loads = direct or cluster = 1";
  return std::nullopt;
}

/// Why the first dots of `candidate` cannot run ahead by themselves.
std::optional<std::string> ScheduleSearch::rejectLead(const Candidate &candidate) const {
  if (!candidate.shape.leadsAlone())
    return std::nullopt;
  if (!candidate.isSpecialized())
    return "overlap = lead keeps tiles that a producer loads a step ahead; use "
           "warp_specialize = true or overlap = 1";
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
