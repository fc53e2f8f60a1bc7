//===- ShapeMeasurement.cpp - Timing the contestants of one shape ---------===//

#include "lib/Tuning/ShapeMeasurement.h"
#include "lib/Compiler/LaunchTimes.h"
#include "lib/Database/Json.h"
#include "lib/Support/Fail.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace tessera;
using namespace tessera::tuning;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;

/// Results of two schedules that round in another order differ by less than this.
static constexpr double kMostDifference = 1e-2;
/// Milliseconds of work before the first turn, so that the card is warm for it.
static constexpr double kWarmUpMs = 200;
static constexpr unsigned kMostRunsPerTurn = 100;
/// Runs of a kernel that say which share of its sequence it has.
static constexpr unsigned kRunsAlone = 5;

unsigned tessera::tuning::countRuns(ArrayRef<double> samples, double milliseconds) {
  double estimate = std::max(quantile(samples, 0.5), 1e-3);
  return std::clamp<double>(milliseconds / estimate, 2, kMostRunsPerTurn);
}

unsigned tessera::tuning::countWarmUpTurns(double milliseconds) {
  return std::max(1.0, kWarmUpMs / milliseconds);
}

void tessera::tuning::setClockAndPower(ArrayRef<runtime::PowerMeter::Reading> readings,
                                       Timing &timing) {
  std::vector<double> mhz, watts;
  for (const runtime::PowerMeter::Reading &reading : readings) {
    mhz.push_back(reading.mhz);
    watts.push_back(reading.watts);
  }
  timing.mhz = summarize(mhz).median;
  timing.watts = summarize(watts).median;
}

//===----------------------------------------------------------------------===//
// Loading and checking
//===----------------------------------------------------------------------===//

Expected<runtime::Bundle &> ShapeMeasurement::loadBundle(const std::string &name) {
  std::unique_ptr<runtime::Bundle> &loaded = bundles[name];
  if (loaded)
    return *loaded;
  llvm::SmallString<128> path(options.directory);
  llvm::sys::path::append(path, name);
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Expected<std::unique_ptr<runtime::Bundle>> bundle = runtime::Bundle::create(*text, &driver);
  if (!bundle)
    return bundle.takeError();
  loaded = std::move(*bundle);
  return *loaded;
}

Expected<runtime::Kernel &> ShapeMeasurement::loadKernel(const std::string &file,
                                                         llvm::StringRef name) {
  Expected<runtime::Bundle &> bundle = loadBundle(file);
  if (!bundle)
    return bundle.takeError();
  for (runtime::Kernel &kernel : bundle->getKernels())
    if (kernel.getSignature().name == name)
      return kernel;
  return fail("'" + file + "' has no kernel '" + name + "'");
}

Error ShapeMeasurement::makeTensors(const runtime::Signature &callee) {
  if (tensors)
    return Error::success();
  Expected<DeviceTensors> made =
      DeviceTensors::create(driver, options.device, callee, target, target.shapes[shape].extents);
  if (!made)
    return made.takeError();
  tensors.emplace(std::move(*made));
  return Error::success();
}

/// Makes room for the workspaces of a sequence.
Error ShapeMeasurement::growMemory(const SequenceRun &run) {
  if (!run.getBytes() || (memory && memory->getSize() >= run.getBytes()))
    return Error::success();
  memory.reset();
  Expected<runtime::DeviceBuffer> buffer =
      runtime::DeviceBuffer::allocate(driver, options.device, run.getBytes());
  if (!buffer)
    return buffer.takeError();
  memory.emplace(std::move(*buffer));
  return Error::success();
}

/// The sequence with tiles that go with the contestant and the kernels that are decided.
const SequenceForm *ShapeMeasurement::findForm(const Contestant &contestant) const {
  Values programs = surroundings.programs;
  programs[target.kernel] = contestant.candidate.program;
  return surroundings.sequence->findForm(programs);
}

Error ShapeMeasurement::loadSequence(Runner &runner) {
  const std::string &name = surroundings.sequence->name;
  Expected<runtime::Kernel &> sequence = loadKernel(findForm(*runner.contestant)->bundle, name);
  if (!sequence)
    return sequence.takeError();
  if (Error error = makeTensors(sequence->getSignature()))
    return error;
  std::map<std::string, runtime::Kernel *> replaced = {{target.kernel, runner.kernel}};
  for (const auto &[kernel, bundle] : surroundings.bundles) {
    Expected<runtime::Kernel &> won = loadKernel(bundle, kernel);
    if (!won)
      return won.takeError();
    replaced[kernel] = &*won;
  }
  if (Error error = SequenceRun::create(*loadBundle(findForm(*runner.contestant)->bundle), name,
                                        replaced, tensors->getArguments())
                        .moveInto(runner.sequence))
    return error;
  return growMemory(*runner.sequence);
}

Error ShapeMeasurement::load(Runner &runner) {
  Expected<runtime::Kernel &> kernel = loadKernel(runner.contestant->bundle, target.kernel);
  if (!kernel)
    return kernel.takeError();
  runner.kernel = &*kernel;
  return surroundings.sequence ? loadSequence(runner) : makeTensors(kernel->getSignature());
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
  return Error::success();
}

Expected<double> ShapeMeasurement::countWaves(const Runner &runner) const {
  const runtime::KernelInfo &info = *runner.kernel->getKernelInfo();
  llvm::SmallVector<runtime::Argument, 16> arguments(tensors->getArguments());
  if (runner.sequence)
    arguments = runner.sequence->getArguments(target.kernel, getMemory());
  runtime::DimValues dims;
  if (Error error = runtime::checkArguments(info, arguments, dims))
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
  // What a kernel reads of a workspace another one has written; all bits set are a NaN.
  if (memory)
    if (Error error = driver.check(
            driver.memsetD8Async(memory->getAddress(), 0xFF, memory->getSize(), nullptr),
            "cuMemsetD8Async of the workspaces"))
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

Error ShapeMeasurement::runAlone() {
  const SequenceForm *form = surroundings.sequence->findForm({});
  if (!form)
    return fail("no form of sequence '" + surroundings.sequence->name + "' compiles");
  Expected<runtime::Bundle &> bundle = loadBundle(form->bundle);
  if (!bundle)
    return bundle.takeError();
  Expected<runtime::Kernel &> sequence = loadKernel(form->bundle, surroundings.sequence->name);
  if (!sequence)
    return sequence.takeError();
  if (Error error = makeTensors(sequence->getSignature()))
    return error;
  Expected<std::unique_ptr<SequenceRun>> run =
      SequenceRun::create(*bundle, surroundings.sequence->name, {}, tensors->getArguments());
  if (!run)
    return run.takeError();
  if (Error error = growMemory(**run))
    return error;
  auto launch = [&](llvm::StringRef kernel) {
    return [&, kernel] { return (*run)->launch(driver, options.device, getMemory(), kernel); };
  };
  std::vector<double> samples;
  std::vector<runtime::PowerMeter::Reading> readings;
  // The whole first, for what the kernel loads.
  if (Error error = stopwatch.time(launch(""), 1, samples, readings))
    return error;
  samples.clear();
  if (Error error = stopwatch.time(launch(target.kernel), kRunsAlone, samples, readings))
    return error;
  target.aloneMs.push_back(quantile(samples, 0.5));
  return Error::success();
}
