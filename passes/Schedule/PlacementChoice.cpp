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

/// The placements to try, the preferred one first: a sum apart waits for its memory while the other
/// dots go on.
SmallVector<PlacementKind> ScheduleSearch::placements(const ScheduleFields &requested,
                                                      bool warpSpecialize) const {
  if (requested.placement)
    return {*requested.placement};
  if (requested.reducerRegisters && loadsToTranspose(kernel).empty() && !work.converts)
    return {PlacementKind::apart};
  bool isOpen = !work.sums.empty() && !work.converts && !work.gathers && warpSpecialize &&
                requested.overlap.value_or(1) == 1 && !findSpeculation(kernel);
  return isOpen ? SmallVector<PlacementKind>{PlacementKind::apart, PlacementKind::rows}
                : SmallVector<PlacementKind>{PlacementKind::rows};
}

/// Whether consumers with different dots are a choice where nothing else fits.
bool ScheduleSearch::isDividedLast(const ScheduleFields &requested,
                                   std::optional<bool> specialized) const {
  return !requested.placement && accumulators > 1 && !work.converts &&
         (!work.gathers || work.sums.empty()) && specialized.value_or(true) &&
         requested.overlap.value_or(1) == 1 && !requested.pingpong.value_or(false) &&
         !findSpeculation(kernel) && (!requested.reducerRegisters || !work.sums.empty());
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

/// The iterations of a step to try.
SmallVector<int64_t> ScheduleSearch::overlaps(const ScheduleFields &requested) const {
  if (!requested.overlap && requested.placement != PlacementKind::rows)
    return {1};
  return choices<int64_t>(requested.overlap, model.overlaps);
}

/// The iterations by which the first dots run ahead, the preferred one first: 1 with `overlap = 3`.
/// A dot that runs ahead by itself takes no registers, as a tile is dead by then, but copies of
/// operands, a wait more in each step, and a tile more than the loop has. So it is tried where the
/// work between the dots is long enough that the tensor cores would be idle, and that dot too.
SmallVector<int64_t> ScheduleSearch::leads(const ScheduleFields &requested, int64_t overlap) const {
  if (requested.lead)
    return {*requested.lead};
  if (overlap > 1)
    return {overlap == 3};
  return requested.placement == PlacementKind::apart && leadPays ? SmallVector<int64_t>{1, 0}
                                                                 : SmallVector<int64_t>{0};
}

std::optional<std::string> ScheduleSearch::explainLead(ScheduleAttr schedule) const {
  if (schedule.getPlacement() != PlacementKind::apart || schedule.getOverlap() != 1)
    return std::nullopt;
  return llvm::formatv(
             "lead = {0}: an iteration takes {1:F0} cycles of the tensor cores, {2:F0} of "
             "them its first dot, and {3:F0} of special functions and instructions; it "
             "pays to issue that dot an iteration ahead from {4:F0} and {5:F0} on",
             *schedule.getLead(), budget.dots, firstDot, budget.functions + budget.instructions,
             model.leastDotAhead, model.leastWorkForLead * budget.dots)
      .str();
}

/// Who transposes loaded tiles, the preferred first: apart each tile is transposed once, and under
/// the products.
SmallVector<ScheduleSearch::Transposer> ScheduleSearch::transposers(const ScheduleFields &requested,
                                                                    bool warpSpecialize) const {
  int64_t warps = requested.transposerWarps.value_or(model.transposerWarps.front());
  bool isOpen = warpSpecialize && requested.placement == PlacementKind::rows && !work.converts &&
                !work.gathers && !loadsToTranspose(kernel).empty();
  SmallVector<Transposer> found;
  if (requested.transpose.value_or(isOpen ? TransposeKind::apart : TransposeKind::own) ==
      TransposeKind::apart)
    for (int64_t warps : choices<int64_t>(requested.transposerWarps, model.transposerWarps))
      found.push_back({TransposeKind::apart, warps});
  if (requested.transpose.value_or(TransposeKind::own) == TransposeKind::own &&
      (found.empty() || !requested.transposerWarps))
    found.push_back({TransposeKind::own, warps});
  return found;
}

/// What a thread of the helpers needs that `fields` have, of which the one that needs the most
/// decides.
int64_t ScheduleSearch::registersOfHelpers(const ScheduleFields &fields) const {
  int64_t most = hopper::leastRoleRegisters;
  if (work.isGiven(RoleTask::Sum, fields)) {
    // With a writer the reducer needs no addresses, and has as many less.
    bool writes = fields.store.value_or(chooseStoreOfSums(fields)) == StoreKind::writer;
    most = reducerRegisters(kernel, fields, model) - (writes ? hopper::roleRegisterStep : 0);
  }
  if (sharesTransposer(fields))
    most = std::max(most, fields.producerRegisters.value_or(model.sharedTransposerRegisters));
  else if (work.isGiven(RoleTask::Transpose, fields))
    most = std::max(most, model.transposerRegisters);
  return work.converts ? std::max(most, model.converterRegisters) : most;
}

/// Gives the roles beside the consumers what they need, and takes it from the consumers of `split`.
void ScheduleSearch::leaveForHelpers(RegisterSplit &split, ScheduleFields &fields) const {
  bool gathers = work.gathers && *fields.warpSpecialize;
  int64_t warpgroups = work.countWarpgroups(fields);
  if (!fields.reducerRegisters)
    fields.reducerRegisters = gathers ? hopper::leastRoleRegisters : registersOfHelpers(fields);
  if (!gathers && warpgroups == 0 && !sharesTransposer(fields))
    return;
  bool sumsApart = work.isGiven(RoleTask::Sum, fields);
  bool writes = sumsApart && fields.store.value_or(chooseStoreOfSums(fields)) == StoreKind::writer;
  // What the fourth or fifth warpgroup leaves is scarce; the producer gets by with the least.
  if (!sumsApart || writes)
    split.producer =
        fields.producerRegisters.value_or(gathers ? gatheringRegisters(kernel, model)
                                          : sharesTransposer(fields) ? *fields.reducerRegisters
                                          : writes                   ? model.writerRegisters
                                                                     : leastOfProducer);
  int64_t all = *fields.consumers + 1 + warpgroups, pool = all * hop::entryRegisters(all);
  int64_t left =
      std::max<int64_t>(pool - split.producer - warpgroups * *fields.reducerRegisters, 0);
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
    return "overlap = 1, lead = 1 keeps tiles that a producer loads a step ahead; use "
           "warp_specialize = true or lead = 0";
  // tile-even-loops lets the tiles of other blocks pass behind the loop.
  if (!candidate.sharing.evened.empty())
    return "overlap = 1, lead = 1 has no room for loops that run longer in other blocks of a "
           "cluster; use lead = 0 or cluster = 1";
  if (candidate.isDivided())
    return "overlap = 1, lead = 1 takes the first and the last dot of a step in one role; use "
           "placement = apart or lead = 0";
  if (*candidate.fields.pingpong)
    return "overlap = 1, lead = 1 leaves no turn to take; use pingpong = false or lead = 0";
  return std::nullopt;
}
