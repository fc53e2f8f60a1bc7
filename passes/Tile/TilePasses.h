//===- TilePasses.h - Passes from the tile dialect to itself --------------===//
//
// Constructors, options and registration of the passes that TilePasses.td
// describes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_TILE_TILEPASSES_H
#define TESSERA_PASSES_TILE_TILEPASSES_H

#include "dialects/Tile/Tile.h"
#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Tile/TilePasses.h.inc"

} // namespace tessera

#endif // TESSERA_PASSES_TILE_TILEPASSES_H
