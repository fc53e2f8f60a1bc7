//===- HopTypes.cpp - Types and layouts of the hop dialect ----------------===//

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
              "of 32 bytes and a multiple of 8 of them; got "
           << tile << " in " << rows << " rows";
  if (rows > tile::kMostTileElements / tile.getDimSize(1))
    return emitError() << "a slot has at most " << tile::kMostTileElements << " elements, got "
                       << rows << " rows of " << tile;
  return success();
}

/// A slot for one number, of a pipe whose fills are hop.pipe.put.
static bool isValue(RankedTensorType tile) {
  return tile.getShape() == ArrayRef<int64_t>(1) && tile.getElementType().isSignlessInteger(32);
}

LogicalResult PipeType::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType tile,
                               int64_t slots) {
  if (isValue(tile))
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

LogicalResult LayoutKindAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                             function_ref<InFlightDiagnostic()> emitError) const {
  auto isMultiple = [](int64_t extent, int64_t unit) { return extent > 0 && extent % unit == 0; };
  bool isTile = getValue() == LayoutKind::Accumulator, isColumn = getValue() == LayoutKind::Column;
  bool fits = isTile ? shape.size() == 2 && isMultiple(shape[0], hopper::mmaRows) &&
                           isMultiple(shape[1], hopper::mmaColumns)
                     : shape.size() == 1 &&
                           isMultiple(shape[0], isColumn ? hopper::mmaColumns : hopper::mmaRows);
  if (fits && elementType.isIntOrFloat())
    return success();
  return emitError() << "the layout " << stringifyLayoutKind(getValue()) << " is of "
                     << (isTile     ? "rank 2, with multiples of 64 rows and 8 columns"
                         : isColumn ? "rank 1, with a multiple of 8 columns"
                                    : "rank 1, with a multiple of 64 rows")
                     << " of integers or floats";
}

std::optional<LayoutKind> hop::getLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return std::nullopt;
  if (auto layout = dyn_cast_or_null<LayoutKindAttr>(tensor.getEncoding()))
    return layout.getValue();
  return std::nullopt;
}

RankedTensorType hop::withLayout(RankedTensorType type, LayoutKind kind) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               LayoutKindAttr::get(type.getContext(), kind));
}
