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
#include "passes/Analysis/WidenedOperands.h"
#include "passes/Schedule/ColumnParts.h"
#include "passes/Schedule/DotChecks.h"
#include "passes/Schedule/DotOrder.h"
#include "passes/Schedule/PipeNumbers.h"
#include "passes/Schedule/ScheduleCost.h"
#include "passes/Schedule/SchedulePasses.h"
#include "passes/Schedule/SchedulePreference.h"
#include "passes/Schedule/ScheduleSearch.h"
#include "passes/Schedule/WideTiles.h"
#include "llvm/Support/FormatVariadic.h"
#include <list>
#include <map>

namespace tessera {
#define GEN_PASS_DEF_TILECHOOSESCHEDULE
#include "passes/Schedule/SchedulePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

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

/// For how many consumers the columns of the single accumulator of `kernel` may be cut with
/// `requested`; none where there is nothing to cut.
static SmallVector<int64_t> listCuts(KernelOp kernel, ScheduleAttr requested,
                                     const CostModel &model) {
  if (requested.getPlacement() != PlacementKind::divided ||
      planForConsumers(kernel, /*consumers=*/2).dots.empty())
    return {};
  SmallVector<int64_t> counts = listChoices<int64_t>(requested.getConsumers(), model.consumers);
  llvm::erase_if(counts, [](int64_t consumers) { return consumers < 2; });
  return counts;
}

/// `asked` with consumers of different dots, where these take tiles of 8 bits otherwise than what
/// `kernel` asks for does; null where nothing differs. The search leaves them out then, as that is
/// a fact of the kernel.
static ScheduleAttr dividedApart(KernelOp kernel, ScheduleAttr asked) {
  ScheduleFields fields = asked.getFields();
  if (fields.placement)
    return {};
  fields.placement = PlacementKind::divided;
  return findWidenedOtherwise(kernel, fields) ? fields.get(kernel.getContext()) : ScheduleAttr();
}

/// A copy of `kernel` that asks for `fields`, where these take tiles of 8 bits otherwise.
static OwningOpRef<KernelOp> askOtherwise(KernelOp kernel, ScheduleAttr fields) {
  if (!findWidenedOtherwise(kernel, fields.getFields()))
    return {};
  OwningOpRef<KernelOp> copy = kernel.clone();
  copy->setScheduleAttr(fields);
  return copy;
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

/// A kernel as it stands, and with the columns of its single accumulator cut for some number of
/// consumers (placement = divided), each with all its forms.
class Cuts {
public:
  Cuts(KernelOp kernel, const CostModel &model) : kernel(kernel), model(model) {}

  bool speculates() { return formsOf(1)->speculates(); }

  /// Calls `take` with what `asked` leaves open, the preferred first, and the forms to search for
  /// it, until that has found what it wants. Notes cuts that cannot be made.
  bool search(ScheduleAttr asked, SmallVectorImpl<ScheduleRejection> &rejections,
              llvm::function_ref<bool(ScheduleAttr, Forms &)> take) {
    if (OwningOpRef<KernelOp> copy = askOtherwise(kernel, asked))
      return Cuts(*copy, model).search(asked, rejections, take);
    for (auto [own, forms] : of(asked, rejections))
      for (ScheduleAttr fields : withEachWork(kernel, own))
        if (take(fields, *forms))
          return true;
    ScheduleAttr divided = dividedApart(kernel, asked);
    return divided && search(divided, rejections, take);
  }

private:
  /// What `asked` stands for, the preferred first, each with its forms.
  SmallVector<std::pair<ScheduleAttr, Forms *>> of(ScheduleAttr asked,
                                                   SmallVectorImpl<ScheduleRejection> &rejections) {
    SmallVector<int64_t> counts = listCuts(kernel, asked, model);
    if (counts.empty())
      return {{asked, formsOf(1)}};
    SmallVector<std::pair<ScheduleAttr, Forms *>> found;
    for (int64_t consumers : counts) {
      ScheduleFields fields = asked.getFields();
      fields.consumers = consumers;
      if (Forms *forms = formsOf(consumers))
        found.emplace_back(fields.get(asked.getContext()), forms);
      else
        rejections.push_back(
            {llvm::formatv("placement = divided, consumers = {0}", consumers).str(),
             "a tile " + cuts[consumers].refusal.reason});
    }
    return found;
  }

  struct Entry {
    OwningOpRef<KernelOp> kernel;
    std::unique_ptr<Forms> forms; ///< none where the kernel is not cut so
    CutRefusal refusal;
  };

  Forms *formsOf(int64_t parts) {
    auto [place, isNew] = cuts.try_emplace(parts);
    Entry &entry = place->second;
    if (!isNew)
      return entry.forms.get();
    entry.kernel = kernel.clone();
    if (parts == 1 ||
        succeeded(cutColumns(*entry.kernel, planForConsumers(*entry.kernel, parts), entry.refusal)))
      entry.forms = std::make_unique<Forms>(*entry.kernel, model);
    return entry.forms.get();
  }

  KernelOp kernel;
  const CostModel &model;
  std::map<int64_t, Entry> cuts;
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
  Cuts cuts(kernel, model ? *model : getCostModel(kernel));
  SmallVector<ScheduleChoice> choices;
  for (ScheduleAttr asked : requested) {
    if (!cuts.speculates() && asked.getSpeculate() == true) {
      choices.push_back({ScheduleAttr(),
                         {{"speculate = true", "the kernel has no tile.speculate"}},
                         std::string()});
      continue;
    }
    ScheduleChoice &choice = choices.emplace_back();
    decltype(choice.rejections) uncut;
    cuts.search(asked, uncut, [&](ScheduleAttr fields, Forms &forms) {
      for (ScheduleSearch *search : forms.of(fields))
        if (!choice.schedule)
          choice = chooseOne(*search, fields);
      return static_cast<bool>(choice.schedule);
    });
    llvm::append_range(choice.rejections, uncut);
  }
  return choices;
}

SmallVector<ScheduleAttr> tessera::listSchedules(KernelOp kernel, ScheduleAttr requested,
                                                 size_t most) {
  SmallVector<ScheduleAttr> schedules;
  if (failed(checkDots(kernel)))
    return schedules;
  kernel.getContext()->getOrLoadDialect<hop::HopDialect>();
  Cuts cuts(kernel, getCostModel(kernel));
  if (!cuts.speculates() && requested.getSpeculate() == true)
    return schedules;
  SmallVector<ScheduleRejection> refused;
  cuts.search(requested, refused, [&](ScheduleAttr fields, Forms &forms) {
    // Where one fits with the order of work that is preferred, the search adds one with the other.
    ScheduleFields open = fields.getFields();
    if (!requested.getWork() && open.work == WorkKind::tiles)
      open.work.reset();
    fields = open.get(fields.getContext());
    for (ScheduleSearch *search : forms.of(fields))
      if (schedules.empty() || forms.speculates())
        llvm::append_range(schedules, search->list(fields, most - schedules.size()));
    return !schedules.empty();
  });
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

/// The schedule of some fields, or null where none fits.
using FindSchedule = llvm::function_ref<ScheduleAttr(ScheduleAttr)>;

/// The nearest schedule that fits where that which was asked for does not: the one that differs in
/// a single field if there is one. Null where none fits.
static ScheduleAttr findNearest(FindSchedule find, ScheduleAttr requested) {
  for (const ScheduleFieldInfo &field : ScheduleAttr::getFieldInfos())
    if (ScheduleAttr reduced = withoutField(requested, field))
      if (ScheduleAttr found = find(reduced))
        return found;
  return find(ScheduleFields().get(requested.getContext()));
}

/// Says what would work, and then the rejections of a search that failed, those first for which
/// there is too little room.
static void explainFailure(KernelOp kernel, ArrayRef<ScheduleRejection> rejections,
                           ScheduleAttr requested, FindSchedule find) {
  RefusalKind kind = findKind(rejections);
  InFlightDiagnostic diag = kernel.emitError("no schedule of this kernel fits the machine");
  setRefusalKind(diag, kind);
  if (requested != ScheduleFields().get(kernel.getContext()))
    diag << " with " << requested;
  // The rejections of a kernel without dots say which tiles would work.
  if (ScheduleAttr found = findNearest(find, requested))
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

  /// The same with consumers of different dots, where the search leaves them out.
  std::optional<ScheduleAttr> findDivided(KernelOp kernel, ScheduleAttr requested,
                                          std::optional<ScheduleSearch> &search) {
    ScheduleAttr divided = dividedApart(kernel, requested);
    if (!divided)
      return std::nullopt;
    SmallVector<ScheduleRejection> others = std::move(search->rejections);
    kernel.setScheduleAttr(divided);
    std::optional<ScheduleAttr> found = findForEachWork(kernel, divided, search);
    search->rejections.insert(search->rejections.begin(), others.begin(), others.end());
    if (!found)
      kernel.setScheduleAttr(requested);
    return found;
  }

  /// Says which first operands of 8 bits do not stay in registers.
  static void remarkOnStagedBytes(KernelOp kernel) {
    kernel.walk([](DotOp dot) {
      std::optional<WideningObstacle> why = whyStaged(dot);
      if (!why)
        return;
      InFlightDiagnostic remark = dot.emitRemark("operand a is extended from 8 bits, and goes "
                                                 "through shared memory: ")
                                  << why->reason << "; " << why->remedy
                                  << " would keep it in registers";
      if (why->place)
        remark.attachNote(why->place->getLoc()) << "here";
    });
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

  static void noteProbes(KernelOp kernel) {
    const CostModel &card = getCostModel(kernel);
    if (findSpeculation(kernel))
      kernel->setAttr(kProbesAttr, DenseI64ArrayAttr::get(
                                       kernel.getContext(),
                                       {card.probes, card.probesForFailure, card.leastProbedTiles,
                                        card.leastProbedSteps, card.looksAtProbes}));
  }

  /// Says why no schedule has the columns of a single accumulator cut for any of `counts`
  /// consumers.
  static LogicalResult explainCuts(KernelOp kernel, ArrayRef<int64_t> counts,
                                   ScheduleAttr requested, const ScheduleChoice &choice) {
    for (auto [number, consumers] : llvm::enumerate(counts)) {
      OwningOpRef<KernelOp> copy = kernel.clone();
      CutRefusal refusal;
      if (succeeded(cutColumns(*copy, planForConsumers(*copy, consumers), refusal)))
        break;
      if (number + 1 == counts.size())
        return refusal.op->emitError(refusal.reason);
    }
    explainFailure(kernel, choice.rejections, requested, [&](ScheduleAttr fields) {
      auto found = chooseSchedules(kernel, {fields});
      return succeeded(found) ? found->front().schedule : ScheduleAttr();
    });
    return failure();
  }

  /// Cuts the columns of a single accumulator that several consumers share, and sets their number:
  /// that of the first schedule which fits.
  LogicalResult cut(KernelOp kernel, ScheduleAttr &requested) {
    SmallVector<int64_t> counts = listCuts(kernel, requested, getCostModel(kernel));
    if (counts.empty())
      return success();
    auto choices = chooseSchedules(kernel, {requested});
    if (failed(choices))
      return failure();
    if (!choices->front().schedule)
      return explainCuts(kernel, counts, requested, choices->front());
    ScheduleFields fields = requested.getFields();
    fields.consumers = *choices->front().schedule.getConsumers();
    requested = fields.get(requested.getContext());
    CutRefusal refusal;
    if (failed(cutColumns(kernel, planForConsumers(kernel, *fields.consumers), refusal)))
      return refusal.op->emitError(refusal.reason);
    kernel.emitRemark("each of ") << *fields.consumers
                                  << " consumers has some of the columns of a sum, which is cut";
    return success();
  }

  /// Refuses numbers of blocks where a block has grid points of its own.
  static LogicalResult checkRanks(KernelOp kernel) {
    if (countPointBlocks(kernel) > 1)
      return success();
    WalkResult walk = kernel.walk([](ClusterRankOp rank) -> WalkResult {
      return rank.emitError("is the number of a block among those that run a grid point, and one "
                            "runs each of this kernel; tile.split_reduce with 'cluster' makes it, "
                            "beside tile.from_block");
    });
    return failure(walk.wasInterrupted());
  }

  LogicalResult choose(KernelOp kernel) {
    if (failed(checkDots(kernel)))
      return failure();
    if (failed(checkRanks(kernel)))
      return failure();
    ScheduleAttr requested = getRequestedSchedule(kernel);
    if (kernel.getFixedSums())
      if (OrderedSums sums = findOrderedSums(kernel); sums.refused)
        return sums.refused->emitError(sums.refusal) << "; leave fixed_sums out";
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
    if (failed(cut(kernel, requested)))
      return failure();
    std::optional<ScheduleSearch> search;
    std::optional<ScheduleAttr> found = findForEachWork(kernel, requested, search);
    if (!found)
      found = findDivided(kernel, requested, search);
    if (!found) {
      SmallVector<ScheduleRejection> rejections = std::move(search->rejections);
      explainFailure(kernel, rejections, requested, [&](ScheduleAttr fields) {
        OwningOpRef<KernelOp> copy = askOtherwise(kernel, fields);
        std::optional<ScheduleSearch> own;
        std::optional<ScheduleAttr> fits = copy ? find(*copy, fields, own) : search->run(fields);
        return fits.value_or(ScheduleAttr());
      });
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
    if (*found->getPersistent() == PersistentKind::Dynamic)
      noteProbes(kernel);
    kernel.setScheduleAttr(*found);
    remarkOnStagedBytes(kernel);
    return success();
  }
};
} // namespace
