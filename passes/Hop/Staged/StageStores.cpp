//===- StageStores.cpp - Results through shared memory --------------------===//
//
// Implements hop-stage-stores. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/BulkStores.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/Hop/HopPasses.h"
#include <map>

namespace tessera {
#define GEN_PASS_DEF_STAGESTORES
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// Gives stores shared memory of their own.
class OwnMemory {
public:
  explicit OwnMemory(hop::KernelOp kernel) : kernel(kernel) {}

  void stage(hop::RoleOp role, tile::StoreOp store, hop::SharedType part, RankedTensorType whole);
  /// The same for a sum that a loop stores again and again, in places that take turns.
  void stageSum(hop::RoleOp role, tile::StoreOp store, hop::SharedType part,
                RankedTensorType whole);

private:
  hop::StagingOp stagingOf(hop::RoleOp role, tile::StoreOp store, RankedTensorType whole);
  hop::StagingOp createStaging(hop::RoleOp role, tile::StoreOp store, RankedTensorType whole);

  hop::KernelOp kernel;
  /// The shared memory of the stores of a region to a view, in order.
  std::map<std::pair<Region *, void *>, SmallVector<hop::StagingOp>> stagings;
  /// The places of the sums of a role, by view and type.
  std::map<std::tuple<Operation *, void *, const void *>, SmallVector<hop::StagingOp, 2>> ofSums;
  /// How many sums of a block have been staged, likewise.
  std::map<std::tuple<Block *, void *, const void *>, size_t> staged;
};

/// Replaces `store` by a write into `memory` and a copy from there, which leaves `inFlight` copies.
void storeThrough(Value memory, tile::StoreOp store, int64_t inFlight = 0) {
  OpBuilder builder(store);
  Location loc = store.getLoc();
  hop::StageOp::create(builder, loc, store.getValue(), memory);
  hop::WarpgroupSyncOp::create(builder, loc);
  hop::BulkStoreOp::create(builder, loc, memory, store.getView(), store.getIndices(),
                           store.getBoxAttr(), store.getAdd(), inFlight, store.getExchanged());
  store.erase();
}

/// The tiles of one type that a block adds to the view of `store`.
size_t countSums(tile::StoreOp store) {
  return llvm::count_if(store->getBlock()->getOps<tile::StoreOp>(), [&](tile::StoreOp other) {
    return other.getAdd() && other.getView() == store.getView() &&
           other.getValue().getType() == store.getValue().getType();
  });
}

void OwnMemory::stage(hop::RoleOp role, tile::StoreOp store, hop::SharedType part,
                      RankedTensorType whole) {
  OpBuilder builder(store);
  hop::StagingOp staging = stagingOf(role, store, whole);
  auto type = hop::SharedType::get(store.getContext(), part.getTile(), whole.getDimSize(0));
  Value slice = hop::SliceOp::create(builder, store.getLoc(), type, staging.getTile(),
                                     role.getBody().getArgument(0));
  // The copy of the tile before may still read the shared memory.
  hop::WarpgroupSyncOp::create(builder, store.getLoc());
  storeThrough(slice, store);
}

void OwnMemory::stageSum(hop::RoleOp role, tile::StoreOp store, hop::SharedType part,
                         RankedTensorType whole) {
  void *view = store.getView().getAsOpaquePointer();
  const void *tile = whole.getAsOpaquePointer();
  size_t &number = staged[{store->getBlock(), view, tile}];
  size_t places = placesOfSums(number + countSums(store), store.getExchanged());
  SmallVector<hop::StagingOp, 2> &own = ofSums[{role, view, tile}];
  while (own.size() < places)
    own.push_back(createStaging(role, store, whole));
  auto type = hop::SharedType::get(store.getContext(), part.getTile(), whole.getDimSize(0));
  OpBuilder builder(store);
  Value slice = hop::SliceOp::create(builder, store.getLoc(), type, own[number % places].getTile(),
                                     role.getBody().getArgument(0));
  ++number;
  // The copy that was made of this place has read it.
  hop::WarpgroupSyncOp::create(builder, store.getLoc());
  storeThrough(slice, store, places - 1);
}

/// Shared memory for the store. Regions of an attempt exclude each other, so that the n-th store
/// to a view in one has that of the n-th in the other.
hop::StagingOp OwnMemory::stagingOf(hop::RoleOp role, tile::StoreOp store, RankedTensorType whole) {
  Region *region = store->getParentRegion();
  SmallVector<hop::StagingOp> &ofRegion = stagings[{region, store.getView().getAsOpaquePointer()}];
  if (auto attempt = dyn_cast<hop::AttemptOp>(store->getParentOp())) {
    SmallVector<hop::StagingOp> &ofFast =
        stagings[{&attempt.getFast(), store.getView().getAsOpaquePointer()}];
    if (&ofRegion != &ofFast && ofRegion.size() < ofFast.size() &&
        ofFast[ofRegion.size()].getTile().getType().getTile() == whole)
      return ofRegion.emplace_back(ofFast[ofRegion.size()]);
  }
  return ofRegion.emplace_back(createStaging(role, store, whole));
}

hop::StagingOp OwnMemory::createStaging(hop::RoleOp role, tile::StoreOp store,
                                        RankedTensorType whole) {
  OpBuilder builder(role);
  unsigned argument = cast<BlockArgument>(store.getView()).getArgNumber();
  auto type = hop::SharedType::get(store.getContext(), whole, whole.getDimSize(0));
  return hop::StagingOp::create(builder, store.getLoc(), type, kernel.getArgumentName(argument),
                                /*offset=*/IntegerAttr());
}

/// Lets the ticket of each step of a loop be passed in the next one, behind the start of its first
/// product: the copies have been written by then, for which the product would wait before it. The
/// last one is passed behind the loop.
void passUnderNextProduct(hop::TicketPassOp pass) {
  auto loop = dyn_cast<scf::ForOp>(pass->getParentOp());
  auto waits = pass->getBlock()->getOps<hop::TicketWaitOp>();
  bool isPaired = loop && llvm::range_size(waits) == 1 && (*waits.begin())->isBeforeInBlock(pass) &&
                  llvm::range_size(pass->getBlock()->getOps<hop::TicketPassOp>()) == 1;
  if (!isPaired)
    return;
  hop::TicketWaitOp wait = *waits.begin();
  Location loc = pass.getLoc();
  IRRewriter rewriter(loop);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value none = arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(false));
  unsigned results = loop.getNumResults();
  auto yield = [&](OpBuilder &builder, Location, ArrayRef<BlockArgument>) {
    Value pending = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
    return SmallVector<Value>{pass.getNumber(), pass.getValue(), pending};
  };
  auto replaced = loop.replaceWithAdditionalYields(rewriter, {zero, zero, none},
                                                   /*replaceInitOperandUsesInLoop=*/false, yield);
  auto carrying = cast<scf::ForOp>(replaced->getOperation());
  auto passPending = [&](ValueRange pending) {
    hop::TicketPassOp::create(rewriter, loc, pass.getView(), pending[0], pass.getTile(), pending[1],
                              pending[2]);
  };
  rewriter.setInsertionPoint(wait);
  passPending(carrying.getRegionIterArgs().drop_front(results));
  rewriter.setInsertionPointAfter(carrying);
  passPending(carrying.getResults().drop_front(results));
  pass.erase();
}

struct StageStoresPass : tessera::impl::StageStoresBase<StageStoresPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    const tile::ScheduleFields &schedule = kernel.getSchedule().getFields();
    if (failed(schedule.require(kernel, &tile::ScheduleFields::store,
                                &tile::ScheduleFields::placement)))
      return signalPassFailure();
    if (schedule.store != tile::StoreKind::tma)
      return;
    OwnMemory own(kernel);
    bool sumsAlone = schedule.placement != tile::PlacementKind::rows;
    for (auto role : kernel.getBody().getOps<hop::RoleOp>()) {
      SmallVector<tile::StoreOp> stores;
      role.walk([&](tile::StoreOp store) {
        if (!sumsAlone || store.getAdd())
          stores.push_back(store);
      });
      for (tile::StoreOp store : stores)
        if (failed(stage(role, store, own, sumsAlone)))
          return signalPassFailure();
      SmallVector<hop::TicketPassOp> passes;
      role.walk([&](hop::TicketPassOp pass) { passes.push_back(pass); });
      llvm::for_each(passes, passUnderNextProduct);
      if (sumsAlone && !stores.empty()) {
        OpBuilder builder = OpBuilder::atBlockEnd(&role.getBody().front());
        hop::BulkReadWaitOp::create(builder, role.getLoc());
      }
    }
  }

  LogicalResult stage(hop::RoleOp role, tile::StoreOp store, OwnMemory &own, bool isSum) {
    if (!leavesInBulk(store.getValue().getType())) {
      store.emitRemark(
          "goes from registers: bulk stores take tiles of rank 2, of floats of 16 or 32 bits");
      return success();
    }
    auto type = cast<RankedTensorType>(store.getValue().getType());
    int64_t rows = type.getDimSize(0) * role.getNumWarpgroups();
    auto whole = RankedTensorType::get({rows, type.getDimSize(1)}, type.getElementType());
    if (std::optional<std::string> why = whyNoBulkStore(store, whole))
      return store.emitError(*why);
    auto part = hop::SharedType::get(&getContext(),
                                     RankedTensorType::get(type.getShape(), type.getElementType()),
                                     type.getDimSize(0));
    isSum ? own.stageSum(role, store, part, whole) : own.stage(role, store, part, whole);
    return success();
  }
};

} // namespace
