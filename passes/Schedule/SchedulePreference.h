//===- SchedulePreference.h - Which values are tried, and when ------------===//
//
// Of what is legal (ScheduleLegality.h) and what it costs (ScheduleCost.h) follows what is
// preferred. A field that is requested has one choice.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_SCHEDULEPREFERENCE_H
#define TESSERA_PASSES_SCHEDULE_SCHEDULEPREFERENCE_H

#include "passes/Schedule/ScheduleCandidate.h"
#include "passes/Schedule/ScheduleChoice.h"

namespace tessera {

/// What is requested, or else what is preferred.
template <typename T>
llvm::SmallVector<T> listChoices(std::optional<T> requested, llvm::ArrayRef<T> preferred) {
  return requested ? llvm::SmallVector<T>{*requested} : llvm::SmallVector<T>(preferred);
}

/// The values to try, the preferred one first.
llvm::SmallVector<tile::PlacementKind>
placements(const ScheduleFacts &facts, const tile::ScheduleFields &requested, bool warpSpecialize);
/// Whether consumers with different dots are a choice where nothing else fits.
bool isDividedLast(const ScheduleFacts &facts, const tile::ScheduleFields &requested,
                   std::optional<bool> specialized);
llvm::SmallVector<int64_t> transposers(const ScheduleFacts &facts,
                                       const tile::ScheduleFields &requested, bool warpSpecialize);
llvm::SmallVector<tile::OverlapKind> overlaps(const ScheduleFacts &facts,
                                              const tile::ScheduleFields &requested);
llvm::SmallVector<tile::NumberList> stageChoices(const ScheduleFacts &facts,
                                                 const tile::ScheduleFields &requested);

/// A candidate with these fields, and the others as they are preferred.
Candidate makeCandidate(const ScheduleFacts &facts, const tile::ScheduleFields &requested,
                        bool warpSpecialize, const OverlapShape &shape, int64_t consumers);

/// How the sums of a reducer leave.
tile::StoreKind chooseStoreOfSums(const ScheduleFacts &facts, const tile::ScheduleFields &fields);
/// How thread blocks get the tiles of the grid, and in which order.
void chooseWalk(const ScheduleFacts &facts, tile::ScheduleFields &fields);
/// The slots of what is loaded outside of loops, beside `stages` of what is loaded in them.
tile::NumberList outerStagesBeside(const ScheduleFacts &facts, const tile::ScheduleFields &fields,
                                   const tile::NumberList &stages);
void chooseOuterStages(const ScheduleFacts &facts, Candidate &candidate);
int64_t makeRoomForOthers(const ScheduleFacts &facts, Candidate &candidate);

/// Of a kernel without dots: sets what is fixed, or adds a rejection of each field that asks for
/// more and is false; and the candidates whose tiles and registers fit, the preferred first.
bool fixFields(const ScheduleFacts &facts, tile::ScheduleFields &requested,
               llvm::SmallVectorImpl<ScheduleRejection> &rejections);
std::vector<Candidate> directCandidates(const ScheduleFacts &facts,
                                        const tile::ScheduleFields &requested,
                                        llvm::SmallVectorImpl<ScheduleRejection> &rejections);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SCHEDULEPREFERENCE_H
