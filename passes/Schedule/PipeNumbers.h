//===- PipeNumbers.h - Which loads share the slots of a pipe --------------===//

#ifndef TESSERA_PASSES_SCHEDULE_PIPENUMBERS_H
#define TESSERA_PASSES_SCHEDULE_PIPENUMBERS_H

#include "dialects/Tile/Tile.h"

namespace tessera {

/// Gives each load that feeds a dot the number of its pipe. Loads of one view and
/// tile type in different blocks share a pipe when no tile of one is in use while the other's is.
void numberPipes(tile::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_PIPENUMBERS_H
