//===- BalanceReduction.h - Ranges of grid points in equal shares ---------===//

#ifndef TESSERA_PASSES_TILE_BALANCEREDUCTION_H
#define TESSERA_PASSES_TILE_BALANCEREDUCTION_H

#include "dialects/Tile/Tile.h"

namespace tessera {

/// Replaces the kernel of `reduction`, which is `balanced`, by a sequence whose thread blocks have
/// equal shares of the ranges of all grid points.
void balanceReduction(tile::SplitReduceOp reduction);

} // namespace tessera

#endif // TESSERA_PASSES_TILE_BALANCEREDUCTION_H
