// Implements tile-check-divisors. See TilePasses.td.

#include "dialects/Tile/Tile.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILECHECKDIVISORS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {
struct TileCheckDivisorsPass : tessera::impl::TileCheckDivisorsBase<TileCheckDivisorsPass> {
  void runOnOperation() override {
    WalkResult walk =
        getOperation().walk([](Operation *op) -> WalkResult { return checkDivisor(op); });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
