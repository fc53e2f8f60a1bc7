//===- TileLayout.h - The layout of tiles that no product has -------------===//
//
// Where no wgmma says which thread holds which element, the threads of a role share
// its tiles so that each moves 16 bytes of neighbours, lanes lie side by side in
// memory, and warps and warpgroups take rows of their own as far as there are rows. Of tiles that
// come from shared memory lanes lie below each other, so that they meet in no bank.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_TILELAYOUT_H
#define TESSERA_PASSES_ANALYSIS_TILELAYOUT_H

#include "dialects/Hop/Hop.h"
#include "passes/Analysis/VectorAxes.h"

namespace tessera {

/// What the tiles of a program have in common.
struct TileExtents {
  int64_t rows = 1, columns = 0; ///< what divides those of all tiles
  int64_t unit = 1;              ///< elements that an access of the narrowest ones moves at once
  /// Bytes of the widest elements that move between registers and shared memory, or 0.
  int64_t sharedBytes = 0;
  /// The threads copy rows to shared memory (hop.gather).
  bool gathers = false;
};

/// What a thread moves at once of rows of `view` for a tile of `rank`, in bytes: 16, or less where
/// rows start anywhere: where their length is known and no multiple of it, or, of tiles of rank 1,
/// where it is known at launch only.
int64_t directBytes(tile::ViewType view, int64_t rank);

TileExtents commonExtents(mlir::Operation *program, const VectorAxes &axes);

/// Whether a warpgroup shares tiles that come from shared memory and go there, of which `extents`
/// says `sharedBytes`; `refusal` says why not and what would work.
bool isDividedFromShared(const TileExtents &extents, std::string &refusal);

/// The layout in which `warpgroups` of each of `blocks` share such tiles, each block some of the
/// columns; null when they cannot, and `refusal` says why and what would work.
hop::LayoutAttr chooseTileLayout(mlir::MLIRContext *context, const TileExtents &extents,
                                 int64_t warpgroups, int64_t blocks, std::string &refusal);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_TILELAYOUT_H
