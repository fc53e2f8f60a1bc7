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

#include "dialects/Hop/HopDialect.h.inc"
#include "dialects/Hop/HopEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Hop/HopTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Hop/HopAttrs.h.inc"
namespace tessera::hop {
class TimelineOp;
} // namespace tessera::hop

#define GET_OP_CLASSES
#include "dialects/Hop/HopOps.h.inc"

namespace tessera::hop {

/// The layout of a tile in registers; nothing for a tensor without one.
std::optional<LayoutKind> getLayout(mlir::Type type);

/// The attribute of a copy or a store with what the L2 cache does with its lines, a
/// CachePolicyAttr.
constexpr llvm::StringLiteral kCacheAttrName = "hop.cache";

/// `type` with the given layout.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, LayoutKind kind);

} // namespace tessera::hop

#endif // TESSERA_DIALECTS_HOP_HOP_H
