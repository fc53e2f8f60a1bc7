//===- ScalarRegion.h - Regions that only compute scalars -------*- C++ -*-===//

#ifndef TESSERA_DIALECTS_TILE_SCALARREGION_H
#define TESSERA_DIALECTS_TILE_SCALARREGION_H

#include "mlir/IR/Block.h"

namespace tessera::tile {

/// Refuses what is no scalar arithmetic and loads no element in `body`, an operation's region.
llvm::LogicalResult verifyScalars(mlir::Block &body);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_SCALARREGION_H
