//===- FindVisits.h - The iterations that a mask leaves -------------------===//

#ifndef TESSERA_PASSES_TILE_FINDVISITS_H
#define TESSERA_PASSES_TILE_FINDVISITS_H

#include "dialects/Tile/Tile.h"
#include "passes/Analysis/GridOrder.h"

namespace tessera {

/// Iterations from `first` up to `past`.
struct VisitInterval {
  mlir::Value first, past;
  std::string loose; ///< why there may be iterations that the mask leaves out; empty where none are
  bool endMoves = false; ///< `past` follows the place of the rows, as under a diagonal
};

/// Computes, before `visits`, the interval that tile-find-visits takes for its results, which it
/// replaces. Erases `visits`.
VisitInterval resolveVisits(tile::VisitsOp visits);

/// What tile-find-visits would find of an interval in `kernel`.
struct VisitFacts {
  std::string loose;     ///< of the first interval that has a reason
  bool endMoves = false; ///< of any
  /// How the iterations of the kernel's loops change as its first grid index grows.
  Trend work = Trend::Unknown;
};

/// The facts of the intervals that `kernel` asks for. Leaves the kernel alone.
VisitFacts describeVisits(tile::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_TILE_FINDVISITS_H
