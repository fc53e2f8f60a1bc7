//===- BlockReduction.cpp - Parts of a range in the blocks of a cluster ---===//

#include "passes/Tile/BlockReduction.h"
#include "dialects/Tile/ScheduleFields.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Schedule/ScheduleFacts.h"
#include "passes/Tile/SplitKernel.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// A fault of a speculation would have to be known to all blocks of a cluster, and no order of grid
/// points is asked of a launch.
static void takeExactProgram(KernelOp kernel) {
  ScheduleFields fields = kernel.getScheduleFields();
  if (SpeculateOp speculation = findSpeculation(kernel)) {
    speculation.emitRemark("exact region alone: the blocks of a cluster would have to agree");
    takeExactRegion(kernel);
    fields.speculate.reset();
  }
  fields.order.reset();
  kernel.setScheduleAttr(fields.get(kernel.getContext()));
}

/// The state of the part of a block, of which all have as many iterations but for the last ones.
static SmallVector<Value> computePart(const IndexMath &math, SplitReduceOp reduction) {
  Value rank = ClusterRankOp::create(math.builder, math.loc, math.builder.getIndexType());
  Value length = math.sub(reduction.getUpper(), reduction.getLower());
  Value some = math.most(length, math.constant(0));
  Value size = math.make<arith::CeilDivUIOp>(some, math.constant(*reduction.getCluster()));
  Value offset = math.mul(rank, size);
  Value first = math.add(reduction.getLower(), math.least(offset, some));
  Value end = math.add(offset, size);
  Value past = math.add(reduction.getLower(), math.least(end, some));
  IRMapping mapping;
  mapping.map(reduction.getFirst(), first);
  mapping.map(reduction.getPast(), past);
  for (Operation &op : reduction.getBody().front().without_terminator())
    math.builder.clone(op, mapping);
  return llvm::map_to_vector(reduction.getBodyYield().getValues(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

LogicalResult tessera::splitAmongBlocks(SplitReduceOp reduction) {
  auto kernel = cast<KernelOp>(reduction->getParentOp());
  if (!hasDots(kernel))
    return reduction.emitError("divides a range among the blocks of a cluster, and without dots "
                               "these have the tiles of a grid point together; use 'part'");
  takeExactProgram(kernel);
  int64_t blocks = *reduction.getCluster();
  OpBuilder builder(reduction);
  IndexMath math{builder, reduction.getLoc()};
  SmallVector<Value> state = computePart(math, reduction);
  for (int64_t distance = 1; distance < blocks; distance *= 2) {
    SmallVector<Value> earlier = llvm::map_to_vector(state, [&](Value value) -> Value {
      return FromBlockOp::create(builder, math.loc, value, distance);
    });
    state = mergeStates(builder, reduction, earlier, state);
  }
  reduction.emitRemark("is divided among the ")
      << blocks << " blocks of a cluster, whose states meet in shared memory";
  reduction.replaceAllUsesWith(state);
  reduction.erase();
  return success();
}
