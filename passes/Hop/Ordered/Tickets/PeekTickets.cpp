//===- PeekTickets.cpp - The next ticket while copies are written ---------===//
//
// A step of hop-schedule-tickets.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Hop/FutureValues.h"
#include "passes/Hop/Ordered/Tickets/Tickets.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The only operation of its kind in a block; null where there are none or several.
template <typename Op>
Op onlyOne(Block &block) {
  auto found = block.getOps<Op>();
  return llvm::range_size(found) == 1 ? *found.begin() : Op();
}

/// What `loop` carries in its next step, and in this one where it is the last; null for what takes
/// more than index arithmetic.
SmallVector<Value> carriedLater(scf::ForOp loop, Value isRun, OpBuilder &builder) {
  FutureValues now(loop, builder, loop.getInductionVar(), loop.getRegionIterArgs());
  SmallVector<Value> carried;
  for (auto [argument, yielded] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    Value later = argument.getType().isIndex() ? now.get(yielded, 0) : Value();
    if (later)
      later = arith::SelectOp::create(builder, loop.getLoc(), isRun, later, argument);
    carried.push_back(later);
  }
  return carried;
}

} // namespace

static void peek(scf::ForOp loop) {
  auto wait = onlyOne<hop::TicketWaitOp>(*loop.getBody());
  auto pass = onlyOne<hop::TicketPassOp>(*loop.getBody());
  if (!wait || !pass || !wait->isBeforeInBlock(pass) || loop.getUnsignedCmp())
    return;
  Location loc = pass.getLoc();
  IRRewriter rewriter(pass);
  // Behind the last step there is none.
  Value next = arith::AddIOp::create(rewriter, loc, loop.getInductionVar(), loop.getStep());
  Value isRun =
      arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, next, loop.getUpperBound());
  next = arith::SelectOp::create(rewriter, loc, isRun, next, loop.getInductionVar());
  SmallVector<Value> carried = carriedLater(loop, isRun, rewriter);
  Value number = FutureValues(loop, rewriter, next, carried).get(wait.getNumber(), 0);
  if (!number)
    return;
  Value ticket = hop::TicketPeekOp::create(rewriter, loc, rewriter.getIndexType(), pass.getView(),
                                           number, pass.getTileAttr());
  rewriter.setInsertionPoint(loop);
  Value none = arith::ConstantIndexOp::create(rewriter, loc, -1);
  auto yield = [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
    return SmallVector<Value>{ticket};
  };
  auto replaced = loop.replaceWithAdditionalYields(rewriter, none,
                                                   /*replaceInitOperandUsesInLoop=*/false, yield);
  auto carrying = cast<scf::ForOp>(replaced->getOperation());
  wait.getPeekedMutable().assign(carrying.getRegionIterArgs().back());
}

void tessera::peekTickets(hop::KernelOp kernel) {
  SmallVector<scf::ForOp> loops;
  for (hop::RoleOp role : kernel.getBody().getOps<hop::RoleOp>())
    if (role.isElected())
      role.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  llvm::for_each(loops, peek);
}
