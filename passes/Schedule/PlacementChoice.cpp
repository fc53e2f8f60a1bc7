//===- PlacementChoice.cpp - What runs in roles of its own -----------------===//
//
// The part of ScheduleSearch that decides whether sums have a role of their own
// (placement = apart), or transpositions (transpose = apart), or conversions,
// and what that leaves to the others.
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
  if (requested.reducerRegisters && loadsToTranspose(kernel).empty() && !converts)
    return {PlacementKind::apart};
  bool isOpen = !sums.empty() && !converts && !gathers && warpSpecialize &&
                requested.overlap.value_or(1) == 1 && !findSpeculation(kernel);
  return isOpen ? SmallVector<PlacementKind>{PlacementKind::apart, PlacementKind::rows}
                : SmallVector<PlacementKind>{PlacementKind::rows};
}

/// Whether consumers with different dots are a choice where nothing else fits.
bool ScheduleSearch::isDividedLast(const ScheduleFields &requested,
                                   std::optional<bool> specialized) const {
  return !requested.placement && accumulators > 1 && !converts && !gathers &&
         specialized.value_or(true) && requested.overlap.value_or(1) == 1 &&
         !requested.pingpong.value_or(false) && !findSpeculation(kernel) &&
         (!requested.reducerRegisters || !sums.empty());
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

/// Whether a role of its own makes sums.
bool ScheduleSearch::hasReducer(PlacementKind placement) const {
  return placement == PlacementKind::apart ||
         (placement == PlacementKind::divided && !sums.empty());
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
  bool isOpen = warpSpecialize && requested.placement == PlacementKind::rows && !converts &&
                !gathers && !loadsToTranspose(kernel).empty();
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

/// Gives the warpgroup in which a transposer runs beside the producer what it needs, and takes it
/// from the consumers of `split`.
void ScheduleSearch::leaveForSharedTransposer(RegisterSplit &split, ScheduleFields &fields) const {
  if (!fields.reducerRegisters)
    fields.reducerRegisters = fields.producerRegisters.value_or(model.sharedTransposerRegisters);
  split.producer = fields.producerRegisters.value_or(*fields.reducerRegisters);
  leaveToConsumers(split, fields);
}

/// Leaves to the consumers of `split` what one warpgroup beside them does not have.
void ScheduleSearch::leaveToConsumers(RegisterSplit &split, const ScheduleFields &fields) {
  int64_t warpgroups = *fields.consumers + 1, pool = warpgroups * hop::entryRegisters(warpgroups);
  int64_t left = std::max<int64_t>(pool - split.producer, 0) / *fields.consumers;
  split.consumer = std::clamp<int64_t>(llvm::alignDown(left, hopper::roleRegisterStep),
                                       hopper::leastRoleRegisters, split.consumer);
}

/// Gives the producer's threads what they need to gather, and takes it from the consumers of
/// `split`.
void ScheduleSearch::leaveForGathers(RegisterSplit &split, ScheduleFields &fields) const {
  fields.reducerRegisters = fields.reducerRegisters.value_or(hopper::leastRoleRegisters);
  split.producer = fields.producerRegisters.value_or(gatheringRegisters(kernel, model));
  leaveToConsumers(split, fields);
}

/// Gives the role of the sums, the transpositions or the conversions what it needs, and takes it
/// from the consumers of `split`.
void ScheduleSearch::leaveForHelper(RegisterSplit &split, ScheduleFields &fields) const {
  if (sharesTransposer(fields))
    return leaveForSharedTransposer(split, fields);
  if (gathers && *fields.warpSpecialize)
    return leaveForGathers(split, fields);
  bool sumsApart = hasReducer(*fields.placement);
  bool transposes = fields.transpose == TransposeKind::apart;
  if (!sumsApart && !transposes && !converts) {
    fields.reducerRegisters = fields.reducerRegisters.value_or(hopper::leastRoleRegisters);
    return;
  }
  bool writes = sumsApart && fields.store.value_or(chooseStoreOfSums(fields)) == StoreKind::writer;
  // What the fourth or fifth warpgroup leaves is scarce; the producer gets by with the least. With
  // a writer the reducer needs no addresses, and has as many less.
  if (writes)
    split.producer = fields.producerRegisters.value_or(model.writerRegisters);
  else if (!sumsApart)
    split.producer = fields.producerRegisters.value_or(leastOfProducer);
  fields.reducerRegisters = fields.reducerRegisters.value_or(
      sumsApart ? reducerRegisters(kernel, fields, model) - (writes ? hopper::roleRegisterStep : 0)
      : transposes ? model.transposerRegisters
                   : model.converterRegisters);
  int64_t warpgroups = *fields.consumers + 2, pool = warpgroups * hop::entryRegisters(warpgroups);
  int64_t left = std::max<int64_t>(pool - split.producer - *fields.reducerRegisters, 0);
  split.consumer =
      std::clamp<int64_t>(llvm::alignDown(left / *fields.consumers, hopper::roleRegisterStep),
                          hopper::leastRoleRegisters, split.consumer);
}

/// Whether bulk copies can add all sums to memory.
bool ScheduleSearch::sumsLeaveInBulk() const {
  return llvm::none_of(sums, [](const ApartSum &sum) {
    return whyNoBulkStore(sum.store, partsOf(sum, {}).tile).has_value();
  });
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

/// Why `candidate` cannot have dots in roles with different programs.
std::optional<std::string> ScheduleSearch::rejectPlacement(const Candidate &candidate) {
  if (candidate.fields.placement == PlacementKind::rows && exchangesSums(candidate.fields))
    return "the blocks of a cluster make sums together in a role of their own; use placement = "
           "apart or divided, or exchange = 0";
  if (candidate.fields.placement == PlacementKind::rows)
    return std::nullopt;
  bool isDivided = candidate.isDivided();
  std::string who = isDivided ? "consumers with different dots" : "a reducer",
              own = isDivided ? "their" : "its", s = isDivided ? "" : "s";
  if (!isDivided && sums.empty())
    return "no dot of a computed tile, beside other dots of a loop, has a result that only leaves "
           "by a store that adds it; use placement = rows";
  if (computesB)
    return who + " do" + (isDivided ? "" : "es") +
           " not go with operand b of a dot that consumers compute together; use placement = rows";
  if (!candidate.isSpecialized())
    return who + " get" + s +
           " tiles from a producer; use warp_specialize = true or placement = rows";
  if (candidate.fields.store == StoreKind::writer && sums.empty())
    return who + " store their results themselves; use store = tma or direct, or placement = rows";
  if (candidate.fields.store == StoreKind::writer && !sumsLeaveInBulk())
    return who + " has sums that cannot leave in bulk, which a writer takes; use store = direct or "
                 "placement = rows";
  if (candidate.shape.stages != 1)
    return who + " take" + s + " the operands of " + own +
           " dots in their own steps; use overlap = 1 or placement = rows";
  if (*candidate.fields.speculate)
    return who + " would not know which of " + own + (isDivided ? " tiles" : " sums") +
           " come again; use placement = rows or speculate = false";
  if (isDivided && !divide(candidate.consumers()))
    return dotDivisions[candidate.consumers()].second;
  return std::nullopt;
}

/// Why `candidate` cannot have a role of its own that transposes.
std::optional<std::string> ScheduleSearch::rejectTransposer(const Candidate &candidate) const {
  if (!candidate.hasTransposer())
    return std::nullopt;
  if (loadsToTranspose(kernel).empty())
    return "no dot reads a loaded tile of 8-bit elements along its columns, beside a computed one; "
           "use transpose = own";
  if (!candidate.isSpecialized())
    return "a transposer gets tiles from a producer; use warp_specialize = true or transpose = own";
  if (candidate.fields.placement == PlacementKind::apart)
    return "a kernel has a reducer or a transposer; use placement = rows or transpose = own";
  if (candidate.isDivided())
    return "beside consumers with different dots no role transposes; use placement = rows or "
           "transpose = own";
  const ScheduleFields &fields = candidate.fields;
  if (sharesTransposer(fields) && fields.producerRegisters != fields.reducerRegisters)
    return llvm::formatv("a transposer of {0} warps shares the producer's warpgroup and its "
                         "registers, and {1} and {2} are asked for; use "
                         "producer_registers = reducer_registers or transposer_warps = 4",
                         *fields.transposerWarps, *fields.producerRegisters,
                         *fields.reducerRegisters)
        .str();
  return std::nullopt;
}

/// Why the producer of `candidate` cannot gather what dots read.
std::optional<std::string> ScheduleSearch::rejectGathers(const Candidate &candidate) const {
  std::optional<std::string> reason =
      gathers ? whyNotGathered(candidate.fields) : std::optional<std::string>();
  return reason ? "the threads of a producer gather what dots read: " + *reason : reason;
}

/// Why `candidate` cannot have the role that converts operands on their way.
std::optional<std::string> ScheduleSearch::rejectConverter(const Candidate &candidate) const {
  if (!candidate.hasConverter)
    return std::nullopt;
  if (!candidate.isSpecialized())
    return "operand b of a dot is converted on its way, by a role that gets tiles from a producer; "
           "use warp_specialize = true";
  if (candidate.fields.placement != PlacementKind::rows)
    return llvm::formatv("operand b of a dot is converted on its way, and beside {0} no role can; "
                         "use placement = rows",
                         candidate.isDivided() ? "consumers with different dots" : "a reducer")
        .str();
  if (candidate.hasTransposer())
    return "operand b of a dot is converted on its way, and beside a transposer no role can; use "
           "transpose = own";
  return std::nullopt;
}
