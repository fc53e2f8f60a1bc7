//===- Measure.cpp - Timing the contestants of a session ------------------===//

#include "lib/Tuning/Measure.h"
#include "lib/Compiler/LaunchTimes.h"
#include "lib/Database/Json.h"
#include "lib/Runtime/Launch.h"
#include "lib/Support/Fail.h"
#include "lib/Tuning/Device.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace tessera;
using namespace tessera::tuning;
namespace cuda = tessera::runtime::cuda;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;

/// Results of two schedules that round in another order differ by less than this.
static constexpr double kMostDifference = 1e-2;
/// Milliseconds of work before the first turn, so that the card is warm for it.
static constexpr double kWarmUpMs = 200;
static constexpr unsigned kMostRunsPerTurn = 100;

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

/// The runs of a turn of some milliseconds, from the times of a few runs.
static unsigned countRuns(ArrayRef<double> samples, double milliseconds) {
  double estimate = std::max(quantile(samples, 0.5), 1e-3);
  return std::clamp<double>(milliseconds / estimate, 2, kMostRunsPerTurn);
}

static unsigned countWarmUpTurns(double milliseconds) {
  return std::max(1.0, kWarmUpMs / milliseconds);
}

static void setClockAndPower(ArrayRef<runtime::PowerMeter::Reading> readings, Timing &timing) {
  std::vector<double> mhz, watts;
  for (const runtime::PowerMeter::Reading &reading : readings) {
    mhz.push_back(reading.mhz);
    watts.push_back(reading.watts);
  }
  timing.mhz = summarize(mhz).median;
  timing.watts = summarize(watts).median;
}

namespace {
/// A contestant on the device.
struct Runner {
  Contestant *contestant = nullptr;
  std::unique_ptr<runtime::Bundle> bundle;
  runtime::Kernel *kernel = nullptr;
  Timing timing;
  std::vector<double> samples;
  std::vector<runtime::PowerMeter::Reading> readings;
  unsigned runsPerTurn = 1;
  bool isOut = false;
};

/// One shape of a target.
class ShapeMeasurement {
public:
  ShapeMeasurement(Target &target, size_t shape, const Device &device, const cuda::Driver &driver,
                   const MeasureOptions &options, Stopwatch &stopwatch)
      : target(target), shape(shape), device(device), driver(driver), options(options),
        stopwatch(stopwatch) {}

  /// Sets the timings of the shape. The error is one that ends everything.
  Error run();

private:
  bool isNeeded(const Contestant &contestant) const {
    return contestant.error.empty() && !contestant.timings[shape];
  }
  Error loadRunners();
  Error load(Runner &runner);
  Error check(Runner &runner);
  Error giveUp(Runner &runner, Error error);
  Expected<double> countWaves(const Runner &runner) const;
  Error launch(const Runner &runner) const {
    return runner.kernel->launch(options.device, nullptr, tensors->getArguments());
  }
  Error time(Runner &runner, unsigned count);
  Error takeTurns();
  Error settle(Runner &runner);
  void dropSlow();
  void finish();

  Target &target;
  size_t shape;
  const Device &device;
  const cuda::Driver &driver;
  const MeasureOptions &options;
  Stopwatch &stopwatch;
  std::vector<Runner> runners;
  std::optional<DeviceTensors> tensors;
  std::vector<std::vector<char>> reference;
};
} // namespace

//===----------------------------------------------------------------------===//
// Loading and checking
//===----------------------------------------------------------------------===//

Error ShapeMeasurement::load(Runner &runner) {
  llvm::SmallString<128> path(options.directory);
  llvm::sys::path::append(path, runner.contestant->bundle);
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Expected<std::unique_ptr<runtime::Bundle>> bundle = runtime::Bundle::create(*text, &driver);
  if (!bundle)
    return bundle.takeError();
  runner.bundle = std::move(*bundle);
  for (runtime::Kernel &kernel : runner.bundle->getKernels())
    if (kernel.getSignature().name == target.kernel)
      runner.kernel = &kernel;
  if (!runner.kernel)
    return fail("'" + path + "' has no kernel '" + target.kernel + "'");
  return Error::success();
}

/// Loads what is to be timed, the first of all contestants too, whose results are the reference.
Error ShapeMeasurement::loadRunners() {
  for (Contestant &contestant : target.contestants) {
    if (!isNeeded(contestant))
      continue;
    Runner &runner = runners.emplace_back();
    runner.contestant = &contestant;
    if (Error error = load(runner))
      return error;
  }
  Expected<DeviceTensors> made =
      DeviceTensors::create(driver, options.device, *runners.front().kernel->getKernelInfo(),
                            target, target.shapes[shape].extents);
  if (!made)
    return made.takeError();
  tensors.emplace(std::move(*made));
  return Error::success();
}

Expected<double> ShapeMeasurement::countWaves(const Runner &runner) const {
  const runtime::KernelInfo &info = *runner.kernel->getKernelInfo();
  runtime::DimValues dims;
  if (Error error = runtime::checkArguments(info, tensors->getArguments(), dims))
    return std::move(error);
  Expected<std::array<unsigned, 3>> grid = runtime::computeGrid(info, dims);
  if (!grid)
    return grid.takeError();
  double blocks = static_cast<double>((*grid)[0]) * (*grid)[1] * (*grid)[2];
  const Resources &resources = runner.contestant->resources;
  double atATime =
      static_cast<double>(device.multiprocessors) *
      countBlocksPerMultiprocessor(resources.threads, resources.sharedMemory, resources.registers);
  if (info.persistent) {
    Expected<unsigned> capacity = runner.kernel->getCapacity(options.device);
    if (!capacity)
      return capacity.takeError();
    atATime = *capacity;
  }
  return blocks / atATime;
}

/// Notes for every shape that the contestant spoilt the device.
Error ShapeMeasurement::giveUp(Runner &runner, Error error) {
  std::string reason = toString(std::move(error));
  for (std::optional<Timing> &timing : runner.contestant->timings)
    if (!timing)
      timing.emplace().failure = reason;
  const Candidate &candidate = runner.contestant->candidate;
  std::string tiles = candidate.tuned.empty() ? "" : print(candidate.tuned) + ", ";
  return fail("contestant '" + tiles + candidate.schedule + "': " + reason +
              "; the device is of no more use to this process: run again, which goes on with the "
              "other contestants");
}

/// Runs a contestant once and compares its results with the reference.
Error ShapeMeasurement::check(Runner &runner) {
  Expected<double> waves = countWaves(runner);
  if (!waves) {
    runner.timing.failure = toString(waves.takeError());
    return Error::success();
  }
  runner.timing.waves = *waves;
  if (Error error = tensors->resetResults())
    return error;
  if (Error error = launch(runner)) {
    runner.timing.failure = toString(std::move(error));
    return Error::success();
  }
  if (Error error = stopwatch.wait(runner.readings))
    return giveUp(runner, std::move(error));
  Expected<std::vector<std::vector<char>>> results = tensors->downloadResults();
  if (!results)
    return giveUp(runner, results.takeError());
  if (reference.empty())
    reference = *results;
  runner.timing.difference = tensors->compareResults(*results, reference);
  if (runner.timing.difference > kMostDifference)
    runner.timing.failure =
        llvm::formatv("its results differ from those of the model's choice by {0:f3}",
                      runner.timing.difference)
            .str();
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

Error ShapeMeasurement::time(Runner &runner, unsigned count) {
  Error error =
      stopwatch.time([&] { return launch(runner); }, count, runner.samples, runner.readings);
  return error ? giveUp(runner, std::move(error)) : Error::success();
}

/// As many runs as a turn has, not counted: at its power limit a card takes a while to the clock
/// that a kernel's own power leaves.
Error ShapeMeasurement::settle(Runner &runner) {
  std::vector<double> samples;
  std::vector<runtime::PowerMeter::Reading> readings;
  Error error =
      stopwatch.time([&] { return launch(runner); }, runner.runsPerTurn, samples, readings);
  return error ? giveUp(runner, std::move(error)) : Error::success();
}

/// Leaves out what is too far behind to win.
void ShapeMeasurement::dropSlow() {
  double best = std::numeric_limits<double>::infinity();
  for (const Runner &runner : runners)
    if (!runner.samples.empty())
      best = std::min(best, quantile(runner.samples, 0.5));
  for (Runner &runner : runners)
    runner.isOut |= !runner.samples.empty() && quantile(runner.samples, 0) > best * options.outrun;
}

Error ShapeMeasurement::takeTurns() {
  std::vector<Runner *> order;
  for (Runner &runner : runners)
    if (runner.timing.failure.empty())
      order.push_back(&runner);
  for (Runner *runner : order) {
    if (Error error = time(*runner, 3))
      return error;
    runner->runsPerTurn = countRuns(runner->samples, options.milliseconds);
    runner->samples.clear();
  }
  if (!order.empty()) {
    Runner &first = *order.front();
    for (unsigned i = 0; i < countWarmUpTurns(options.milliseconds); ++i)
      if (Error error = time(first, first.runsPerTurn))
        return error;
    first.samples.clear();
  }
  for (Runner *runner : order)
    runner->readings.clear();
  for (unsigned round = 0; round < options.rounds; ++round) {
    for (size_t number : balancedOrder(order.size(), round)) {
      Runner *runner = order[number];
      if (runner->isOut)
        continue;
      // The first round only drops what is slow.
      if (Error error = round ? settle(*runner) : Error::success())
        return error;
      if (Error error = time(*runner, runner->runsPerTurn))
        return error;
    }
    dropSlow();
  }
  return Error::success();
}

void ShapeMeasurement::finish() {
  for (Runner &runner : runners) {
    runner.timing.ms = summarize(runner.samples);
    setClockAndPower(runner.readings, runner.timing);
    runner.contestant->timings[shape] = runner.timing;
  }
}

Error ShapeMeasurement::run() {
  if (llvm::none_of(target.contestants, [&](const Contestant &c) { return isNeeded(c); }))
    return Error::success();
  if (Error error = loadRunners())
    return error;
  for (Runner &runner : runners)
    if (Error error = check(runner))
      return error;
  reference.clear();
  if (Error error = takeTurns())
    return error;
  finish();
  return Error::success();
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
  Expected<Stopwatch> created = Stopwatch::create(driver, options.device, options.limitSeconds);
  if (!created)
    return created.takeError();
  auto stopwatch = std::make_unique<Stopwatch>(std::move(*created));
  for (Target &target : session.targets)
    for (size_t shape = 0; shape < target.shapes.size(); ++shape) {
      options.progress(
          llvm::formatv("{0}: {1}", target.kernel, print(target.shapes[shape].extents)).str());
      auto measurement =
          std::make_unique<ShapeMeasurement>(target, shape, *device, driver, options, *stopwatch);
      Error failed = measurement->run();
      session.date = llvm::formatv("{0:%Y-%m-%d}", llvm::sys::toUtcTime(std::time(nullptr))).str();
      if (Error error = options.save(session))
        failed = joinErrors(std::move(failed), std::move(error));
      if (!failed)
        continue;
      // To free memory would wait for a kernel that does not end.
      (void)measurement.release();
      (void)stopwatch.release();
      return failed;
    }
  return Error::success();
}
