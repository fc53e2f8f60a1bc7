//===- Reductions.h - What parts of reductions come to --------------------===//

#ifndef TESSERA_DIALECTS_TILE_REDUCTIONS_H
#define TESSERA_DIALECTS_TILE_REDUCTIONS_H

#include "dialects/Tile/Tile.h"

namespace tessera::tile {

/// What reductions of two parts, numbers or tiles, come to together.
mlir::Value combine(mlir::OpBuilder &builder, mlir::Location loc, ReduceKind kind, mlir::Value left,
                    mlir::Value right);

/// The kind of reduction of which `op` combines two parts so.
std::optional<ReduceKind> findCombined(mlir::Operation *op);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_REDUCTIONS_H
