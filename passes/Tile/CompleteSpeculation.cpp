//===- CompleteSpeculation.cpp - Speculations as two whole programs -------===//
//
// Implements tile-complete-speculation. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/IRMapping.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILECOMPLETESPECULATION
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
struct TileCompleteSpeculationPass
    : public tessera::impl::TileCompleteSpeculationBase<TileCompleteSpeculationPass> {
  void runOnOperation() override {
    if (SpeculateOp speculation = findSpeculation(getOperation()))
      complete(getOperation(), speculation);
  }

  /// Copies what stands around the speculation into both of its regions.
  static void complete(KernelOp kernel, SpeculateOp speculation) {
    Block &body = kernel.getBody().front();
    SmallVector<Operation *> before, after;
    for (Operation &op : body.without_terminator())
      if (&op != speculation)
        (op.isBeforeInBlock(speculation) ? before : after).push_back(&op);

    OpBuilder builder(body.getTerminator());
    auto whole = SpeculateOp::create(builder, speculation.getLoc(), TypeRange());
    auto fill = [&](Region &source, Region &target, ValueRange values) {
      builder.setInsertionPointToStart(&target.emplaceBlock());
      IRMapping mapping;
      for (Operation *op : before)
        builder.clone(*op, mapping);
      for (Operation &op : source.front().without_terminator())
        builder.clone(op, mapping);
      for (auto [result, value] : llvm::zip_equal(speculation.getResults(), values))
        mapping.map(result, mapping.lookupOrDefault(value));
      for (Operation *op : after)
        builder.clone(*op, mapping);
      return mapping;
    };
    YieldIfOp fast = speculation.getFastYield();
    IRMapping mapping = fill(speculation.getFast(), whole.getFast(), fast.getValues());
    YieldIfOp::create(builder, fast.getLoc(), mapping.lookupOrDefault(fast.getCondition()),
                      ValueRange());
    YieldOp exact = speculation.getExactYield();
    fill(speculation.getExact(), whole.getExact(), exact.getValues());
    YieldOp::create(builder, exact.getLoc(), ValueRange());

    for (Operation *op : llvm::reverse(after))
      op->erase();
    speculation.erase();
    for (Operation *op : llvm::reverse(before))
      op->erase();
  }
};
} // namespace
