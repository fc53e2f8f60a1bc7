//===- ClusterChoice.cpp - What the blocks of a cluster share ---------------===//
//
// The part of ScheduleSearch that decides whether a cluster loads tiles together,
// and what that asks of loops that run longer in some of its blocks.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ExchangedSums.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Schedule/EvenLoops.h"
#include "passes/Schedule/ScheduleSearch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Of the tiles that are loaded in loops, the numbers of those that `loops` load.
static SmallVector<size_t> numbersIn(ArrayRef<scf::ForOp> loops, ArrayRef<PipedTile> tiles) {
  SmallVector<size_t> numbers;
  size_t number = 0;
  for (const PipedTile &tile : tiles) {
    if (!tile.inLoop)
      continue;
    if (llvm::any_of(tile.loads, [&](LoadOpInterface load) {
          return llvm::is_contained(loops, dyn_cast<scf::ForOp>(load->getParentOp()));
        }))
      numbers.push_back(number);
    ++number;
  }
  return numbers;
}

/// What the blocks of a cluster share, which is nothing of a single one.
static ScheduleSearch::ClusterSharing findSharing(KernelOp kernel, int64_t cluster) {
  ScheduleSearch::ClusterSharing sharing;
  if (cluster == 1)
    return sharing;
  IndexDependence dependence(kernel.getGridIndex(0), cluster);
  std::string reasons;
  bool any = false, anyWithoutProducer = false;
  SmallVector<scf::ForOp> uneven;
  auto tiles = pipedTiles(kernel);
  for (const PipedTile &tile : tiles) {
    SharedTile shared = shareTile(kernel, dependence, tile, cluster);
    if (!shared.refusal) {
      any = true;
      anyWithoutProducer |= shared.uneven.empty();
      llvm::append_range(uneven, shared.uneven);
      continue;
    }
    LoadOpInterface first = tile.loads.front();
    auto view = cast<BlockArgument>(first.getView());
    reasons += llvm::formatv("{0}%{1}: {2}", reasons.empty() ? "" : "; ",
                             kernel.getArgumentName(view.getArgNumber()), *shared.refusal);
  }
  sharing.takesProducer = any && !anyWithoutProducer;
  sharing.evened = numbersIn(uneven, tiles);
  if (!any)
    sharing.refusal = "no tile is the same for neighbours in the first grid dimension (" + reasons +
                      "); use cluster = 1";
  return sharing;
}

const ScheduleSearch::ClusterSharing &ScheduleSearch::shareInCluster(int64_t cluster) {
  auto [known, isNew] = sharings.try_emplace(cluster);
  if (isNew)
    known->second = findSharing(kernel, cluster);
  return known->second;
}

std::optional<std::string> ScheduleSearch::rejectExchange(const ScheduleFields &requested) const {
  if (!exchangesSums(requested))
    return std::nullopt;
  if (ExchangedSums found = findExchangedSums(kernel); found.refused)
    return "a store " + found.refusal + "; use cluster = 2";
  return std::nullopt;
}

/// Where the sums of an iteration take longer on their way to memory than its dots, two blocks that
/// make them together send half as much.
bool ScheduleSearch::exchangePays(const ScheduleFields &exchanging) {
  int64_t bytes = 0;
  for (const ApartSum &sum : work.sums)
    bytes += tileBytes(StoreOp(sum.store).getValue().getType());
  return bytes > budget.dots * model.bytesOfSums && !rejectExchange(exchanging) &&
         !shareInCluster(exchangingBlocks).refusal;
}

bool ScheduleSearch::ClusterSharing::runsAhead(const NumberList &stages, int64_t overlap) const {
  return llvm::all_of(evened, [&](size_t tile) { return stages.of(tile) >= overlap; });
}
