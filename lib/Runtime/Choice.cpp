//===- Choice.cpp - Which of several kernels a launch takes ---------------===//

#include "lib/Runtime/Choice.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace tessera::runtime;

/// Whether two kernels ask the same of extents.
static bool takeTheSame(const KernelInfo &a, const KernelInfo &b) {
  return llvm::equal(
             a.bounds, b.bounds,
             [](const Bound &x, const Bound &y) { return x.dim == y.dim && x.most == y.most; }) &&
         llvm::equal(
             a.requirements, b.requirements, [](const Requirement &x, const Requirement &y) {
               return x.dividend == y.dividend && x.factor == y.factor && x.divisor == y.divisor;
             });
}

Chooser::Chooser(const BundleInfo &bundle, const ChoiceInfo &choice)
    : bundle(bundle), choice(choice), sources(choice.dims.size()) {
  // The first place of each name is what counts, as in checks.
  for (unsigned i = choice.arguments.size(); i-- > 0;)
    for (unsigned j = 0; j < choice.arguments[i].dims.size(); ++j)
      if (int dim = choice.arguments[i].dims[j].dim; dim >= 0)
        sources[dim] = {i, j};
  const KernelInfo *before = nullptr;
  for (const AlternativeInfo &alternative : choice.alternatives) {
    TimeModel &model = models.emplace_back(alternative.time);
    model.terms = alternative.iterations.data();
    model.termCount = alternative.iterations.size();
    const KernelInfo &kernel = bundle.kernels[alternative.kernel];
    isTakenAlike.push_back(before && takeTheSame(*before, kernel));
    before = &kernel;
  }
}

/// Whether extents are within what the kernel of an alternative asks of them.
bool Chooser::takes(unsigned alternative, llvm::ArrayRef<int64_t> dims) const {
  const KernelInfo &kernel = bundle.kernels[choice.alternatives[alternative].kernel];
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

double Chooser::predict(unsigned alternative, llvm::ArrayRef<int64_t> dims) const {
  if (!takes(alternative, dims))
    return std::numeric_limits<double>::infinity();
  Extents extents(dims.begin(), dims.end());
  TimeExpected expected;
  expectTime(&models[alternative], extents.data(), &expected);
  return findTime(&expected, TIME_NEVER);
}

unsigned Chooser::findFastest(llvm::ArrayRef<int64_t> dims) const {
  Extents extents(dims.begin(), dims.end());
  llvm::SmallVector<TimeExpected, 8> launches;
  launches.resize_for_overwrite(models.size());
  bool taken = false;
  for (unsigned i = 0; i < models.size(); ++i) {
    if (!isTakenAlike[i])
      taken = takes(i, dims);
    if (taken)
      expectTime(&models[i], extents.data(), &launches[i]);
    else
      expectExactly(&launches[i], std::numeric_limits<double>::infinity());
  }
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
