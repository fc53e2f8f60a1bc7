//===- PinWork.cpp - Work stays before products that need its registers ----===//
//
// Implements hop-pin-work. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Hop/TileRegisters.h"
#include "passes/Schedule/CostModel.h"
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

/// Whether something at `op` or behind it in its block reads `value`.
bool isUsedFrom(Value value, Operation *op) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && !ancestor->isBeforeInBlock(op);
  });
}

/// What is computed without being a tile of its own: masks, and what scalars are spread to.
bool isFree(Operation *op) {
  return isa<tile::SplatOp, tile::IotaOp, tile::BroadcastOp>(op) ||
         op->hasTrait<OpTrait::ConstantLike>() || llvm::all_of(op->getResultTypes(), [](Type type) {
           auto tile = dyn_cast<RankedTensorType>(type);
           return tile && tile.getElementType().isInteger();
         });
}

/// The elementwise work of a block between the last wait for products and `issue`.
class Work {
public:
  /// With `fromStep` a step of a loop begins behind a wait for all products.
  Work(hop::MmaIssueOp issue, bool fromStep) : issue(issue) {
    for (Operation *op = issue->getPrevNode(); op; op = op->getPrevNode()) {
      wait = dyn_cast<hop::MmaWaitOp>(op);
      if (wait || isa<hop::MmaIssueOp>(op) || op->getNumRegions() != 0)
        break;
      beginsStep = fromStep && op == &op->getBlock()->front() &&
                   isa<scf::ForOp>(op->getBlock()->getParentOp());
      if (isPure(op) && !isFree(op) && op->getNumResults() == 1 &&
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

  /// The place behind the work.
  Block::iterator end() { return std::next(ops.front()->getIterator()); }

  /// The results that are read at the product or behind it.
  llvm::SetVector<Value> results() {
    llvm::SetVector<Value> values;
    for (Operation *op : llvm::reverse(ops))
      if (isUsedFrom(op->getResult(0), issue))
        values.insert(op->getResult(0));
    return values;
  }

  /// Tiles of the wait that the work reads for the last time.
  llvm::SetVector<Value> sources() {
    llvm::SetVector<Value> values;
    for (Operation *op : ops)
      for (Value operand : op->getOperands())
        if (isWaitedFor(operand) && !isUsedFrom(operand, issue))
          values.insert(operand);
    return values;
  }

private:
  bool isWaitedFor(Value tile) {
    if (wait)
      return tile.getDefiningOp() == wait;
    auto argument = dyn_cast<BlockArgument>(tile);
    return argument && argument.getOwner() == issue->getBlock();
  }

  hop::MmaIssueOp issue;
  hop::MmaWaitOp wait;
  bool beginsStep = false;
  SmallVector<Operation *> ops; ///< the last one first
};

struct PinWorkPass : tessera::impl::PinWorkBase<PinWorkPass> {
  void runOnOperation() override {
    bool leads = getOperation().getSchedule().getFields().leadsAlone();
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      if (std::optional<uint64_t> registers = role.getRegisters(); registers && !role.isElected())
        role.walk([&](hop::MmaIssueOp issue) { pin(issue, *registers, leads); });
  }

  /// Registers of the tiles that live across `issue` in its block, without its accumulator.
  static int64_t livingAcross(hop::MmaIssueOp issue) {
    llvm::SetVector<Value> living;
    auto add = [&](Value value) {
      bool isOwn = value == issue.getAcc() && value.hasOneUse();
      if (!isOwn && isUsedFrom(value, issue))
        living.insert(value);
    };
    for (Value argument : issue->getBlock()->getArguments())
      add(argument);
    for (Operation *op = issue->getPrevNode(); op; op = op->getPrevNode())
      if (!isFree(op))
        llvm::for_each(op->getResults(), add);
    return registersOf(living);
  }

  static void pin(hop::MmaIssueOp issue, int64_t registers, bool leads) {
    Work work(issue, leads);
    Value acc = issue.getAcc();
    bool isNew = !acc || (acc.getDefiningOp() && !isa<hop::FlightType>(acc.getType()));
    if (!isNew || work.isNeeded() || !work.followsLastWait())
      return;
    llvm::SetVector<Value> results = work.results();
    int64_t excess = registersOf(work.sources()) - registersOf(results),
            needed = livingAcross(issue) + hop::registersOf(issue.getFlight().getType()) +
                     std::max<int64_t>(excess, 0) + h200CostModel.belowAccumulators;
    if (results.empty() || needed <= registers)
      return;
    // What the accumulator begins with is loaded behind it.
    OpBuilder builder(&*work.end());
    hop::PinOp::create(builder, issue.getLoc(), results.getArrayRef());
  }
};

} // namespace
