//===- GuardGridEnd.cpp - Thread blocks past the end of the grid ----------===//
//
// Implements hop-guard-grid-end. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_GUARDGRIDEND
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct GuardGridEndPass : tessera::impl::GuardGridEndBase<GuardGridEndPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    if (kernel.getClusterSize() == 1 || !mayPassTheEnd(kernel))
      return;
    for (auto role : kernel.getBody().getOps<hop::RoleOp>())
      stayInside(kernel, role);
  }

private:
  /// Whether the tiles along the first dimension may be no multiple of the cluster.
  static bool mayPassTheEnd(hop::KernelOp kernel) {
    auto dim = cast<tile::GridDimAttr>(kernel.getGrid()[0]);
    auto extent = dyn_cast<IntegerAttr>(dim.getExtent());
    return !extent ||
           llvm::divideCeil(extent.getInt(), dim.getDivisor()) % kernel.getClusterSize() != 0;
  }

  /// Lets a block past the end run the last tile, without its stores.
  static void stayInside(hop::KernelOp kernel, hop::RoleOp role) {
    Value index = kernel.getGridIndex(0);
    Location loc = role.getLoc();
    SmallVector<Operation *> stores;
    role.walk([&](Operation *op) {
      if (isa<tile::StoreOp, hop::BulkStoreOp>(op))
        stores.push_back(op);
    });
    auto last = [&](OpBuilder &builder) -> Value {
      Value count = countTiles(cast<tile::GridDimAttr>(kernel.getGrid()[0]), builder, loc);
      return arith::SubIOp::create(builder, loc, count,
                                   arith::ConstantIndexOp::create(builder, loc, 1));
    };
    OpBuilder builder = OpBuilder::atBlockBegin(&role.getBody().front());
    Value inside = arith::MinUIOp::create(builder, loc, index, last(builder));
    index.replaceUsesWithIf(inside, [&](OpOperand &use) {
      return role->isProperAncestor(use.getOwner()) && use.getOwner() != inside.getDefiningOp();
    });
    // Made from the extents at each store: a flag would take a register through the whole tile.
    for (Operation *store : stores) {
      builder.setInsertionPoint(store);
      Value isInside = arith::CmpIOp::create(builder, store->getLoc(), arith::CmpIPredicate::ule,
                                             index, last(builder));
      auto guard = scf::IfOp::create(builder, store->getLoc(), isInside, /*withElseRegion=*/false);
      store->moveBefore(guard.thenBlock()->getTerminator());
    }
  }
};

} // namespace
