//===- SharedLayout.h - How a tile lies in shared memory ------------------===//
//
// A tile of R rows and C columns is stored in chunks of columns, each chunk one
// swizzle span wide: the image that a bulk tensor copy writes and a wgmma
// descriptor reads (PTX ISA 5.5.7 and 9.7.15.5.1).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_SHAREDLAYOUT_H
#define TESSERA_DIALECTS_HOP_SHAREDLAYOUT_H

#include "dialects/Hop/Machine.h"
#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace tessera::hop {

/// A bulk tensor copy starts at a multiple of so many bytes of a row, whatever the swizzle, and a
/// store at no negative coordinate. The PTX ISA does not say so; elsewhere the machine reports an
/// illegal instruction (bench/probes/bulk_columns.cu).
constexpr int64_t bulkStartBytes = hopper::bulkUnit;

/// Of a tile of rank 1 the elements lie side by side, as one row.
struct SharedLayout {
  int64_t rows;         ///< rows of the buffer
  int64_t columns;      ///< columns of the buffer, with those that only fill the last chunk
  int64_t elementBytes; ///< 1, 2 or 4
  int64_t swizzle;      ///< bytes of a row in a chunk: 128, 64 or 32; 0 of a tile of rank 1

  int64_t chunkColumns() const { return swizzle ? swizzle / elementBytes : columns; }
  int64_t chunks() const { return columns / chunkColumns(); }
  int64_t chunkBytes() const { return rows * chunkColumns() * elementBytes; }
  int64_t bytes() const { return rows * columns * elementBytes; }
  /// Bytes of the swizzle's repeat: 8 rows. Also the alignment of a buffer.
  int64_t atomBytes() const {
    return swizzle ? hopper::swizzleRows * swizzle : hopper::bulkAlignment;
  }
  /// The value of bits 62-63 of a wgmma descriptor.
  unsigned descriptorMode() const { return swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3; }
};

/// A tile in equal parts: whole chunks of columns first, then rows.
struct TileParts {
  int64_t ofRows, ofChunks; ///< numbers of parts
};

/// How `blocks` thread blocks load one tile, each a part; nothing when a part would not start at a
/// whole repeat of the swizzle.
std::optional<TileParts> splitAmong(const SharedLayout &layout, int64_t blocks);

/// The layout of a tile that is stored with `rows` rows; nothing when no swizzle
/// fits (the row is not a multiple of 32 bytes, or the rows not one of 8). Of a tile of rank 1 with
/// as many elements, of 4 bytes: nothing when a bulk copy cannot move it at once.
std::optional<SharedLayout> getSharedLayout(mlir::RankedTensorType tile, int64_t rows);
inline std::optional<SharedLayout> getSharedLayout(mlir::RankedTensorType tile) {
  return getSharedLayout(tile, tile.getDimSize(0));
}

} // namespace tessera::hop

#endif // TESSERA_DIALECTS_HOP_SHAREDLAYOUT_H
