//===- Cluster.cpp - Loads that the blocks of a cluster share -------------===//
//
// Implements hop-cluster. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Schedule/SharedTileAnalysis.h"

namespace tessera {
#define GEN_PASS_DEF_CLUSTER
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// What loads the tiles of `pipe`: bulk copies, or copies of threads.
SmallVector<Operation *> loadsOf(hop::PipeCreateOp pipe) {
  SmallVector<Operation *> loads;
  for (Operation *user : pipe.getPipe().getUsers()) {
    if (isa<hop::PipeLoadOp>(user))
      loads.push_back(user);
    if (auto acquire = dyn_cast<hop::PipeAcquireOp>(user))
      llvm::copy_if(acquire.getTile().getUsers(), std::back_inserter(loads),
                    llvm::IsaPred<hop::GatherOp>);
  }
  return loads;
}

/// Moves what hands shared gathered tiles on, which waits for their copies, behind the gathers that
/// follow: up to the next one into a pipe of before, so that all of these copies are on their way
/// together.
void commitTogether(Block &block) {
  SmallVector<hop::PipeCommitOp> held;
  llvm::SmallDenseSet<Value> acquired;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto acquire = dyn_cast<hop::PipeAcquireOp>(op);
    bool goesOn = acquire && acquired.insert(acquire.getPipe()).second;
    if (!goesOn && (acquire || op.getNumRegions() != 0 || op.hasTrait<hop::ReadsPipe>() ||
                    op.hasTrait<OpTrait::IsTerminator>())) {
      for (hop::PipeCommitOp commit : held)
        commit->moveBefore(&op);
      held.clear();
      acquired.clear();
      if (acquire)
        acquired.insert(acquire.getPipe());
    }
    if (auto commit = dyn_cast<hop::PipeCommitOp>(op))
      if (commit.getTile().getDefiningOp<hop::PipeAcquireOp>().isFilledByCopies() &&
          commit.getPipe().getDefiningOp<hop::PipeCreateOp>().getMulticast())
        held.push_back(commit);
  }
}

/// Why the blocks of a cluster cannot load the tiles of `pipe` together; nothing when they can.
std::optional<std::string> whyNotMulticast(const IndexDependence &dependence,
                                           hop::PipeCreateOp pipe, int64_t blocks) {
  SmallVector<Operation *> loads = loadsOf(pipe);
  if (loads.empty())
    return "no load fills it";
  for (Operation *load : loads) {
    if (auto own = dyn_cast<hop::PipeLoadOp>(load); own && own.getAlike())
      continue;
    if (std::optional<std::string> reason = whyPlaceVaries(dependence, load))
      return reason;
    if (Operation *control = dependence.getVaryingControl(load))
      return explainControl(control);
  }
  return whyIndivisible(loads, pipe.getPipe().getType().getTile(), blocks);
}

/// The writes of a slot that the threads of a role fill part by part, in the order of the parts;
/// none where it is filled otherwise.
SmallVector<hop::StageOp> partsOf(hop::PipeAcquireOp acquire) {
  SmallVector<std::pair<int64_t, hop::StageOp>> parts;
  for (Operation *user : acquire.getTile().getUsers()) {
    if (isa<hop::PipeCommitOp>(user))
      continue;
    auto slice = dyn_cast<hop::SliceOp>(user);
    std::optional<int64_t> number = slice ? getConstantIntValue(slice.getIndex()) : std::nullopt;
    auto stage = number && slice->hasOneUse() ? dyn_cast<hop::StageOp>(*slice->user_begin())
                                              : hop::StageOp();
    if (!stage || stage->getBlock() != acquire->getBlock())
      return {};
    parts.emplace_back(*number, stage);
  }
  llvm::sort(parts, llvm::less_first());
  return llvm::to_vector(llvm::make_second_range(parts));
}

/// Why the blocks of a cluster cannot make the tiles of `pipe` together, which no load fills;
/// nothing when they can: one warpgroup writes them part by part, of nothing that differs.
std::optional<std::string> whyNotMadeTogether(const IndexDependence &dependence,
                                              hop::PipeCreateOp pipe, int64_t blocks) {
  SmallVector<hop::RoleOp> fillers = hop::getFillers(pipe);
  SmallVector<hop::PipeAcquireOp> acquires;
  for (Operation *user : pipe.getPipe().getUsers())
    if (auto acquire = dyn_cast<hop::PipeAcquireOp>(user))
      acquires.push_back(acquire);
  if (acquires.empty() || fillers.size() != 1 || fillers.front().getNumWarpgroups() != 1)
    return "no load fills it";
  for (hop::PipeAcquireOp acquire : acquires) {
    SmallVector<hop::StageOp> parts = partsOf(acquire);
    if (blocks != 2 || parts.size() % blocks != 0 || parts.empty())
      return "no load fills it, nor are its tiles written in parts of which two blocks make half "
             "each";
    for (hop::StageOp part : parts)
      if (whyPlaceVaries(dependence, part) || dependence.getVaryingControl(part))
        return "what it is made of depends on the first grid index";
  }
  hop::PipeCreateOp other;
  fillers.front().walk([&](Operation *op) {
    auto read = op->hasTrait<hop::ReadsPipe>()
                    ? op->getOperand(0).getDefiningOp<hop::PipeCreateOp>()
                    : hop::PipeCreateOp();
    if (read && !read.getMulticast())
      other = read;
  });
  if (other)
    return ("the role that makes it reads '" + other.getLabel() +
            "', of which each block has its own")
        .str();
  return std::nullopt;
}

/// `stage` and, before it, what it alone is made of.
SmallVector<Operation *> onlyFor(hop::StageOp stage) {
  llvm::SetVector<Operation *> own;
  own.insert(stage);
  for (Operation *op = stage->getPrevNode(); op; op = op->getPrevNode())
    if ((isPure(op) || isa<hop::FetchOp>(op)) && !op->use_empty() &&
        llvm::all_of(op->getUsers(), [&](Operation *user) { return own.contains(user); }))
      own.insert(op);
  return llvm::to_vector(llvm::reverse(own.takeVector()));
}

/// Has each block make half of the parts of a slot.
void divideParts(hop::PipeAcquireOp acquire, int64_t blocks) {
  SmallVector<hop::StageOp> parts = partsOf(acquire);
  OpBuilder builder(acquire);
  Value rank = hop::ClusterRankOp::create(builder, acquire.getLoc(), builder.getIndexType());
  for (auto [i, stage] : llvm::enumerate(parts)) {
    Location loc = stage.getLoc();
    builder.setInsertionPoint(stage);
    Value block = arith::ConstantIndexOp::create(builder, loc, i * blocks / parts.size());
    Value isOwn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rank, block);
    auto guard = scf::IfOp::create(builder, loc, isOwn, /*withElseRegion=*/false);
    for (Operation *op : onlyFor(stage))
      op->moveBefore(guard.thenBlock()->getTerminator());
  }
}

struct ClusterPass : tessera::impl::ClusterBase<ClusterPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    // Blocks that run a grid point together load each its part.
    if (kernel.getClusterSize() == 1 || kernel.sharesPoint())
      return;
    if (failed(shareLoads(kernel)))
      signalPassFailure();
  }

  LogicalResult shareLoads(hop::KernelOp kernel) {
    IndexDependence dependence(kernel.getGridIndex(0), kernel.getClusterSize());
    SmallVector<std::pair<hop::PipeCreateOp, std::string>> own;
    bool any = false;
    for (auto pipe : kernel.getBody().getOps<hop::PipeCreateOp>()) {
      std::optional<std::string> reason =
          whyNotMulticast(dependence, pipe, kernel.getClusterSize());
      if (reason) {
        own.emplace_back(pipe, *reason);
        continue;
      }
      pipe.setMulticast(true);
      pipe.emitRemark("'") << pipe.getLabel() << "' is loaded once for the "
                           << kernel.getClusterSize() << " blocks of a cluster";
      any = true;
    }
    makeTogether(kernel, dependence, own);
    for (auto &[pipe, reason] : own)
      if (any)
        pipe.emitRemark("'") << pipe.getLabel()
                             << "' is loaded by each block of a cluster: " << reason;
    kernel.walk([](Block *block) { commitTogether(*block); });
    if (any)
      return success();
    InFlightDiagnostic diag = kernel.emitError("has no load that the blocks of a cluster share; "
                                               "use cluster = 1");
    for (auto &[pipe, reason] : own)
      diag.attachNote(pipe.getLoc()) << "'" << pipe.getLabel() << "': " << reason;
    return diag;
  }

  /// Shares what is made of shared tiles. Of the other pipes without loads `own` gets the reasons.
  static void makeTogether(hop::KernelOp kernel, const IndexDependence &dependence,
                           SmallVectorImpl<std::pair<hop::PipeCreateOp, std::string>> &own) {
    int64_t blocks = kernel.getClusterSize();
    llvm::erase_if(own, [&](auto &entry) {
      auto &[pipe, reason] = entry;
      if (!loadsOf(pipe).empty())
        return false;
      std::optional<std::string> refusal = whyNotMadeTogether(dependence, pipe, blocks);
      reason = refusal.value_or("");
      if (refusal)
        return false;
      pipe.setMulticast(true);
      pipe.emitRemark("'") << pipe.getLabel() << "' is made once for the " << blocks
                           << " blocks of a cluster";
      for (Operation *user : llvm::make_early_inc_range(pipe.getPipe().getUsers()))
        if (auto acquire = dyn_cast<hop::PipeAcquireOp>(user))
          divideParts(acquire, blocks);
      return true;
    });
  }
};

} // namespace
