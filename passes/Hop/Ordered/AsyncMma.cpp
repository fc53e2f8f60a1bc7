//===- AsyncMma.cpp - Asynchronous matrix products ------------------------===//
//
// Implements hop-async-mma. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/PtxasRegisters.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Hop/TileRegisters.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_ASYNCMMA
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// The largest operand of wgmma.wait_group that is known to be accepted (PTX ISA 9.7.15.7.3).
constexpr int64_t mostPending = 7;

/// Whether `op` packs a tile that becomes a register operand of a product, here or
/// through a loop that carries it.
bool packsOperand(Operation *op) {
  return isa<arith::TruncFOp, hop::RearrangeOp>(op) &&
         isa<RankedTensorType>(op->getResult(0).getType()) &&
         llvm::any_of(op->getUsers(), [](Operation *user) {
           return isa<hop::MmaOp, hop::MmaIssueOp, scf::YieldOp>(user) ||
                  (isa<hop::RearrangeOp>(user) && packsOperand(user));
         });
}

/// Whether `op` is a conditional that does nothing but start loads.
bool startsLoads(Operation *op) {
  auto conditional = dyn_cast<scf::IfOp>(op);
  return conditional && !conditional.elseBlock() && conditional.getNumResults() == 0 &&
         llvm::all_of(conditional.thenBlock()->without_terminator(), [](Operation &inner) {
           return isa<hop::PipeLoadOp>(inner) || isPure(&inner);
         });
}

/// The slot that a shared operand is part of.
Value slotOf(Value shared) {
  while (auto slice = shared.getDefiningOp<hop::SliceOp>())
    shared = slice.getSource();
  return shared;
}

/// A product that has been issued and not waited for.
struct InFlight {
  hop::MmaIssueOp issue;
  Value result;                      ///< what the synchronous product defined
  SmallVector<Value> slots;          ///< shared memory it reads
  SmallVector<Value> kept;           ///< register operands it reads
  SmallVector<Operation *> releases; ///< releases that wait for it
  SmallVector<hop::MmaOp> replaced;  ///< the synchronous products, in order
};

/// Rewrites the products of one block, in program order.
class BlockRewriter {
public:
  /// With `copiesOperands` a product multiplies a copy of an operand in registers that is read
  /// while it is in flight; otherwise that waits for it.
  /// With `arePacksPlaced` the plan of the loop has put the packs of operands. `byElements`: a
  /// thread makes the elements of all operands at once.
  /// A thread of the role has `registers`, where that is known.
  BlockRewriter(Block &block, bool copiesOperands, bool arePacksPlaced, bool byElements,
                std::optional<uint64_t> registers)
      : block(block), copiesOperands(copiesOperands), arePacksPlaced(arePacksPlaced),
        byElements(byElements), registers(registers) {}

  void run() {
    if (!arePacksPlaced)
      sinkPacks();
    for (Operation &op : llvm::make_early_inc_range(block))
      visit(&op);
  }

private:
  /// Whether `first` is behind a product, and none before it multiplies registers: then packing
  /// holds up nothing, and behind the product twice as many registers would live across it. Of what
  /// is made element by element, a product between makes no difference.
  bool packsInTime(Operation *pack, Operation *first) {
    bool isBehind = false;
    for (Operation *op = &block.front(); op != first; op = op->getNextNode())
      if (auto mma = dyn_cast<hop::MmaOp>(op)) {
        if (!isa<hop::SharedType>(mma.getA().getType()) &&
            !(byElements && pack->isBeforeInBlock(op)))
          return false;
        isBehind |= pack->isBeforeInBlock(op);
      }
    return isBehind;
  }

  /// Packs as late as possible: right before the first use in this block.
  void sinkPacks() {
    SmallVector<Operation *> packs;
    for (Operation &op : block)
      if (packsOperand(&op))
        packs.push_back(&op);
    for (Operation *pack : llvm::reverse(packs)) {
      Operation *first = nullptr;
      for (Operation *user : pack->getUsers()) {
        Operation *ancestor = block.findAncestorOpInBlock(*user);
        if (!first || ancestor->isBeforeInBlock(first))
          first = ancestor;
      }
      if (first && !packsInTime(pack, first))
        pack->moveBefore(first);
    }
  }

  void visit(Operation *op) {
    if (auto mma = dyn_cast<hop::MmaOp>(op))
      return issue(mma);
    if (auto release = dyn_cast<hop::PipeReleaseOp>(op))
      return defer(release);
    if (isa<hop::PipeWaitOp, hop::PipePeekOp>(op))
      waitFor(lastHoldingPipe(op), op);
    // Nothing stays in flight over a branch: ptxas serialises what it cannot see the end of
    // (C7514). It sees through one around the start of a load.
    if (startsLoads(op)) {
      waitFor(lastHolding(op), op);
      return;
    }
    if (op->getNumRegions() != 0 || op->hasTrait<OpTrait::IsTerminator>()) {
      waitFor(inFlight.size(), op);
    } else {
      waitFor(lastUsedBy(op), op);
      if (auto stage = dyn_cast<hop::StageOp>(op))
        waitFor(lastReading(slotOf(stage.getDestination())), op);
      if (isa<hop::RoleSyncOp>(op))
        waitFor(lastReadingWhatIsWritten(op), op);
      if (auto transpose = dyn_cast<hop::TransposeOp>(op))
        waitFor(lastReading(slotOf(transpose.getDestination())), op);
      if (packsOperand(op))
        waitFor(lastWithRegisters(), op);
    }
    for (Region &region : op->getRegions())
      for (Block &inner : region)
        BlockRewriter(inner, copiesOperands, arePacksPlaced, byElements, registers).run();
  }

  /// One past the last flight whose result or whose operand in registers `op` uses: what is no
  /// wgmma touches neither before the wait (PTX ISA 9.7.15.7.3).
  size_t lastUsedBy(Operation *op) {
    size_t end = 0;
    for (auto [i, flight] : llvm::enumerate(inFlight))
      for (Value used : op->getOperands()) {
        bool isKept = llvm::is_contained(flight.kept, used);
        if (isKept && copiesOperands)
          flight.issue.setCopiesA(true);
        else if (isKept || used == flight.result)
          end = i + 1;
      }
    return end;
  }

  /// One past the last flight that reads a slot of a pipe which `op` loads into, and which may have
  /// to be released first.
  size_t lastHolding(Operation *op) const {
    size_t end = 0;
    op->walk([&](hop::PipeLoadOp load) {
      for (auto [i, flight] : llvm::enumerate(inFlight))
        for (Value slot : flight.slots)
          if (auto wait = slot.getDefiningOp<hop::PipeWaitOp>();
              wait && wait.getPipe() == load.getPipe())
            end = std::max(end, i + 1);
    });
    return end;
  }

  /// One past the last flight that reads `shared`, which is about to be written again.
  size_t lastReading(Value shared) const {
    size_t end = 0;
    for (auto [i, flight] : llvm::enumerate(inFlight))
      if (llvm::is_contained(flight.slots, shared))
        end = i + 1;
    return end;
  }

  /// One past the last flight that reads what threads write once they have met at `sync`.
  size_t lastReadingWhatIsWritten(Operation *sync) const {
    size_t end = 0;
    for (Operation *op = sync->getNextNode(); op && !isa<hop::RoleSyncOp>(op);
         op = op->getNextNode())
      if (auto stage = dyn_cast<hop::StageOp>(op))
        end = std::max(end, lastReading(slotOf(stage.getDestination())));
    return end;
  }

  size_t lastWithRegisters() const {
    size_t end = 0;
    for (auto [i, flight] : llvm::enumerate(inFlight))
      if (!flight.kept.empty())
        end = i + 1;
    return end;
  }

  /// One past the last flight that must end before `wait`: flights hold slots of its pipe, and one
  /// has to be left for it and, if the pipe has so many, one for the load after it.
  size_t lastHoldingPipe(Operation *wait) const {
    auto pipe = cast<TypedValue<hop::PipeType>>(wait->getOperand(0));
    int64_t held = 0, slots = pipe.getType().getSlots();
    for (size_t i = inFlight.size(); i > 0; --i) {
      held += llvm::count_if(inFlight[i - 1].releases, [&](Operation *release) {
        return cast<hop::PipeReleaseOp>(release).getPipe() == pipe;
      });
      if (held > 0 && held + 1 >= slots)
        return i;
    }
    return 0;
  }

  void issue(hop::MmaOp mma) {
    InFlight flight;
    Value acc = mma.getAcc();
    auto *chained = llvm::find_if(inFlight, [&](InFlight &other) {
      return other.result == acc && acc.hasOneUse() && &other == &inFlight.back();
    });
    for (auto [i, other] : llvm::enumerate(llvm::ArrayRef<InFlight>(inFlight)))
      if (other.result == mma.getA() || (other.result == acc && chained == inFlight.end())) {
        waitFor(i + 1, mma);
        return issue(mma);
      }
    if (size_t count = lastWithRegisters();
        count && chained == inFlight.end() && !fitsBeside(mma)) {
      waitFor(count, mma);
      return issue(mma);
    }
    if (chained != inFlight.end()) {
      // The accumulator is handed on in flight; its end is the end of both.
      acc = chained->issue.getFlight();
      flight = *chained;
      inFlight.pop_back();
    }
    OpBuilder builder(mma);
    auto type = hop::FlightType::get(mma.getContext(), cast<RankedTensorType>(mma.getType()));
    auto b = cast<TypedValue<hop::SharedType>>(mma.getB());
    flight.issue = hop::MmaIssueOp::create(builder, mma.getLoc(), type, mma.getA(), b, acc,
                                           mma.getTransposeA(), mma.getTransposeB(),
                                           mma.getInAccumulatorOrder(), /*copies_a=*/false);
    flight.result = mma.getResult();
    flight.slots.push_back(slotOf(mma.getB()));
    if (isa<hop::SharedType>(mma.getA().getType()))
      flight.slots.push_back(slotOf(mma.getA()));
    else
      flight.kept.push_back(mma.getA());
    flight.replaced.push_back(mma);
    inFlight.push_back(std::move(flight));
  }

  /// Whether the role has the registers for `mma` beside what lives across it and the operands of
  /// those in flight. An accumulator in its place needs none.
  bool fitsBeside(hop::MmaOp mma) {
    Value acc = mma.getAcc();
    bool isInPlace =
        acc && acc.hasOneUse() && (isa<BlockArgument>(acc) || acc.getDefiningOp<hop::MmaOp>());
    if (isInPlace || !registers)
      return true;
    llvm::SetVector<Value> living;
    auto add = [&](Value value) {
      if (hop::isUsedFrom(value, mma))
        living.insert(value);
    };
    llvm::for_each(block.getArguments(), add);
    for (Operation *op = mma->getPrevNode(); op; op = op->getPrevNode())
      if (!hop::isFree(op))
        llvm::for_each(op->getResults(), add);
    for (InFlight &flight : inFlight)
      living.insert(flight.kept.begin(), flight.kept.end());
    int64_t needed = hop::registersOf(mma.getType()) + kBelowAccumulators;
    for (Value value : living)
      needed += hop::registersOf(value.getType());
    return needed <= int64_t(*registers);
  }

  void defer(hop::PipeReleaseOp release) {
    for (InFlight &flight : llvm::reverse(inFlight))
      if (llvm::is_contained(flight.slots, release.getTile())) {
        flight.releases.push_back(release);
        return;
      }
  }

  /// Waits before `op` for the first `count` flights.
  void waitFor(size_t count, Operation *op) {
    if (count == 0)
      return;
    OpBuilder builder(op);
    SmallVector<Value> flights, results;
    llvm::SetVector<Value> kept;
    SmallVector<Type> types;
    SmallVector<Operation *> releases;
    for (InFlight &flight : llvm::MutableArrayRef<InFlight>(inFlight).take_front(count)) {
      flights.push_back(flight.issue.getFlight());
      types.push_back(flight.issue.getFlight().getType().getTile());
      results.push_back(flight.result);
      kept.insert(flight.kept.begin(), flight.kept.end());
      llvm::append_range(releases, flight.releases);
    }
    int64_t pending = std::min<int64_t>(inFlight.size() - count, mostPending);
    auto wait = hop::MmaWaitOp::create(builder, op->getLoc(), types, flights, kept.getArrayRef(),
                                       /*behind=*/ValueRange(), pending);
    for (auto [result, tile] : llvm::zip(results, wait.getTiles()))
      result.replaceAllUsesWith(tile);
    for (InFlight &flight : llvm::MutableArrayRef<InFlight>(inFlight).take_front(count))
      for (hop::MmaOp mma : llvm::reverse(flight.replaced))
        mma.erase();
    Operation *position = wait;
    for (Operation *release : releases) {
      release->moveAfter(position);
      position = release;
    }
    inFlight.erase(inFlight.begin(), inFlight.begin() + count);
  }

  Block &block;
  bool copiesOperands, arePacksPlaced, byElements;
  std::optional<uint64_t> registers;
  SmallVector<InFlight, 4> inFlight;
};

struct AsyncMmaPass : tessera::impl::AsyncMmaBase<AsyncMmaPass> {
  void runOnOperation() override {
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      runOnRole(role, getOperation().getSchedule().getFields());
  }

  void runOnRole(hop::RoleOp role, const tile::ScheduleFields &schedule) {
    // A role has no terminator that would end its last flights.
    Block &body = role.getBody().front();
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    Operation *end = scf::YieldOp::create(builder, role.getLoc());
    BlockRewriter(body, schedule.keepsOperands(), schedule.leadsAlone(),
                  schedule.work == tile::WorkKind::elements, role.getRegisters())
        .run();
    end->erase();
  }
};

} // namespace
