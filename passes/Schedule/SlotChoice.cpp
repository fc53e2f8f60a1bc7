//===- SlotChoice.cpp - How many slots the pipes of loaded tiles have ------===//
//
// The part of ScheduleSearch that decides how much shared memory goes to which loaded tile.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ExchangedSums.h"
#include "passes/Schedule/ScheduleSearch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

SmallVector<NumberList> ScheduleSearch::stageChoices(const ScheduleFields &requested) const {
  if (requested.stages)
    return {*requested.stages};
  SmallVector<NumberList> stages;
  size_t tiles = tilesInLoops + (requested.loads == LoadKind::pipe ? fetchedMatrices : 0);
  int64_t most = !tilesInLoops      ? 1
                 : findsBounds      ? model.mostStagesOfBounds
                 : countsFromMemory ? model.mostStagesOfLists
                 : severalDots      ? model.mostStagesBetweenDots
                                    : model.mostStages;
  for (int64_t i = most; i >= 1; --i) {
    stages.push_back(NumberList(i));
    // Where one slot more for all is too much, those have it that come first in the innermost
    // loops.
    if (requested.placement != PlacementKind::divided || i == 1 || tiles > NumberList::kMost)
      continue;
    auto order = llvm::filter_to_vector(deepestFirst, [&](size_t tile) { return tile < tiles; });
    for (size_t ahead = tiles; ahead-- > 1;) {
      SmallVector<int64_t> counts(tiles, i - 1);
      for (size_t tile : ArrayRef(order).take_front(ahead))
        counts[tile] = i;
      stages.push_back(*NumberList::get(counts));
    }
  }
  return stages;
}

static std::string describe(const SharedMemoryUse &shared) {
  std::string retries =
      shared.retries ? llvm::formatv(", grid points to run again {0}", shared.retries).str() : "";
  std::string operands =
      shared.operands ? llvm::formatv(", computed operands {0}", shared.operands).str() : "";
  std::string numbers =
      shared.numbers ? llvm::formatv(", numbers of tiles {0}", shared.numbers).str() : "";
  std::string exchanges =
      shared.exchanges ? llvm::formatv(", exchanges of warps {0}", shared.exchanges).str() : "";
  std::string bounds = shared.bounds ? llvm::formatv(", bounds {0}", shared.bounds).str() : "";
  return llvm::formatv("{0} bytes of shared memory (tiles {1}{2}, staging of stores {3}, "
                       "mbarriers {4}{5}{6}{7}{8})",
                       shared.total(), shared.tiles, operands, shared.staging, shared.barriers,
                       retries, numbers, bounds, exchanges)
      .str();
}

std::string ScheduleSearch::describeUse(const Candidate &candidate) const {
  NumberList usable = usableBy(candidate), needed = candidate.registersNeeded;
  if (usable.isUniform())
    needed = NumberList(needed.most());
  return llvm::formatv("{0} of {1} registers per consumer thread and {2} of {3}", needed, usable,
                       describe(sharedUse(candidate)), hopper::sharedMemoryOfBlock)
      .str();
}

/// Why a list of `slots` is not for a kernel that loads so many `tiles`, in loops or elsewhere.
static std::string describeMisfit(const NumberList &slots, size_t tiles, StringRef where) {
  return llvm::formatv("the kernel loads {0} tiles {1}, and the list has {2} numbers", tiles, where,
                       slots.getNumbers().size());
}

/// Whether a list of slots for tiles outside of loops has one number for each of them.
bool ScheduleSearch::admitsOuterStages(const ScheduleFields &requested) {
  if (!requested.outerStages || requested.outerStages->fits(outerTiles))
    return true;
  rejections.push_back(
      {llvm::formatv("outer_stages = {0}", *requested.outerStages).str(),
       describeMisfit(*requested.outerStages, outerTiles, "once for each tile of the grid")});
  return false;
}

/// The most stages that fit. A third slot of a loop with several dots hides less than a second slot
/// of what is loaded before the loop, so it is taken only beside that.
std::optional<NumberList> ScheduleSearch::findStages(const Candidate &candidate) {
  const ScheduleFields &fields = candidate.fields;
  int64_t overlap = candidate.shape.getStages();
  for (const NumberList &stages : stageChoices(fields)) {
    std::string text;
    llvm::raw_string_ostream(text) << "stages = " << stages;
    size_t tiles = tilesInLoops + (fields.loads == LoadKind::pipe ? fetchedMatrices : 0);
    if (!stages.fits(tiles)) {
      rejections.push_back({text, describeMisfit(stages, tiles, "in loops")});
      continue;
    }
    if (candidate.shape.leadsAlone() && stages.of(0) < 2) {
      rejections.push_back({text, "with overlap = lead a tile is kept while the next one is "
                                  "read, which takes stages = 2 or more; or use overlap = 1"});
      continue;
    }
    if (!candidate.sharing.runsAhead(stages, overlap)) {
      rejections.push_back(
          {text, llvm::formatv("in a cluster tiles are loaded up to {0} iterations "
                               "ahead of a block whose loop is shorter, which "
                               "takes stages = {0} or more; or use cluster = 1",
                               overlap)
                     .str()});
      continue;
    }
    // Blocks that exchange operands wait for each other, for which the third slot makes up.
    bool spare = !fields.stages && severalDots && stages.of(0) > 2 && !exchangesSums(fields);
    NumberList outer = fields.outerStages.value_or(NumberList(spare ? 2 : 1));
    if (fields.store == StoreKind::lent)
      if (std::optional<std::string> reason =
              whyNoSlotsToLend(kernel, stages, outer, candidate.consumers())) {
        rejections.push_back({text, *reason});
        continue;
      }
    SharedMemoryUse shared = sharedUse(candidate, stages, outer);
    if (shared.total() <= hopper::sharedMemoryOfBlock)
      return stages;
    rejections.push_back({llvm::formatv("{0}, outer_stages = {1}, store = {2}", text, outer,
                                        stringifyStoreKind(*fields.store))
                              .str(),
                          llvm::formatv("it takes {0}, and a CTA can have {1}", describe(shared),
                                        hopper::sharedMemoryOfBlock)
                              .str(),
                          RefusalKind::SharedMemory});
  }
  return std::nullopt;
}

void ScheduleSearch::chooseOuterStages(Candidate &candidate) const {
  ScheduleFields &fields = candidate.fields;
  if (fields.outerStages)
    return;
  // A second slot lets the next tile's loads start before this tile's last reader is done.
  bool pays = *fields.persistent != PersistentKind::None && loadsOutside;
  bool fits =
      sharedUse(candidate, *fields.stages, NumberList(2)).total() <= hopper::sharedMemoryOfBlock;
  fields.outerStages = NumberList(pays && fits ? 2 : 1);
}
