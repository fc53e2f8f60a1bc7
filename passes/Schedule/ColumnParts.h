//===- ColumnParts.h - Dots with accumulators in parts ---------------------===//
//
// Cuts the accumulators of dots, with all on their way, into parts along their columns. What
// tile-cut-dots says of it in TilePasses.td holds for both of its uses: what no warpgroup holds,
// and what several consumers share.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_COLUMNPARTS_H
#define TESSERA_PASSES_SCHEDULE_COLUMNPARTS_H

#include "dialects/Tile/Tile.h"
#include <string>

namespace tessera {

/// Which dots have their accumulators cut, and why.
struct ColumnCut {
  llvm::SmallVector<tile::DotOp> dots;
  int64_t parts = 1;
  std::string reason;  ///< "as ..."
  std::string instead; ///< what would need no parts
};

/// Why a kernel cannot be cut, and where.
struct CutRefusal {
  mlir::Operation *op = nullptr;
  std::string reason;
};

/// Cuts what `plan` has of `kernel`, or leaves it as it is and says why.
llvm::LogicalResult cutColumns(tile::KernelOp kernel, const ColumnCut &plan, CutRefusal &refusal);

/// The dots of a single accumulator that loops carry, of which each of `consumers` gets some of the
/// columns; none where loops carry another number of accumulators.
ColumnCut planForConsumers(tile::KernelOp kernel, int64_t consumers);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_COLUMNPARTS_H
