//===- PipeRings.cpp - Buffers and mbarriers of pipes -----------------------===//

#include "passes/Hop/Barriers/PipeRings.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/PipeProtocol.h"

using namespace mlir;
using namespace tessera;

Value tessera::leaderOf(Operation *op) {
  auto pipe = op->getOperand(0).getDefiningOp<hop::PipeCreateOp>();
  return pipe ? pipe.getLeader() : Value();
}

/// Whether threads read the slot `shared`, or a part of it, into registers.
static bool isFetched(Value shared) {
  return llvm::any_of(shared.getUsers(), [](Operation *user) {
    return isa<hop::FetchOp>(user) || (isa<hop::SliceOp>(user) && isFetched(user->getResult(0)));
  });
}

/// Whether the threads of the warpgroup have met between the last `Access` before `op` and `op`:
/// they read and write slots one by one.
template <typename Access>
static bool haveMetSince(Operation *op) {
  while ((op = op->getPrevNode())) {
    if (isa<hop::WarpgroupSyncOp>(op))
      return true;
    if (isa<Access>(op) || op->getNumRegions() != 0)
      return false;
  }
  return false;
}

/// Whether every warp of the warpgroup has waited for the slot when one of its threads releases it:
/// a product that all of them issued after the wait is complete, or they have met since. Only what
/// is on the straight way from the wait to the release counts, as a loop or a conditional may do
/// nothing.
static bool isJoined(hop::PipeReleaseOp release) {
  Operation *wait = release.getTile().getDefiningOp();
  if (!wait)
    return false;
  if (isFetched(wait->getResult(0)))
    return haveMetSince<hop::FetchOp>(release);
  DenseSet<Value> issued;
  SmallVector<Operation *> way = {release};
  while (way.back()->getBlock() != wait->getBlock())
    way.push_back(way.back()->getParentOp());
  Operation *from = wait->getNextNode();
  for (Operation *end : llvm::reverse(way)) {
    for (Operation *op = end == way.back() ? from : &end->getBlock()->front(); op != end;
         op = op->getNextNode()) {
      if (isa<hop::WarpgroupSyncOp>(op))
        return true;
      if (auto issue = dyn_cast<hop::MmaIssueOp>(op))
        issued.insert(issue.getFlight());
      else if (auto done = dyn_cast<hop::MmaWaitOp>(op);
               done && llvm::any_of(done.getFlights(),
                                    [&](Value flight) { return issued.contains(flight); }))
        return true;
    }
  }
  return false;
}

bool tessera::isJoined(hop::PipeCommitOp commit) { return haveMetSince<hop::StageOp>(commit); }

/// The pipe, and those that go with it.
static SmallVector<hop::PipeCreateOp> groupOf(hop::PipeCreateOp pipe) {
  SmallVector<hop::PipeCreateOp> group = {pipe};
  for (Operation *user : pipe.getPipe().getUsers())
    if (auto led = dyn_cast<hop::PipeCreateOp>(user))
      group.push_back(led);
  return group;
}

static bool isCommittedByAll(hop::PipeCreateOp pipe) {
  return llvm::any_of(pipe.getPipe().getUsers(), [](Operation *user) {
    auto commit = dyn_cast<hop::PipeCommitOp>(user);
    return commit && !isJoined(commit);
  });
}

/// Arrivals that fill a slot: of the one thread that starts a copy or writes a value, or of those
/// that have written a tile.
static int64_t countFills(hop::PipeCreateOp pipe, bool byAll) {
  hop::RoleOp filler = hop::getFillers(pipe).front();
  if (llvm::none_of(pipe.getPipe().getUsers(), llvm::IsaPred<hop::PipeCommitOp>))
    return 1;
  return byAll ? filler.getNumThreads() : filler.getNumWarpgroups();
}

/// A tile is released by one thread of each warpgroup when the others are known to have waited
/// for it. Otherwise, and a value, by every thread of the role: a warp that comes late would find
/// the barrier two phases on, which its parity cannot tell from none.
static bool isReleasedByAll(hop::PipeCreateOp pipe, hop::RoleOp role) {
  if (role.isElected() || hop::holdsValue(pipe.getPipe().getType().getTile()))
    return true;
  return llvm::any_of(pipe.getPipe().getUsers(), [&](Operation *user) {
    auto release = dyn_cast<hop::PipeReleaseOp>(user);
    return release && role->isAncestor(release) && !isJoined(release);
  });
}

static Ring createRing(hop::KernelOp kernel, hop::PipeCreateOp pipe) {
  OpBuilder builder(pipe);
  Location loc = pipe.getLoc();
  RankedTensorType tile = pipe.getPipe().getType().getTile();
  int64_t slots = pipe.getPipe().getType().getSlots();
  auto bufferType = hop::BufferType::get(builder.getContext(), tile, slots);
  auto barriersType = hop::BarriersType::get(builder.getContext(), slots);
  std::string label = pipe.getLabel().str();
  Ring ring;
  ring.slots = slots;
  ring.isTile = !hop::holdsValue(tile);
  ring.multicast = pipe.getMulticast();
  ring.exchanged = pipe.getExchanged();
  auto buffer = hop::BufferOp::create(builder, loc, bufferType, label, IntegerAttr());
  ring.bytes = buffer.getSharedBytes() / slots;
  ring.buffer = buffer;
  ring.leader = pipe.getLeader();
  if (ring.leader)
    return ring;
  ring.copied = llvm::any_of(pipe.getPipe().getUsers(), [](Operation *user) {
    auto acquire = dyn_cast<hop::PipeAcquireOp>(user);
    return acquire && acquire.isFilledByCopies();
  });
  ring.committedByAll = !ring.multicast && (ring.copied || isCommittedByAll(pipe));
  if (ring.multicast && ring.copied)
    ring.gathered =
        hop::BarriersOp::create(builder, loc, barriersType, label + ".gathered",
                                hop::getFillers(pipe).front().getNumThreads(), IntegerAttr());
  ring.full = hop::BarriersOp::create(builder, loc, barriersType, label + ".full",
                                      countFills(pipe, ring.committedByAll), IntegerAttr());
  int64_t releases = 0;
  for (hop::RoleOp role : hop::getReaders(pipe)) {
    bool byAll = llvm::any_of(groupOf(pipe),
                              [&](hop::PipeCreateOp of) { return isReleasedByAll(of, role); });
    if (byAll)
      ring.releasedByAll.insert(role);
    releases += byAll ? role.getNumThreads() : role.getNumWarpgroups();
  }
  if (ring.isShared())
    releases *= kernel.getClusterSize();
  ring.empty = hop::BarriersOp::create(builder, loc, barriersType, label + ".empty", releases,
                                       IntegerAttr());
  return ring;
}

PipeRings tessera::createRings(hop::KernelOp kernel, ArrayRef<hop::PipeCreateOp> pipes) {
  PipeRings rings;
  for (hop::PipeCreateOp pipe : pipes) {
    rings[pipe.getPipe()] = createRing(kernel, pipe);
    // What a fill waits for are the bytes of all that goes with it.
    if (pipe.getLeader())
      rings[pipe.getLeader()].bytes += rings[pipe.getPipe()].bytes;
  }
  return rings;
}
