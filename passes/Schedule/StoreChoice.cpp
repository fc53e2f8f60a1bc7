//===- StoreChoice.cpp - How results leave ---------------------------------===//
//
// The part of ScheduleSearch that decides whether a role of its own stores, and whose shared memory
// results go through.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/ExchangedSums.h"
#include "passes/Analysis/MemoryOrder.h"
#include "passes/Schedule/ScheduleSearch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Whether a grid point may store twice to one element, which a writer would do at its own time.
static bool storesMeet(KernelOp kernel) {
  MemoryOrder order(kernel.getBody(),
                    kernel.getBody().getArguments().drop_front(kernel.getNumArguments()),
                    kernel.getGrid());
  bool meet = false;
  order.forEachPair([&](const AccessPair &pair) {
    meet |= pair.earlier.stores && pair.later.stores && order.mayMeet(pair);
  });
  return meet;
}

/// Whether the kernel adds tiles to memory, which takes long, and a role that does it in bulk takes
/// all that a launch may have, and fits beside two slots of each loaded tile.
bool ScheduleSearch::writerPays(const ScheduleFields &fields) const {
  ScheduleFields withWriter = fields;
  withWriter.store = StoreKind::writer;
  SharedMemoryUse use = sharedMemoryUse(kernel, fields.stages.value_or(NumberList(2)),
                                        fields.outerStages.value_or(NumberList(1)), withWriter);
  bool fits = use.total() <= hopper::sharedMemoryOfBlock;
  SmallVector<StoredTile> stored = storedTiles(kernel);
  auto isBulk = [](StoredTile &tile) {
    return llvm::all_of(tile.stores, [&](StoreOp store) {
      return !whyNoBulkStore(store, tile.type) && writesWholeUnits(store);
    });
  };
  bool adds = llvm::any_of(stored, [](StoredTile &tile) { return tile.stores.front().getAdd(); });
  // Of a partial sum each warpgroup has a tile of its own.
  bool isPartial =
      kernel
          ->walk([](DotOp dot) {
            return computedTranspose(dot.getA()) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  return fits && adds && !isPartial && !work.gathers && *fields.warpSpecialize &&
         llvm::all_of(stored, isBulk) && !storesMeet(kernel);
}

/// Why the results of `candidate` cannot leave as it says.
std::optional<std::string> ScheduleSearch::rejectStaging(const Candidate &candidate) const {
  if (candidate.fields.store == StoreKind::lent && !candidate.isSpecialized())
    return "store = lent needs a producer, which lends the slots; use warp_specialize = true or "
           "store = tma";
  return std::nullopt;
}

/// How the sums of a reducer leave. A thread waits for tickets longer than it copies, and a writer
/// waits while the reducer goes on. Only an order that is asked for makes a launch refuse rows that
/// bulk copies do not take.
StoreKind ScheduleSearch::chooseStoreOfSums(const ScheduleFields &fields) const {
  if (work.sums.empty() || !work.areSumsBulk)
    return StoreKind::direct;
  if (ordersSums(fields))
    return StoreKind::writer;
  bool areWhole =
      llvm::all_of(work.sums, [](const ApartSum &sum) { return writesWholeUnits(sum.store); });
  return areWhole ? StoreKind::tma : StoreKind::direct;
}

/// Why the sums of `candidate` cannot have the order that is asked for.
std::optional<std::string> ScheduleSearch::rejectSums(const Candidate &candidate) const {
  const ScheduleFields &fields = candidate.fields;
  if (!ordersSums(fields))
    return std::nullopt;
  if (!candidate.isSpecialized() ||
      fields.persistent.value_or(PersistentKind::Dynamic) != PersistentKind::Dynamic)
    return "sums in a fixed order wait for thread blocks with smaller numbers, and one of these "
           "may "
           "not have started unless numbers are drawn at the start; use persistent = dynamic with "
           "warp_specialize = true, or sums = any";
  bool exchanges = exchangesSums(fields);
  if (*fields.cluster != ClusterKind::One && !exchanges)
    return "in a cluster a number is that of several blocks, and sums in a fixed order take one "
           "for each, or blocks that make them together; use cluster = 1 or exchange, or sums = "
           "any";
  if (exchanges && !llvm::all_of(work.sums, [&](const ApartSum &sum) {
        return dividesTickets(sum, ticketsOf(fields));
      }))
    return "sums in a fixed order that two blocks make together have tickets for parts of their "
           "columns, which takes a view of as many as whole tiles have; use cluster = 1 or sums = "
           "any";
  bool areApart = llvm::all_of(ordered.sums, [&](const OrderedSum &sum) {
    return llvm::any_of(work.sums, [&](const ApartSum &apart) { return apart.store == sum.store; });
  });
  bool isApart =
      candidate.hasReducer() && areApart && fields.store != StoreKind::direct && work.areSumsBulk;
  if (!isApart && (candidate.hasReducer() || fields.store != StoreKind::writer))
    return "sums in a fixed order are added by copies of one thread, which waits for their "
           "tickets; use store = writer, placement = apart with store = tma, or sums = any";
  return std::nullopt;
}
