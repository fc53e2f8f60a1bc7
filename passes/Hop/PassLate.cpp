//===- PassLate.cpp - Tickets passed on under the next copy ---------------===//
//
// Implements hop-pass-late. See AheadPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/DenseSet.h"
#include <array>

namespace tessera {
#define GEN_PASS_DEF_PASSLATE
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// What a thread does in each iteration of a loop: it waits for a ticket, copies once or several
/// times, and passes the ticket on.
struct Step {
  scf::ForOp loop;
  hop::BulkStoreOp firstCopy;
  hop::TicketPassOp pass;
};

/// The step of `loop`, if its ticket may be passed on late.
std::optional<Step> findStep(scf::ForOp loop) {
  Step step{loop, {}, {}};
  hop::TicketWaitOp wait;
  for (Operation &op : *loop.getBody()) {
    if (auto found = dyn_cast<hop::TicketWaitOp>(op)) {
      if (wait)
        return std::nullopt;
      wait = found;
    } else if (auto copy = dyn_cast<hop::BulkStoreOp>(op)) {
      if (!wait || step.pass)
        return std::nullopt;
      step.firstCopy = step.firstCopy ? step.firstCopy : copy;
    } else if (auto pass = dyn_cast<hop::TicketPassOp>(op)) {
      if (!step.firstCopy || step.pass || !pass.getLate() || pass.getCondition())
        return std::nullopt;
      step.pass = pass;
    }
  }
  return step.pass ? std::optional(step) : std::nullopt;
}

/// A ticket that has not been passed on: its number, what it becomes, and whether there is one.
using Pending = std::array<Value, 3>;

/// Lets each step of a nest of loops pass on what the step before it has left.
class LateSteps {
public:
  explicit LateSteps(scf::ForOp nest);

  /// Whether the tickets of all steps are of the same tiles, so that one is like the other.
  bool areAlike() const { return alike && !steps.empty(); }
  void write();

private:
  Pending carry(scf::ForOp loop, Pending pending);
  Pending writeStep(const Step &step, Pending pending);
  void passOn(Pending pending, int64_t inFlight);

  scf::ForOp nest;
  IRRewriter rewriter;
  llvm::DenseSet<Operation *> around; ///< loops with steps in them
  SmallVector<Step> steps;
  bool alike = true;
  Location loc;
  Value view;
  DenseI64ArrayAttr tile;
};

} // namespace

LateSteps::LateSteps(scf::ForOp nest)
    : nest(nest), rewriter(nest.getContext()), loc(nest.getLoc()) {
  nest.walk([&](scf::ForOp loop) {
    std::optional<Step> step = findStep(loop);
    if (!step)
      return;
    steps.push_back(*step);
    hop::TicketPassOp pass = step->pass;
    alike &= !view || (view == pass.getView() && tile == pass.getTileAttr());
    view = pass.getView();
    tile = pass.getTileAttr();
    loc = pass.getLoc();
    for (Operation *op = loop; op != nest; op = op->getParentOp()) {
      alike &= isa<scf::ForOp>(op->getParentOp());
      around.insert(op->getParentOp());
    }
  });
}

void LateSteps::passOn(Pending pending, int64_t inFlight) {
  auto [number, value, isPending] = pending;
  hop::TicketPassOp::create(rewriter, loc, view, number, tile, value, isPending, /*late=*/false,
                            inFlight);
}

/// Passes on the ticket of the step before when the first copy of `step` is on its way; returns
/// its own.
Pending LateSteps::writeStep(const Step &step, Pending pending) {
  auto [loop, copy, pass] = step;
  rewriter.setInsertionPointAfter(copy);
  passOn(pending, /*inFlight=*/1);
  hop::BulkReadWaitOp::create(rewriter, loc);
  copy.setInFlight(1);
  rewriter.setInsertionPoint(pass);
  Value yes = arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(true));
  Pending own = {pass.getNumber(), pass.getValue(), yes};
  rewriter.eraseOp(pass);
  return own;
}

/// Hands `pending` through the steps of `loop`; returns what is left behind it.
Pending LateSteps::carry(scf::ForOp loop, Pending pending) {
  bool isAround = around.contains(loop);
  auto last = [](ValueRange values) {
    values = values.take_back(3);
    return Pending{values[0], values[1], values[2]};
  };
  rewriter.setInsertionPoint(loop);
  auto same = [](OpBuilder &, Location, ArrayRef<BlockArgument> arguments) {
    return SmallVector<Value>(arguments);
  };
  auto replaced = loop.replaceWithAdditionalYields(rewriter, pending,
                                                   /*replaceInitOperandUsesInLoop=*/false, same);
  auto carrying = cast<scf::ForOp>(replaced->getOperation());
  Pending now = last(carrying.getRegionIterArgs());
  if (!isAround)
    now = writeStep(*findStep(carrying), now);
  else
    for (scf::ForOp inner : llvm::to_vector(carrying.getBody()->getOps<scf::ForOp>()))
      if (around.contains(inner) || findStep(inner))
        now = carry(inner, now);
  Operation *yield = carrying.getBody()->getTerminator();
  yield->setOperands(yield->getNumOperands() - 3, 3, now);
  return last(carrying.getResults());
}

void LateSteps::write() {
  rewriter.setInsertionPoint(nest);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value no = arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(false));
  Pending left = carry(nest, {zero, zero, no});
  rewriter.setInsertionPointAfterValue(left[0]);
  passOn(left, /*inFlight=*/0);
}

namespace {

struct PassLatePass : tessera::impl::PassLateBase<PassLatePass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> nests;
    for (hop::RoleOp role : getOperation().getBody().getOps<hop::RoleOp>())
      if (role.isElected())
        role.walk([&](scf::ForOp loop) {
          if (!isa<scf::ForOp>(loop->getParentOp()))
            nests.push_back(loop);
        });
    for (scf::ForOp nest : nests)
      if (LateSteps late(nest); late.areAlike())
        late.write();
  }
};

} // namespace
