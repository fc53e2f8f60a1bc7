//===- Choice.cpp - Which of several kernels a launch takes ---------------===//

#include "lib/Runtime/Choice.h"

#include "lib/Runtime/Sequence.h"

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
    const KernelInfo *kernel =
        getSequence(alternative) ? nullptr : &bundle.kernels[alternative.entry];
    isTakenAlike.push_back(before && kernel && takeTheSame(*before, *kernel));
    before = kernel;
    firstModels.push_back(models.size());
    for (const TimedLaunch &launch : alternative.launches) {
      TimeModel &model = models.emplace_back(launch.time);
      model.terms = launch.iterations.data();
      model.termCount = launch.iterations.size();
    }
  }
}

/// Null for a kernel.
const SequenceInfo *Chooser::getSequence(const AlternativeInfo &alternative) const {
  size_t kernels = bundle.kernels.size();
  return alternative.entry < kernels ? nullptr : &bundle.sequences[alternative.entry - kernels];
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

static double findWhole(const TimeModel &model, llvm::ArrayRef<double> extents) {
  TimeExpected expected;
  expectTime(&model, extents.data(), &expected);
  return findTime(&expected, TIME_NEVER);
}

/// The launches of a sequence run one behind the other.
double Chooser::predictSequence(const SequenceInfo &sequence, unsigned alternative,
                                llvm::ArrayRef<int64_t> dims) const {
  DimValues all(dims);
  if (llvm::Error error = deriveDims(sequence, all)) {
    llvm::consumeError(std::move(error));
    return std::numeric_limits<double>::infinity();
  }
  const AlternativeInfo &info = choice.alternatives[alternative];
  double sum = info.launchTime * (info.launches.size() - 1);
  for (auto [i, launch] : llvm::enumerate(info.launches)) {
    DimValues own;
    for (Extent extent : launch.dims)
      own.push_back(extent.evaluate(all));
    if (!takes(bundle.kernels[launch.kernel], own))
      return std::numeric_limits<double>::infinity();
    sum += findWhole(models[firstModels[alternative] + i], Extents(own.begin(), own.end()));
  }
  return sum;
}

double Chooser::predict(unsigned alternative, llvm::ArrayRef<int64_t> dims) const {
  const AlternativeInfo &info = choice.alternatives[alternative];
  if (const SequenceInfo *sequence = getSequence(info))
    return predictSequence(*sequence, alternative, dims);
  if (!takes(bundle.kernels[info.entry], dims))
    return std::numeric_limits<double>::infinity();
  return findWhole(models[firstModels[alternative]], Extents(dims.begin(), dims.end()));
}

unsigned Chooser::findFastest(llvm::ArrayRef<int64_t> dims) const {
  Extents extents(dims.begin(), dims.end());
  llvm::SmallVector<TimeExpected, 8> launches;
  launches.resize_for_overwrite(choice.alternatives.size());
  bool isTaken = false;
  for (auto [i, alternative] : llvm::enumerate(choice.alternatives)) {
    if (const SequenceInfo *sequence = getSequence(alternative)) {
      expectExactly(&launches[i], predictSequence(*sequence, i, dims));
      continue;
    }
    if (!isTakenAlike[i])
      isTaken = takes(bundle.kernels[alternative.entry], dims);
    if (isTaken)
      expectTime(&models[firstModels[i]], extents.data(), &launches[i]);
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
