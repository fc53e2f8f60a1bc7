//===- StageStores.cpp - Results through shared memory --------------------===//
//
// Implements hop-stage-stores. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/SharedLayout.h"
#include "passes/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_STAGESTORES
#include "passes/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct StageStoresPass : tessera::impl::StageStoresBase<StageStoresPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    if (kernel.getSchedule().getStore() != tile::StoreKind::tma)
      return;
    for (auto role : kernel.getBody().getOps<hop::RoleOp>()) {
      SmallVector<tile::StoreOp> stores;
      role.walk([&](tile::StoreOp store) { stores.push_back(store); });
      for (tile::StoreOp store : stores)
        if (failed(stage(kernel, role, store)))
          return signalPassFailure();
    }
  }

  LogicalResult stage(hop::KernelOp kernel, hop::RoleOp role, tile::StoreOp store) {
    auto type = cast<RankedTensorType>(store.getValue().getType());
    if (type.getRank() != 2 || type.getElementTypeBitWidth() != 16) {
      store.emitRemark("goes from registers: bulk stores take 16-bit tiles of rank 2");
      return success();
    }
    if (store->getParentOp() != role)
      return store.emitError(
          "stands in a loop or conditional, where its shared memory would be written "
          "again before the copy is done; use store = direct");
    int64_t rows = type.getDimSize(0) * role.getWarpgroups();
    auto whole = RankedTensorType::get({rows, type.getDimSize(1)}, type.getElementType());
    if (!hop::getSharedLayout(whole))
      return store.emitError("stores ") << whole
                                        << ", whose rows are no multiple of 32 bytes; use "
                                           "store = direct";
    Location loc = store.getLoc();
    OpBuilder builder(role);
    unsigned argument = cast<BlockArgument>(store.getView()).getArgNumber();
    auto staging =
        hop::StagingOp::create(builder, loc, hop::SharedType::get(&getContext(), whole, rows),
                               kernel.getArgumentName(argument), /*offset=*/IntegerAttr());
    builder.setInsertionPoint(store);
    auto share = RankedTensorType::get(type.getShape(), type.getElementType());
    Value slice =
        hop::SliceOp::create(builder, loc, hop::SharedType::get(&getContext(), share, rows),
                             staging.getTile(), role.getBody().getArgument(0));
    // The copy of the tile before may still read the shared memory.
    hop::WarpgroupSyncOp::create(builder, loc);
    hop::StageOp::create(builder, loc, store.getValue(), slice);
    hop::WarpgroupSyncOp::create(builder, loc);
    hop::BulkStoreOp::create(builder, loc, slice, store.getView(), store.getIndices());
    store.erase();
    return success();
  }
};

} // namespace
