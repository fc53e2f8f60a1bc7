//===- HopTypes.cpp - Types of the hop dialect ----------------------------===//

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Hop/SharedLayout.h"
#include "dialects/Tile/TileBox.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::hop;

static LogicalResult verifySlots(function_ref<InFlightDiagnostic()> emitError, int64_t slots) {
  constexpr int64_t most = int64_t(1) << 16; // more than shared memory has room for
  if (slots < 1 || slots > most)
    return emitError() << "there are 1 to " << most << " slots, got " << slots;
  return success();
}

/// A tile that is part of `rows` rows in shared memory.
static LogicalResult verifyStored(function_ref<InFlightDiagnostic()> emitError,
                                  RankedTensorType tile, int64_t rows) {
  if (failed(tile::verifyTileSize(emitError, tile)))
    return failure();
  if (!getSharedLayout(tile, rows) || tile.getDimSize(0) > rows)
    return emitError()
           << "a tile in shared memory has rank 2, elements of 2 or 4 bytes, rows of a multiple "
              "of 32 bytes and a multiple of 8 of them, or rank 1 and at most 256 elements of 2, 4 "
              "or 8 bytes, a multiple of 128 bytes; got "
           << tile << " in " << rows << " rows";
  if (tile.getRank() == 2 && rows > tile::kMostTileElements / tile.getDimSize(1))
    return emitError() << "a slot has at most " << tile::kMostTileElements << " elements, got "
                       << rows << " rows of " << tile;
  return success();
}

bool hop::holdsValue(RankedTensorType tile) {
  return tile.getShape() == ArrayRef<int64_t>(1) && tile.getElementType().isSignlessInteger(32);
}

LogicalResult PipeType::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType tile,
                               int64_t slots) {
  if (holdsValue(tile))
    return verifySlots(emitError, slots);
  return success(succeeded(verifySlots(emitError, slots)) &&
                 succeeded(verifyStored(emitError, tile, tile.getRank() ? tile.getDimSize(0) : 0)));
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 RankedTensorType tile, int64_t slots) {
  return PipeType::verify(emitError, tile, slots);
}

LogicalResult BarriersType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t slots) {
  return verifySlots(emitError, slots);
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 RankedTensorType tile, int64_t storedRows) {
  return verifyStored(emitError, tile, storedRows);
}

LogicalResult FlightType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 RankedTensorType tile) {
  if (failed(tile::verifyTileSize(emitError, tile)))
    return failure();
  if (tile.getRank() != 2 || !tile.hasStaticShape() || !tile.getElementType().isF32())
    return emitError() << "a flight is an f32 tile of rank 2, got " << tile;
  return success();
}
