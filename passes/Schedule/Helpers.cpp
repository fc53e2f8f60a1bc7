//===- Helpers.cpp - Roles beside the producer and the consumers ----------===//
//
// See Helpers.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Helpers.h"
#include "dialects/Hop/Machine.h"
#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/PtxasRegisters.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Schedule/LoopOverlap.h"
#include "passes/Schedule/RegisterModel.h"
#include "passes/Schedule/ResourceModel.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

static constexpr int64_t warpsOfWarpgroup = hopper::warpgroupThreads / hopper::warpThreads;

template <bool gathers>
static constexpr Helper helpersBeside[] = {{RoleTask::Store, "writer", gathers},
                                           {RoleTask::FindBounds, "finder"},
                                           {RoleTask::Sum, "reducer"},
                                           {RoleTask::Transpose, "transposer"},
                                           {RoleTask::Convert, "converter"}};

ArrayRef<Helper> tessera::getHelpers(bool gathers) {
  return gathers ? ArrayRef(helpersBeside<true>) : ArrayRef(helpersBeside<false>);
}

std::optional<int64_t> Helper::getWarps(const ScheduleFields &fields) const {
  if (task == RoleTask::Store || task == RoleTask::FindBounds)
    return std::nullopt;
  return task == RoleTask::Transpose ? *fields.transpose : warpsOfWarpgroup;
}

bool Helper::hasWarpgroup(const ScheduleFields &fields) const {
  return isApart || getWarps(fields) == warpsOfWarpgroup;
}

HelperWork::HelperWork(KernelOp kernel)
    : sums(findReducerSums(kernel)), transposes(!loadsToTranspose(kernel).empty()),
      gathers(!pipedGathers(kernel).empty()), computesB(!computedBs(kernel).empty()),
      readsAsLoaded(findReadAsLoaded(kernel)) {
  for (Conversion &conversion : findConversions(kernel)) {
    converts = true;
    rowVectors = std::max(rowVectors, conversion.rowVectors);
    convertsWords |= getElementTypeOrSelf(conversion.load.getType()).getIntOrFloatBitWidth() == 32;
    computes |= !llvm::all_of(conversion.operations, llvm::IsaPred<arith::ExtFOp>);
  }
  kernel.walk([&](GatherRunsOp) { ++runs; });
  areSumsBulk = llvm::none_of(sums, [](const ReducerSum &sum) {
    return whyNoBulkStore(sum.store, partsOf(sum, {}).tile).has_value();
  });
}

bool HelperWork::isGiven(RoleTask task, const ScheduleFields &fields) const {
  switch (task) {
  case RoleTask::Store:
    return gathers && fields.store == StoreKind::writer;
  case RoleTask::Sum:
    return fields.placement == PlacementKind::apart ||
           (fields.placement == PlacementKind::divided && !sums.empty());
  case RoleTask::Transpose:
    return *fields.transpose > 0;
  case RoleTask::Convert:
    return converts;
  default:
    return false;
  }
}

SmallVector<const Helper *> HelperWork::list(const ScheduleFields &fields) const {
  SmallVector<const Helper *> given;
  for (const Helper &helper : getHelpers(gathers))
    if (isGiven(helper.task, fields))
      given.push_back(&helper);
  return given;
}

/// Whether consumers ask for so few registers that a second block has room where its converter has
/// few as well.
static bool leavesRoomForBlock(const ScheduleFields &fields) {
  if (!fields.consumerRegisters)
    return false;
  int64_t threads = hopper::leastRoleRegisters + kOfExtender +
                    fields.consumers.value_or(1) * fields.consumerRegisters->most();
  return 2 * hopper::warpgroupThreads * threads <= hopper::registersOfMultiprocessor;
}

int64_t HelperWork::registers(const ScheduleFields &fields) const {
  int64_t most = hopper::leastRoleRegisters;
  if (isGiven(RoleTask::Store, fields))
    most = kOfWriter;
  // With a writer the reducer needs no addresses, and has as many less.
  if (isGiven(RoleTask::Sum, fields))
    most = reducerRegisters(sums, fields) -
           (fields.store == StoreKind::writer ? hopper::roleRegisterStep : 0);
  if (isGiven(RoleTask::Transpose, fields) && !sharesTransposer(fields))
    most = std::max(most, kOfTransposer);
  if (!converts)
    return most;
  int64_t rows = std::min(rowVectors, 2u) * kOfConvertedRows,
          words = convertsWords ? kOfConvertedWords : 0;
  // With few, decoding over caches of 8 bits took 1.04 to 1.05 times as long
  // (docs/lab/decoding.md).
  bool isSmall = !computes && leavesRoomForBlock(fields);
  return std::max(most, (isSmall ? kOfExtender : kOfConverter) + rows + words);
}

int64_t HelperWork::countWarpgroups(const ScheduleFields &fields) const {
  return llvm::count_if(list(fields),
                        [&](const Helper *helper) { return helper->hasWarpgroup(fields); });
}

/// Why dots cannot be in roles with different programs.
std::optional<std::string> HelperWork::whyNotPlaced(const ScheduleFields &fields,
                                                    bool speculates) const {
  if (fields.placement == PlacementKind::rows)
    return exchangesSums(fields)
               ? std::optional<std::string>(
                     "the blocks of a cluster make sums together in a role of their own; use "
                     "placement = apart or divided, or cluster = 2")
               : std::nullopt;
  bool isDivided = fields.placement == PlacementKind::divided;
  std::string who = isDivided ? "consumers with different dots" : "a reducer",
              own = isDivided ? "their" : "its", s = isDivided ? "" : "s";
  if (!isDivided && sums.empty())
    return "no dot of a computed tile, beside other dots of a loop, has a result that only leaves "
           "by a store that adds it; use placement = rows";
  if (computesB)
    return who + " do" + (isDivided ? "" : "es") +
           " not go with operand b of a dot that consumers compute together; use placement = rows";
  if (!fields.hasProducer())
    return who + " get" + s + " tiles from a producer; use producer = operands or placement = rows";
  if (fields.store == StoreKind::writer && sums.empty())
    return who + " store their results themselves; use store = tma or direct, or placement = rows";
  if (fields.store == StoreKind::writer && !areSumsBulk)
    return who + " has sums that cannot leave in bulk, which a writer takes; use store = direct or "
                 "placement = rows";
  if (OverlapShape{*fields.overlap}.getStages() != 1)
    return who + " take" + s + " the operands of " + own +
           " dots in their own steps; use overlap = 1 or placement = rows";
  if (speculates)
    return who + " would not know which of " + own + (isDivided ? " tiles" : " sums") +
           " come again; use placement = rows or speculate = false";
  return std::nullopt;
}

/// "line 12", or the name of an operation that comes from no file.
static std::string printPlace(Operation *op) {
  auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
  return place ? llvm::formatv("line {0}", place.getLine()).str()
               : op->getName().getStringRef().str();
}

/// Why no role of its own can transpose.
std::optional<std::string> HelperWork::whyNotTransposed(const ScheduleFields &fields) const {
  if (!transposes)
    return "no dot reads a loaded tile of 8-bit elements along its columns, beside a computed one; "
           "use transpose = 0";
  if (readsAsLoaded)
    return "a tile that a dot reads along its columns is read as it is loaded too (" +
           printPlace(readsAsLoaded) + "); use transpose = 0";
  if (!fields.hasProducer())
    return "a transposer gets tiles from a producer; use producer = operands or transpose = 0";
  if (fields.store == StoreKind::writer && !leavesWriter(fields))
    return "the warps of a transposer and of the producer leave none of their warpgroup for a "
           "writer; use transpose = 2 or 4, or store = tma";
  return std::nullopt;
}

/// Why the threads of a producer cannot gather tiles for dots.
std::optional<std::string> HelperWork::whyNotGathered(const ScheduleFields &fields) const {
  if (!fields.hasProducer())
    return "producer = none has none; use producer = operands";
  if (sharesTransposer(fields))
    return "all warps of the producer's warpgroup gather, which leaves none for a transposer; use "
           "transpose = 4 or 0";
  return std::nullopt;
}

std::optional<std::string> HelperWork::whyNot(const ScheduleFields &fields, bool speculates) const {
  if (std::optional<std::string> reason = whyNotPlaced(fields, speculates))
    return reason;
  if (isGiven(RoleTask::Transpose, fields))
    if (std::optional<std::string> reason = whyNotTransposed(fields))
      return reason;
  if (converts && !fields.hasProducer())
    return "operand b of a dot is converted on its way, by a role that gets tiles from a producer; "
           "use producer = operands";
  if (gathers)
    if (std::optional<std::string> reason = whyNotGathered(fields))
      return "the threads of a producer gather what dots read: " + *reason;
  if (runs > 0 && !fields.hasProducer())
    return "a producer copies what dots read in runs of rows; use producer = operands";
  if (fields.store != StoreKind::writer)
    return std::nullopt;
  if (!fields.hasProducer())
    return "store = writer needs a producer, beside which the writer runs; use producer = operands "
           "or store = tma";
  if (speculates)
    return "store = writer stores while the program goes on, and would not know which stores come "
           "again; use store = tma or speculate = false";
  return std::nullopt;
}
