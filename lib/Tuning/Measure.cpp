//===- Measure.cpp - Timing the contestants of a session ------------------===//

#include "lib/Tuning/Measure.h"
#include "lib/Support/Fail.h"
#include "lib/Tuning/Merge.h"
#include "lib/Tuning/ShapeMeasurement.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace tessera;
using namespace tessera::tuning;
namespace cuda = tessera::runtime::cuda;
using llvm::Error;
using llvm::Expected;

Expected<Device> tessera::tuning::queryDevice(const cuda::Driver &driver, int ordinal) {
  int count = 0, major = 0, minor = 0, multiprocessors = 0;
  char name[256] = "";
  if (Error error = driver.check(driver.deviceGetCount(&count), "cuDeviceGetCount"))
    return std::move(error);
  if (ordinal >= count)
    return fail(llvm::formatv("there is no CUDA device {0}; this machine has {1}", ordinal, count));
  cuda::Device device = 0;
  if (Error error = driver.check(driver.deviceGet(&device, ordinal), "cuDeviceGet"))
    return std::move(error);
  if (Error error =
          driver.check(driver.deviceGetName(name, sizeof(name), device), "cuDeviceGetName"))
    return std::move(error);
  for (auto [attribute, value] : {std::pair(cuda::kComputeCapabilityMajor, &major),
                                  std::pair(cuda::kComputeCapabilityMinor, &minor),
                                  std::pair(cuda::kMultiprocessorCount, &multiprocessors)})
    if (Error error = driver.check(driver.deviceGetAttribute(value, attribute, device),
                                   "cuDeviceGetAttribute"))
      return std::move(error);
  if (major != 9 || minor != 0)
    return fail(llvm::formatv("{0} is of compute capability {1}.{2}; kernels are for 9.0 (Hopper)",
                              name, major, minor));
  return Device{name, multiprocessors};
}

Expected<Timing> tessera::tuning::timeAlone(llvm::function_ref<Error()> launch,
                                            const cuda::Driver &driver,
                                            const MeasureOptions &options) {
  Expected<cuda::ContextScope> scope = cuda::ContextScope::enter(driver, options.device);
  if (!scope)
    return scope.takeError();
  Expected<Stopwatch> stopwatch = Stopwatch::create(driver, options.device, options.limitSeconds);
  if (!stopwatch)
    return stopwatch.takeError();
  std::vector<double> samples;
  std::vector<runtime::PowerMeter::Reading> readings;
  if (Error error = stopwatch->time(launch, 3, samples, readings))
    return std::move(error);
  unsigned runs = countRuns(samples, options.milliseconds);
  for (unsigned i = 0; i < countWarmUpTurns(options.milliseconds); ++i)
    if (Error error = stopwatch->time(launch, runs, samples, readings))
      return std::move(error);
  samples.clear();
  readings.clear();
  for (unsigned i = 0; i < options.rounds; ++i)
    if (Error error = stopwatch->time(launch, runs, samples, readings))
      return std::move(error);
  Timing timing;
  timing.ms = summarize(samples);
  setClockAndPower(readings, timing);
  return timing;
}

namespace {
/// The targets of a session, one after the other.
class SessionMeasurement {
public:
  SessionMeasurement(Session &session, const cuda::Driver &driver, const MeasureOptions &options,
                     std::unique_ptr<Stopwatch> stopwatch)
      : session(session), driver(driver), options(options), stopwatch(std::move(stopwatch)) {}

  Error run();

private:
  Error measureShape(Target &target, size_t shape, llvm::function_ref<Error(ShapeMeasurement &)>);
  Error measureTarget(Target &target);
  Error measureSequence(size_t number);
  Surroundings getSurroundings(const Target &target, size_t shape) const;

  Session &session;
  const cuda::Driver &driver;
  const MeasureOptions &options;
  std::unique_ptr<Stopwatch> stopwatch;
  std::vector<const Target *> decided; ///< of the sequence that is measured
};
} // namespace

/// Saves what was measured, also before an error, after which nothing can be freed any more.
Error SessionMeasurement::measureShape(Target &target, size_t shape,
                                       llvm::function_ref<Error(ShapeMeasurement &)> measure) {
  auto measurement = std::make_unique<ShapeMeasurement>(
      target, shape, getSurroundings(target, shape), *session.device, driver, options, *stopwatch);
  Error failed = measure(*measurement);
  session.date = llvm::formatv("{0:%Y-%m-%d}", llvm::sys::toUtcTime(std::time(nullptr))).str();
  if (Error error = options.save(session))
    failed = joinErrors(std::move(failed), std::move(error));
  if (!failed)
    return Error::success();
  // To free memory would wait for a kernel that does not end.
  (void)measurement.release();
  (void)stopwatch.release();
  return failed;
}

/// The sequence of a target, with the winners among the kernels that are decided.
Surroundings SessionMeasurement::getSurroundings(const Target &target, size_t shape) const {
  Surroundings surroundings;
  if (!target.sequence)
    return surroundings;
  surroundings.sequence = &session.sequences[*target.sequence];
  for (const Target *other : decided)
    for (const ClassShapes &group : groupShapes(*other, *session.device)) {
      size_t winner = findWinner(*other, group.shapes);
      if (!llvm::is_contained(group.shapes, shape) || winner == other->contestants.size())
        continue;
      surroundings.programs[other->kernel] = other->contestants[winner].candidate.program;
      surroundings.bundles[other->kernel] = other->contestants[winner].bundle;
    }
  return surroundings;
}

Error SessionMeasurement::measureTarget(Target &target) {
  for (size_t shape = 0; shape < target.shapes.size(); ++shape) {
    options.progress(
        llvm::formatv("{0}: {1}", target.kernel, print(target.shapes[shape].extents)).str());
    if (Error error = measureShape(target, shape, [](ShapeMeasurement &m) { return m.run(); }))
      return error;
  }
  return Error::success();
}

/// One kernel after the other, each with what won of those before it: first those that take most of
/// the time, so that they choose the tiles.
Error SessionMeasurement::measureSequence(size_t number) {
  decided.clear();
  std::vector<Target *> order;
  for (Target &target : session.targets) {
    if (target.sequence != number)
      continue;
    auto measure = [](ShapeMeasurement &measurement) { return measurement.runAlone(); };
    for (size_t shape = target.aloneMs.size(); shape < target.shapes.size(); ++shape)
      if (Error error = measureShape(target, shape, measure))
        return fail("sequence '" + session.sequences[number].name +
                    "', as the model chooses it: " + toString(std::move(error)));
    order.push_back(&target);
  }
  auto sum = [](const Target *target) {
    return std::accumulate(target->aloneMs.begin(), target->aloneMs.end(), 0.0);
  };
  llvm::sort(order, [&](const Target *a, const Target *b) {
    return std::pair(-sum(a), a) < std::pair(-sum(b), b);
  });
  for (Target *target : order) {
    if (Error error = measureTarget(*target))
      return error;
    decided.push_back(target);
  }
  return Error::success();
}

Error SessionMeasurement::run() {
  for (Target &target : session.targets)
    if (!target.sequence)
      if (Error error = measureTarget(target))
        return error;
  for (size_t number = 0; number < session.sequences.size(); ++number)
    if (Error error = measureSequence(number))
      return error;
  return Error::success();
}

Error tessera::tuning::measureSession(Session &session, const cuda::Driver &driver,
                                      const MeasureOptions &options) {
  Expected<Device> device = queryDevice(driver, options.device);
  if (!device)
    return device.takeError();
  if (session.device && session.device->name != device->name)
    return fail("the results so far are of '" + session.device->name + "' and this is '" +
                device->name + "'; write to another file");
  session.device = *device;
  // The context that everything is in stays current until the end.
  Expected<cuda::ContextScope> scope = cuda::ContextScope::enter(driver, options.device);
  if (!scope)
    return scope.takeError();
  Expected<Stopwatch> stopwatch = Stopwatch::create(driver, options.device, options.limitSeconds);
  if (!stopwatch)
    return stopwatch.takeError();
  return SessionMeasurement(session, driver, options,
                            std::make_unique<Stopwatch>(std::move(*stopwatch)))
      .run();
}
