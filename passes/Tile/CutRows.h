//===- CutRows.h - Grid points that have fewer rows -----------------------===//

#ifndef TESSERA_PASSES_TILE_CUTROWS_H
#define TESSERA_PASSES_TILE_CUTROWS_H

#include "dialects/Tile/Tile.h"

namespace tessera {

/// Cuts the tiles of `kernel`, which have `rows` rows, into those of more grid points, so that each
/// has no more than about `elements` elements. Gives the rows that they have then, which are `rows`
/// where one row depends on others, or stores do not say which grid index counts rows. With
/// `addsIndex` no grid index does, and there is one more for the parts of a tile.
int64_t cutRows(tile::KernelOp kernel, int64_t rows, int64_t elements, bool addsIndex = false);

} // namespace tessera

#endif // TESSERA_PASSES_TILE_CUTROWS_H
