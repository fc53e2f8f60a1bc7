//===- PeekTickets.cpp - The next ticket while copies are written ---------===//
//
// Implements hop-peek-tickets. See AheadPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Hop/FutureValues.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_PEEKTICKETS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// The only operation of its kind in a block; null where there are none or several.
template <typename Op>
Op onlyOne(Block &block) {
  auto found = block.getOps<Op>();
  return llvm::range_size(found) == 1 ? *found.begin() : Op();
}

struct PeekTicketsPass : tessera::impl::PeekTicketsBase<PeekTicketsPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    for (hop::RoleOp role : getOperation().getBody().getOps<hop::RoleOp>())
      if (role.isElected())
        role.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    llvm::for_each(loops, peek);
  }

private:
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
    Value number =
        FutureValues(loop, rewriter, next, loop.getRegionIterArgs()).get(wait.getNumber(), 0);
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
};

} // namespace
