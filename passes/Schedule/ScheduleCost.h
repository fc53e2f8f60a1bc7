//===- ScheduleCost.h - What schedules of a kernel cost -------------------===//
//
// Registers, shared memory and cycles, and the sentences that say so.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_SCHEDULECOST_H
#define TESSERA_PASSES_SCHEDULE_SCHEDULECOST_H

#include "passes/Schedule/ScheduleCandidate.h"

namespace tessera {

/// What a thread of each consumer needs, and what it can use of the registers that it has.
tile::NumberList neededRegisters(const ScheduleFacts &facts, const Candidate &candidate);
tile::NumberList usableBy(const ScheduleFacts &facts, const Candidate &candidate);

/// Shared memory of computed, transposed and converted operands, and of all.
int64_t operandBytes(const ScheduleFacts &facts, const Candidate &candidate);
SharedMemoryUse sharedUse(const ScheduleFacts &facts, const Candidate &candidate,
                          const tile::NumberList &stages, const tile::NumberList &outerStages);
inline SharedMemoryUse sharedUse(const ScheduleFacts &facts, const Candidate &candidate) {
  return sharedUse(facts, candidate, *candidate.fields.stages, *candidate.fields.outerStages);
}

/// Whether a role of its own that stores takes less time than the consumers, and two blocks that
/// make sums together less than each by itself.
bool writerPays(const ScheduleFacts &facts, const tile::ScheduleFields &fields);
bool exchangePays(const ScheduleFacts &facts, const tile::ScheduleFields &exchanging);

std::string describeUse(const SharedMemoryUse &shared);
/// The registers and the shared memory that a complete candidate takes.
std::string describeUse(const ScheduleFacts &facts, const Candidate &candidate);
/// What `share` sixteenths of polynomials do where the special functions are the scarcest;
/// nothing where they are not.
std::optional<std::string> explainExponentials(const ScheduleFacts &facts, int64_t share);
/// Why the first dot of a step runs ahead or not in `schedule`; nothing where that is no choice.
std::optional<std::string> explainLead(const ScheduleFacts &facts, tile::ScheduleAttr schedule);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SCHEDULECOST_H
