//===- DirectSchedule.cpp - Schedules of kernels without dots -------------===//
//
// What is preferred for a kernel whose tiles come from global memory straight
// into registers: no role loads for others, so that a schedule is how many
// warpgroups share the tiles. As many bytes as memory takes to be busy are to be on
// their way at a time.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/RegisterPool.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/TileLayout.h"
#include "passes/Schedule/SchedulePreference.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// `fields` with this one alone.
static ScheduleAttr onlyField(ScheduleFields fields, const ScheduleFieldInfo &field,
                              MLIRContext *context) {
  fields.visit([&](const ScheduleFieldInfo &info, auto &value) {
    if (&info != &field)
      value.reset();
  });
  return fields.get(context);
}

/// The fields that mean something without dots too: which blocks and threads have which tiles.
static constexpr llvm::StringLiteral freeWithoutDots[] = {
    "consumers", "persistent", "order", "section", "cluster", "consumer_registers"};

/// All other fields with the first of their values, which asks for nothing.
static ScheduleFields fixedWithoutDots(KernelOp kernel) {
  std::string text;
  for (const ScheduleFieldInfo &field : ScheduleAttr::getFieldInfos())
    if (!llvm::is_contained(freeWithoutDots, field.name))
      text += (field.name + "=" + field.values.front() + ",").str();
  return ScheduleAttr::parseText(kernel.getContext(), text, [&] { return kernel.emitError(); })
      ->getFields();
}

/// Sets what is fixed without dots. False after a rejection of each field that asks for more.
bool tessera::fixFields(const ScheduleFacts &facts, ScheduleFields &requested,
                        SmallVectorImpl<ScheduleRejection> &rejections) {
  MLIRContext *context = facts.getKernel().getContext();
  ScheduleFields fields = fixedWithoutDots(facts.getKernel());
  ScheduleAttr none = ScheduleFields().get(context);
  size_t before = rejections.size();
  if (facts.ordersSums)
    rejections.push_back({"fixed_sums",
                          "sums in a fixed order wait for their tickets in a role that copies in "
                          "bulk, and a kernel without a tile.dot has one role; leave it out"});
  for (const ScheduleFieldInfo &field : ScheduleAttr::getFieldInfos()) {
    ScheduleAttr fixed = onlyField(fields, field, context),
                 asked = onlyField(requested, field, context);
    if (fixed != none && asked != none && asked != fixed)
      rejections.push_back(
          {printScheduleFields(asked),
           "it is about dots and the tiles that are loaded for them, and the kernel has no "
           "tile.dot; leave it out, or use " +
               printScheduleFields(fixed)});
  }
  if (requested.consumerRegisters && !requested.consumerRegisters->isUniform())
    rejections.push_back({llvm::formatv("consumer_registers = {0}", *requested.consumerRegisters),
                          "a list of registers is for consumers of different programs, and those "
                          "of a kernel without a tile.dot run one; use one number"});
  fields.visitWith(requested, [](const ScheduleFieldInfo &, auto &fixed, const auto &asked) {
    if (!fixed)
      fixed = asked;
  });
  requested = fields;
  return rejections.size() == before;
}

/// Bytes that a thread block loads from memory before it uses some of them: of the loads that stand
/// together. What all blocks load comes from memory once.
static int64_t bytesLoadedTogether(KernelOp kernel) {
  llvm::DenseMap<Block *, int64_t> bytes;
  int64_t most = 0;
  kernel.walk([&](Operation *op) {
    auto type = loadsFromView(op) ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                                  : RankedTensorType();
    if (!type || isSameForAll(kernel, op))
      return;
    int64_t &sum = bytes[op->getBlock()];
    sum += type.getNumElements() * type.getElementTypeBitWidth() / 8;
    most = std::max(most, sum);
  });
  return most;
}

/// Why the blocks of a cluster cannot have the tiles of `kernel` together, each some columns: what
/// threads of several blocks do together is to reduce rows.
static std::optional<std::string> whyNotSpread(KernelOp kernel, const ScheduleFields &requested) {
  if (requested.persistent.value_or(PersistentKind::None) != PersistentKind::None)
    return "the blocks of a cluster run one grid point together; use persistent = none";
  Operation *other = nullptr;
  kernel.getBody().walk([&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    bool isByRows = reduce && reduce.getAxis() == 1 &&
                    cast<RankedTensorType>(reduce.getSource().getType()).getRank() == 2;
    bool hasTiles = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) ||
                    llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
    if (hasTiles && !isByRows && !op->hasTrait<OpTrait::Elementwise>() &&
        !isa<LoadOp, StoreOp, BroadcastOp, SplatOp, IotaOp, arith::ConstantOp, scf::ForOp,
             scf::IfOp, scf::YieldOp>(op)) {
      other = op;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (!other)
    return std::nullopt;
  return llvm::formatv("each block has some columns of every tile, and {0} takes those of others; "
                       "use cluster = 1",
                       isa<ReduceOp>(other) ? "a reduction of columns"
                                            : other->getName().getStringRef())
      .str();
}

namespace {
/// What a number of warpgroups makes of a kernel.
struct Share {
  Candidate candidate;
  int64_t bytes = 0; ///< on their way to a multiprocessor at a time
};
} // namespace

/// The most blocks of so many threads that a multiprocessor holds at a time while a thread can use
/// `needed` registers.
static int64_t mostResident(int64_t threads, int64_t needed, const CostModel &model) {
  int64_t blocks = hop::residentBlocks(threads, needed);
  while (blocks > 1 && usableRegisters(hop::registersOfResident(threads, blocks), model) < needed)
    --blocks;
  return blocks;
}

/// Adds `candidate` with as many blocks side by side as bring enough bytes, each of which loads
/// `loaded`. ptxas takes what registers it may have, for loads that it moves up, so that the bound
/// on them is what makes room. Where it spills, one block less is next.
static void addResident(Candidate candidate, const ScheduleFields &requested, int64_t loaded,
                        const CostModel &model, std::vector<Share> &shares) {
  int64_t threads = candidate.consumers() * hopper::warpgroupThreads;
  int64_t enough = llvm::divideCeil(model.bytesInFlight, std::max<int64_t>(loaded, 1));
  int64_t blocks = std::min(mostResident(threads, candidate.registersNeeded.most(), model), enough);
  for (; blocks > 0; --blocks) {
    int64_t registers =
        std::min(candidate.entryRegisters(), hop::registersOfResident(threads, blocks));
    candidate.fields.consumerRegisters =
        requested.consumerRegisters.value_or(NumberList(registers));
    shares.push_back({candidate, std::min(blocks * loaded, model.bytesInFlight)});
    if (requested.consumerRegisters)
      return;
  }
}

/// Candidates whose tiles and registers fit, the preferred first: those with enough bytes on their
/// way, and of these the ones with the fewest warpgroups that wait for each other in a row.
std::vector<Candidate> tessera::directCandidates(const ScheduleFacts &facts,
                                                 const ScheduleFields &requested,
                                                 SmallVectorImpl<ScheduleRejection> &rejections) {
  VectorAxes axes(/*usual=*/1);
  std::vector<Candidate> candidates;
  if (failed(axes.run(facts.getKernel())))
    return candidates;
  int64_t blocks = blocksOf(requested);
  if (blocks > 1)
    if (std::optional<std::string> reason = whyNotSpread(facts.getKernel(), requested)) {
      rejections.push_back(
          {llvm::formatv("cluster = {0}", stringifyClusterKind(*requested.cluster)).str(),
           std::move(*reason)});
      return candidates;
    }
  TileExtents extents = commonExtents(facts.getKernel(), axes);
  int64_t loaded = bytesLoadedTogether(facts.getKernel()) / blocks;
  std::vector<Share> shares;
  for (int64_t consumers : listChoices<int64_t>(requested.consumers, facts.model.directConsumers)) {
    auto reject = [&](std::string reason, RefusalKind kind) {
      rejections.push_back(
          {llvm::formatv("consumers = {0}", consumers).str(), std::move(reason), kind});
    };
    std::string refusal;
    hop::LayoutAttr layout =
        chooseTileLayout(facts.getKernel().getContext(), extents, consumers, blocks, refusal);
    if (!layout) {
      reject(std::move(refusal), RefusalKind::Unsupported);
      continue;
    }
    Candidate candidate =
        makeCandidate(facts, requested, /*warpSpecialize=*/false, {OverlapKind::One}, consumers);
    int64_t most = candidate.entryRegisters(),
            given = requested.consumerRegisters.value_or(NumberList(most)).most(),
            needed = directRegisters(facts.getKernel(), layout, axes, facts.model);
    candidate.registersNeeded = NumberList(needed);
    if (given > most)
      reject(llvm::formatv("the launch gives a thread {0} registers, and {1} are asked for; use at "
                           "most so many",
                           most, given),
             RefusalKind::Registers);
    else if (needed > usableRegisters(given, facts.model))
      reject(llvm::formatv("a thread needs {0} registers and can use {1} of its {2}", needed,
                           usableRegisters(given, facts.model), given),
             RefusalKind::Registers);
    else
      addResident(candidate, requested, loaded, facts.model, shares);
  }
  llvm::stable_sort(shares, [](const Share &a, const Share &b) { return a.bytes > b.bytes; });
  for (Share &share : shares)
    candidates.push_back(std::move(share.candidate));
  return candidates;
}
