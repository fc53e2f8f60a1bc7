//===- GuardGridEnd.cpp - Thread blocks past the end of the grid ----------===//
//
// Implements hop-guard-grid-end. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Entries.h"
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
    if (kernel.getParts())
      return storeLast(kernel);
    if (kernel.getClusterSize() == 1 || kernel.getSpread() || !mayPassTheEnd(kernel))
      return;
    for (auto role : kernel.getBody().getOps<hop::RoleOp>())
      stayInside(kernel, role);
  }

private:
  /// Leaves stores to the last block of a cluster, which has what the others computed.
  static void storeLast(hop::KernelOp kernel) {
    for (auto role : kernel.getBody().getOps<hop::RoleOp>())
      for (Operation *access : orderedAccesses(kernel, role)) {
        OpBuilder builder(access);
        Location loc = access->getLoc();
        Value rank = hop::ClusterRankOp::create(builder, loc, builder.getIndexType());
        Value last = arith::ConstantIndexOp::create(builder, loc, kernel.getClusterSize() - 1);
        guard(access, arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rank, last),
              builder);
      }
  }

  /// Whether the tiles along the first dimension may be no multiple of the cluster.
  static bool mayPassTheEnd(hop::KernelOp kernel) {
    auto dim = cast<tile::GridDimAttr>(kernel.getGrid()[0]);
    auto extent = dyn_cast<IntegerAttr>(dim.getExtent());
    return !extent ||
           llvm::divideCeil(extent.getInt(), dim.getDivisor()) % kernel.getClusterSize() != 0;
  }

  /// Lets a block past the end run the last tile, without its stores and without loads of what the
  /// block that has the tile stores.
  static void stayInside(hop::KernelOp kernel, hop::RoleOp role) {
    Value index = kernel.getGridIndex(0);
    SmallVector<Operation *> accesses = orderedAccesses(kernel, role);
    auto last = [&](OpBuilder &builder, Location loc) -> Value {
      Value count = countTiles(cast<tile::GridDimAttr>(kernel.getGrid()[0]), builder, loc);
      return arith::SubIOp::create(builder, loc, count,
                                   arith::ConstantIndexOp::create(builder, loc, 1));
    };
    OpBuilder builder = OpBuilder::atBlockBegin(&role.getBody().front());
    Location loc = role.getLoc();
    Value inside = arith::MinUIOp::create(builder, loc, index, last(builder, loc));
    index.replaceUsesWithIf(inside, [&](OpOperand &use) {
      return role->isProperAncestor(use.getOwner()) && use.getOwner() != inside.getDefiningOp();
    });
    // Made from the extents at each access: a flag would take a register through the whole tile.
    for (Operation *access : accesses) {
      builder.setInsertionPoint(access);
      Location loc = access->getLoc();
      Value isInside =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, index, last(builder, loc));
      guard(access, isInside, builder);
    }
  }

  /// Whether `op` stores what its block makes for another one too, which has no other part.
  static bool isForOthers(Operation *op) {
    auto store = dyn_cast<tile::StoreOp>(op);
    auto copy = dyn_cast<hop::BulkStoreOp>(op);
    return (store && store.getExchanged()) || (copy && copy.getExchanged());
  }

  /// The stores of a role, and its loads of views that the kernel stores.
  static SmallVector<Operation *> orderedAccesses(hop::KernelOp kernel, hop::RoleOp role) {
    llvm::SmallDenseSet<Value> stored;
    kernel.walk([&](Operation *op) {
      if (tile::storesToView(op))
        stored.insert(op->getOperand(1));
    });
    kernel.walk([&](hop::BulkStoreOp store) { stored.insert(store.getView()); });
    SmallVector<Operation *> accesses;
    role.walk([&](Operation *op) {
      if (isForOthers(op))
        return;
      bool loads = tile::loadsFromView(op);
      if (tile::storesToView(op) || isa<hop::BulkStoreOp>(op) ||
          (loads && stored.contains(op->getOperand(0))))
        accesses.push_back(op);
    });
    return accesses;
  }

  /// Leaves `access` out where `isInside` is false; what a load gives is then 0.
  static void guard(Operation *access, Value isInside, OpBuilder &builder) {
    Location loc = access->getLoc();
    bool gives = access->getNumResults() != 0;
    auto conditional = scf::IfOp::create(builder, loc, access->getResultTypes(), isInside,
                                         /*withElseRegion=*/gives);
    access->replaceAllUsesWith(conditional);
    if (!gives) {
      access->moveBefore(conditional.thenBlock()->getTerminator());
      return;
    }
    access->moveBefore(conditional.thenBlock(), conditional.thenBlock()->end());
    builder.setInsertionPointToEnd(conditional.thenBlock());
    scf::YieldOp::create(builder, loc, access->getResults());
    builder.setInsertionPointToEnd(conditional.elseBlock());
    Type type = access->getResult(0).getType();
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
    scf::YieldOp::create(builder, loc, zero);
  }
};

} // namespace
