//===- Hop.h - The hop dialect --------------------------------------------===//
//
// Roles, pipes, flights and layouts: what a Hopper multiprocessor does. See
// HopDialect.td for what it means.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_HOP_H
#define TESSERA_DIALECTS_HOP_HOP_H

#include "dialects/Tile/Tile.h"
#include "mlir/IR/TensorEncoding.h"

#include "dialects/Hop/HopEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Hop/HopTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Hop/HopAttrs.h.inc"
// After the attributes, of which the dialect has a discardable one.
#include "dialects/Hop/HopDialect.h.inc"
namespace tessera::hop {
class TimelineOp;
/// Refuses a place that the bytes of `op`, a SharedMemoryOpInterface, cannot have.
mlir::LogicalResult verifyPlace(mlir::Operation *op);
} // namespace tessera::hop

#include "dialects/Hop/HopInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Hop/HopOps.h.inc"

namespace tessera::hop {

/// The layout of a tile in registers; nothing for a tensor without one.
std::optional<LayoutKind> getLayout(mlir::Type type);

/// `type` with the given layout.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, LayoutKind kind);

} // namespace tessera::hop

#endif // TESSERA_DIALECTS_HOP_HOP_H
