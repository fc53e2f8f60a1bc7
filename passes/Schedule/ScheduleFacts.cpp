//===- ScheduleFacts.cpp - What the choice of a schedule rests on ---------===//
//
// See ScheduleFacts.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/ScheduleFacts.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/RowPartition.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Schedule/SharedTileAnalysis.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Threading.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

bool tessera::hasDots(KernelOp kernel) {
  return kernel.walk([](DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Whether `loop` scales what a dot accumulates onto and that has more than `columns`.
static bool scalesWideAccumulator(scf::ForOp loop, int64_t columns) {
  return llvm::any_of(loop.getBody()->getOps<DotOp>(), [&](DotOp dot) {
    Operation *scaling = dot.getAcc() ? dot.getAcc().getDefiningOp() : nullptr;
    return scaling && OpTrait::hasElementwiseMappableTraits(scaling) &&
           cast<RankedTensorType>(dot.getType()).getDimSize(1) > columns;
  });
}

/// Warpgroups take turns at the steps of a loop, not at those of the loops around it.
static bool isInnermost(scf::ForOp loop) {
  return !loop.getBody()->walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Whether an integer is computed from an element that is loaded, as the length of a list.
/// `comesFromMemory` also follows bounds that a loop searches for, whose kernels are not measured
/// with more slots.
static bool isLoaded(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() != 0)
    return false;
  return isa<LoadOp>(op) || llvm::any_of(op->getOperands(), isLoaded);
}

/// How many loops there are around a tile.
static size_t depthOf(const PipedTile &tile) {
  size_t depth = 0;
  for (LoadOpInterface load : tile.loads) {
    size_t own = 0;
    for (Operation *op = load; (op = op->getParentOfType<scf::ForOp>());)
      ++own;
    depth = std::max(depth, own);
  }
  return depth;
}

/// How many runs of a tile the lanes of a producer find at most; none where tiles have one.
static int64_t countRunsInLanes(KernelOp kernel) {
  int64_t most = 0;
  kernel.walk([&](GatherRunsOp gather) {
    int64_t rows = cast<RankedTensorType>(gather.getType()).getDimSize(0);
    most = std::max(most, rows / static_cast<int64_t>(gather.getRun()));
  });
  return most > 1 ? most : 0;
}

ScheduleFacts::ScheduleFacts(KernelOp kernel, const CostModel &model)
    : kernel(kernel), model(model), work(kernel) {
  multiplies = hasDots(kernel);
  for (scf::ForOp loop : loopsWithDots(kernel)) {
    multipliesInLoops = true;
    scalesWideTiles |= scalesWideAccumulator(loop, model.wideColumns);
    worksBetweenDots |= hasDependentDots(loop);
    canTakeTurns |= hasDependentDots(loop) && isInnermost(loop);
    size_t dots = llvm::range_size(loop.getBody()->getOps<DotOp>());
    severalDots |= dots > 1;
    // Loops of more dots, as those of gradients, are not measured with more slots.
    countsFromMemory |= dots == 2 && isLoaded(loop.getUpperBound());
  }
  // Where the tensor cores are busy for much longer than the special functions, or for much
  // shorter, turns cost more than they bring.
  CycleBudget all = cycleBudget(loopsWithDots(kernel), model);
  turnsPay = all.dots < model.mostDotsForTurns * all.functions &&
             all.functions < model.mostFunctionsForTurns * all.dots;
  budget = cycleBudget(firstLoopsWithDots(kernel), model);
  for (scf::ForOp loop : firstLoopsWithDots(kernel))
    if (firstDot == 0)
      firstDot = dotCycles(*loop.getBody()->getOps<DotOp>().begin());
  leadPays = budget.functions + budget.instructions >= model.leastWorkForLead * budget.dots &&
             firstDot >= model.leastDotAhead;
  SmallVector<size_t> depths;
  for (const PipedTile &tile : pipedTiles(kernel)) {
    if (tile.inLoop)
      depths.push_back(depthOf(tile));
    tilesInLoops += tile.inLoop;
    loadsOutside |= !tile.inLoop;
    outerTiles += !tile.inLoop && !tile.isKept;
  }
  fetchedMatrices = countFetchedMatrices(kernel);
  deepestFirst = llvm::to_vector(llvm::seq(tilesInLoops + fetchedMatrices));
  depths.resize(deepestFirst.size());
  llvm::stable_sort(deepestFirst, [&](size_t a, size_t b) { return depths[a] > depths[b]; });
  accumulators = DotDivision::countAccumulators(kernel);
  ordered = findOrderedSums(kernel);
  ordersSums = KernelOp(kernel).getFixedSums() && !ordered.sums.empty();
  findsBounds = kernel.walk([](ReduceRangeOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (findsBounds)
    leastOfProducer = model.boundingRegisters;
  if (int64_t runs = countRunsInLanes(kernel)) {
    int64_t ofLanes = llvm::alignTo(model.lanesRegisters + runs * model.lanesRegistersOfRun,
                                    hopper::roleRegisterStep);
    leastOfProducer = std::max(leastOfProducer, ofLanes);
  }
}

//===----------------------------------------------------------------------===//
// Facts that depend on fields
//===----------------------------------------------------------------------===//

const ScheduleFacts::Copy &ScheduleFacts::overlap(const OverlapShape &shape) const {
  auto [entry, isNew] = copies.try_emplace(shape.kind, Copy());
  Copy &copy = entry->second;
  if (!isNew)
    return copy;
  copy.refusal = "the kernel has no loop with dots";
  KernelOp original = kernel; // accessors of operations are not const
  copy.kernel = original.clone();
  bool any = overlapLoops(*copy.kernel, shape, [&](scf::ForOp, const OverlapRefusal &refusal) {
    copy.refusal = refusal.reason;
  });
  if (!any)
    copy.kernel = nullptr;
  return copy;
}

std::optional<std::string> ScheduleFacts::whyNotRotated(const OverlapShape &shape) const {
  if (shape.changesLoops() && !overlap(shape).kernel)
    return overlap(shape).refusal;
  return std::nullopt;
}

KernelOp ScheduleFacts::rotated(const OverlapShape &shape) const {
  return shape.changesLoops() ? overlap(shape).kernel.get() : kernel;
}

const std::optional<DotDivision> &ScheduleFacts::divide(int64_t consumers) const {
  auto [entry, isNew] = divisions.try_emplace(consumers);
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

const std::string &ScheduleFacts::whyNotDivided(int64_t consumers) const {
  divide(consumers);
  return divisions[consumers].second;
}

const std::optional<std::string> &ScheduleFacts::whyNoShares(int64_t consumers,
                                                             PlacementKind placement) const {
  auto [entry, isNew] = shares.try_emplace({consumers, placement});
  if (!isNew || placement == PlacementKind::divided)
    return entry->second;
  // The two regions of a speculation become whole programs only later: of one of these it asks.
  OwningOpRef<KernelOp> exact;
  KernelOp original = kernel, program = kernel;
  if (findSpeculation(kernel)) {
    exact = original.clone();
    takeExactRegion(program = *exact);
  }
  std::optional<std::string> &reason = entry->second;
  // Kernels are scheduled side by side, and a handler sees what is said of all of them.
  ScopedDiagnosticHandler capture(
      original.getContext(), [&, own = llvm::get_threadid()](Diagnostic &error) {
        if (llvm::get_threadid() != own)
          return failure();
        if (reason)
          return success();
        reason = error.str();
        if (auto place = error.getLocation()->findInstanceOf<FileLineColLoc>())
          reason = llvm::formatv("line {0}: {1}", place.getLine(), *reason).str();
        return success();
      });
  (void)RowPartition::get(program, consumers, reducerOperations(program, placement));
  return reason;
}

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
static ClusterSharing findSharing(KernelOp kernel, int64_t cluster) {
  ClusterSharing sharing;
  // Blocks that run a grid point together have other parts of its range.
  if (cluster == 1 || countPointBlocks(kernel) > 1)
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
  if (tiles.empty())
    sharing.refusal = "no dot reads a loaded tile, which neighbours in the first grid dimension "
                      "could share; use cluster = 1";
  else if (!any)
    sharing.refusal = "no tile is the same for neighbours in the first grid dimension (" + reasons +
                      "); use cluster = 1";
  return sharing;
}

const ClusterSharing &ScheduleFacts::shareInCluster(int64_t cluster) const {
  auto [known, isNew] = sharings.try_emplace(cluster);
  if (isNew)
    known->second = findSharing(kernel, cluster);
  return known->second;
}

bool ClusterSharing::runsAhead(const NumberList &stages, int64_t overlap) const {
  return llvm::all_of(evened, [&](size_t tile) { return stages.of(tile) >= overlap; });
}
