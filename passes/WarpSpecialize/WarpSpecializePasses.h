//===- WarpSpecializePasses.h - The pass from tile to hop -----------------===//

#ifndef TESSERA_PASSES_WARPSPECIALIZE_WARPSPECIALIZEPASSES_H
#define TESSERA_PASSES_WARPSPECIALIZE_WARPSPECIALIZEPASSES_H

#include "dialects/Hop/Hop.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/WarpSpecialize/WarpSpecializePasses.h.inc"

} // namespace tessera

#endif // TESSERA_PASSES_WARPSPECIALIZE_WARPSPECIALIZEPASSES_H
