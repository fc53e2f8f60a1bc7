//===- Speculation.h - The two programs of a speculation ------------------===//
//
// What passes need to know of tile.speculate.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_SPECULATION_H
#define TESSERA_PASSES_ANALYSIS_SPECULATION_H

#include "dialects/Tile/Tile.h"

namespace tessera {

/// The speculation of `kernel`, or null.
tile::SpeculateOp findSpeculation(tile::KernelOp kernel);

/// Replaces the speculation of `kernel` by its exact region; nothing when it has none.
void takeExactRegion(tile::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_SPECULATION_H
