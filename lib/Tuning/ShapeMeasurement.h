//===- ShapeMeasurement.h - Timing the contestants of one shape -----------===//

#ifndef TESSERA_LIB_TUNING_SHAPEMEASUREMENT_H
#define TESSERA_LIB_TUNING_SHAPEMEASUREMENT_H

#include "lib/Tuning/Device.h"
#include "lib/Tuning/Measure.h"
#include "lib/Tuning/SequenceRun.h"

namespace tessera::tuning {

/// The runs of a turn of some milliseconds, from the times of a few runs.
unsigned countRuns(llvm::ArrayRef<double> samples, double milliseconds);
/// The turns of work before the first that counts, so that the card is warm for it.
unsigned countWarmUpTurns(double milliseconds);
/// The medians of what a power meter said.
void setClockAndPower(llvm::ArrayRef<runtime::PowerMeter::Reading> readings, Timing &timing);

/// A contestant on the device.
struct Runner {
  Contestant *contestant = nullptr;
  runtime::Kernel *kernel = nullptr;
  /// Of a kernel of a sequence, that with all kernels.
  std::unique_ptr<SequenceRun> sequence;
  Timing timing;
  std::vector<double> samples;
  std::vector<runtime::PowerMeter::Reading> readings;
  unsigned runsPerTurn = 1;
  bool isOut = false;
};

/// The sequence that a kernel is measured in, with what won of the kernels before it.
struct Surroundings {
  const TargetSequence *sequence = nullptr; ///< null of a kernel by itself
  Values programs, bundles;                 ///< of kernels that are decided, by their names
};

/// One shape of a target.
class ShapeMeasurement {
public:
  ShapeMeasurement(Target &target, size_t shape, Surroundings surroundings, const Device &device,
                   const runtime::cuda::Driver &driver, const MeasureOptions &options,
                   Stopwatch &stopwatch)
      : target(target), shape(shape), surroundings(std::move(surroundings)), device(device),
        driver(driver), options(options), stopwatch(stopwatch) {}

  /// Sets the timings of the shape. The error is one that ends everything.
  llvm::Error run();
  /// Sets the time of the kernel by itself, as the model chooses it, in the sequence's first form.
  llvm::Error runAlone();

private:
  bool isNeeded(const Contestant &contestant) const {
    return contestant.error.empty() && !contestant.timings[shape] &&
           (!surroundings.sequence || findForm(contestant));
  }
  const SequenceForm *findForm(const Contestant &contestant) const;
  llvm::Error loadRunners();
  llvm::Expected<runtime::Bundle &> loadBundle(const std::string &name);
  llvm::Expected<runtime::Kernel &> loadKernel(const std::string &bundle, llvm::StringRef kernel);
  llvm::Error load(Runner &runner);
  llvm::Error loadSequence(Runner &runner);
  llvm::Error makeTensors(const runtime::Signature &callee);
  llvm::Error growMemory(const SequenceRun &run);
  uint64_t getMemory() const { return memory ? memory->getAddress() : 0; }
  llvm::Error check(Runner &runner);
  llvm::Error giveUp(Runner &runner, llvm::Error error);
  llvm::Expected<double> countWaves(const Runner &runner) const;
  llvm::Error launch(const Runner &runner) const {
    if (runner.sequence)
      return runner.sequence->launch(driver, options.device, getMemory());
    return runner.kernel->launch(options.device, nullptr, tensors->getArguments());
  }
  llvm::Error time(Runner &runner, unsigned count);
  llvm::Error takeTurns();
  llvm::Error settle(Runner &runner);
  void dropSlow();
  void finish();

  Target &target;
  size_t shape;
  Surroundings surroundings;
  const Device &device;
  const runtime::cuda::Driver &driver;
  const MeasureOptions &options;
  Stopwatch &stopwatch;
  std::map<std::string, std::unique_ptr<runtime::Bundle>> bundles; ///< by their files
  std::vector<Runner> runners;
  std::optional<DeviceTensors> tensors;
  /// The workspaces of sequences, which run one after the other.
  std::optional<runtime::DeviceBuffer> memory;
  std::vector<std::vector<char>> reference;
};

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_SHAPEMEASUREMENT_H
