//===- FindVisits.h - The iterations that a mask leaves -------------------===//

#ifndef TESSERA_PASSES_TILE_FINDVISITS_H
#define TESSERA_PASSES_TILE_FINDVISITS_H

#include "dialects/Tile/Tile.h"

namespace tessera {

/// Iterations from `first` up to `past`.
struct VisitInterval {
  mlir::Value first, past;
  std::string loose; ///< why there may be iterations that the mask leaves out; empty where none are
};

/// Computes, before `visits`, the interval that tile-find-visits takes for its results, which it
/// replaces. Erases `visits`.
VisitInterval resolveVisits(tile::VisitsOp visits);

/// Why an interval that tile-find-visits would compute in `kernel` may have iterations that the
/// mask leaves out; empty where it has none, or where nothing asks. Leaves the kernel alone.
std::string whyVisitsAreLoose(tile::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_TILE_FINDVISITS_H
