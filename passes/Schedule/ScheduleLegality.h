//===- ScheduleLegality.h - Which schedules of a kernel are legal ---------===//
//
// Each question is answered by what forbids it, and what would work; by nothing where it is legal.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_SCHEDULELEGALITY_H
#define TESSERA_PASSES_SCHEDULE_SCHEDULELEGALITY_H

#include "passes/Schedule/ScheduleCandidate.h"
#include "passes/Schedule/ScheduleChoice.h"

namespace tessera {

/// Why a schedule cannot hold.
struct Reason {
  std::string text;
  RefusalKind kind = RefusalKind::Unsupported;
};

/// Why no candidate can have what is requested, as far as that depends on the kernel alone.
std::optional<ScheduleRejection> whyNoCandidate(const ScheduleFacts &facts,
                                                const tile::ScheduleFields &requested);

/// Sets the fields that parts of a range in the blocks of a cluster fix, or says which was asked
/// otherwise.
std::optional<ScheduleRejection> fixPoint(const ScheduleFacts &facts,
                                          tile::ScheduleFields &requested);

/// Why the blocks of a cluster cannot make sums together.
std::optional<std::string> whyNoExchange(const ScheduleFacts &facts,
                                         const tile::ScheduleFields &requested);

/// Whether the rows or the dots forbid a number of consumers that nobody asked for.
bool isNoCount(const ScheduleFacts &facts, int64_t consumers, tile::PlacementKind placement);

/// Why the rows, the turns, the helpers or the registers forbid `candidate`.
std::optional<Reason> whyNot(const ScheduleFacts &facts, const Candidate &candidate);

/// Why `candidate` cannot have so many slots.
std::optional<ScheduleRejection> whyNotSlots(const ScheduleFacts &facts, const Candidate &candidate,
                                             const tile::NumberList &stages,
                                             const tile::NumberList &outerStages);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SCHEDULELEGALITY_H
