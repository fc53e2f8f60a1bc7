//===- TileBox.cpp - The part of a view that a tile covers ----------------===//

#include "dialects/Tile/TileBox.h"
#include <numeric>

using namespace mlir;
using namespace tessera::tile;

TileBox::TileBox(ViewType view, RankedTensorType tile, std::optional<ArrayRef<int64_t>> written)
    : extents(view.getRank(), 1), tileRank(tile.getRank()) {
  if (written)
    extents.assign(written->begin(), written->end());
  else
    llvm::copy(tile.getShape(), extents.end() - tileRank);
}

int64_t TileBox::getFirstRowDim() const {
  int64_t first = 0;
  while (first < getLastRowDim() && extents[first] == 1)
    ++first;
  return first;
}

SmallVector<int64_t> TileBox::getCarries(int64_t dim) const {
  SmallVector<int64_t> carries;
  for (; dim > getFirstRowDim(); --dim)
    carries.push_back(extents[dim]);
  return carries;
}

std::optional<BoxSlice> TileBox::slice(int64_t parts) const {
  int64_t rows = 1;
  for (int64_t dim = getFirstRowDim(); dim <= getLastRowDim(); ++dim)
    rows *= extents[dim];
  if (rows % parts != 0)
    return std::nullopt;
  // A part takes whole inner dimensions, an equal share of one dimension, and one of each before.
  int64_t dim = getLastRowDim(), step = rows / parts;
  for (; step > extents[dim]; --dim) {
    if (step % extents[dim] != 0)
      return std::nullopt;
    step /= extents[dim];
  }
  if (extents[dim] % step != 0)
    return std::nullopt;
  TileBox part = *this;
  part.extents[dim] = step;
  std::fill_n(part.extents.begin(), dim, 1);
  // Whole parts of a dimension are steps of the one before.
  while (dim > getFirstRowDim() && step == extents[dim]) {
    --dim;
    step = 1;
  }
  return BoxSlice{part, dim, step};
}

LogicalResult tessera::tile::verifyTileSize(function_ref<InFlightDiagnostic()> emitError,
                                            RankedTensorType tile) {
  int64_t most = kMostTileElements;
  for (int64_t extent : tile.getShape()) {
    if (extent > most)
      return emitError() << "a tile has at most " << kMostTileElements << " elements, got " << tile;
    most /= std::max<int64_t>(extent, 1);
  }
  return success();
}

LogicalResult tessera::tile::verifyTileSizes(Operation *kernel) {
  WalkResult walk = kernel->walk([](Operation *op) -> WalkResult {
    for (Type type : op->getResultTypes())
      if (auto tile = dyn_cast<RankedTensorType>(type))
        if (failed(verifyTileSize([op] { return op->emitOpError(); }, tile)))
          return failure();
    return success();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult tessera::tile::verifyBox(Operation *op, ViewType view, RankedTensorType tile,
                                       std::optional<ArrayRef<int64_t>> box) {
  if (failed(verifyTileSize([op] { return op->emitOpError(); }, tile)))
    return failure();
  if (!box)
    return success();
  if (static_cast<int64_t>(box->size()) != view.getRank())
    return op->emitOpError("has a box of one extent per dimension of the view: expected ")
           << view.getRank() << ", got " << box->size();
  // Products of what fits: an extent is never above the number of elements of the tile.
  int64_t elements = 1;
  for (int64_t extent : *box) {
    if (extent < 1 || extent > tile.getNumElements() / elements)
      return op->emitOpError("has the box [")
             << *box << "], whose extents are at least 1 and whose "
             << "elements are those of " << tile;
    elements *= extent;
  }
  bool columnsFit = tile.getRank() < 2 || box->back() == tile.getDimSize(1);
  if (elements != tile.getNumElements() || !columnsFit)
    return op->emitOpError("has the box [")
           << *box << "], which does not make up " << tile
           << ": the last extent of the box is the columns of a rank-2 tile, the product of the "
              "others its rows";
  return success();
}
