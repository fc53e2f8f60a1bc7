//===- ScheduleSearch.h - The best schedule of a kernel that is legal -----===//
//
// Goes through candidates in the order of what is preferred (SchedulePreference.h), and takes the
// first that is legal (ScheduleLegality.h) with what it costs (ScheduleCost.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_SCHEDULESEARCH_H
#define TESSERA_PASSES_SCHEDULE_SCHEDULESEARCH_H

#include "passes/Schedule/ScheduleCandidate.h"
#include "passes/Schedule/ScheduleChoice.h"
#include <vector>

namespace tessera {

class ScheduleSearch {
public:
  ScheduleSearch(tile::KernelOp kernel, const CostModel &model) : facts(kernel, model) {}

  const ScheduleFacts &getFacts() const { return facts; }

  /// The most preferred schedule that keeps the fields of `requested`.
  std::optional<tile::ScheduleAttr> run(tile::ScheduleAttr requested);

  /// At most `most` schedules that keep the fields of `requested`, of which the first is what `run`
  /// finds: for a kernel that a later pass or the assembler refuses. First come those that differ
  /// in turns and polynomials only, which take registers and have conditions that no model of
  /// tiles knows.
  llvm::SmallVector<tile::ScheduleAttr> list(tile::ScheduleAttr requested, size_t most);

  /// What the last run rejected, and what the schedule it found takes.
  llvm::SmallVector<ScheduleRejection> rejections;
  std::string use;

private:
  using TakeFunction = llvm::function_ref<bool(const Candidate &)>;

  void forEachCandidate(tile::ScheduleFields requested, TakeFunction take);
  bool forEachPlaced(tile::ScheduleFields requested, tile::PlacementKind placement,
                     bool warpSpecialize, TakeFunction take);
  bool forEachCount(const tile::ScheduleFields &requested, bool warpSpecialize,
                    const OverlapShape &shape, TakeFunction take);
  std::vector<Candidate> withMoreForProducer(const Candidate &candidate,
                                             const tile::ScheduleFields &requested) const;
  std::vector<Candidate> withUnevenConsumers(const Candidate &candidate,
                                             const tile::ScheduleFields &requested) const;
  std::optional<tile::NumberList> findStages(const Candidate &candidate);
  std::optional<tile::ScheduleAttr> complete(Candidate candidate);

  ScheduleFacts facts;
};

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SCHEDULESEARCH_H
