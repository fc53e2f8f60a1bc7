//===- ScheduleSearch.cpp - The best schedule of a kernel that is legal ---===//
//
// See ScheduleSearch.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/ScheduleSearch.h"
#include "dialects/Hop/RegisterPool.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Schedule/ScheduleCost.h"
#include "passes/Schedule/ScheduleLegality.h"
#include "passes/Schedule/SchedulePreference.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// The most stages that fit. A third slot of a loop with several dots hides less than a second slot
/// of what is loaded before the loop, so it is taken only beside that.
std::optional<NumberList> ScheduleSearch::findStages(const Candidate &candidate) {
  for (const NumberList &stages : stageChoices(facts, candidate.fields)) {
    NumberList outer = outerStagesBeside(facts, candidate.fields, stages);
    std::optional<ScheduleRejection> rejection = whyNotSlots(facts, candidate, stages, outer);
    if (!rejection)
      return stages;
    rejections.push_back(std::move(*rejection));
  }
  return std::nullopt;
}

/// The schedule of a candidate whose rows, turns and registers fit, if shared memory does.
std::optional<ScheduleAttr> ScheduleSearch::complete(Candidate candidate) {
  ScheduleFields &fields = candidate.fields;
  chooseWalk(facts, fields);
  candidate.operandBytes = operandBytes(facts, candidate);
  if (facts.multiplies)
    candidate.exchangeBytes = exchangeBytes(facts.rotated(candidate.shape), candidate.consumers());
  std::optional<NumberList> stagesAsked = fields.stages;
  fields.stages = findStages(candidate);
  // With one slot no load runs ahead of the dots.
  if (candidate.choosesLoads && fields.producer == ProducerKind::All &&
      (!fields.stages || fields.stages->of(0) == 1)) {
    Candidate direct = candidate;
    direct.fields.stages = stagesAsked;
    direct.fields.producer = ProducerKind::Operands;
    std::optional<NumberList> stages = findStages(direct);
    if (!fields.stages || (stages && stages->of(0) > 1)) {
      fields.producer = ProducerKind::Operands;
      fields.stages = stages;
    }
  }
  if (!fields.stages)
    return std::nullopt;
  chooseOuterStages(facts, candidate);
  int64_t blocks = makeRoomForOthers(facts, candidate);
  use = describeUse(facts, candidate);
  if (blocks > 1)
    use += llvm::formatv("; {0} thread blocks share a multiprocessor", blocks).str();
  return fields.get(facts.getKernel().getContext());
}

/// Calls `take` with each candidate whose rows, turns and registers fit, the most preferred first,
/// until it returns false.
void ScheduleSearch::forEachCandidate(ScheduleFields requested, TakeFunction take) {
  if (std::optional<ScheduleRejection> rejection = fixPoint(facts, requested)) {
    rejections.push_back(std::move(*rejection));
    return;
  }
  if (!facts.multiplies && !fixFields(facts, requested, rejections))
    return;
  bool mayExchange = !requested.cluster;
  requested.setFixedDefaults();
  if (!facts.multiplies) {
    for (const Candidate &candidate : directCandidates(facts, requested, rejections))
      if (!take(candidate))
        return;
    return;
  }
  if (std::optional<ScheduleRejection> rejection = whyNoCandidate(facts, requested)) {
    rejections.push_back(std::move(*rejection));
    return;
  }
  // Registers of roles are asked for where there are roles.
  std::optional<bool> specialized;
  if (requested.producer)
    specialized = requested.hasProducer();
  else if (requested.producerRegisters || requested.consumerRegisters)
    specialized = true;
  auto tryExchanged = [&] {
    ScheduleFields exchanging = requested;
    exchanging.cluster = ClusterKind::Exchange;
    return !exchangePays(facts, exchanging) ||
           forEachPlaced(exchanging, PlacementKind::divided, /*warpSpecialize=*/true, take);
  };
  auto tryPlaced = [&](PlacementKind placement, bool warpSpecialize) {
    bool exchanges = mayExchange && placement == PlacementKind::divided && warpSpecialize;
    return (!exchanges || tryExchanged()) &&
           forEachPlaced(requested, placement, warpSpecialize, take);
  };
  bool mayDivide = isDividedLast(facts, requested, specialized);
  // Where sums are the limit, halving them is worth more than dots of one role.
  if (mayDivide && mayExchange && !tryExchanged())
    return;
  for (bool warpSpecialize : listChoices<bool>(specialized, {true, false}))
    for (PlacementKind placement : placements(facts, requested, warpSpecialize))
      if (!tryPlaced(placement, warpSpecialize))
        return;
  if (mayDivide)
    forEachPlaced(requested, PlacementKind::divided, /*warpSpecialize=*/true, take);
}

/// Likewise the candidates with `placement`; false when `take` returned false.
bool ScheduleSearch::forEachPlaced(ScheduleFields requested, PlacementKind placement,
                                   bool warpSpecialize, TakeFunction take) {
  requested.placement = placement;
  for (int64_t warps : transposers(facts, requested, warpSpecialize)) {
    requested.transpose = warps;
    for (OverlapKind overlap : overlaps(facts, requested))
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

/// Beside a converter registers are scarce: consumers of different programs then have as many more
/// than each needs. Elsewhere they have equal shares.
static void shareByNeed(Candidate &candidate) {
  ScheduleFields &fields = candidate.fields;
  if (!candidate.choosesRegisters || !candidate.isDivided() ||
      !candidate.hasHelper(RoleTask::Convert))
    return;
  int64_t consumers = candidate.consumers(), all = candidate.warpgroups();
  const NumberList &needed = candidate.registersNeeded;
  int64_t left = all * hop::entryRegisters(all) - *fields.producerRegisters -
                 (all - consumers - 1) * candidate.registersOfHelpers;
  int64_t least = llvm::sum_of(
      llvm::map_range(llvm::seq(consumers), [&](int64_t i) { return needed.of(i); }), int64_t(0));
  if (left < least)
    return;
  SmallVector<int64_t> registers;
  for (int64_t i : llvm::seq(consumers))
    registers.push_back(std::clamp<int64_t>(
        llvm::alignDown(needed.of(i) + (left - least) / consumers, hopper::roleRegisterStep),
        hopper::leastRoleRegisters,
        llvm::alignDown(hopper::mostThreadRegisters, hopper::roleRegisterStep)));
  // What rounding leaves the last one has.
  int64_t rest = llvm::alignDown(left - llvm::sum_of(registers), hopper::roleRegisterStep);
  if (rest > 0 && registers.back() + rest < hopper::mostThreadRegisters)
    registers.back() += rest;
  fields.consumerRegisters = NumberList::get(registers);
}

/// Likewise the candidates of `shape`; false when `take` returned false.
bool ScheduleSearch::forEachCount(const ScheduleFields &requested, bool warpSpecialize,
                                  const OverlapShape &shape, TakeFunction take) {
  if (std::optional<std::string> reason = facts.whyNotRotated(shape)) {
    if (rejections.empty())
      rejections.push_back({nameShape(shape), *reason});
    return true;
  }
  for (int64_t consumers : listChoices<int64_t>(requested.consumers, facts.model.consumers)) {
    // A count that the author did not ask for and that the rows or the dots forbid is no candidate.
    if (!requested.consumers && isNoCount(facts, consumers, *requested.placement))
      continue;
    Candidate candidate = makeCandidate(facts, requested, warpSpecialize, shape, consumers);
    candidate.registersNeeded = neededRegisters(facts, candidate);
    shareByNeed(candidate);
    std::optional<Reason> reason = whyNot(facts, candidate);
    if (!reason && !take(candidate))
      return false;
    if (!reason)
      continue;
    ScheduleRejection rejection{llvm::formatv("producer = {0}, {1}{2}{3}, consumers = {4}",
                                              stringifyProducerKind(*candidate.fields.producer),
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
  if (first && !requested.getWork() && facts.multiplies) {
    first->fields.work = WorkKind::elements;
    add(*first, true, true);
  }
  return found;
}

/// `candidate` with more registers for its producer, where those are a choice and consumers can do
/// with what is left.
std::vector<Candidate> ScheduleSearch::withMoreForProducer(const Candidate &candidate,
                                                           const ScheduleFields &requested) const {
  std::vector<Candidate> found;
  if (!candidate.isSpecialized() || requested.producerRegisters)
    return found;
  for (int64_t more : facts.model.moreForProducer) {
    ScheduleFields fields = candidate.fields;
    fields.producerRegisters = *fields.producerRegisters + more;
    fields.consumerRegisters = requested.consumerRegisters;
    Candidate given = makeCandidate(facts, fields, true, candidate.shape, candidate.consumers());
    given.choosesLoads = candidate.choosesLoads;
    given.registersNeeded = candidate.registersNeeded;
    shareByNeed(given);
    if (!whyNot(facts, given))
      found.push_back(given);
  }
  return found;
}

/// `candidate` with more registers for one of the consumers that have different dots, the one that
/// needs the most first, where those are a choice and the others can do with what is left.
std::vector<Candidate> ScheduleSearch::withUnevenConsumers(const Candidate &candidate,
                                                           const ScheduleFields &requested) const {
  std::vector<Candidate> found;
  if (!candidate.isDivided() || requested.consumerRegisters)
    return found;
  int64_t consumers = candidate.consumers();
  const NumberList &given = *candidate.fields.consumerRegisters;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, consumers));
  llvm::stable_sort(order, [&](int64_t a, int64_t b) {
    return candidate.registersNeeded.of(a) > candidate.registersNeeded.of(b);
  });
  for (int64_t favoured : order)
    for (int64_t more : facts.model.moreForConsumer) {
      int64_t less = llvm::alignTo(llvm::divideCeil(more, consumers - 1), hopper::roleRegisterStep);
      auto registers = llvm::to_vector(llvm::map_range(
          llvm::seq(consumers), [&](int64_t consumer) { return given.of(consumer) - less; }));
      registers[favoured] = given.of(favoured) + less * (consumers - 1);
      if (*llvm::min_element(registers) < hopper::leastRoleRegisters ||
          registers[favoured] > hopper::mostThreadRegisters)
        continue;
      Candidate uneven = candidate;
      uneven.fields.consumerRegisters = NumberList::get(registers);
      if (!whyNot(facts, uneven))
        found.push_back(uneven);
    }
  return found;
}
