//===- PipePlan.cpp - Which loads and stores share which pipe ----------------===//
//
// See PipePlan.h.
//
//===----------------------------------------------------------------------===//

#include "passes/WarpSpecialize/PipePlan.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/MemoryDependenceAnalysis.h"
#include "passes/Analysis/WidenedOperands.h"
#include "passes/Schedule/ResourceModel.h"

using namespace mlir;
using namespace tessera;

/// Refuses uses of `tile`, the result of a piped load or its transpose, that registers would have
/// to serve.
static LogicalResult checkPipedUses(tile::LoadOpInterface load, Value tile) {
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    bool isOperand = isa<tile::DotOp>(user) && use.getOperandNumber() < 2;
    if (isOperand)
      continue;
    if (isa<tile::TransposeOp>(user)) {
      if (failed(checkPipedUses(load, user->getResult(0))))
        return failure();
      continue;
    }
    InFlightDiagnostic diag = user->emitError(
        "uses a loaded tile that is also an operand of a dot, and so lies in shared memory");
    diag.attachNote(load.getLoc()) << "loaded here; load it a second time for this use";
    return diag;
  }
  return success();
}

std::string PipePlan::makeLabel(tile::KernelOp kernel, Value view) {
  StringRef name = kernel.getArgumentName(cast<BlockArgument>(view).getArgNumber());
  unsigned count = labels[view]++;
  return count ? (name + "." + Twine(count)).str() : name.str();
}

/// The loads whose tiles registers take from slots, and the copies of vectors among these that a
/// rotation has put before their loops.
static llvm::DenseSet<Operation *> fetchedCopies(tile::KernelOp kernel) {
  auto isVector = [](tile::LoadOp load) {
    auto type = dyn_cast<RankedTensorType>(load.getType());
    return type && type.getRank() == 1 && load.getPipeAttr();
  };
  llvm::DenseSet<Operation *> fetched;
  llvm::SmallDenseSet<Attribute> pipes;
  for (tile::LoadOp load : fetchedLoads(kernel)) {
    fetched.insert(load);
    if (isVector(load))
      pipes.insert(load.getPipeAttr());
  }
  kernel.walk([&](tile::LoadOp load) {
    if (isVector(load) && pipes.contains(load.getPipeAttr()))
      fetched.insert(load);
  });
  return fetched;
}

FailureOr<PipePlan> tessera::planPipes(tile::KernelOp kernel, tile::ProducerKind producer) {
  PipePlan plan;
  llvm::DenseSet<Operation *> converted;
  for (const Conversion &conversion : findConversions(kernel))
    converted.insert(conversion.load);
  if (producer == tile::ProducerKind::All)
    plan.fetched = fetchedCopies(kernel);
  WalkResult walk = kernel.walk([&](tile::LoadOpInterface load) -> WalkResult {
    bool isFetched = plan.fetched.contains(load),
         isKnown = isFetched || converted.contains(load) || isWidened(load);
    if (!isKnown && !feedsDot(load.getResult()))
      return success();
    if (!isKnown && failed(checkPipedUses(load, load.getResult())))
      return failure();
    RankedTensorType tile = pipedType(load);
    if (!hop::getSharedLayout(tile))
      return load.emitError(
                 "feeds a dot, so its rows are a multiple of 32 bytes and their number one of 8; "
                 "got ")
             << tile;
    IntegerAttr number = load.getPipeAttr();
    PipeKey key = number ? PipeKey(nullptr, number.getInt()) : PipeKey(load, 0);
    PipeInfo &info = plan.pipes[key];
    if (info.tile && info.tile != tile)
      return load.emitError("shares a pipe with loads of ") << info.tile << ", but loads " << tile;
    if (!info.tile) {
      info.label = plan.makeLabel(kernel, load.getView());
      info.tile = tile;
      if (!isFetched && isKeptTile(load))
        info.slots = 1;
    } else {
      info.slots = std::nullopt;
    }
    info.inLoop |= load->getParentOfType<scf::ForOp>() != nullptr;
    auto tileLoad = dyn_cast<tile::LoadOp>(load.getOperation());
    info.isAhead |= tileLoad && tileLoad.getAhead();
    plan.accesses[load] = key;
    return success();
  });
  if (walk.wasInterrupted())
    return failure();
  // Earlier passes may have changed the order of the loads, which the numbers remember.
  SmallVector<std::pair<int64_t, PipeInfo *>> inLoops, outer;
  for (auto &[key, info] : plan.pipes)
    if (info.tile.getRank() == 2 && !info.slots)
      (info.inLoop ? inLoops : outer).emplace_back(key.second, &info);
  for (auto *pipes : {&inLoops, &outer}) {
    llvm::stable_sort(*pipes, llvm::less_first());
    for (auto [i, entry] : llvm::enumerate(*pipes))
      entry.second->index = i;
  }
  return plan;
}

namespace {
/// Finds the uses of the tiles of a plan that need another load, and loads there.
class Reloader {
public:
  Reloader(tile::KernelOp kernel, PipePlan &plan)
      : plan(plan), conversions(conversionOperations(kernel)) {
    kernel.walk([&](Operation *op) {
      // What registers take leaves its slot at once.
      if (plan.isPiped(op) && !plan.fetched.contains(op))
        loads.push_back(cast<tile::LoadOpInterface>(op));
      else if (auto store = dyn_cast<tile::StoreOp>(op))
        stored.insert(store.getView());
    });
  }

  void run() {
    // Loads that are made here come last.
    for (size_t i = 0; i < loads.size(); ++i)
      if (tile::LoadOpInterface load = loads[i]; !stored.contains(load.getView()))
        while (Operation *position = findPosition(load))
          loadAt(load, position);
  }

private:
  /// A product that reads the tile, and the transposes and conversions on the way to it.
  struct Use {
    OpOperand *operand;
    SmallVector<Operation *> between;
  };
  bool isBetween(Operation *op) const {
    return isa<tile::TransposeOp>(op) || conversions.contains(op);
  }
  void findUses(Value tile, SmallVector<Use> &uses) const;
  void collectBetween(Value tile, SmallVector<Operation *> &between) const;
  SmallVector<Use> usesOf(tile::LoadOpInterface load) const {
    SmallVector<Use> uses;
    findUses(load.getResult(), uses);
    return uses;
  }
  bool goesRound(Operation *op, PipeKey pipe) const;
  Operation *findPosition(tile::LoadOpInterface load) const;
  Operation *findPosition(tile::LoadOpInterface load, Operation *user) const;
  void loadAt(tile::LoadOpInterface load, Operation *position);

  PipePlan &plan;
  DenseSet<Operation *> conversions;
  SmallVector<tile::LoadOpInterface> loads;
  DenseSet<Value> stored; ///< views, of which a later load may be of other elements
};
} // namespace

void Reloader::findUses(Value tile, SmallVector<Use> &uses) const {
  for (OpOperand &operand : tile.getUses()) {
    if (isBetween(operand.getOwner())) {
      findUses(operand.getOwner()->getResult(0), uses);
      continue;
    }
    bool isNew = llvm::none_of(uses, [&](const Use &use) { return use.operand == &operand; });
    if (!isNew)
      continue;
    uses.push_back({&operand, {}});
    collectBetween(operand.get(), uses.back().between);
  }
}

/// Adds the transposes and conversions that make `tile` of a loaded one, in their order.
void Reloader::collectBetween(Value tile, SmallVector<Operation *> &between) const {
  Operation *op = tile.getDefiningOp();
  if (!op || !isBetween(op) || llvm::is_contained(between, op))
    return;
  for (Value operand : op->getOperands())
    collectBetween(operand, between);
  between.push_back(op);
}

/// Whether a loop in `op`, or `op` itself, takes any number of slots of `pipe`.
bool Reloader::goesRound(Operation *op, PipeKey pipe) const {
  auto visit = [&](Operation *inner) -> WalkResult {
    if (auto skip = dyn_cast<tile::SkipLoadsOp>(inner))
      return pipe.first || !llvm::is_contained(skip.getPipes(), pipe.second)
                 ? WalkResult::advance()
                 : WalkResult::interrupt();
    if (!plan.isPiped(inner) || plan.accesses.lookup(inner) != pipe)
      return WalkResult::advance();
    for (Operation *around = inner; around != op->getParentOp(); around = around->getParentOp())
      if (isa<scf::ForOp>(around))
        return WalkResult::interrupt();
    return WalkResult::advance();
  };
  return op->walk(visit).wasInterrupted();
}

/// Where the tile has to be loaded again for `user`; null when nothing goes round its pipe before.
Operation *Reloader::findPosition(tile::LoadOpInterface load, Operation *user) const {
  PipeKey pipe = plan.accesses.lookup(load);
  bool isRound = false;
  Operation *from = load;
  while (true) {
    Block *block = from->getBlock();
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    for (Operation *op = from; op != ancestor; op = op->getNextNode())
      isRound |= goesRound(op, pipe);
    if (!goesRound(ancestor, pipe))
      return isRound ? ancestor : nullptr;
    // It is used in what goes round. The slot is given back behind that.
    isRound = true;
    Operation *inner = user;
    while (inner->getParentOp() != ancestor)
      inner = inner->getParentOp();
    from = &inner->getBlock()->front();
  }
}

/// The first place where the tile has to be loaded again.
Operation *Reloader::findPosition(tile::LoadOpInterface load) const {
  Block *block = load->getBlock();
  Operation *first = nullptr;
  for (const Use &use : usesOf(load)) {
    Operation *position = findPosition(load, use.operand->getOwner());
    if (position && (!first || block->findAncestorOpInBlock(*position)->isBeforeInBlock(
                                   block->findAncestorOpInBlock(*first))))
      first = position;
  }
  return first;
}

/// Loads the tile at `position` too, for that operation and those behind it.
void Reloader::loadAt(tile::LoadOpInterface load, Operation *position) {
  OpBuilder builder(position);
  auto again = cast<tile::LoadOpInterface>(builder.clone(*load.getOperation()));
  plan.accesses[again] = plan.accesses.lookup(load);
  loads.push_back(again);
  for (const Use &use : usesOf(load)) {
    Operation *user = position->getBlock()->findAncestorOpInBlock(*use.operand->getOwner());
    if (!user || user->isBeforeInBlock(position))
      continue;
    IRMapping mapping;
    mapping.map(load.getResult(), again.getResult());
    for (Operation *op : use.between)
      conversions.insert(builder.clone(*op, mapping));
    use.operand->set(mapping.lookup(use.operand->get()));
  }
  InFlightDiagnostic remark = load.emitRemark("the tile is loaded again for a use behind a loop "
                                              "that goes round the slots of its pipe");
  remark.attachNote(position->getLoc()) << "the use";
}

void tessera::reloadTiles(tile::KernelOp kernel, PipePlan &plan) { Reloader(kernel, plan).run(); }

/// Refuses accesses of one grid point that come after a store of the same element, which a writer
/// makes at its own time.
static LogicalResult checkOrder(tile::KernelOp kernel, const PipePlan &plan) {
  MemoryDependenceAnalysis order(
      kernel.getBody(), kernel.getBody().getArguments().drop_front(kernel.getNumArguments()),
      kernel.getGrid());
  if (failed(order.verify()))
    return failure();
  llvm::DenseSet<Operation *> refused;
  order.forEachPair([&](const AccessPair &pair) {
    Operation *earlier = pair.earlier.op, *later = pair.later.op;
    // A load has been waited for when its grid point hands results to the writer.
    if (!pair.earlier.stores || (!plan.isPiped(earlier) && !plan.isPiped(later)) ||
        refused.contains(later) || !order.mayMeet(pair))
      return;
    refused.insert(later);
    InFlightDiagnostic diag = later->emitError(
        "may touch elements that the same grid point stores before; a writer stores while the "
        "program goes on (store = writer); use store = direct");
    diag.attachNote(earlier->getLoc()) << "stored here";
  });
  return success(refused.empty());
}

void tessera::planConversions(tile::KernelOp kernel, PipePlan &plan) {
  // Copies of a load share its pipe, so that of each one conversion goes through a pipe behind it.
  int64_t slots = slotsOfConverted(kernel);
  llvm::DenseMap<Operation *, int64_t> counts;
  llvm::DenseMap<std::pair<PipeKey, int64_t>, PipeKey> known;
  for (const Conversion &conversion : findConversions(kernel)) {
    Operation *last = conversion.operations.back();
    auto tile = cast<RankedTensorType>(last->getResult(0).getType());
    PipeKey source = plan.accesses.lookup(conversion.load), own(last, 0);
    PipeKey key = known.try_emplace({source, counts[conversion.load]++}, own).first->second;
    std::string label = plan.pipes[source].label + ".converted";
    plan.accesses[last] = key;
    plan.conversions[last] = conversion;
    PipeInfo &info = plan.pipes[key];
    if (info.tile)
      continue;
    info.tile = tile;
    info.label = label;
    info.maker = RoleTask::Convert;
    info.slots = slots;
    last->emitRemark("is made by a role of its own, a converter, and goes on to the consumers as '")
        << label << "', in " << slots << (slots == 1 ? " slot of " : " slots of ") << tile;
  }
}

void tessera::planBounds(ArrayRef<tile::ReduceRangeOp> bounds, PipePlan &plan) {
  if (bounds.empty())
    return;
  tile::ReduceRangeOp first = bounds.front();
  PipeKey key(first, 0);
  for (tile::ReduceRangeOp bound : bounds)
    plan.accesses[bound] = key;
  PipeInfo &info = plan.pipes[key];
  info.label = "bounds";
  info.tile = RankedTensorType::get({1}, IntegerType::get(first.getContext(), 32));
  info.maker = RoleTask::FindBounds;
  // Those of a grid point stand in one block, and the two programs of a speculation have as many.
  info.slots = slotsOfBounds * countWords(plan.boundsIn(first->getBlock()));
  first.emitRemark("is found by a role of its own for all others, which get it as '")
      << info.label << "', in " << *info.slots << " slots of 32 bits";
}

/// What a slot of the operands of `sum` holds: a tile, and below it the other block's.
static RankedTensorType slotOfOperand(const ReducerSum &sum, bool exchanged) {
  auto type = cast<RankedTensorType>(sum.operand->getResult(0).getType());
  if (!exchanged)
    return type;
  return RankedTensorType::get({exchangingBlocks * type.getDimSize(0), type.getDimSize(1)},
                               type.getElementType());
}

/// The pipe of the operands of the sums that are added to the view of `sum`.
static PipeInfo &operandPipe(tile::KernelOp kernel, const ReducerSum &sum, PipePlan &plan) {
  RankedTensorType type = slotOfOperand(sum, plan.exchanges);
  Value view = tile::StoreOp(sum.store).getView();
  auto isAlike = [&](const ReducerSum &other) {
    return plan.isPiped(other.operand) && plan.pipeOf(other.operand).tile == type &&
           tile::StoreOp(other.store).getView() == view;
  };
  auto known = llvm::find_if(plan.sums, isAlike);
  PipeKey key =
      known == plan.sums.end() ? PipeKey(sum.operand, 0) : plan.accesses.lookup(known->operand);
  plan.accesses[sum.operand] = key;
  PipeInfo &info = plan.pipes[key];
  if (!info.tile)
    info.label = plan.makeLabel(kernel, view) + ".operand";
  info.tile = type;
  return info;
}

LogicalResult tessera::planDivision(tile::KernelOp kernel, unsigned consumers, PipePlan &plan) {
  DivisionRefusal refusal;
  plan.division = DotDivision::get(kernel, consumers, refusal);
  if (!plan.division)
    return refusal.op->emitError(refusal.reason);
  kernel.walk([&](tile::DotOp dot) {
    if (!plan.sumOf(dot))
      dot.emitRemark("runs in @consumer") << plan.division->ownerOf(dot);
  });
  llvm::DenseMap<std::tuple<Type, unsigned, unsigned>, PipeKey> known;
  for (const Crossing &crossing : plan.division->getCrossings()) {
    // The operand of a sum has a pipe, which other consumers read too.
    if (plan.isPiped(crossing.op))
      continue;
    PipeKey key = known
                      .try_emplace({crossing.getTile(), crossing.from, crossing.number},
                                   PipeKey(crossing.op, 0))
                      .first->second;
    plan.accesses[crossing.op] = key;
    PipeInfo &info = plan.pipes[key];
    if (!info.tile)
      info.label = ("consumer" + Twine(crossing.from) + "." + Twine(known.size() - 1)).str();
    info.tile = crossing.getTile();
    info.maker = RoleTask::Compute;
    info.slots = slotsOfCrossings;
    info.part = crossing.from;
    crossing.op->emitRemark("is made by @consumer")
        << crossing.from << " and goes on to other consumers as '" << info.label << "', in "
        << slotsOfCrossings << " slots of " << info.tile;
  }
  for (const ReducerSum &sum : plan.sums)
    plan.pipeOf(sum.operand).part = plan.division->ownerOf(sum.operand);
  return success();
}

/// Has half of the other block's operand loaded for `sum`, beside the own one.
static LogicalResult planExchange(const ReducerSum &sum, PipePlan &plan) {
  tile::StoreOp store = sum.store;
  if (!store.getExchanged())
    return store.emitError("is not known to add at the same places in both blocks of a cluster "
                           "(cluster = exchange); run tile-exchange-sums first");
  PipeInfo &info = plan.pipeOf(loadedOperand(tile::DotOp(sum.dot).getB()));
  info.theirTile = theirHalf(sum);
  info.loadsOwnHalf = loadsOwnHalf(sum);
  return success();
}

LogicalResult tessera::planSums(tile::KernelOp kernel, PipePlan &plan) {
  plan.sums = findReducerSums(kernel);
  plan.schedule = kernel.getScheduleFields();
  plan.exchanges = exchangesSums(plan.schedule);
  int64_t slots = plan.exchanges ? slotsOfExchanged : slotsOfSums;
  for (const ReducerSum &sum : plan.sums) {
    if (plan.exchanges && failed(planExchange(sum, plan)))
      return failure();
    if (plan.isPiped(sum.operand))
      continue;
    PipeInfo &info = operandPipe(kernel, sum, plan);
    if (!info.isComputed())
      tile::DotOp(sum.dot).emitRemark("runs in a role of its own, a reducer, as its result only "
                                      "leaves by a store that adds it; its computed operand "
                                      "crosses from the consumers as '")
          << info.label << "', in " << slots << " slots of " << info.tile;
    info.maker = RoleTask::Compute;
    info.isExchanged = plan.exchanges;
    info.slots = slots;
  }
  return success();
}

LogicalResult tessera::planStores(tile::KernelOp kernel, PipePlan &plan) {
  for (const StoredTile &tile : storedTiles(kernel)) {
    PipeKey key(tile.stores.front(), 0);
    PipeInfo &info = plan.pipes[key];
    info.label = plan.makeLabel(kernel, tile::StoreOp(tile.stores.front()).getView());
    info.tile = tile.type;
    info.maker = RoleTask::Compute;
    info.isStored = true;
    for (tile::StoreOp store : tile.stores) {
      if (std::optional<std::string> why = whyNoBulkStore(store, tile.type))
        return store.emitError(*why);
      plan.accesses[store] = key;
    }
  }
  kernel.walk([&](tile::StoreOp store) {
    if (!plan.isPiped(store))
      store.emitRemark(
          "goes from registers: a writer stores tiles of rank 2, of floats of 16 or 32 bits");
  });
  return checkOrder(kernel, plan);
}

LogicalResult tessera::planSumStores(tile::KernelOp kernel, PipePlan &plan) {
  llvm::DenseMap<std::pair<Value, Type>, PipeKey> known;
  for (const ReducerSum &sum : plan.sums) {
    tile::StoreOp store = sum.store;
    RankedTensorType tile = plan.partsOf(sum).stored;
    if (std::optional<std::string> why = whyNoBulkStore(store, tile))
      return store.emitError(*why);
    PipeKey key = known.try_emplace({store.getView(), tile}, PipeKey(store, 0)).first->second;
    plan.accesses[store] = key;
    if (plan.pipes[key].tile)
      continue;
    PipeInfo &info = plan.pipes[key];
    info.tile = tile;
    info.label = plan.makeLabel(kernel, store.getView());
    info.maker = RoleTask::Sum;
    info.isStored = true;
    info.slots = slotsForWriter(sum, plan.schedule);
    store.emitRemark("a writer adds it, of which the reducer makes parts of ")
        << tile << " in " << *info.slots << " slots";
  }
  return checkOrder(kernel, plan);
}

void tessera::planTransposes(tile::KernelOp kernel, PipePlan &plan) {
  for (tile::LoadOpInterface load : loadsToTranspose(kernel)) {
    PipeInfo &info = plan.pipeOf(load);
    if (!info.isTransposed)
      load.emitRemark("is transposed by a role of its own, a transposer, and goes on to the "
                      "consumers as '")
          << info.label << ".transposed', in " << slotsOfTransposed << " slots";
    info.isTransposed = true;
  }
}
