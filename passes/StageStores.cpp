//===- StageStores.cpp - Results through shared memory --------------------===//
//
// Implements hop-stage-stores. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/SharedLayout.h"
#include "passes/HopPasses.h"
#include <map>

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
    stagings.clear();
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
    auto attempt = dyn_cast<hop::AttemptOp>(store->getParentOp());
    if ((attempt ? attempt->getParentOp() : store->getParentOp()) != role)
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
    hop::StagingOp staging = stagingOf(kernel, role, store, whole);
    OpBuilder builder(store);
    auto share = RankedTensorType::get(type.getShape(), type.getElementType());
    Value slice =
        hop::SliceOp::create(builder, loc, hop::SharedType::get(&getContext(), share, rows),
                             staging.getTile(), role.getBody().getArgument(0));
    // The copy of the tile before may still read the shared memory.
    hop::WarpgroupSyncOp::create(builder, loc);
    hop::StageOp::create(builder, loc, store.getValue(), slice);
    hop::WarpgroupSyncOp::create(builder, loc);
    hop::BulkStoreOp::create(builder, loc, slice, store.getView(), store.getIndices(),
                             store.getBoxAttr());
    store.erase();
    return success();
  }

  /// Shared memory for the store. Regions of an attempt exclude each other, so that the n-th store
  /// to a view in one has that of the n-th in the other.
  hop::StagingOp stagingOf(hop::KernelOp kernel, hop::RoleOp role, tile::StoreOp store,
                           RankedTensorType whole) {
    Region *region = store->getParentRegion();
    SmallVector<hop::StagingOp> &ofRegion =
        stagings[{region, store.getView().getAsOpaquePointer()}];
    if (auto attempt = dyn_cast<hop::AttemptOp>(store->getParentOp())) {
      SmallVector<hop::StagingOp> &ofFast =
          stagings[{&attempt.getFast(), store.getView().getAsOpaquePointer()}];
      if (&ofRegion != &ofFast && ofRegion.size() < ofFast.size() &&
          ofFast[ofRegion.size()].getTile().getType().getTile() == whole)
        return ofRegion.emplace_back(ofFast[ofRegion.size()]);
    }
    OpBuilder builder(role);
    unsigned argument = cast<BlockArgument>(store.getView()).getArgNumber();
    return ofRegion.emplace_back(hop::StagingOp::create(
        builder, store.getLoc(), hop::SharedType::get(&getContext(), whole, whole.getDimSize(0)),
        kernel.getArgumentName(argument), /*offset=*/IntegerAttr()));
  }

  /// The shared memory of the stores of a region to a view, in order.
  std::map<std::pair<Region *, void *>, SmallVector<hop::StagingOp>> stagings;
};

} // namespace
