//===- CarrySums.cpp - Sums that a loop adds to one place -----------------===//
//
// Implements tile-carry-sums. See SumPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILECARRYSUMS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// What `op`, a store, adds to memory: its first operand.
static OpOperand &addedOf(Operation *op) { return op->getOpOperand(0); }

/// Whether `op` adds a tile of rank 1 to a place that is the same in all iterations of `loop`.
static bool addsToOnePlace(Operation *op, scf::ForOp loop) {
  auto type = addsToView(op) ? dyn_cast<RankedTensorType>(addedOf(op).get().getType()) : nullptr;
  return type && type.getRank() == 1 &&
         llvm::all_of(llvm::drop_begin(op->getOperands()),
                      [&](Value operand) { return loop.isDefinedOutsideOfLoop(operand); });
}

/// What `op` adds without a factor that `loop` does not change, and that factor, null for 1.
static std::pair<Value, Value> divideAdded(Operation *op, scf::ForOp loop) {
  Value added = addedOf(op).get();
  auto product = added.getDefiningOp<arith::MulFOp>();
  if (!product)
    return {added, {}};
  auto stays = [&](Value factor) {
    auto splat = factor.getDefiningOp<SplatOp>();
    return loop.isDefinedOutsideOfLoop(splat ? splat.getSource() : factor);
  };
  if (stays(product.getLhs()))
    return {product.getRhs(), product.getLhs()};
  return stays(product.getRhs()) ? std::pair(product.getLhs(), product.getRhs())
                                 : std::pair(added, Value());
}

/// Lets `loop` carry the sum of what each of `additions` adds, and moves them behind it. The loop
/// that takes its place; null where there is none.
static scf::ForOp carry(scf::ForOp loop, ArrayRef<Operation *> additions) {
  IRRewriter rewriter(loop);
  SmallVector<Value> zeros;
  SmallVector<std::pair<Value, Value>> parts;
  for (Operation *op : additions) {
    parts.push_back(divideAdded(op, loop));
    auto type = cast<RankedTensorType>(addedOf(op).get().getType());
    zeros.push_back(arith::ConstantOp::create(rewriter, op->getLoc(),
                                              cast<TypedAttr>(rewriter.getZeroAttr(type))));
  }
  auto addAll = [&](OpBuilder &builder, Location, ArrayRef<BlockArgument> sums) {
    SmallVector<Value> yielded;
    for (auto [op, sum, part] : llvm::zip_equal(additions, sums, parts))
      yielded.push_back(arith::AddFOp::create(builder, op->getLoc(), sum, part.first).getResult());
    return yielded;
  };
  FailureOr<LoopLikeOpInterface> carried = loop.replaceWithAdditionalYields(
      rewriter, zeros, /*replaceInitOperandUsesInLoop=*/false, addAll);
  if (failed(carried))
    return {};
  auto result = cast<scf::ForOp>(carried->getOperation());
  Operation *behind = result;
  for (auto [op, sum, part] :
       llvm::zip_equal(additions, result.getResults().take_back(zeros.size()), parts)) {
    op->moveAfter(behind);
    behind = op;
    rewriter.setInsertionPoint(op);
    Value total = sum;
    if (Value factor = part.second) {
      if (auto splat = factor.getDefiningOp<SplatOp>())
        factor = SplatOp::create(rewriter, op->getLoc(), factor.getType(), splat.getSource());
      total = arith::MulFOp::create(rewriter, op->getLoc(), total, factor);
    }
    addedOf(op).set(total);
  }
  return result;
}

namespace {
struct TileCarrySumsPass : tessera::impl::TileCarrySumsBase<TileCarrySumsPass> {
  void runOnOperation() override {
    // The innermost first: what they add may be the same in those around them.
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      SmallVector<Operation *> additions;
      for (Operation &op : loop.getBody()->without_terminator())
        if (addsToOnePlace(&op, loop))
          additions.push_back(&op);
      if (!additions.empty() && !carry(loop, additions))
        return signalPassFailure();
    }
  }
};
} // namespace
