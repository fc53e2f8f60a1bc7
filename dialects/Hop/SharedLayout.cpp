//===- SharedLayout.cpp - How a tile lies in shared memory ----------------===//

#include "dialects/Hop/SharedLayout.h"
#include "dialects/Tile/Tile.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::hop;

std::optional<SharedLayout> tessera::hop::getSharedLayout(RankedTensorType tile, int64_t rows) {
  if (tile.getRank() == 1 && tile.hasStaticShape() && tile.getDimSize(0) == rows) {
    bool isNumber = tile.getElementType().isIntOrFloat();
    int64_t bytes = isNumber ? tile.getElementTypeBitWidth() / 8 : 0;
    bool fits = (bytes == 2 || bytes == 4 || bytes == 8) && rows > 0 &&
                rows <= hopper::mostBoxExtent && bytes * rows % hopper::bulkAlignment == 0;
    return fits ? std::optional(SharedLayout{1, rows, bytes, 0}) : std::nullopt;
  }
  if (tile.getRank() != 2 || !tile.hasStaticShape() || tile.getNumElements() == 0 ||
      rows < hopper::swizzleRows || rows % hopper::swizzleRows != 0 ||
      !tile.getElementType().isIntOrFloat())
    return std::nullopt;
  int64_t elementBytes = tile.getElementTypeBitWidth() / 8;
  if (elementBytes != 1 && elementBytes != 2 && elementBytes != 4)
    return std::nullopt;
  int64_t rowBytes = tile.getDimSize(1) * elementBytes;
  if (isa_and_nonnull<tile::WideAttr>(tile.getEncoding()) &&
      rowBytes % hopper::narrowestSwizzle == 0) {
    int64_t filled = llvm::alignTo(rowBytes, hopper::widestSwizzle) / elementBytes;
    return SharedLayout{rows, filled, elementBytes, hopper::widestSwizzle};
  }
  // The widest swizzle has the fewest bank conflicts.
  for (int64_t swizzle = hopper::widestSwizzle; swizzle >= hopper::narrowestSwizzle; swizzle /= 2)
    if (rowBytes % swizzle == 0)
      return SharedLayout{rows, tile.getDimSize(1), elementBytes, swizzle};
  return std::nullopt;
}

std::optional<TileParts> tessera::hop::splitAmong(const SharedLayout &layout, int64_t blocks) {
  if (blocks == 1)
    return TileParts{1, 1};
  TileParts parts;
  parts.ofChunks = std::gcd(layout.chunks(), blocks);
  parts.ofRows = blocks / parts.ofChunks;
  if (layout.rows % (hopper::swizzleRows * parts.ofRows) != 0)
    return std::nullopt;
  return parts;
}
