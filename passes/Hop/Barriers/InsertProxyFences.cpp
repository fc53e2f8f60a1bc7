//===- InsertProxyFences.cpp - Generic writes before async reads ----------===//
//
// Implements hop-insert-proxy-fences. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_INSERTPROXYFENCES
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// Reads by threads of slots that bulk copies fill. The copy into a slot that is given back is of
/// another proxy, and an arrival does not wait for reads that are under way.
class SlotReads {
public:
  using Reads = llvm::SmallSetVector<hop::FetchOp, 4>;

  explicit SlotReads(hop::KernelOp kernel) {
    kernel.walk([&](hop::BulkLoadOp load) {
      givenBackBy[findBuffer(load.getDestination())].insert(findBarriers(load));
    });
    kernel.walk([&](hop::FetchOp read) {
      if (givenBackBy.contains(findBuffer(read.getSource())))
        findTakers(read);
    });
  }

  /// Orders the reads of a block, with those that may be under way where it begins, before the
  /// arrivals that give their slots back. Returns those that may be under way where it ends.
  Reads order(Block &block, Reads pending) { return visit(block, std::move(pending), true); }

private:
  /// The barriers that a copy waits for before it is issued, null where these are not seen.
  static Value findBarriers(Operation *op) {
    while (!isa<hop::RoleOp>(op)) {
      Operation *before = op->getPrevNode();
      if (auto wait = dyn_cast_or_null<hop::BarrierWaitOp>(before))
        return wait.getBarriers();
      if (before && before->getNumRegions() != 0)
        return Value();
      op = before ? before : op->getParentOp();
    }
    return Value();
  }

  static Value findBuffer(Value tile) {
    while (Operation *op = tile.getDefiningOp()) {
      if (!isa<hop::SlotOp, hop::SliceOp>(op))
        break;
      tile = op->getOperand(0);
    }
    return tile;
  }

  /// A product or a write to shared memory that takes what was read has waited for it, in all its
  /// elements but where some columns are taken. A store has not in lanes that store nothing.
  void findTakers(hop::FetchOp read) {
    auto &found = takers[read];
    SmallVector<Value> values{read.getResult()};
    llvm::SmallPtrSet<Operation *, 16> seen;
    while (!values.empty()) {
      for (Operation *user : values.pop_back_val().getUsers()) {
        if (!seen.insert(user).second)
          continue;
        if (isa<hop::StageOp, hop::MmaIssueOp, hop::MmaOp>(user))
          found.insert(user);
        else if (user->getNumRegions() == 0 && isMemoryEffectFree(user) &&
                 !isa<hop::ColumnsOp>(user))
          values.append(user->result_begin(), user->result_end());
      }
    }
  }

  void take(Operation &op, Reads &reads) {
    reads.remove_if([&](hop::FetchOp read) { return takers[read].contains(&op); });
  }

  /// Those of the reads whose slots an arrival gives back.
  Reads findGivenBack(hop::BarrierArriveOp arrive, const Reads &pending) {
    Reads found;
    for (hop::FetchOp read : pending) {
      auto &barriers = givenBackBy[findBuffer(read.getSource())];
      if (barriers.contains(arrive.getBarriers()) || barriers.contains(Value()))
        found.insert(read);
    }
    return found;
  }

  /// The operation that takes the last of the reads, where nothing waits until then.
  Operation *findTaker(hop::BarrierArriveOp arrive, Reads reads) {
    for (Operation *op = arrive->getNextNode(); op; op = op->getNextNode()) {
      if (!isMemoryEffectFree(op) && !isa<hop::FetchOp, hop::StageOp, hop::MmaIssueOp>(op))
        return nullptr;
      take(*op, reads);
      if (reads.empty())
        return op;
    }
    return nullptr;
  }

  /// Whether each element that a thread has of `result` is made of all that it has of `read`: a sum
  /// along the axis that the read has.
  static bool isMadeOfAll(tile::ReduceOp result, hop::FetchOp read) {
    auto type = cast<RankedTensorType>(read.getResult().getType());
    if (type.getRank() != 1 || !result.getType().getElementType().isF32())
      return false;
    // What is made of it element by element, of which each row or column of the source has all.
    SmallVector<Value> values{read.getResult()};
    llvm::SmallPtrSet<Operation *, 16> seen;
    while (!values.empty()) {
      for (Operation *user : values.pop_back_val().getUsers()) {
        if (!seen.insert(user).second || user->getBlock() != result->getBlock())
          continue;
        if (user == result)
          return true;
        auto broadcast = dyn_cast<tile::BroadcastOp>(user);
        if (broadcast ? broadcast.getAxis() != result.getAxis()
                      : user->hasTrait<OpTrait::Elementwise>())
          values.append(user->result_begin(), user->result_end());
      }
    }
    return false;
  }

  /// A sum behind the arrival that has waited for all of the reads, where the threads wait for
  /// nothing but their own products until then.
  static tile::ReduceOp findSum(hop::BarrierArriveOp arrive, const Reads &reads) {
    if (!arrive.getAll() || arrive.getBlocks() || arrive.getAfter())
      return nullptr;
    for (Operation *op = arrive->getNextNode(); op; op = op->getNextNode()) {
      auto sum = dyn_cast<tile::ReduceOp>(op);
      if (sum && sum.getKind() == tile::ReduceKind::sum &&
          llvm::all_of(reads, [&](hop::FetchOp read) { return isMadeOfAll(sum, read); }))
        return sum;
      if (!isMemoryEffectFree(op) && !isa<hop::FetchOp, hop::MmaWaitOp, hop::BarrierArriveOp>(op))
        return nullptr;
    }
    return nullptr;
  }

  Reads visit(Block &block, Reads pending, bool changes) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto read = dyn_cast<hop::FetchOp>(op)) {
        if (takers.contains(read))
          pending.insert(read);
      } else if (isa<hop::ProxyFenceOp>(op)) {
        pending.clear();
      } else if (auto arrive = dyn_cast<hop::BarrierArriveOp>(op)) {
        Reads givenBack = findGivenBack(arrive, pending);
        if (givenBack.empty())
          continue;
        Operation *taker = findTaker(arrive, givenBack);
        if (taker && changes)
          arrive->moveAfter(taker);
        if (taker)
          continue;
        if (tile::ReduceOp sum = findSum(arrive, givenBack)) {
          if (changes) {
            arrive->moveAfter(sum);
            arrive.getAfterMutable().assign(sum.getResult());
          }
          pending.remove_if([&](hop::FetchOp read) { return givenBack.contains(read); });
          continue;
        }
        if (changes) {
          OpBuilder builder(arrive);
          hop::ProxyFenceOp::create(builder, arrive.getLoc());
        }
        pending.clear();
      } else {
        take(op, pending);
        visitRegions(op, pending, changes);
      }
    }
    return pending;
  }

  void visitRegions(Operation &op, Reads &pending, bool changes) {
    // What a region of a loop leaves comes to each of them. One read more may move a fence, which
    // leaves others, so this goes on until no more come.
    Reads before = pending;
    for (bool grows = isa<LoopLikeOpInterface>(op); grows;) {
      size_t known = before.size();
      for (Region &region : op.getRegions())
        for (Block &block : region)
          before.insert_range(visit(block, before, false));
      grows = before.size() > known;
    }
    bool mayPassBy = !isa<scf::IfOp>(op) || cast<scf::IfOp>(op).getElseRegion().empty();
    Reads behind;
    if (mayPassBy)
      behind.insert_range(pending);
    for (Region &region : op.getRegions())
      for (Block &block : region)
        behind.insert_range(visit(block, before, changes));
    if (op.getNumRegions() != 0)
      pending = behind;
  }

  /// Of each buffer that bulk copies fill the barriers that these wait for. Null: not seen.
  llvm::DenseMap<Value, llvm::SmallDenseSet<Value, 2>> givenBackBy;
  llvm::DenseMap<hop::FetchOp, llvm::SmallPtrSet<Operation *, 4>> takers;
};

struct InsertProxyFencesPass : tessera::impl::InsertProxyFencesBase<InsertProxyFencesPass> {
  void runOnOperation() override {
    getOperation().walk([&](Block *block) { insertFences(*block); });
    SlotReads reads(getOperation());
    for (hop::RoleOp role : getOperation().getBody().getOps<hop::RoleOp>())
      reads.order(role.getBody().front(), {});
    llvm::SmallPtrSet<Value, 4> copied;
    getOperation().walk([&](hop::BarrierArriveOp arrive) {
      if (arrive.getCopies())
        copied.insert(arrive.getBarriers());
    });
    getOperation().walk([&](hop::BarrierWaitOp wait) {
      if (copied.contains(wait.getBarriers()))
        fenceBehind(wait);
    });
  }

  static void fenceBehind(Operation *op) {
    OpBuilder builder(op->getBlock(), std::next(op->getIterator()));
    hop::ProxyFenceOp::create(builder, op->getLoc());
  }

  /// A barrier follows the writes in their block, before what reads them: hop-stage-operands,
  /// hop-stage-stores and hop-insert-mbarriers make no others.
  void insertFences(Block &block) {
    Operation *lastWrite = nullptr;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<hop::StageOp, hop::TransposeOp>(op)) {
        lastWrite = &op;
        continue;
      }
      // A barrier, or a reader in the async proxy, ends the run of writes.
      bool endsRun = isa<hop::WarpgroupSyncOp, hop::RoleSyncOp, hop::BarrierArriveOp,
                         hop::BulkStoreOp, hop::MmaIssueOp>(op) ||
                     op.getNumRegions() != 0 || op.hasTrait<OpTrait::IsTerminator>();
      if (!lastWrite || !endsRun)
        continue;
      fenceBehind(lastWrite);
      lastWrite = nullptr;
    }
  }
};

} // namespace
