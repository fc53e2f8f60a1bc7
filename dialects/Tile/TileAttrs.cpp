//===- TileAttrs.cpp - Attributes of the tile dialect ---------------------===//

#include "dialects/Tile/Tile.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera::tile;

LogicalResult GridDimAttr::verify(function_ref<InFlightDiagnostic()> emitError, Attribute extent,
                                  int64_t divisor) {
  if (!isa<StringAttr, IntegerAttr>(extent))
    return emitError() << "a grid extent is the name of a run-time dimension or an integer, got "
                       << extent;
  if (divisor < 1)
    return emitError() << "the divisor of a grid extent is at least 1, got " << divisor;
  return success();
}

LogicalResult AtMostAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr,
                                 int64_t bound) {
  if (bound < 1 || bound > INT32_MAX)
    return emitError() << "the bound of an extent is 1 to 2^31 - 1, got " << bound;
  return success();
}

LogicalResult AboveAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr,
                                FloatAttr bound) {
  if (!bound.getType().isF64() || !bound.getValue().isFinite())
    return emitError() << "the bound of a scalar is a finite f64, got " << bound;
  return success();
}

LogicalResult DividesAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr,
                                  StringAttr, int64_t factor) {
  // Extents are below 2^31, so that the product fits 64 bits.
  if (factor < 1 || factor > INT32_MAX)
    return emitError() << "the factor of a requirement is 1 to 2^31 - 1, got " << factor;
  return success();
}
