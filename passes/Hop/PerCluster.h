//===- PerCluster.h - Thread blocks, counted in clusters ----------------------===//
//
// A number of tiles stands for those of a cluster.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_PERCLUSTER_H
#define TESSERA_PASSES_HOP_PERCLUSTER_H

#include "dialects/Hop/Hop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tessera {

/// The index (hop::BlockIndexOp) or the number (hop::BlockCountOp) of blocks, in clusters.
template <typename Op>
mlir::Value perCluster(hop::KernelOp kernel, mlir::OpBuilder &builder, mlir::Location loc) {
  mlir::Value blocks = Op::create(builder, loc, builder.getIndexType());
  if (kernel.getClusterSize() == 1)
    return blocks;
  auto size = mlir::arith::ConstantIndexOp::create(builder, loc, kernel.getClusterSize());
  return mlir::arith::DivUIOp::create(builder, loc, blocks, size);
}

} // namespace tessera

#endif // TESSERA_PASSES_HOP_PERCLUSTER_H
