//===- DotChecks.h - Which dots a wgmma can be asked for -------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_DOTCHECKS_H
#define TESSERA_PASSES_SCHEDULE_DOTCHECKS_H

#include "dialects/Tile/Tile.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace tessera {

/// The first positive multiple of `granule` that is at least `extent`.
inline int64_t roundUp(int64_t extent, int64_t granule) {
  return llvm::alignTo(std::max<int64_t>(extent, 1), granule);
}

/// Refuses, at its place, what no schedule of `kernel` can run.
llvm::LogicalResult checkDots(tile::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_DOTCHECKS_H
