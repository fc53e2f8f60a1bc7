//===- DotOrder.h - Dots before others that they do not wait for -----------===//

#ifndef TESSERA_PASSES_SCHEDULE_DOTORDER_H
#define TESSERA_PASSES_SCHEDULE_DOTORDER_H

#include "dialects/Tile/Tile.h"

namespace tessera {

/// Moves each dot of a computed tile that adds to what its loop carries before the dots in front of
/// it that neither it nor its operands are made of. That tile is then dead when their results take
/// registers, while the sum has its own in any case. Returns the dots that have moved.
llvm::SmallVector<tile::DotOp> issueSumsEarly(tile::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_DOTORDER_H
