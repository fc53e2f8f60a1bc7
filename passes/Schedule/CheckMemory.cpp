//===- CheckMemory.cpp - A grid point's stores before its loads -----------===//
//
// Implements tile-check-memory. See SchedulePasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/MemoryDependenceAnalysis.h"
#include "passes/Schedule/ResourceModel.h"
#include "passes/Schedule/SchedulePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILECHECKMEMORY
#include "passes/Schedule/SchedulePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
/// The loads of a kernel that run apart from its stores.
class LoadsAhead {
public:
  explicit LoadsAhead(KernelOp kernel) {
    for (const PipedTile &tile : pipedTiles(kernel))
      operands.insert(tile.loads.begin(), tile.loads.end());
    // Tiles decide which rows are gathered, and scalars all the rest.
    bool gathers = !pipedGathers(kernel).empty();
    kernel.walk([&](LoadOpInterface load) {
      if (!operands.contains(load) && (gathers || !isa<RankedTensorType>(load.getType())) &&
          decidesLoads(load))
        deciding.insert(load);
    });
  }

  /// A tile that a dot reads from shared memory.
  bool isOperand(Operation *op) const { return operands.contains(op); }
  /// A scalar from which the place, or the number, of such loads follows, or a tile that names
  /// their rows.
  bool decides(Operation *op) const { return deciding.contains(op); }

private:
  bool decidesLoads(LoadOpInterface deciding) const {
    IndexDependence dependence(deciding.getResult());
    return llvm::any_of(operands, [&](Operation *load) {
      return whyPlaceVaries(dependence, load) || dependence.getVaryingControl(load);
    });
  }

  llvm::DenseSet<Operation *> operands, deciding;
};

struct TileCheckMemoryPass : tessera::impl::TileCheckMemoryBase<TileCheckMemoryPass> {
  void runOnOperation() override {
    if (failed(check(getOperation())))
      signalPassFailure();
  }

  static LogicalResult check(KernelOp kernel) {
    unsigned arguments = kernel.getNumArguments();
    MemoryDependenceAnalysis order(
        kernel.getBody(), kernel.getBody().getArguments().drop_front(arguments), kernel.getGrid());
    if (failed(order.verify()))
      return failure();
    LoadsAhead ahead(kernel);
    llvm::DenseSet<std::pair<Operation *, Operation *>> refused;
    order.forEachPair([&](const AccessPair &pair) {
      Operation *earlier = pair.earlier.op, *later = pair.later.op;
      // What is loaded for a dot before a store has been waited for when the store comes.
      bool isUnordered = ahead.isOperand(later) || ahead.decides(later) || ahead.decides(earlier);
      if (isUnordered && !refused.contains({earlier, later}) && order.mayMeet(pair)) {
        refuse(kernel, pair, ahead);
        refused.insert({earlier, later});
      }
    });
    return success(refused.empty());
  }

  static void refuse(KernelOp kernel, const AccessPair &pair, const LoadsAhead &ahead) {
    bool loadsFirst = !pair.earlier.stores;
    const MemoryAccess &load = loadsFirst ? pair.earlier : pair.later;
    const MemoryAccess &store = loadsFirst ? pair.later : pair.earlier;
    StringRef view = kernel.getArgumentName(cast<BlockArgument>(load.view).getArgNumber());
    InFlightDiagnostic diag = load.op->emitError("may load elements of '")
                              << view << "' that this grid point stores "
                              << (loadsFirst ? "later" : "before")
                              << (pair.loop ? ", in another iteration of a loop" : "") << "; ";
    if (ahead.isOperand(load.op))
      diag << "tiles for dots are loaded ahead of the rest of the program, which no store holds "
              "back";
    else
      diag << "loads of tiles for dots depend on it, and run apart from the rest of the program";
    diag << ". " << (loadsFirst ? "Store to a view of its own" : "Keep the stored value as a tile")
         << ", or do the rest in a kernel of its own";
    diag.attachNote(store.op->getLoc()) << "the store";
  }
};
} // namespace
