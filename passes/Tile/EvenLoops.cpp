//===- EvenLoops.cpp - As many loads in all blocks of a cluster ----------===//
//
// Implements tile-even-loops. See LoopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Schedule/SharedTileAnalysis.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_TILEEVENLOOPS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
/// Makes loops of one kernel load as many tiles in all blocks of a cluster.
class LoopEvener {
public:
  LoopEvener(KernelOp kernel, const IndexDependence &dependence, int64_t blocks)
      : kernel(kernel), dependence(dependence), blocks(blocks) {
    for (const PipedTile &tile : pipedTiles(kernel))
      loads.insert(tile.loads.begin(), tile.loads.end());
  }

  void run(scf::ForOp loop) {
    ImplicitLocOpBuilder builder(loop.getLoc(), loop);
    Value own = loop.getUpperBound();
    Trend trend = trendOf(own, kernel.getGridIndex(0));
    IRMapping mapping;
    mapping.map(kernel.getGridIndex(0), longestTile(trend, builder));
    Value most = dependence.recompute(own, mapping, builder);
    loop.setUpperBound(CommonBoundOp::create(builder, own, most));

    builder.setInsertionPointAfter(loop);
    Value rest = arith::SubIOp::create(builder, iterations(loop, most, builder),
                                       iterations(loop, own, builder));
    SmallVector<int64_t> pipes;
    for (Operation &op : *loop.getBody())
      if (loads.contains(&op))
        pipes.push_back(cast<LoadOpInterface>(op).getPipeAttr().getInt());
    SkipLoadsOp::create(builder, builder.getDenseI64ArrayAttr(pipes), rest);
    loop.emitRemark("loop loads as many tiles in all ")
        << blocks << " blocks of a cluster as in the one where it is longest";
  }

private:
  static Value constant(int64_t value, ImplicitLocOpBuilder &builder) {
    return arith::ConstantIndexOp::create(builder, value);
  }

  /// Of the tiles of the cluster, the one in which a value with this trend is largest. The last
  /// cluster may have fewer tiles than blocks.
  Value longestTile(Trend trend, ImplicitLocOpBuilder &builder) {
    Value size = constant(blocks, builder);
    Value cluster = arith::DivUIOp::create(builder, kernel.getGridIndex(0), size);
    Value first = arith::MulIOp::create(builder, cluster, size);
    if (trend == Trend::Decreasing)
      return first;
    Value last = arith::AddIOp::create(builder, first, constant(blocks - 1, builder));
    Value count = countTiles(kernel.getGridDim(0), builder, builder.getLoc());
    return arith::MinUIOp::create(builder, last,
                                  arith::SubIOp::create(builder, count, constant(1, builder)));
  }

  static Value iterations(scf::ForOp loop, Value upper, ImplicitLocOpBuilder &builder) {
    Value distance = arith::SubIOp::create(builder, upper, loop.getLowerBound());
    Value some = arith::MaxSIOp::create(builder, distance, constant(0, builder));
    return arith::CeilDivSIOp::create(builder, some, loop.getStep());
  }

  KernelOp kernel;
  const IndexDependence &dependence;
  int64_t blocks; ///< of a cluster
  /// Those that go through pipes: for dots, as a producer of all has no such loops.
  llvm::DenseSet<Operation *> loads;
};

class TileEvenLoopsPass : public tessera::impl::TileEvenLoopsBase<TileEvenLoopsPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    ScheduleFields schedule = kernel.getScheduleFields();
    if (failed(schedule.require(kernel, &ScheduleFields::cluster)) ||
        (*schedule.cluster != ClusterKind::One &&
         failed(schedule.require(kernel, &ScheduleFields::producer))))
      return signalPassFailure();
    // Without a producer the loads are the consumers', who have no order in common.
    if (*schedule.cluster != ClusterKind::One && schedule.hasProducer())
      makeAlike(kernel, countBlocks(*schedule.cluster));
  }

private:
  static void makeAlike(KernelOp kernel, int64_t blocks) {
    IndexDependence dependence(kernel.getGridIndex(0), blocks);
    llvm::SetVector<Operation *> uneven;
    for (const PipedTile &tile : pipedTiles(kernel)) {
      SharedTile shared = shareTile(kernel, dependence, tile, blocks);
      if (shared.refusal)
        continue;
      // Rows in runs are loaded as often in all blocks as it is, which hop-cluster sees.
      for (LoadOpInterface load : tile.loads)
        if (auto box = dyn_cast<LoadOp>(load.getOperation()))
          box.setAlike(true);
      uneven.insert(shared.uneven.begin(), shared.uneven.end());
    }
    LoopEvener evener(kernel, dependence, blocks);
    for (Operation *loop : uneven)
      evener.run(cast<scf::ForOp>(loop));
  }
};
} // namespace
