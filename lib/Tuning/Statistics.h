//===- Statistics.h - What repeated measurements say ----------------------===//

#ifndef TESSERA_LIB_TUNING_STATISTICS_H
#define TESSERA_LIB_TUNING_STATISTICS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstddef>
#include <vector>

namespace tessera::tuning {

/// The value below which a fraction of `samples` (at least one, in any order) lies, interpolated
/// between neighbours: 0 gives the smallest, 0.5 the median, 1 the largest.
double quantile(llvm::ArrayRef<double> samples, double fraction);

/// Repeated measurements of one quantity.
struct Summary {
  double median = 0, min = 0;
  /// The middle half of the samples, as a fraction of the median.
  double spread = 0;
  size_t count = 0;
};

/// All zero when there are no samples.
Summary summarize(llvm::ArrayRef<double> samples);

/// The order of `count` contestants in a turn. In `count` turns (twice as many for an odd number)
/// each follows each other one equally often (E. J. Williams, 1949), for a card at its power limit
/// runs slower after a kernel that takes more.
std::vector<size_t> balancedOrder(size_t count, size_t turn);

/// The contestant of choice: `times[contestant][shape]` are medians, 0 where there is none. The
/// score of a contestant is the geometric mean over the shapes of its time over the shortest;
/// contestants without a time for some shape do not count. Of those whose score is within
/// `tolerance` (0.005 is half a per cent) of the best, the first. Returns the number of contestants
/// when none counts.
size_t chooseWinner(llvm::ArrayRef<std::vector<double>> times, double tolerance);

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_STATISTICS_H
