//===- PassLate.cpp - Tickets passed on under the next copy ---------------===//
//
// Implements hop-pass-late. See AheadPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "passes/Hop/FutureValues.h"
#include "passes/Hop/HopPasses.h"

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
  return step.pass && !loop.getUnsignedCmp() ? std::optional(step) : std::nullopt;
}

/// The last iteration of `loop`, if it has any.
Value lastOf(scf::ForOp loop, OpBuilder &builder) {
  Location loc = loop.getLoc();
  Value step = loop.getStep(), end = loop.getUpperBound();
  if (matchPattern(step, m_One()))
    return arith::SubIOp::create(builder, loc, end, step);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value last = arith::SubIOp::create(builder, loc, end, one);
  Value way = arith::SubIOp::create(builder, loc, last, loop.getLowerBound());
  Value beyond = arith::RemUIOp::create(builder, loc, way, step);
  return arith::SubIOp::create(builder, loc, last, beyond);
}

/// The number and the value of a ticket.
struct Ticket {
  Value number, value;
};

/// What `step` passes on in iteration `at`; nothing where that takes more than index arithmetic.
std::optional<Ticket> ticketOf(const Step &step, Value at, OpBuilder &builder) {
  // What the loop carried to that iteration is not known.
  FutureValues values(step.loop, builder, at, {});
  hop::TicketPassOp pass = step.pass;
  Ticket ticket{values.get(pass.getNumber(), 0), values.get(pass.getValue(), 0)};
  return ticket.number && ticket.value ? std::optional(ticket) : std::nullopt;
}

void passLate(const Step &step) {
  auto [loop, copy, pass] = step;
  Location loc = pass.getLoc();
  OpBuilder within(loop.getContext()), behind(loop.getContext());
  within.setInsertionPointAfter(copy);
  behind.setInsertionPointAfter(loop);
  Value first = loop.getLowerBound(), index = loop.getInductionVar();
  Value before = arith::SubIOp::create(within, loc, index, loop.getStep());
  Value hasBefore = arith::CmpIOp::create(within, loc, arith::CmpIPredicate::sgt, index, first);
  Value hasAny =
      arith::CmpIOp::create(behind, loc, arith::CmpIPredicate::slt, first, loop.getUpperBound());
  std::optional<Ticket> ofBefore = ticketOf(step, before, within);
  std::optional<Ticket> ofLast = ticketOf(step, lastOf(loop, behind), behind);
  if (!ofBefore || !ofLast)
    return;
  auto passOn = [&](Ticket ticket, Value isRun, int64_t inFlight, OpBuilder &builder) {
    hop::TicketPassOp::create(builder, loc, pass.getView(), ticket.number, pass.getTile(),
                              ticket.value, isRun, /*late=*/false, inFlight);
  };
  passOn(*ofBefore, hasBefore, /*inFlight=*/1, within);
  hop::BulkReadWaitOp::create(within, loc);
  copy.setInFlight(1);
  passOn(*ofLast, hasAny, /*inFlight=*/0, behind);
  pass.erase();
}

struct PassLatePass : tessera::impl::PassLateBase<PassLatePass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    for (hop::RoleOp role : getOperation().getBody().getOps<hop::RoleOp>())
      if (role.isElected())
        role.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (std::optional<Step> step = findStep(loop))
        passLate(*step);
  }
};

} // namespace
