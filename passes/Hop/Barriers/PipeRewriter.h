//===- PipeRewriter.h - Roles on buffers and mbarriers ----------------------===//
//
// The part of hop-insert-mbarriers that writes what a role does with pipes as waits, arrivals and
// copies, and carries its places in their rings through loops and conditionals.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_BARRIERS_PIPEREWRITER_H
#define TESSERA_PASSES_HOP_BARRIERS_PIPEREWRITER_H

#include "passes/Hop/Barriers/PipeRings.h"

namespace tessera {

/// Fills and reads of one pipe have places of their own.
enum class Side { Fill, Read };
using Cursor = std::pair<mlir::Value, Side>;

/// The place that `op` takes the next slot at; none where it takes none, or that of a leader.
std::optional<Cursor> cursorOf(mlir::Operation *op);

/// Rewrites `role` of a kernel whose clusters have `blocks` blocks.
void rewritePipes(hop::RoleOp role, const PipeRings &rings, int64_t blocks);

} // namespace tessera

#endif // TESSERA_PASSES_HOP_BARRIERS_PIPEREWRITER_H
