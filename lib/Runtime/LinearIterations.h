//===- LinearIterations.h - Iterations as a line of the tile's index -------===//

#ifndef TESSERA_LIB_RUNTIME_LINEARITERATIONS_H
#define TESSERA_LIB_RUNTIME_LINEARITERATIONS_H

#include "lib/Runtime/LaunchTime.h"

#include "llvm/ADT/ArrayRef.h"

namespace tessera::runtime {

/// The iterations that terms compute as a line of the tile's first index with two bounds and a
/// quotient, for indices and extents below 2^31. Its divisor is 0 where terms are not of that form,
/// or might exceed TIME_LIMIT on the way.
LinearIterations findLinearIterations(llvm::ArrayRef<TimeTerm> terms);

/// Says that so many tiles along the first dimension run together.
void setTimeCluster(TimeModel &model, int64_t tiles);

/// A dimension of the grid: the number where `dim` is below 0.
TimeGrid makeTimeGrid(int dim, int64_t number, int64_t divisor);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_LINEARITERATIONS_H
