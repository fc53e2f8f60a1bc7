//===- ExchangeSums.cpp - Sums that the blocks of a cluster add up --------===//
//
// Implements tile-exchange-sums. See SumPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILEEXCHANGESUMS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Bytes of a tile.
static int64_t bytesOf(RankedTensorType tile) {
  return tile.getNumElements() * tile.getElementTypeBitWidth() / 8;
}

/// Says what the blocks send each other in place of what they add.
static void explain(const ReducerSum &sum) {
  auto operand = cast<RankedTensorType>(sum.operand->getResult(0).getType());
  int64_t saved = bytesOf(cast<RankedTensorType>(StoreOp(sum.store).getValue().getType())) / 2;
  StoreOp(sum.store).emitRemark("the blocks of a cluster send each other ")
      << operand << ", and each adds half of the columns for both: " << saved
      << " bytes a step less are added to memory, and " << bytesOf(operand) << " exchanged";
}

namespace {
struct TileExchangeSumsPass : tessera::impl::TileExchangeSumsBase<TileExchangeSumsPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    ScheduleFields schedule = kernel.getScheduleFields();
    if (failed(schedule.require(kernel, &ScheduleFields::cluster)))
      return signalPassFailure();
    if (!exchangesSums(schedule))
      return;
    ExchangedSums found = findExchangedSums(kernel);
    if (found.refused) {
      found.refused->emitError(found.refusal) << "; use cluster = 1";
      return signalPassFailure();
    }
    for (const ReducerSum &sum : found.sums) {
      StoreOp(sum.store).setExchanged(true);
      explain(sum);
    }
  }
};
} // namespace
