//===- ExpandedOps.h - What tile-expand-ops writes out --------------------===//
//
// tile.reduce_index, and the precisions with which tile.dot multiplies f32.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_EXPANDEDOPS_H
#define TESSERA_DIALECTS_TILE_EXPANDEDOPS_H

#include "dialects/Tile/Tile.h"

#define GET_OP_CLASSES
#include "dialects/Tile/TileExpandedOps.h.inc"

namespace tessera::tile {

/// The terms of 16 bits whose sum stands for each operand of f32. A term is what those before it
/// leave, rounded, so that an infinity becomes NaN with more than one. Of the products of terms
/// those that matter least are left out.
struct DotPrecision {
  /// As elsewhere, with the number of products behind x.
  llvm::StringLiteral word;
  bool ofHalves;
  int64_t terms;

  mlir::FloatType getTermType(mlir::MLIRContext *context) const;
};

/// The attribute of a dot that has the word.
inline constexpr llvm::StringLiteral kPrecisionName = "tile.precision";

llvm::ArrayRef<DotPrecision> getDotPrecisions();

/// That of `dot`, where it has one that machine code is written for.
std::optional<DotPrecision> getPrecision(DotOp dot);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_EXPANDEDOPS_H
