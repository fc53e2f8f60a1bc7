//===- ChooseSchedule.cpp - Completes the schedules of kernels ------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/GridOrder.h"
#include "passes/IndexDependence.h"
#include "passes/LoopOverlap.h"
#include "passes/PipeNumbers.h"
#include "passes/ResourceModel.h"
#include "passes/RowPartition.h"
#include "passes/ScheduleChoice.h"
#include "passes/Speculation.h"
#include "passes/TilePasses.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

namespace tessera {
#define GEN_PASS_DEF_TILECHOOSESCHEDULE
#include "passes/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// What wgmma can do at all
//===----------------------------------------------------------------------===//

/// The first positive multiple of `granule` that is at least `extent`.
static int64_t roundUp(int64_t extent, int64_t granule) {
  return llvm::alignTo(std::max<int64_t>(extent, 1), granule);
}

static LogicalResult checkShape(DotOp dot) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  auto result = cast<RankedTensorType>(dot.getType());
  int64_t rows = result.getDimSize(0), columns = result.getDimSize(1), depth = a.getDimSize(1);
  if (rows == 0 || rows % hopper::kMmaRows != 0)
    return dot.emitError("a dot has a multiple of 64 rows, for wgmma is m64 and each warpgroup "
                         "computes whole ones; got ")
           << rows << "; " << roundUp(rows, hopper::kMmaRows) << " would work";
  if (columns == 0 || columns % hopper::kMmaColumns != 0)
    return dot.emitError("a dot has a multiple of 8 columns (wgmma n8 to n256); got ")
           << columns << "; " << roundUp(columns, hopper::kMmaColumns) << " would work";
  if (depth == 0 || depth % hopper::kMmaDepth != 0)
    return dot.emitError("a dot of 16-bit elements contracts a multiple of 16 (wgmma k16); got ")
           << depth << "; " << roundUp(depth, hopper::kMmaDepth) << " would work";
  return success();
}

static LogicalResult checkOperands(DotOp dot) {
  if (!loadedOperand(dot.getB()))
    return dot.emitError("operand b of a dot is a loaded tile, transposed or not, for wgmma reads "
                         "it from shared memory; this one is computed; exchange the operands, or "
                         "store it and load it in a second kernel");
  if (dot.getA().getDefiningOp<TransposeOp>() && !loadedOperand(dot.getA()))
    return dot.emitError("operand a of a dot is a computed tile that is transposed, which wgmma "
                         "cannot read from registers; transpose a loaded tile, or compute the "
                         "transposed product");
  return success();
}

static LogicalResult checkDots(KernelOp kernel) {
  bool any = false;
  WalkResult result = kernel.walk([&](DotOp dot) {
    any = true;
    return failed(checkShape(dot)) || failed(checkOperands(dot)) ? WalkResult::interrupt()
                                                                 : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  if (!any)
    return kernel.emitError("a kernel is scheduled around its dots, whose rows are divided among "
                            "warpgroups; this one has no tile.dot");
  return success();
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

namespace {
/// A kernel with copies that have been overlapped, to measure them all.
class ScheduleSearch {
public:
  explicit ScheduleSearch(KernelOp kernel);
  ~ScheduleSearch() {
    for (auto &[shape, copy] : copies)
      if (copy.kernel)
        copy.kernel->erase();
  }

  /// The most preferred schedule that keeps the fields of `requested`.
  std::optional<ScheduleAttr> run(ScheduleAttr requested);

  /// What the last run rejected, and what the schedule it found takes.
  SmallVector<ScheduleRejection> rejections;
  std::string use;

private:
  struct Candidate {
    bool warpSpecialize;
    OverlapShape shape;
    int64_t consumers;
    bool pingpong, dynamic, unordered;
    RegisterSplit registers;
  };

  template <typename T>
  static SmallVector<T> choices(std::optional<T> requested, std::initializer_list<T> preferred) {
    return requested ? SmallVector<T>{*requested} : SmallVector<T>(preferred);
  }
  /// The kernel with its loops rotated, or none and the reason.
  struct Copy {
    KernelOp kernel;
    std::string refusal;
  };
  const Copy &overlapped(const OverlapShape &shape);
  std::optional<std::string> rejectShape(ScheduleAttr requested, const OverlapShape &shape);
  int64_t neededRegisters(const Candidate &candidate);
  Candidate makeCandidate(ScheduleAttr requested, bool warpSpecialize, const OverlapShape &shape,
                          int64_t consumers) const;
  int64_t indivisibleRows(int64_t consumers) const;
  bool cutsBox(int64_t consumers) const;
  std::optional<std::string> rejectConsumers(const Candidate &candidate);
  SmallVector<StageCounts> stageChoices(ScheduleAttr requested) const;
  std::optional<StageCounts> findStages(ScheduleAttr requested, StoreKind store);
  std::string describeUse(const Candidate &candidate, const ScheduleFields &fields);
  void chooseGrid(ScheduleFields &fields) const;
  void fillRings(ScheduleFields &fields) const;
  std::optional<ScheduleAttr> complete(ScheduleAttr requested, const Candidate &candidate);
  std::optional<std::string> rejectCluster(int64_t cluster);

  KernelOp kernel;
  std::map<std::tuple<int64_t, int64_t, bool, bool>, Copy> copies;
  bool worksBetweenDots = false, turnsPay = false, severalDots = false;
  size_t tilesInLoops = 0;
};
} // namespace

/// Cycles of an SM in the dots of loops for each cycle in the special functions between them: 4096
/// floating-point operations against 16 results a cycle.
static double dotsPerSpecialFunction(KernelOp kernel) {
  double dots = 0, functions = 0;
  for (scf::ForOp loop : loopsWithDots(kernel))
    loop.walk([&](Operation *op) {
      auto tile = op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                                           : RankedTensorType();
      if (!tile || tile.getRank() != 2)
        return;
      if (auto dot = dyn_cast<DotOp>(op))
        dots += tile.getNumElements() * cast<RankedTensorType>(dot.getA().getType()).getDimSize(1) /
                2048.0;
      else if (isa<math::MathDialect>(op->getDialect()) || isa<arith::DivFOp>(op))
        functions += tile.getNumElements() / 16.0;
    });
  return functions ? dots / functions : std::numeric_limits<double>::infinity();
}

ScheduleSearch::ScheduleSearch(KernelOp kernel) : kernel(kernel) {
  for (scf::ForOp loop : loopsWithDots(kernel)) {
    worksBetweenDots |= hasDependentDots(loop);
    if (llvm::range_size(loop.getBody()->getOps<DotOp>()) > 1)
      severalDots = true;
  }
  // Measured (docs/performance.md): where the tensor cores are busy for much longer than the
  // special functions, or where blocks of unequal work drift apart anyway, turns cost more than
  // they bring.
  turnsPay = dotsPerSpecialFunction(kernel) < (workTrend(kernel, 0) == Trend::Constant ? 3.0 : 1.5);
  tilesInLoops = llvm::count_if(pipedTiles(kernel), [](const PipedTile &t) { return t.inLoop; });
}

const ScheduleSearch::Copy &ScheduleSearch::overlapped(const OverlapShape &shape) {
  auto [entry, isNew] =
      copies.try_emplace({shape.stages, shape.lead, shape.rescaleBefore, shape.packBefore}, Copy());
  Copy &copy = entry->second;
  if (!isNew)
    return copy;
  copy.refusal = "the kernel has no loop with dots";
  copy.kernel = kernel.clone();
  bool any = overlapLoops(copy.kernel, shape, [&](scf::ForOp, const OverlapRefusal &refusal) {
    copy.refusal = refusal.reason;
  });
  if (!any) {
    copy.kernel->erase();
    copy.kernel = nullptr;
  }
  return copy;
}

/// Why the kernel cannot be overlapped in this shape.
std::optional<std::string> ScheduleSearch::rejectShape(ScheduleAttr requested,
                                                       const OverlapShape &shape) {
  if (std::optional<std::string> conflict = shape.findConflict())
    return conflict;
  if (!shape.separatesLate() &&
      (requested.getRescale() == JoinKind::After || requested.getPack() == JoinKind::After))
    return "every dot runs in the step of the work on its operands, so that they are scaled and "
           "rounded before it; after takes overlap = 2 with lead = 0, or overlap = 3";
  if (shape.stages > 1 && !overlapped(shape).kernel)
    return overlapped(shape).refusal;
  return std::nullopt;
}

int64_t ScheduleSearch::neededRegisters(const Candidate &candidate) {
  KernelOp measured = candidate.shape.stages > 1 ? overlapped(candidate.shape).kernel : kernel;
  return consumerRegisters(measured, candidate.consumers, candidate.warpSpecialize);
}

ScheduleSearch::Candidate ScheduleSearch::makeCandidate(ScheduleAttr requested, bool warpSpecialize,
                                                        const OverlapShape &shape,
                                                        int64_t consumers) const {
  RegisterSplit split = registerSplit(consumers, warpSpecialize);
  split.consumer = requested.getConsumerRegisters().value_or(split.consumer);
  if (warpSpecialize)
    split.producer = requested.getProducerRegisters().value_or(split.producer);
  // Dots that run ahead keep the tensor cores busy during the work of their own warpgroup; turns
  // would only serialise the warpgroups (measured: 0.85 of the speed without).
  bool pingpong = requested.getPingpong().value_or(warpSpecialize && consumers > 1 &&
                                                   worksBetweenDots && turnsPay && shape.lead == 0);
  bool dynamic = requested.getPersistent() == PersistentKind::Dynamic;
  bool unordered = requested.getPersistent() == PersistentKind::None &&
                   requested.getOrder().value_or(OrderKind::Linear) != OrderKind::Linear;
  return {warpSpecialize, shape, consumers, pingpong, dynamic, unordered, split};
}

/// The rows of a dot that `consumers` warpgroups cannot share, or 0.
int64_t ScheduleSearch::indivisibleRows(int64_t consumers) const {
  int64_t indivisible = 0;
  kernel->walk([&](DotOp dot) {
    int64_t rows = cast<RankedTensorType>(dot.getType()).getDimSize(0);
    if (rows % (consumers * hopper::kMmaRows) != 0)
      indivisible = rows;
  });
  return indivisible;
}

/// Whether the rows of a store cannot be divided among `consumers` warpgroups in parts that are boxes.
bool ScheduleSearch::cutsBox(int64_t consumers) const {
  return kernel
      ->walk([&](StoreOp store) {
        return RowPartition::divides(store, consumers) ? WalkResult::advance()
                                                       : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Why the rows, the turns or the registers forbid `candidate`.
std::optional<std::string> ScheduleSearch::rejectConsumers(const Candidate &candidate) {
  int64_t consumers = candidate.consumers;
  if (int64_t indivisible = indivisibleRows(consumers))
    return llvm::formatv("{0} rows of a dot cannot be divided among {1} warpgroups in multiples "
                         "of 64",
                         indivisible, consumers)
        .str();
  if (cutsBox(consumers))
    return llvm::formatv("the rows of a store cannot be divided among {0} warpgroups in parts that "
                         "are boxes of the view",
                         consumers)
        .str();
  if (candidate.unordered)
    return "the order of tiles is the launch's with persistent = none; use static or dynamic, or "
           "order = "
           "linear";
  if (candidate.dynamic && !candidate.warpSpecialize)
    return "persistent = dynamic needs a producer, which fetches the next tile; with "
           "warp_specialize = "
           "false use static";
  if (candidate.pingpong && consumers < 2)
    return "ping-pong takes two consumers or more that take turns";
  if (candidate.pingpong && !worksBetweenDots)
    return "ping-pong needs a loop with work between dependent dots, and the kernel has none";

  const RegisterSplit &split = candidate.registers;
  int64_t all = hopper::kWarpgroupThreads * (split.producer + consumers * split.consumer);
  if (all > hopper::kRegisters)
    return llvm::formatv(
               "the warpgroups take {0} registers and an SM has {1}; at most {2} per "
               "consumer thread",
               all, hopper::kRegisters,
               llvm::alignDown((hopper::kRegisters / hopper::kWarpgroupThreads - split.producer) /
                                   consumers,
                               8))
        .str();
  int64_t needed = neededRegisters(candidate);
  if (needed > usableRegisters(split.consumer))
    return llvm::formatv("a consumer thread needs {0} registers and can use {1} of its {2}", needed,
                         usableRegisters(split.consumer), split.consumer)
        .str();
  return std::nullopt;
}

SmallVector<StageCounts> ScheduleSearch::stageChoices(ScheduleAttr requested) const {
  if (requested.getStages())
    return {*requested.getStages()};
  SmallVector<StageCounts> stages;
  for (int64_t i = !tilesInLoops ? 1 : severalDots ? 3 : 4; i >= 1; --i)
    stages.push_back(StageCounts(i));
  return stages;
}

static std::string describe(const SharedMemoryUse &shared) {
  std::string retries =
      shared.retries ? llvm::formatv(", grid points to run again {0}", shared.retries).str() : "";
  return llvm::formatv(
             "{0} bytes of shared memory (tiles {1}, staging of stores {2}, mbarriers {3}{4})",
             shared.total(), shared.tiles, shared.staging, shared.barriers, retries)
      .str();
}

/// The most stages that fit. A third slot of a loop with several dots hides less than a second slot
/// of what is loaded before the loop, so it is taken only beside that.
std::optional<StageCounts> ScheduleSearch::findStages(ScheduleAttr requested, StoreKind store) {
  for (const StageCounts &stages : stageChoices(requested)) {
    std::string text;
    llvm::raw_string_ostream(text) << "stages = " << stages;
    if (!stages.fits(tilesInLoops)) {
      rejections.push_back({text, llvm::formatv("the kernel loads {0} tiles in loops, and the list "
                                                "has {1} numbers",
                                                tilesInLoops, stages.getCounts().size())
                                      .str()});
      continue;
    }
    bool spare = !requested.getStages() && severalDots && stages.of(0) > 2;
    int64_t outer = requested.getOuterStages().value_or(spare ? 2 : 1);
    SharedMemoryUse shared = sharedMemoryUse(kernel, stages, outer, store);
    if (shared.total() <= hopper::kSharedMemory)
      return stages;
    rejections.push_back({llvm::formatv("{0}, outer_stages = {1}, store = {2}", text, outer,
                                        stringifyStoreKind(store))
                              .str(),
                          llvm::formatv("it takes {0}, and a CTA can have {1}", describe(shared),
                                        hopper::kSharedMemory)
                              .str()});
  }
  return std::nullopt;
}

/// What the schedule that was found takes, for a remark.
std::string ScheduleSearch::describeUse(const Candidate &candidate, const ScheduleFields &fields) {
  return llvm::formatv(
             "{0} of {1} registers per consumer thread and {2} of {3}", neededRegisters(candidate),
             usableRegisters(candidate.registers.consumer),
             describe(sharedMemoryUse(kernel, *fields.stages, *fields.outerStages, *fields.store)),
             hopper::kSharedMemory)
      .str();
}

/// Why no tile is the same for the blocks of a cluster; nothing when one is.
std::optional<std::string> ScheduleSearch::rejectCluster(int64_t cluster) {
  IndexDependence dependence(kernel.getGridIndex(0));
  std::string reasons;
  for (const PipedTile &tile : pipedTiles(kernel)) {
    SmallVector<Operation *> loads(tile.loads.begin(), tile.loads.end());
    LoadOp load = tile.loads.front();
    std::optional<std::string> reason =
        whyNotMulticast(dependence, loads, cast<RankedTensorType>(load.getType()), cluster);
    if (!reason)
      return std::nullopt;
    auto view = cast<BlockArgument>(load.getView());
    reasons += llvm::formatv("{0}%{1}: {2}", reasons.empty() ? "" : "; ",
                             kernel.getArgumentName(view.getArgNumber()), *reason);
  }
  return "no tile is the same for neighbours in the first grid dimension (" + reasons +
         "); use cluster = 1";
}

/// Tiles of unequal work are handed out one by one, the longest first.
void ScheduleSearch::chooseGrid(ScheduleFields &fields) const {
  Trend trend = workTrend(kernel, 0);
  bool varies = trend != Trend::Constant;
  // Without work between dots all blocks keep step, and taking turns at the tiles keeps what they
  // share in the L2 cache.
  // An order that the author asks for needs blocks that walk over tiles, producer or not.
  bool ordered = fields.order && *fields.order != OrderKind::Linear;
  if (!fields.persistent)
    fields.persistent = *fields.warpSpecialize && (varies || worksBetweenDots)
                            ? PersistentKind::Dynamic
                        : *fields.warpSpecialize || ordered ? PersistentKind::Static
                                                            : PersistentKind::None;
  if (!fields.order)
    fields.order = *fields.persistent == PersistentKind::None ? OrderKind::Linear
                   : trend == Trend::Increasing               ? OrderKind::Descending
                   : trend == Trend::Decreasing               ? OrderKind::Ascending
                                                              : OrderKind::Linear;
  if (fields.outerStages)
    return;
  // A second slot lets the next tile's loads start before this tile's last reader is done.
  bool loadsOutside =
      llvm::any_of(pipedTiles(kernel), [](const PipedTile &t) { return !t.inLoop; });
  bool pays = *fields.persistent != PersistentKind::None && loadsOutside;
  bool fits =
      sharedMemoryUse(kernel, *fields.stages, 2, *fields.store).total() <= hopper::kSharedMemory;
  fields.outerStages = pays && fits ? 2 : 1;
}

/// Gives the memory that is left to single rings. Tiles of one dot are needed together, so that
/// unequal rings help only where a loop has several; there one more slot lets a load start a step
/// earlier.
void ScheduleSearch::fillRings(ScheduleFields &fields) const {
  bool mayGrow = severalDots && fields.stages->of(0) < 3;
  if (!mayGrow || tilesInLoops < 2 || tilesInLoops > StageCounts::kMost)
    return;
  SmallVector<int64_t> counts(tilesInLoops, fields.stages->of(0));
  for (int64_t &count : counts) {
    ++count;
    if (sharedMemoryUse(kernel, *StageCounts::get(counts), *fields.outerStages, *fields.store)
            .total() > hopper::kSharedMemory)
      --count;
  }
  fields.stages = *StageCounts::get(counts);
}

/// The schedule of a candidate whose rows, turns and registers fit, if shared memory does.
std::optional<ScheduleAttr> ScheduleSearch::complete(ScheduleAttr requested,
                                                     const Candidate &candidate) {
  StoreKind store = requested.getStore().value_or(StoreKind::direct);
  std::optional<StageCounts> stages = findStages(requested, store);
  if (!stages)
    return std::nullopt;
  ScheduleFields fields(requested);
  fields.warpSpecialize = candidate.warpSpecialize;
  fields.consumers = candidate.consumers;
  fields.stages = *stages;
  fields.overlap = candidate.shape.stages;
  fields.lead = candidate.shape.lead;
  fields.rescale = candidate.shape.rescaleBefore ? JoinKind::Before : JoinKind::After;
  fields.pack = candidate.shape.packBefore ? JoinKind::Before : JoinKind::After;
  fields.pingpong = candidate.pingpong;
  fields.split = requested.getSplit().value_or(true);
  fields.store = store;
  fields.producerRegisters = std::max<int64_t>(candidate.registers.producer, 24);
  fields.consumerRegisters = candidate.registers.consumer;
  fields.speculate = findSpeculation(kernel) != nullptr;
  fields.cluster = requested.getCluster().value_or(1);
  fields.pdl = requested.getPdl().value_or(false);
  chooseGrid(fields);
  if (!requested.getStages())
    fillRings(fields);
  use = describeUse(candidate, fields);
  return fields.get(kernel.getContext());
}

/// The shape of `overlap` that keeps what is requested.
static OverlapShape makeShape(ScheduleAttr requested, int64_t overlap) {
  OverlapShape shape;
  shape.stages = overlap;
  shape.lead = requested.getLead().value_or(overlap == 3);
  JoinKind usual = shape.separatesLate() ? JoinKind::After : JoinKind::Before;
  shape.rescaleBefore = requested.getRescale().value_or(usual) == JoinKind::Before;
  shape.packBefore = requested.getPack().value_or(usual) == JoinKind::Before;
  return shape;
}

std::optional<ScheduleAttr> ScheduleSearch::run(ScheduleAttr requested) {
  rejections.clear();
  int64_t cluster = requested.getCluster().value_or(1);
  if (cluster > 1)
    if (std::optional<std::string> reason = rejectCluster(cluster)) {
      rejections.push_back({llvm::formatv("cluster = {0}", cluster).str(), *reason});
      return std::nullopt;
    }
  for (bool warpSpecialize : choices<bool>(requested.getWarpSpecialize(), {true, false}))
    for (int64_t overlap : choices<int64_t>(requested.getOverlap(), {2, 1})) {
      OverlapShape shape = makeShape(requested, overlap);
      if (std::optional<std::string> reason = rejectShape(requested, shape)) {
        if (rejections.empty())
          rejections.push_back({llvm::formatv("overlap = {0}", overlap).str(), *reason});
        continue;
      }
      for (int64_t consumers : choices<int64_t>(requested.getConsumers(), {4, 3, 2, 1})) {
        // A count that the author did not ask for and that the rows forbid is no candidate.
        if (!requested.getConsumers() && (indivisibleRows(consumers) || cutsBox(consumers)))
          continue;
        Candidate candidate = makeCandidate(requested, warpSpecialize, shape, consumers);
        std::optional<std::string> reason = rejectConsumers(candidate);
        // Shared memory depends on nothing that the loops around this vary.
        if (!reason)
          return complete(requested, candidate);
        rejections.push_back({llvm::formatv("warp_specialize = {0}, overlap = {1}, consumers = {2}",
                                            warpSpecialize ? "true" : "false", overlap, consumers)
                                  .str(),
                              *reason});
      }
    }
  return std::nullopt;
}

/// What `search` makes of `fields`.
static ScheduleChoice chooseOne(ScheduleSearch &search, ScheduleAttr fields) {
  std::optional<ScheduleAttr> found = search.run(fields);
  return {found.value_or(ScheduleAttr()), std::move(search.rejections),
          found ? search.use : std::string()};
}

FailureOr<SmallVector<ScheduleChoice>> tessera::chooseSchedules(KernelOp kernel,
                                                                ArrayRef<ScheduleAttr> requested) {
  if (failed(checkDots(kernel)))
    return failure();
  OwningOpRef<KernelOp> whole = kernel.clone();
  numberPipes(*whole);
  ScheduleSearch search(*whole);
  // A kernel that speculates has two forms, of which the fields decide.
  bool speculates = findSpeculation(*whole) != nullptr;
  OwningOpRef<KernelOp> exact;
  std::optional<ScheduleSearch> exactSearch;
  if (speculates) {
    exact = whole->clone();
    takeExactRegion(*exact);
    numberPipes(*exact);
    exactSearch.emplace(*exact);
  }
  SmallVector<ScheduleChoice> choices;
  for (ScheduleAttr fields : requested) {
    std::optional<bool> speculate = fields.getSpeculate();
    if (!speculates && speculate.value_or(false)) {
      choices.push_back({ScheduleAttr(),
                         {{"speculate = true", "the kernel has no tile.speculate"}},
                         std::string()});
      continue;
    }
    bool takesExact = speculates && !speculate.value_or(true);
    choices.push_back(chooseOne(takesExact ? *exactSearch : search, fields));
    if (speculates && !speculate && !choices.back().schedule)
      choices.back() = chooseOne(*exactSearch, fields);
  }
  return choices;
}

//===----------------------------------------------------------------------===//
// What would work instead
//===----------------------------------------------------------------------===//

/// `schedule` without its field number `field`, or null when it is not set.
static ScheduleAttr withoutField(ScheduleAttr schedule, unsigned field) {
  ScheduleFields fields(schedule);
  unsigned index = 0;
  fields.visit([&](StringRef, auto &value) {
    if (index++ == field)
      value.reset();
  });
  ScheduleAttr reduced = fields.get(schedule.getContext());
  return reduced == schedule ? ScheduleAttr() : reduced;
}

/// Attaches the rejections of the failed search and the nearest schedule that
/// fits: the one that differs in a single field if there is one.
static void explainFailure(KernelOp kernel, ScheduleSearch &search, ScheduleAttr requested) {
  InFlightDiagnostic diag = kernel.emitError("no schedule of this kernel fits the machine");
  ScheduleAttr empty = ScheduleFields().get(kernel.getContext());
  if (requested != empty)
    diag << " with " << requested;
  for (const ScheduleRejection &rejection : search.rejections)
    diag.attachNote() << rejection.candidate << ": " << rejection.reason;
  unsigned numFields = 0;
  ScheduleFields().visit([&](StringRef, auto &) { ++numFields; });
  for (unsigned field = 0; field < numFields; ++field)
    if (ScheduleAttr reduced = withoutField(requested, field))
      if (std::optional<ScheduleAttr> found = search.run(reduced)) {
        diag.attachNote() << "this would work: " << *found;
        return;
      }
  if (std::optional<ScheduleAttr> found = search.run(empty))
    diag.attachNote() << "this would work: " << *found;
  else
    diag.attachNote() << "whatever the schedule, smaller tiles are needed: fewer columns of the "
                         "dots' results, or fewer rows";
}

namespace {
class TileChooseSchedulePass
    : public tessera::impl::TileChooseScheduleBase<TileChooseSchedulePass> {
public:
  using Base::Base;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    FailureOr<ScheduleAttr> overrides = ScheduleAttr::parseText(
        context, schedule, [&] { return mlir::emitError(getOperation().getLoc()); });
    if (failed(overrides))
      return signalPassFailure();
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      if (failed(choose(kernel, *overrides)))
        return signalPassFailure();
  }

private:
  LogicalResult choose(KernelOp kernel, ScheduleAttr overrides) {
    if (failed(checkDots(kernel)))
      return failure();
    ScheduleAttr written = kernel.getScheduleAttr();
    ScheduleAttr requested = written ? written.overriddenBy(overrides) : overrides;
    numberPipes(kernel);
    if (failed(resolveSpeculation(kernel, requested)))
      return failure();
    ScheduleSearch search(kernel);
    std::optional<ScheduleAttr> found = search.run(requested);
    if (!found) {
      explainFailure(kernel, search, requested);
      return failure();
    }
    for (const ScheduleRejection &rejection : search.rejections)
      kernel.emitRemark("schedule rejected: ") << rejection.candidate << ": " << rejection.reason;
    kernel.emitRemark("schedule chosen: ") << *found << "; it takes " << search.use;
    kernel.setScheduleAttr(*found);
    return success();
  }

  /// Leaves the kernel with the regions that the schedule runs.
  static LogicalResult resolveSpeculation(KernelOp kernel, ScheduleAttr requested) {
    std::optional<bool> speculate = requested.getSpeculate();
    SpeculateOp speculation = findSpeculation(kernel);
    if (!speculation)
      return speculate.value_or(false)
                 ? kernel.emitError("speculate = true needs a tile.speculate, and the kernel has "
                                    "none; speculate = false would work")
                 : success();
    if (!speculate && !ScheduleSearch(kernel).run(requested)) {
      speculation.emitRemark("exact region alone: no schedule fits both regions");
      speculate = false;
    }
    if (!speculate.value_or(true)) {
      takeExactRegion(kernel);
      numberPipes(kernel);
    }
    return success();
  }
};
} // namespace
