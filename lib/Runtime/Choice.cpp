//===- Choice.cpp - Which of several kernels a launch takes ---------------===//

#include "lib/Runtime/Choice.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace tessera::runtime;

Chooser::Chooser(const BundleInfo &bundle, const ChoiceInfo &choice)
    : bundle(bundle), choice(choice), sources(choice.dims.size()) {
  // The first place of each name is what counts, as in checks.
  for (unsigned i = choice.arguments.size(); i-- > 0;)
    for (unsigned j = 0; j < choice.arguments[i].dims.size(); ++j)
      if (int dim = choice.arguments[i].dims[j].dim; dim >= 0)
        sources[dim] = {i, j};
  for (const AlternativeInfo &alternative : choice.alternatives) {
    TimeModel &model = models.emplace_back(alternative.time);
    model.terms = alternative.iterations.data();
    model.termCount = alternative.iterations.size();
  }
}

/// Whether extents are within what a kernel asks of them.
static bool takes(const KernelInfo &kernel, llvm::ArrayRef<int64_t> dims) {
  for (const Bound &bound : kernel.bounds)
    if (dims[bound.dim] > bound.most)
      return false;
  for (const Requirement &needed : kernel.requirements) {
    int64_t divisor = needed.factor * (needed.divisor ? dims[*needed.divisor] : 1);
    if (dims[needed.dividend] && (!divisor || dims[needed.dividend] % divisor))
      return false;
  }
  return true;
}

void Chooser::expect(unsigned index, llvm::ArrayRef<int64_t> dims, TimeExpected &expected) const {
  const AlternativeInfo &alternative = choice.alternatives[index];
  if (!takes(bundle.kernels[alternative.kernel], dims))
    return expectExactly(&expected, std::numeric_limits<double>::infinity());
  double grid[3];
  for (auto [tiles, dim] : llvm::zip_equal(grid, alternative.grid))
    tiles = countTiles(dim.extent.evaluate(dims), dim.divisor);
  expectTime(&models[index], dims.data(), grid, &expected);
}

double Chooser::predict(unsigned index, llvm::ArrayRef<int64_t> dims) const {
  TimeExpected expected;
  expect(index, dims, expected);
  return findTime(&expected, TIME_NEVER);
}

unsigned Chooser::findFastest(llvm::ArrayRef<int64_t> dims) const {
  llvm::SmallVector<TimeExpected, 8> launches;
  launches.resize_for_overwrite(models.size());
  for (unsigned i = 0; i < models.size(); ++i)
    expect(i, dims, launches[i]);
  return findFastestLaunch(launches.data(), launches.size());
}

unsigned Chooser::choose(llvm::ArrayRef<int64_t> dims) {
  uint64_t key = 0;
  for (int64_t extent : dims)
    key = (key ^ extent) * 0x9E3779B97F4A7C15; // which spreads it over the upper bits
  Slot &slot = slots[(key >> 32) % slots.size()];
  std::lock_guard<std::mutex> lock(mutex);
  if (llvm::ArrayRef<int64_t>(slot.dims) != dims) {
    slot.alternative = findFastest(dims);
    slot.dims.assign(dims.begin(), dims.end());
  }
  return slot.alternative;
}

unsigned Chooser::choose(llvm::ArrayRef<Argument> arguments) {
  llvm::SmallVector<int64_t, 16> dims;
  if (arguments.size() != choice.arguments.size())
    return 0;
  for (Source source : sources) {
    const Argument &argument = arguments[source.argument];
    if (argument.rank <= static_cast<int64_t>(source.dim) || !argument.shape)
      return 0;
    int64_t extent = argument.shape[source.dim];
    if (extent < 0 || extent > std::numeric_limits<int32_t>::max())
      return 0;
    dims.push_back(extent);
  }
  return choose(dims);
}
