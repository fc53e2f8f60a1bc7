//===- BlockReduction.h - Parts of a range in the blocks of a cluster -----===//

#ifndef TESSERA_PASSES_TILE_BLOCKREDUCTION_H
#define TESSERA_PASSES_TILE_BLOCKREDUCTION_H

#include "dialects/Tile/Tile.h"

namespace tessera {

/// Gives each block of a cluster an equal part of the range of `reduction`, which has `cluster n`,
/// and merges their states in a tree whose end is the last block.
llvm::LogicalResult splitAmongBlocks(tile::SplitReduceOp reduction);

} // namespace tessera

#endif // TESSERA_PASSES_TILE_BLOCKREDUCTION_H
