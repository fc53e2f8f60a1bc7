//===- JoinLoops.cpp - One loop for pieces that do the same ---------------===//
//
// A step of hop-schedule-tickets.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Hop/Ordered/Tickets/Tickets.h"

using namespace mlir;
using namespace tessera;

static bool areAlike(scf::ForOp a, scf::ForOp b) {
  return matchPattern(a.getStep(), m_One()) && matchPattern(b.getStep(), m_One()) &&
         a.getNumResults() == 0 && b.getNumResults() == 0 && !a.getUnsignedCmp() &&
         !b.getUnsignedCmp() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getRegion(), &b.getRegion(),
                                                    OperationEquivalence::Flags::IgnoreLocations);
}

/// Whether `value` is the greater of `least` and something.
static bool isAtLeast(Value value, Value least) {
  auto greater = value.getDefiningOp<arith::MaxSIOp>();
  return greater && llvm::is_contained(greater->getOperands(), least);
}

/// Whether `between` is not below `first` unless `past` is. Then both loops are empty.
static bool isBehind(Value between, Value first, Value past) {
  if (isAtLeast(between, first))
    return true;
  auto least = between.getDefiningOp<arith::MinSIOp>();
  return least && ((least.getLhs() == past && isAtLeast(least.getRhs(), first)) ||
                   (least.getRhs() == past && isAtLeast(least.getLhs(), first)));
}

/// The loop behind `loop`, if only scalars are computed in between.
static scf::ForOp nextLoop(scf::ForOp loop) {
  Operation *next = loop->getNextNode();
  while (next && isPure(next) && next->getNumRegions() == 0)
    next = next->getNextNode();
  return dyn_cast_or_null<scf::ForOp>(next);
}

/// [a, b) and then [b, c) are [min(a, b), max(b, c)), whichever of them is empty.
static void joinNext(scf::ForOp loop) {
  scf::ForOp next = nextLoop(loop);
  Value first = loop.getLowerBound(), between = loop.getUpperBound();
  if (!next || next.getLowerBound() != between || !areAlike(loop, next))
    return;
  // A loop without results has nothing that the scalars behind it are made of.
  while (loop->getNextNode() != next)
    loop->getNextNode()->moveBefore(loop);
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Value past = next.getUpperBound();
  if (!isBehind(between, first, past))
    first = arith::MinSIOp::create(builder, loc, first, between);
  if (!isNonNegative(IndexTerms().add(past, 1).add(between, -1)))
    past = arith::MaxSIOp::create(builder, loc, between, past);
  loop.setLowerBound(first);
  loop.setUpperBound(past);
  next.erase();
}

void tessera::joinLoops(hop::KernelOp kernel) {
  SmallVector<scf::ForOp> loops;
  for (hop::RoleOp role : kernel.getBody().getOps<hop::RoleOp>())
    if (role.isElected())
      role.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  // The last pieces first, so that a loop that goes is one that has been looked at.
  for (scf::ForOp loop : llvm::reverse(loops))
    joinNext(loop);
}
