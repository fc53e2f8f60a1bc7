//===- PinWork.cpp - Work stays where it was placed -----------------------===//
//
// Implements hop-pin-work. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/PtxasRegisters.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Hop/TileRegisters.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_PINWORK
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

int64_t registersOf(const llvm::SetVector<Value> &values) {
  int64_t sum = 0;
  for (Value value : values)
    sum += hop::registersOf(value.getType());
  return sum;
}

/// The elementwise work of a block between the last wait for products and `issue`. A product of
/// what the work yields, which ends before `issue`, is not between.
class WorkBeforeProduct {
public:
  /// With `fromStep` a step of a loop begins behind a wait for all products.
  WorkBeforeProduct(hop::MmaIssueOp issue, bool fromStep) : issue(issue), place(issue) {
    for (Operation *op = issue->getPrevNode(); op; op = op->getPrevNode()) {
      wait = dyn_cast<hop::MmaWaitOp>(op);
      if (Operation *own = wait && ops.empty() ? findProductOf(wait) : nullptr) {
        wait = nullptr;
        op = place = own;
        continue;
      }
      if (wait || isa<hop::MmaIssueOp>(op) || op->getNumRegions() != 0)
        break;
      beginsStep = fromStep && op == &op->getBlock()->front() &&
                   isa<scf::ForOp>(op->getBlock()->getParentOp());
      if (isPure(op) && !hop::isFree(op) && op->getNumResults() == 1 &&
          hop::registersOf(op->getResult(0).getType()))
        ops.push_back(op);
    }
  }

  /// Whether the work is on tiles of a wait behind which nothing is in flight.
  bool followsLastWait() { return !ops.empty() && (wait ? wait.getPending() == 0 : beginsStep); }

  /// Whether the product waits for the work, whatever the assembler does.
  bool isNeeded() {
    return llvm::any_of(issue->getOperands(),
                        [&](Value v) { return llvm::is_contained(ops, v.getDefiningOp()); });
  }

  /// The place behind the work: where a product of its results begins, that one.
  Block::iterator end() {
    return place == issue ? std::next(ops.front()->getIterator()) : place->getIterator();
  }

  /// The results that are read at the product or behind it.
  llvm::SetVector<Value> results() { return resultsFrom(issue); }

  /// Those that are read from the end of the work on.
  llvm::SetVector<Value> resultsAtEnd() { return resultsFrom(place); }

  /// Tiles of the wait that the work reads for the last time.
  llvm::SetVector<Value> sources() {
    llvm::SetVector<Value> values;
    for (Operation *op : ops)
      for (Value operand : op->getOperands())
        if (isWaitedFor(operand) && !hop::isUsedFrom(operand, issue))
          values.insert(operand);
    return values;
  }

private:
  /// The product of registers that `wait` waits for alone, in the place where it began; null where
  /// it waits for others.
  static Operation *findProductOf(hop::MmaWaitOp wait) {
    if (wait.getPending() != 0 || wait.getFlights().size() != 1)
      return nullptr;
    auto product = wait.getFlights().front().getDefiningOp<hop::MmaIssueOp>();
    bool isOfRegisters = product && product->getBlock() == wait->getBlock() &&
                         !isa<hop::SharedType>(product.getA().getType());
    return isOfRegisters ? product : nullptr;
  }

  llvm::SetVector<Value> resultsFrom(Operation *op) {
    llvm::SetVector<Value> values;
    for (Operation *maker : llvm::reverse(ops))
      if (hop::isUsedFrom(maker->getResult(0), op))
        values.insert(maker->getResult(0));
    return values;
  }

  bool isWaitedFor(Value tile) {
    if (wait)
      return tile.getDefiningOp() == wait;
    auto argument = dyn_cast<BlockArgument>(tile);
    return argument && argument.getOwner() == issue->getBlock();
  }

  hop::MmaIssueOp issue;
  Operation *place;
  hop::MmaWaitOp wait;
  bool beginsStep = false;
  SmallVector<Operation *> ops; ///< the last one first
};

/// Whether a use of `value` is at `wait` or behind it.
bool isUsedBehind(Value value, hop::MmaWaitOp wait) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && !ancestor->isBeforeInBlock(wait);
  });
}

/// Whether all products that `wait` waits for are in flight before `op`.
bool isUnder(Operation *op, hop::MmaWaitOp wait) {
  return llvm::all_of(wait.getFlights(), [&](Value flight) {
    Operation *issue = flight.getDefiningOp();
    return issue && issue->getBlock() == op->getBlock() && issue->isBeforeInBlock(op);
  });
}

/// The work between the wait before and `wait`, in order: what computes tiles from that one's.
class WorkUnderProduct {
public:
  WorkUnderProduct(hop::MmaWaitOp before, hop::MmaWaitOp wait) : wait(wait) {
    llvm::SmallPtrSet<Value, 16> computed(before->result_begin(), before->result_end());
    for (Operation *op = before->getNextNode(); op != wait; op = op->getNextNode()) {
      bool depends = llvm::any_of(op->getOperands(), [&](Value v) { return computed.contains(v); });
      if (!depends || !isPure(op) || !isUnder(op, wait))
        continue;
      ops.push_back(op);
      computed.insert(op->result_begin(), op->result_end());
    }
  }

  /// The tiles that are used behind the wait, without those that later ones are computed from.
  SmallVector<Value> ends() const {
    llvm::SmallPtrSet<Operation *, 16> covered;
    SmallVector<Value> ends;
    for (Operation *op : llvm::reverse(ops)) {
      bool isEnd = !covered.contains(op) && isa<RankedTensorType>(op->getResult(0).getType()) &&
                   isUsedBehind(op->getResult(0), wait);
      if (isEnd)
        ends.push_back(op->getResult(0));
      if (isEnd || covered.contains(op))
        for (Value operand : op->getOperands())
          if (Operation *source = operand.getDefiningOp())
            covered.insert(source);
    }
    return SmallVector<Value>(llvm::reverse(ends));
  }

private:
  hop::MmaWaitOp wait;
  SmallVector<Operation *> ops;
};

struct PinWorkPass : tessera::impl::PinWorkBase<PinWorkPass> {
  void runOnOperation() override {
    const tile::ScheduleFields &schedule = getOperation().getSchedule().getFields();
    if (failed(schedule.require(getOperation(), &tile::ScheduleFields::work)))
      return signalPassFailure();
    if (*schedule.work == tile::WorkKind::pinned)
      getOperation().walk(pinWaits);
    bool leads = schedule.leadsAlone();
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      if (std::optional<uint64_t> registers = role.getRegisters(); registers && !role.isElected())
        role.walk([&](hop::MmaIssueOp issue) { pin(issue, *registers, leads); });
  }

  static void pinWaits(Block *block) {
    hop::MmaWaitOp before;
    for (hop::MmaWaitOp wait : block->getOps<hop::MmaWaitOp>()) {
      if (before)
        wait.getBehindMutable().assign(WorkUnderProduct(before, wait).ends());
      before = wait;
    }
  }

  /// Registers of the tiles that live across `issue` in its block, without its accumulator.
  static int64_t livingAcross(hop::MmaIssueOp issue) {
    llvm::SetVector<Value> living;
    auto add = [&](Value value) {
      bool isOwn = value == issue.getAcc() && value.hasOneUse();
      if (!isOwn && hop::isUsedFrom(value, issue))
        living.insert(value);
    };
    for (Value argument : issue->getBlock()->getArguments())
      add(argument);
    for (Operation *op = issue->getPrevNode(); op; op = op->getPrevNode())
      if (!hop::isFree(op))
        llvm::for_each(op->getResults(), add);
    return registersOf(living);
  }

  static void pin(hop::MmaIssueOp issue, int64_t registers, bool leads) {
    WorkBeforeProduct work(issue, leads);
    Value acc = issue.getAcc();
    bool isNew = !acc || (acc.getDefiningOp() && !isa<hop::FlightType>(acc.getType()));
    if (!isNew || work.isNeeded() || !work.followsLastWait())
      return;
    llvm::SetVector<Value> results = work.results();
    int64_t excess = registersOf(work.sources()) - registersOf(results),
            needed = livingAcross(issue) + hop::registersOf(issue.getFlight().getType()) +
                     std::max<int64_t>(excess, 0) + kBelowAccumulators;
    if (results.empty() || needed <= registers)
      return;
    // What the accumulator begins with is loaded behind it.
    OpBuilder builder(&*work.end());
    hop::PinOp::create(builder, issue.getLoc(), work.resultsAtEnd().getArrayRef());
  }
};

} // namespace
