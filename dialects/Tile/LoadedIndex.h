//===- LoadedIndex.h - Indices that come from memory ----------------------===//
//
// What a kernel computes from grid indices, extents and constants is its author's
// promise. A number that was loaded is anybody's, so that accesses at such a place
// are guarded.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_LOADEDINDEX_H
#define TESSERA_DIALECTS_TILE_LOADEDINDEX_H

#include "mlir/IR/Value.h"

namespace tessera::tile {

/// Whether `index` is computed from an element of a view, directly or through bounds of loops. A
/// condition that decides between two numbers makes neither of them one that was loaded.
bool comesFromMemory(mlir::Value index);

/// The same, or from an integer that is an argument of the kernel: it may be any number.
bool comesFromOutside(mlir::Value index);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_LOADEDINDEX_H
