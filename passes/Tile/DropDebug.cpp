// Implements tile-drop-debug. See FunctionPasses.td.

#include "dialects/Tile/Tile.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_TILEDROPDEBUG
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
/// Erases operations and what only they need.
class Eraser {
public:
  void erase(Operation *op) {
    op->walk([&](Operation *own) {
      makers.remove(own);
      for (Value operand : own->getOperands())
        if (Operation *maker = operand.getDefiningOp(); maker && !op->isAncestor(maker))
          makers.insert(maker);
    });
    op->erase();
  }
  void eraseDead() {
    while (!makers.empty())
      if (Operation *maker = makers.pop_back_val(); isOpTriviallyDead(maker))
        erase(maker);
  }

private:
  llvm::SetVector<Operation *> makers;
};

struct TileDropDebugPass : tessera::impl::TileDropDebugBase<TileDropDebugPass> {
  void runOnOperation() override {
    SmallVector<Operation *> dropped;
    getOperation().walk([&](Operation *op) {
      if (isa<PrintOp, AssertOp>(op))
        dropped.push_back(op);
    });
    Eraser eraser;
    for (Operation *op : dropped) {
      // Who prints waits for it; an assertion may stay for good.
      InFlightDiagnostic diagnostic = isa<PrintOp>(op) ? op->emitWarning() : op->emitRemark();
      diagnostic << op->getName() << " is left out of machine code; tessera run (the interpreter) "
                 << (isa<PrintOp>(op) ? "shows the value" : "checks it");
      eraser.erase(op);
    }
    eraser.eraseDead();
  }
};
} // namespace
