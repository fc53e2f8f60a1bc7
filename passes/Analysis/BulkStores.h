//===- BulkStores.h - Which stores bulk copies can make --------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_BULKSTORES_H
#define TESSERA_PASSES_ANALYSIS_BULKSTORES_H

#include "dialects/Tile/Tile.h"
#include <optional>
#include <string>

namespace tessera {

/// Whether stores of what is `stored` can leave through shared memory: tiles of rank 2, of floats
/// of 16 or 32 bits. Others go from registers.
bool leavesInBulk(mlir::Type stored);

/// Why no bulk tensor copy can make `store`, of a tile of rank 2 with the rows of all warpgroups
/// `whole`; nothing when one can. Completes a sentence about the store.
std::optional<std::string> whyNoBulkStore(tile::StoreOp store, mlir::RankedTensorType whole);

/// Whether the rows of the view of `store` are known to end where bulk copies do, which write whole
/// units: a launch with other rows is refused.
bool writesWholeUnits(tile::StoreOp store);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_BULKSTORES_H
