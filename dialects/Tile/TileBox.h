//===- TileBox.h - The part of a view that a tile covers ------------------===//
//
// A tile that is loaded or stored is a box of its view: so many elements along each
// dimension, from the indices of the access on. The rows of the tile run over all
// dimensions of the box but the last, in row-major order.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_TILEBOX_H
#define TESSERA_DIALECTS_TILE_TILEBOX_H

#include "dialects/Tile/Tile.h"

namespace tessera::tile {

struct BoxSlice;

class TileBox {
public:
  /// The box of an access to `view` that moves `tile`: as `written`, one extent per dimension of
  /// the view, or without it the innermost dimensions, as many as the tile has.
  TileBox(ViewType view, mlir::RankedTensorType tile,
          std::optional<llvm::ArrayRef<int64_t>> written);

  /// One per dimension of the view, outermost first.
  llvm::ArrayRef<int64_t> getExtents() const { return extents; }
  int64_t getExtent(int64_t dim) const { return extents[dim]; }
  bool operator==(const TileBox &other) const {
    return extents == other.extents && tileRank == other.tileRank;
  }

  /// The dimensions over which the rows run, or the elements of a tile of rank 1: from the first to
  /// the last, both included. Along the last one the tile may reach outside the view.
  int64_t getFirstRowDim() const;
  int64_t getLastRowDim() const { return extents.size() - tileRank; }

  /// The extents that the number of a row counts through before it reaches the next dimension: from
  /// `dim` to the one after the first dimension of rows, the innermost first.
  llvm::SmallVector<int64_t> getCarries(int64_t dim) const;

  /// `parts` boxes of as many rows each; nothing when a part would not be a box.
  std::optional<BoxSlice> slice(int64_t parts) const;

private:
  TileBox(llvm::SmallVector<int64_t, 4> extents, int64_t tileRank)
      : extents(std::move(extents)), tileRank(tileRank) {}

  llvm::SmallVector<int64_t, 4> extents;
  int64_t tileRank;
};

/// Equal parts of the rows of a box: part `i` starts at row `i * step` of dimension `dim`, where
/// what exceeds the extent of the whole box is carried over into the dimension before.
struct BoxSlice {
  TileBox part;
  int64_t dim, step;
};

/// Splits the number `row` of a row into its places along dimensions, the innermost first.
/// `extents` are those of all dimensions but the outermost; `divide` makes remainder and quotient
/// of a number, and `place` takes the place along each dimension.
template <typename Value>
void splitRow(Value row, llvm::ArrayRef<int64_t> extents,
              llvm::function_ref<std::pair<Value, Value>(Value, int64_t)> divide,
              llvm::function_ref<void(size_t, Value)> place) {
  for (auto [i, extent] : llvm::enumerate(extents)) {
    auto [digit, rest] = divide(row, extent);
    place(i, digit);
    row = rest;
  }
  place(extents.size(), row);
}

/// The most elements of a tile. A thread block has room for far fewer, and products of the numbers
/// of elements of two tiles, of their bytes and of the slots of a ring fit 64 bits.
constexpr int64_t kMostTileElements = int64_t(1) << 24;

/// Refuses a type with more elements. Whether shapes are static is for others to ask.
mlir::LogicalResult verifyTileSize(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                   mlir::RankedTensorType tile);

/// Refuses a kernel with such a tile in any of its operations. Looks at types alone, so that it may
/// come before their verifiers, which compute with extents.
mlir::LogicalResult verifyTileSizes(mlir::Operation *kernel);

/// Refuses a box that `view` and `tile` do not fit.
mlir::LogicalResult verifyBox(mlir::Operation *op, ViewType view, mlir::RankedTensorType tile,
                              std::optional<llvm::ArrayRef<int64_t>> box);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_TILEBOX_H
