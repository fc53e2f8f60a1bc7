//===- MapElements.h - A function of scalars on tiles ---------------------===//

#ifndef TESSERA_PASSES_TILE_MAPELEMENTS_H
#define TESSERA_PASSES_TILE_MAPELEMENTS_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera {

/// Puts operations on tiles in the place of `map`, which applies `callee`: a function of one block,
/// without calls. Refuses what has no meaning for an element, at the operation in the function.
llvm::LogicalResult expandMap(tile::MapOp map, mlir::func::FuncOp callee);

} // namespace tessera

#endif // TESSERA_PASSES_TILE_MAPELEMENTS_H
