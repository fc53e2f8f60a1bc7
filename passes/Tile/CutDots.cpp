//===- CutDots.cpp - Dots of which no warpgroup holds 64 rows --------------===//
//
// Implements tile-cut-dots. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "passes/Schedule/ColumnParts.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/Support/FormatVariadic.h"

namespace tessera {
#define GEN_PASS_DEF_TILECUTDOTS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Whether no warpgroup holds 64 rows of the accumulator of `dot`.
static bool isWide(DotOp dot) {
  int64_t columns = dot.getType().getDimSize(1);
  return columns * hopper::mmaRows > hopper::mostThreadRegisters * hopper::warpgroupThreads;
}

/// Dots of which no warpgroup holds 64 rows.
static ColumnCut planWide(KernelOp kernel) {
  ColumnCut plan;
  int64_t columns = 0;
  kernel.walk([&](DotOp dot) {
    if (!isWide(dot))
      return;
    plan.dots.push_back(dot);
    columns = std::max(columns, dot.getType().getDimSize(1));
  });
  plan.parts = llvm::divideCeil(columns, hopper::mostMmaColumns);
  plan.reason =
      llvm::formatv("dots have accumulators of more than {0} columns", hopper::mostMmaColumns);
  plan.instead = llvm::formatv("write the dots with accumulators of up to {0} columns",
                               hopper::mostMmaColumns);
  return plan;
}

namespace {
struct TileCutDotsPass : tessera::impl::TileCutDotsBase<TileCutDotsPass> {
  void runOnOperation() override {
    ColumnCut plan = planWide(getOperation());
    CutRefusal refusal;
    if (plan.dots.empty() || succeeded(cutColumns(getOperation(), plan, refusal)))
      return;
    refusal.op->emitError(refusal.reason);
    signalPassFailure();
  }
};
} // namespace
