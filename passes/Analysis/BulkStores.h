//===- BulkStores.h - Which stores bulk copies can make --------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_BULKSTORES_H
#define TESSERA_PASSES_ANALYSIS_BULKSTORES_H

#include "dialects/Tile/Tile.h"
#include <optional>
#include <string>

namespace tessera {

/// Why no bulk tensor copy can make `store`, of a tile of rank 2 with the rows of all warpgroups
/// `whole`; nothing when one can. Completes a sentence about the store.
std::optional<std::string> whyNoBulkStore(tile::StoreOp store, mlir::RankedTensorType whole);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_BULKSTORES_H
