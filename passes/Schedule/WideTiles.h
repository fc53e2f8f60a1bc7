//===- WideTiles.h - Loaded tiles in chunks of 128 bytes ------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_WIDETILES_H
#define TESSERA_PASSES_SCHEDULE_WIDETILES_H

#include "dialects/Tile/Tile.h"

namespace tessera {

/// Makes loads of whole rows `wide` whose rows may begin and end amid sectors of memory, where that
/// leaves fewer chunks: bulk copies take several times as long for each of these as for one of
/// whole sectors (docs/lab/memory.md). Says whether there are any.
bool widenTiles(tile::KernelOp kernel);

/// Makes no load wide.
void narrowTiles(tile::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_WIDETILES_H
