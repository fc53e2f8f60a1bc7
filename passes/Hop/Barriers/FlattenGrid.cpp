//===- FlattenGrid.cpp - Grids that a launch has in one dimension ---------===//
//
// Implements hop-flatten-grid. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_FLATTENGRID
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct FlattenGridPass : tessera::impl::FlattenGridBase<FlattenGridPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    if (failed(kernel.getSchedule().getFields().require(kernel, &tile::ScheduleFields::persistent)))
      return signalPassFailure();
    if (!mayLaunchFlat(kernel))
      return;
    for (auto role : kernel.getBody().getOps<hop::RoleOp>())
      findPlace(kernel, role);
  }

private:
  /// Computes the indices of the grid that a role uses from the launch's.
  static void findPlace(hop::KernelOp kernel, hop::RoleOp role) {
    OpBuilder builder = OpBuilder::atBlockBegin(&role.getBody().front());
    Location loc = role.getLoc();
    SmallVector<Value> launched;
    for (unsigned i = 0; i < kernel.getGrid().size(); ++i)
      launched.push_back(kernel.getGridIndex(i));
    Value columns = countColumns(kernel, builder, loc);
    Value blocks = hop::BlockCountOp::create(builder, loc, builder.getIndexType());
    Value isFlat = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, blocks, columns);
    auto place = scf::IfOp::create(
        builder, loc, isFlat,
        [&](OpBuilder &b, Location l) {
          scf::YieldOp::create(b, l, divide(kernel, launched.front(), columns, b, l));
        },
        [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, launched); });
    for (auto [index, found] : llvm::zip_equal(launched, place.getResults()))
      index.replaceUsesWithIf(found, [&](OpOperand &use) {
        return role->isProperAncestor(use.getOwner()) && !place->isAncestor(use.getOwner());
      });
  }

  /// The blocks of a launch in x where it is not flat: whole clusters.
  static Value countColumns(hop::KernelOp kernel, OpBuilder &builder, Location loc) {
    Value tiles = countTiles(cast<tile::GridDimAttr>(kernel.getGrid()[0]), builder, loc);
    if (kernel.getClusterSize() == 1)
      return tiles;
    Value cluster = arith::ConstantIndexOp::create(builder, loc, kernel.getClusterSize());
    Value clusters = arith::CeilDivUIOp::create(builder, loc, tiles, cluster);
    return arith::MulIOp::create(builder, loc, clusters, cluster);
  }

  /// The indices of block `number`, of which the first varies fastest.
  static SmallVector<Value> divide(hop::KernelOp kernel, Value number, Value columns,
                                   OpBuilder &builder, Location loc) {
    SmallVector<Value> indices;
    for (auto dim : kernel.getGrid().getAsRange<tile::GridDimAttr>()) {
      if (indices.size() + 1 == kernel.getGrid().size())
        break;
      Value count = indices.empty() ? columns : countTiles(dim, builder, loc);
      indices.push_back(arith::RemUIOp::create(builder, loc, number, count));
      number = arith::DivUIOp::create(builder, loc, number, count);
    }
    indices.push_back(number);
    return indices;
  }
};

} // namespace
