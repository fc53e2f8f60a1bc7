//===- SharedLayout.cpp - How a tile lies in shared memory ----------------===//

#include "dialects/Hop/SharedLayout.h"

using namespace mlir;
using namespace tessera::hop;

std::optional<SharedLayout> tessera::hop::getSharedLayout(RankedTensorType tile, int64_t rows) {
  if (tile.getRank() != 2 || rows % 8 != 0)
    return std::nullopt;
  int64_t elementBytes = tile.getElementTypeBitWidth() / 8;
  int64_t rowBytes = tile.getDimSize(1) * elementBytes;
  // The widest swizzle has the fewest bank conflicts.
  for (int64_t swizzle : {128, 64, 32})
    if (rowBytes % swizzle == 0)
      return SharedLayout{rows, tile.getDimSize(1), elementBytes, swizzle};
  return std::nullopt;
}
