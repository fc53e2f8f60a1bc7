//===- ChooseSchedule.cpp - Completes the schedules of kernels ------------===//

#include "dialects/Hop/SharedLayout.h"
#include "dialects/Tile/Entries.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/PipeSlots.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Schedule/Arithmetic.h"
#include "passes/Schedule/DotOrder.h"
#include "passes/Schedule/PipeNumbers.h"
#include "passes/Schedule/ScheduleCost.h"
#include "passes/Schedule/SchedulePasses.h"
#include "passes/Schedule/ScheduleSearch.h"
#include "passes/Schedule/WideTiles.h"
#include <list>

namespace tessera {
#define GEN_PASS_DEF_TILECHOOSESCHEDULE
#include "passes/Schedule/SchedulePasses.h.inc"
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
  if (rows == 0 || rows % hopper::mmaRows != 0)
    return dot.emitError("a dot has a multiple of 64 rows, for wgmma is m64 and each warpgroup "
                         "computes whole ones; got ")
           << rows << "; " << roundUp(rows, hopper::mmaRows) << " would work";
  if (columns == 0 || columns % hopper::mmaColumns != 0)
    return dot.emitError("a dot has a multiple of 8 columns (wgmma n8 to n256); got ")
           << columns << "; " << roundUp(columns, hopper::mmaColumns) << " would work";
  int64_t unit = hopper::mmaDepth(a.getElementTypeBitWidth());
  if (depth == 0 || depth % unit != 0)
    return dot.emitError("a dot of ")
           << a.getElementTypeBitWidth() << "-bit elements contracts a multiple of " << unit
           << " (wgmma k" << unit << "); got " << depth << "; " << roundUp(depth, unit)
           << " would work";
  return success();
}

/// Whether the tile that a dot reads from shared memory is stored transposed.
static bool isTransposed(Value operand) {
  bool transposed = false;
  while (auto transpose = operand.getDefiningOp<TransposeOp>()) {
    transposed = !transposed;
    operand = transpose.getSource();
  }
  return transposed;
}

/// wgmma reads elements of 8 bits along the contracted dimension alone. What is transposed for that
/// in the kernel has them in the order of the fragments that it is multiplied with.
static LogicalResult checkByteOperands(DotOp dot) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  if (!isByteFloat(a.getElementType()))
    return success();
  if (computedTranspose(dot.getA()))
    return dot.emitError("transposes a computed tile of 8-bit elements, and computed operands go "
                         "through shared memory with 16-bit ones alone; round to 16 bits, or "
                         "compute the transposed tile");
  bool isLoaded = static_cast<bool>(loadedOperand(dot.getA())),
       isA = isLoaded && isTransposed(dot.getA());
  if (!isA && (!isLoaded || isTransposed(dot.getB()))) {
    int64_t columns = cast<RankedTensorType>(dot.getType()).getDimSize(1);
    if (isTransposed(dot.getB()) || columns % 32 == 0)
      return success();
    return dot.emitError("transposes operand b of 8-bit elements 32 columns at a time; got ")
           << columns << "; " << roundUp(columns, 32) << " would work";
  }
  return dot.emitError(
             "a dot of two loaded tiles of 8-bit elements reads both along the contracted "
             "dimension, for wgmma transposes 16-bit ones alone; operand ")
         << (isA ? "a is loaded with its rows" : "b is loaded with its columns")
         << " innermost; store it the other way round and load it as "
         << (isA ? "it is" : "the transpose of a tile that has its rows innermost");
}

/// Refuses an operand b that its consumers compute and cannot write to shared memory, where wgmma
/// reads it.
static LogicalResult checkComputedB(DotOp dot, RankedTensorType tile) {
  Type element = tile.getElementType();
  int64_t rows = tile.getDimSize(0), columns = tile.getDimSize(1),
          unit = 8 * hopper::narrowestSwizzle / tile.getElementTypeBitWidth();
  if (isByteFloat(element))
    return dot.emitError("computes operand b of ")
           << element << ", and computed operands go through shared memory with 16-bit elements "
           << "alone; round to 16 bits";
  if (rows % hopper::mmaRows != 0)
    return dot.emitError("computes operand b in registers, which hold multiples of 64 rows of a "
                         "tile; got ")
           << rows << "x" << columns << "; " << roundUp(rows, hopper::mmaRows) << "x" << columns
           << " would work";
  if (!hop::getSharedLayout(tile))
    return dot.emitError("computes operand b, which goes through shared memory in rows of a "
                         "multiple of 32 bytes; got ")
           << columns << " elements of " << element << "; " << roundUp(columns, unit)
           << " would work";
  return success();
}

/// Says of an operand b that its consumers compute why no role converts it on its way.
static void remarkComputedB(DotOp dot) {
  ConversionRefusal refusal;
  if (findConversion(dot.getB(), refusal))
    return;
  InFlightDiagnostic remark =
      dot.emitRemark("operand b is computed by those who multiply it, and goes through shared "
                     "memory");
  remark.attachNote(refusal.op->getLoc()) << refusal.reason;
}

/// Computed operands are transposed once.
static LogicalResult checkTransposes(Value operand) {
  TransposeOp transpose = computedTranspose(operand);
  if (!transpose || !transpose.getSource().getDefiningOp<TransposeOp>())
    return success();
  return transpose.emitError("transposes what is transposed; use the tile as it is computed");
}

static LogicalResult checkOperands(DotOp dot) {
  if (failed(checkTransposes(dot.getA())))
    return failure();
  OpOperand *b = computedB(dot);
  if (!b)
    return success();
  remarkComputedB(dot);
  return success(succeeded(checkTransposes(dot.getB())) &&
                 succeeded(checkComputedB(dot, cast<RankedTensorType>(b->get().getType()))));
}

/// Refuses gathered rows that do not start where copies can.
static LogicalResult checkRowLength(LoadOpInterface load, int64_t unit) {
  auto view = cast<ViewType>(load.getView().getType());
  int64_t columns = view.getStaticDim(view.getRank() - 1);
  if (!isa<GatherOp>(load) || columns == ShapedType::kDynamic || columns % unit == 0)
    return success();
  return load.emitError("gathers an operand of a dot from rows of ")
         << columns << " elements of " << view.getElementType() << ", and copies take "
         << hop::bulkStartBytes << " bytes at a time; rows padded to " << roundUp(columns, unit)
         << " elements would work, or their length as a dimension of the launch";
}

/// Refuses a loaded operand at a column where no copy can start.
static LogicalResult checkColumns(LoadOpInterface load) {
  auto type = cast<RankedTensorType>(load.getType());
  int64_t unit = 8 * hop::bulkStartBytes / type.getElementTypeBitWidth();
  if (failed(checkRowLength(load, unit)))
    return failure();
  Value column = load.getIndices().back();
  if (isMultipleOf(column, unit))
    return success();
  InFlightDiagnostic error = load.emitError("loads an operand of a dot from column ");
  if (std::optional<int64_t> constant = getConstantIntValue(column))
    error << *constant;
  else
    error << "that is not known to be a multiple of " << unit;
  return error << "; a bulk copy starts at a multiple of " << unit << " elements of "
               << type.getElementType() << " (" << hop::bulkStartBytes
               << " bytes): take the column before it that is one, or multiply the index by "
               << unit << " in the kernel";
}

/// Refuses what later passes make for the schedule that they are given, and runs that no thread
/// copies to shared memory.
static LogicalResult checkUnscheduled(Operation *op) {
  if (auto gather = dyn_cast<GatherRunsOp>(op); gather && !isLoadedForDots(gather))
    return gather.emitError("comes by bulk copies to shared memory, where dots read it, and feeds "
                            "none; tile.gather loads rows into registers");
  if (!isa<CommonBoundOp, SkipLoadsOp>(op))
    return success();
  return op->emitError("is made by tile-overlap or tile-even-loops for the schedule of its kernel, "
                       "which cannot be chosen again; start from the program before that pass");
}

static LogicalResult checkDots(KernelOp kernel) {
  bool any = false;
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    if (failed(checkUnscheduled(op)))
      return failure();
    auto dot = dyn_cast<DotOp>(op);
    if (!dot)
      return success();
    any = true;
    if (failed(checkShape(dot)) || failed(checkOperands(dot)) || failed(checkByteOperands(dot)))
      return failure();
    for (LoadOpInterface load : {loadedOperand(dot.getA()), loadOfB(dot)})
      if (load && failed(checkColumns(load)))
        return failure();
    return success();
  });
  if (!result.wasInterrupted())
    result = kernel.walk([](Operation *op) -> WalkResult { return checkArithmetic(op); });
  if (result.wasInterrupted())
    return failure();
  if (any)
    return success();
  if (SpeculateOp speculation = findSpeculation(kernel))
    return speculation.emitOpError(
        "runs grid points again that a producer loads again, and a kernel "
        "without a tile.dot has none; write the exact region alone");
  // What is computed and not stored has been removed before this pass.
  auto stores = [](Operation *op) {
    return storesToView(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
  if (!kernel.walk(stores).wasInterrupted())
    return kernel.emitError("stores nothing, so that nothing of it has to be computed; store a "
                            "result with tile.store");
  return VectorAxes(/*usual=*/1).run(kernel);
}

//===----------------------------------------------------------------------===//
// Several choices
//===----------------------------------------------------------------------===//

/// `requested` with each order of work that it leaves open, the preferred one first: elements where
/// nothing fits otherwise, and there are products to work between.
static SmallVector<ScheduleAttr, 2> withEachWork(KernelOp kernel, ScheduleAttr requested) {
  SmallVector<ScheduleAttr, 2> each;
  if (requested.getWork())
    return {requested};
  for (WorkKind work : {WorkKind::tiles, WorkKind::elements}) {
    if (work == WorkKind::elements && !hasDots(kernel))
      continue;
    ScheduleFields fields = requested.getFields();
    fields.work = work;
    each.push_back(fields.get(requested.getContext()));
  }
  return each;
}

/// What `search` makes of `fields`.
static ScheduleChoice chooseOne(ScheduleSearch &search, ScheduleAttr fields) {
  std::optional<ScheduleAttr> found = search.run(fields);
  return {found.value_or(ScheduleAttr()), std::move(search.rejections),
          found ? search.use : std::string()};
}

namespace {
/// A search for each form of a kernel: one that speculates has two, of which the fields decide, and
/// one whose dots can have another order. Each of these is there with wide tiles and without, if it
/// has such.
class Forms {
public:
  Forms(KernelOp kernel, const CostModel &model) : model(model) {
    isExact = static_cast<bool>(findSpeculation(kernel));
    add(kernel.clone(), /*speculates=*/isExact);
    OwningOpRef<KernelOp> other = kernel.clone();
    if (isExact)
      takeExactRegion(*other);
    else if (issueSumsEarly(*other).empty())
      return;
    add(std::move(other), /*speculates=*/false);
  }

  bool speculates() const { return isExact; }

  /// The searches of the forms that `fields` leave open, the preferred one first: with dots in
  /// another order for what does not fit as it stands.
  SmallVector<ScheduleSearch *, 2> of(ScheduleAttr fields) {
    SmallVector<ScheduleSearch *, 2> open;
    std::optional<bool> speculate = fields.getSpeculate();
    for (Form &form : forms)
      if (!isExact || !speculate || *speculate == form.speculates)
        open.push_back(&form.search);
    return open;
  }

private:
  struct Form {
    Form(OwningOpRef<KernelOp> owned, bool speculates, const CostModel &model)
        : kernel(std::move(owned)), speculates(speculates), search(*kernel, model) {}
    OwningOpRef<KernelOp> kernel;
    bool speculates;
    ScheduleSearch search;
  };

  void add(OwningOpRef<KernelOp> kernel, bool speculates) {
    numberPipes(*kernel);
    OwningOpRef<KernelOp> wide = kernel->clone();
    if (widenTiles(*wide))
      forms.emplace_back(std::move(wide), speculates, model);
    forms.emplace_back(std::move(kernel), speculates, model);
  }

  const CostModel &model;
  bool isExact; ///< one form is the exact region
  std::list<Form> forms;
};
} // namespace

ScheduleAttr tessera::getRequestedSchedule(KernelOp kernel) {
  return kernel.getScheduleFields().get(kernel.getContext());
}

FailureOr<SmallVector<ScheduleChoice>> tessera::chooseSchedules(KernelOp kernel,
                                                                ArrayRef<ScheduleAttr> requested,
                                                                const CostModel *model) {
  if (failed(checkDots(kernel)))
    return failure();
  kernel.getContext()->getOrLoadDialect<hop::HopDialect>();
  Forms forms(kernel, model ? *model : getCostModel(kernel));
  SmallVector<ScheduleChoice> choices;
  for (ScheduleAttr asked : requested) {
    if (!forms.speculates() && asked.getSpeculate() == true) {
      choices.push_back({ScheduleAttr(),
                         {{"speculate = true", "the kernel has no tile.speculate"}},
                         std::string()});
      continue;
    }
    choices.emplace_back();
    for (ScheduleAttr fields : withEachWork(kernel, asked))
      for (ScheduleSearch *search : forms.of(fields))
        if (!choices.back().schedule)
          choices.back() = chooseOne(*search, fields);
  }
  return choices;
}

SmallVector<ScheduleAttr> tessera::listSchedules(KernelOp kernel, ScheduleAttr requested,
                                                 size_t most) {
  SmallVector<ScheduleAttr> schedules;
  if (failed(checkDots(kernel)))
    return schedules;
  kernel.getContext()->getOrLoadDialect<hop::HopDialect>();
  Forms forms(kernel, getCostModel(kernel));
  if (!forms.speculates() && requested.getSpeculate() == true)
    return schedules;
  // Where one fits with the order that is preferred, the search adds one with the other.
  for (ScheduleAttr fields : withEachWork(kernel, requested)) {
    if (!schedules.empty())
      break;
    if (!requested.getWork() && fields.getWork() == WorkKind::tiles)
      fields = requested;
    for (ScheduleSearch *search : forms.of(fields))
      if (schedules.empty() || forms.speculates())
        llvm::append_range(schedules, search->list(fields, most - schedules.size()));
  }
  return schedules;
}

//===----------------------------------------------------------------------===//
// What would work instead
//===----------------------------------------------------------------------===//

/// `schedule` without `field`, or null when it is not set.
static ScheduleAttr withoutField(ScheduleAttr schedule, const ScheduleFieldInfo &field) {
  ScheduleFields fields = schedule.getFields();
  fields.visit([&](const ScheduleFieldInfo &info, auto &value) {
    if (&info == &field)
      value.reset();
  });
  ScheduleAttr reduced = fields.get(schedule.getContext());
  return reduced == schedule ? ScheduleAttr() : reduced;
}

/// Of what kind a failed search is: where one candidate lacks room, smaller tiles may fit.
static RefusalKind findKind(ArrayRef<ScheduleRejection> rejections) {
  for (RefusalKind kind : {RefusalKind::Registers, RefusalKind::SharedMemory})
    if (llvm::any_of(rejections,
                     [&](const ScheduleRejection &rejection) { return rejection.kind == kind; }))
      return kind;
  return RefusalKind::Unsupported;
}

/// Attaches what computed second operands take of the shared memory that did not suffice.
static void noteComputedBs(InFlightDiagnostic &diag, KernelOp kernel) {
  OperandBuffers buffers(computedBs(kernel));
  for (const OperandBuffers::Tile &operand : buffers.getTiles()) {
    auto tile = cast<RankedTensorType>(operand.values.front().getType());
    int64_t unit = 8 * hopper::narrowestSwizzle / tile.getElementTypeBitWidth(),
            half = roundUp(tile.getDimSize(1) / 2, unit);
    auto smaller = RankedTensorType::get({tile.getDimSize(0), half}, tile.getElementType());
    diag.attachNote(operand.reads.front()->getOwner()->getLoc())
        << "operand b is computed, and takes " << tileBytes(tile) << " bytes of shared memory for "
        << tile.getDimSize(0) << "x" << tile.getDimSize(1) << "; " << tile.getDimSize(0) << "x"
        << half << " would take " << tileBytes(smaller);
  }
}

/// The nearest schedule that fits where that which was asked for does not: the one that differs in
/// a single field if there is one. Null where none fits.
static ScheduleAttr findNearest(ScheduleSearch &search, ScheduleAttr requested) {
  for (const ScheduleFieldInfo &field : ScheduleAttr::getFieldInfos())
    if (ScheduleAttr reduced = withoutField(requested, field))
      if (std::optional<ScheduleAttr> found = search.run(reduced))
        return *found;
  return search.run(ScheduleFields().get(requested.getContext())).value_or(ScheduleAttr());
}

/// Says what would work, and then the rejections of the failed search, those first for which there
/// is too little room.
static void explainFailure(KernelOp kernel, ScheduleSearch &search, ScheduleAttr requested) {
  SmallVector<ScheduleRejection> rejections(search.rejections.begin(), search.rejections.end());
  RefusalKind kind = findKind(rejections);
  InFlightDiagnostic diag = kernel.emitError("no schedule of this kernel fits the machine");
  setRefusalKind(diag, kind);
  if (requested != ScheduleFields().get(kernel.getContext()))
    diag << " with " << requested;
  // The rejections of a kernel without dots say which tiles would work.
  if (ScheduleAttr found = findNearest(search, requested))
    diag.attachNote() << "this would work: " << found;
  else if (hasDots(kernel))
    diag.attachNote() << "whatever the schedule, smaller tiles are needed: fewer columns of the "
                         "dots' results, or fewer rows";
  for (bool isOfKind : {true, false})
    for (const ScheduleRejection &rejection : rejections)
      if ((rejection.kind == kind) == isOfKind)
        diag.attachNote() << rejection.candidate << ": " << rejection.reason;
  if (kind == RefusalKind::SharedMemory)
    noteComputedBs(diag, kernel);
}

/// Says at `loc` that a kernel has its exact region alone, and what rejected the preferred schedule
/// of both regions and not one of this region.
static void explainExactRegion(Location loc, ArrayRef<ScheduleRejection> ofBoth,
                               ArrayRef<ScheduleRejection> ofExact) {
  InFlightDiagnostic remark = emitRemark(loc, "exact region alone: no schedule fits both regions");
  const auto *why = llvm::find_if(ofBoth, [&](const ScheduleRejection &rejection) {
    return !llvm::is_contained(ofExact, rejection);
  });
  if (why != ofBoth.end())
    remark << "; " << why->candidate << ": " << why->reason;
}

namespace {
class TileChooseSchedulePass
    : public tessera::impl::TileChooseScheduleBase<TileChooseSchedulePass> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(choose(getOperation())))
      signalPassFailure();
  }

private:
  /// The schedule of `kernel` with its sums before other dots, which it gets where one fits.
  std::optional<ScheduleAttr> chooseWithSumsEarly(KernelOp kernel, ScheduleAttr requested,
                                                  std::optional<ScheduleSearch> &search) {
    OwningOpRef<KernelOp> copy = kernel.clone();
    if (issueSumsEarly(*copy).empty())
      return std::nullopt;
    std::optional<ScheduleAttr> found = ScheduleSearch(*copy, getCostModel(kernel)).run(requested);
    if (!found)
      return std::nullopt;
    for (DotOp dot : issueSumsEarly(kernel))
      dot.emitRemark(
          "runs before dots that it does not wait for, beside whose results there are no "
          "registers for the tile that it multiplies");
    return search.emplace(kernel, getCostModel(kernel)).run(requested);
  }

  /// The schedule of `kernel`, with wide tiles where one fits. `search` is that which found it, or
  /// the last.
  std::optional<ScheduleAttr> find(KernelOp kernel, ScheduleAttr requested,
                                   std::optional<ScheduleSearch> &search) {
    numberPipes(kernel);
    search.reset();
    if (widenTiles(kernel)) {
      if (std::optional<ScheduleAttr> found =
              search.emplace(kernel, getCostModel(kernel)).run(requested))
        return found;
      search.reset();
      narrowTiles(kernel);
    }
    return search.emplace(kernel, getCostModel(kernel)).run(requested);
  }

  /// The schedule of `kernel` with the first order of work for which there is one; of its exact
  /// region alone where none fits both.
  std::optional<ScheduleAttr> findForEachWork(KernelOp kernel, ScheduleAttr requested,
                                              std::optional<ScheduleSearch> &search) {
    std::optional<ScheduleAttr> found;
    for (ScheduleAttr fields : withEachWork(kernel, requested)) {
      if (found)
        break;
      found = find(kernel, fields, search);
      if (SpeculateOp both = findSpeculation(kernel); !found && both && !fields.getSpeculate()) {
        SmallVector<ScheduleRejection> ofBoth = std::move(search->rejections);
        Location loc = both.getLoc();
        search.reset();
        takeExactRegion(kernel);
        found = find(kernel, fields, search);
        explainExactRegion(loc, ofBoth, search->rejections);
      }
      if (!found)
        found = chooseWithSumsEarly(kernel, fields, search);
    }
    return found;
  }

  static void remarkOnWideTiles(KernelOp kernel) {
    for (PipedTile tile : pipedTiles(kernel)) {
      auto load = dyn_cast<LoadOp>(tile.loads.front().getOperation());
      if (load && load.getWide())
        load.emitRemark("rows of this view may begin amid sectors of memory: its tiles lie in "
                        "shared memory in chunks of 128 bytes, which are the fewest");
    }
  }

  /// A tile is small that comes in less time than the wait takes which it saves by going with
  /// another: who waits for both waits for its bytes too.
  static void noteSmallTiles(KernelOp kernel) {
    auto most = static_cast<int64_t>(getCostModel(kernel).bytesOfWait());
    WalkResult walk = kernel.walk([&](LoadOpInterface load) {
      Type type = load->getResult(0).getType();
      bool isSmall = isa<RankedTensorType>(type) && tileBytes(type) <= most;
      return isSmall ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      kernel->setAttr(kSmallTileAttr,
                      IntegerAttr::get(IntegerType::get(kernel.getContext(), 64), most));
  }

  LogicalResult choose(KernelOp kernel) {
    if (failed(checkDots(kernel)))
      return failure();
    ScheduleAttr requested = getRequestedSchedule(kernel);
    if (requested.getSums() == SumsKind::fixed)
      if (OrderedSums sums = findOrderedSums(kernel); sums.refused)
        return sums.refused->emitError(sums.refusal) << "; use sums = any";
    if (exchangesSums(requested.getFields()))
      if (ExchangedSums sums = findExchangedSums(kernel); sums.refused)
        return sums.refused->emitError(sums.refusal) << "; use cluster = 1";
    std::optional<bool> speculate = requested.getSpeculate();
    SpeculateOp speculation = findSpeculation(kernel);
    if (!speculation && speculate == true)
      return kernel.emitError("speculate = true needs a tile.speculate, and the kernel has none; "
                              "speculate = false would work");
    if (speculation && speculate == false) {
      speculation.emitRemark("exact region alone: speculate = false");
      takeExactRegion(kernel);
    }
    std::optional<ScheduleSearch> search;
    std::optional<ScheduleAttr> found = findForEachWork(kernel, requested, search);
    if (!found) {
      explainFailure(kernel, *search, requested);
      return failure();
    }
    if (*found->getSpeculate())
      findSpeculation(kernel).emitRemark("speculates: the first region runs for each grid point, "
                                         "and the exact one again where the "
                                         "condition does not hold");
    for (const ScheduleRejection &rejection : search->rejections)
      kernel.emitRemark("schedule rejected: ") << rejection.candidate << ": " << rejection.reason;
    kernel.emitRemark("schedule chosen: ") << *found << "; it takes " << search->use;
    for (const std::optional<std::string> &why :
         {explainExponentials(search->getFacts(), *found->getPolynomialExp()),
          explainLead(search->getFacts(), *found)})
      if (why)
        kernel.emitRemark(*why);
    remarkOnWideTiles(kernel);
    noteSmallTiles(kernel);
    kernel.setScheduleAttr(*found);
    return success();
  }
};
} // namespace
