//===- LoadSites.h - Loads that an author writes more than once -----------===//

#ifndef TESSERA_PASSES_ANALYSIS_LOADSITES_H
#define TESSERA_PASSES_ANALYSIS_LOADSITES_H

#include "llvm/ADT/StringRef.h"

namespace tessera {

/// The attribute of a tile.load, an i64, that tells it from other loads of its view and type which
/// the source writes: set by tile-inline-functions, and kept by the passes that copy. Equal loads
/// of one site may become one; those of two sites stay two.
constexpr llvm::StringLiteral kSiteAttrName = "tile.site";

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_LOADSITES_H
