//===- Statistics.cpp - What repeated measurements say --------------------===//

#include "lib/Tuning/Statistics.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace tessera::tuning;
using llvm::ArrayRef;

double tessera::tuning::quantile(ArrayRef<double> samples, double fraction) {
  std::vector<double> sorted(samples.begin(), samples.end());
  llvm::sort(sorted);
  double place = fraction * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(place);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

Summary tessera::tuning::summarize(ArrayRef<double> samples) {
  Summary summary;
  summary.count = samples.size();
  if (samples.empty())
    return summary;
  summary.median = quantile(samples, 0.5);
  summary.min = quantile(samples, 0);
  if (summary.median > 0)
    summary.spread = (quantile(samples, 0.75) - quantile(samples, 0.25)) / summary.median;
  return summary;
}

std::vector<size_t> tessera::tuning::balancedOrder(size_t count, size_t turn) {
  std::vector<size_t> order(count);
  for (size_t step = 0; step < count; ++step) {
    size_t zigzag = step % 2 ? (step + 1) / 2 : count - step / 2;
    order[step] = (zigzag + turn) % count;
  }
  if (count && turn / count % 2)
    std::reverse(order.begin(), order.end());
  return order;
}

size_t tessera::tuning::chooseWinner(ArrayRef<std::vector<double>> times, double tolerance) {
  size_t shapes = times.empty() ? 0 : times.front().size();
  auto isComplete = [](ArrayRef<double> row) {
    return !row.empty() && llvm::all_of(row, [](double time) { return time > 0; });
  };
  std::vector<double> best(shapes, std::numeric_limits<double>::infinity());
  for (ArrayRef<double> row : times)
    if (isComplete(row))
      for (size_t i = 0; i < shapes; ++i)
        best[i] = std::min(best[i], row[i]);
  std::vector<double> scores;
  for (ArrayRef<double> row : times) {
    double sum = 0;
    for (size_t i = 0; i < shapes && isComplete(row); ++i)
      sum += std::log(row[i] / best[i]);
    scores.push_back(isComplete(row) ? std::exp(sum / static_cast<double>(shapes))
                                     : std::numeric_limits<double>::infinity());
  }
  auto least = llvm::min_element(scores);
  if (least == scores.end() || !std::isfinite(*least))
    return times.size();
  return llvm::find_if(scores, [&](double score) { return score <= *least * (1 + tolerance); }) -
         scores.begin();
}
