//===- DeviceRunner.h - Something that executes a kernel ------------------===//

#ifndef TESSERA_TOOLS_TESSERA_DEVICERUNNER_H
#define TESSERA_TOOLS_TESSERA_DEVICERUNNER_H

#include "lib/Interpreter/Interpreter.h"
#include "lib/Timeline/Timeline.h"
#include "lib/Tuning/Session.h"
#include <map>

namespace tessera {

/// What kernels were compiled with.
struct Schedules {
  /// By the names of kernels; those of kernels that have none are missing or null.
  std::map<std::string, tile::ScheduleAttr> ofKernels;
  /// By the names of sequences, the kernel that each launches first.
  std::map<std::string, std::string> firstKernels;

  /// That of a kernel of the source, or null. A sequence that stands for it, by its name, first
  /// launches what has its schedule (`tile-split-reductions`).
  tile::ScheduleAttr find(const std::string &kernel) const;
};

/// How a run ended: as a launch that is refused for its arguments, it says nothing of the kernel.
enum class RunOutcome { Ran, Failed, Refused };

/// One `--device` of `tessera run`.
class DeviceRunner {
public:
  virtual ~DeviceRunner() = default;

  /// Runs `kernel`, or a sequence, once and waits for it. Tensors of stored views receive the
  /// results; elements of f16, bf16 and f32 views are values of those types. Says why when it
  /// cannot, through the diagnostics of the kernel's context.
  virtual RunOutcome run(tile::EntryOpInterface kernel,
                         llvm::ArrayRef<KernelArgument> arguments) = 0;

  /// The schedules that kernels were compiled with; none for what compiles none.
  virtual Schedules getSchedules(mlir::MLIRContext *) const { return {}; }

  /// Makes each run end with the kernel being timed, for `getTiming`.
  virtual llvm::Error enableTiming() {
    return llvm::createStringError("this device does not time kernels");
  }
  virtual tuning::Timing getTiming() const { return {}; }

  /// What the last launch recorded of its stages, for a kernel compiled to do so.
  virtual llvm::Expected<timeline::Timeline> readTimeline() {
    return llvm::createStringError("this device records no timeline");
  }
};

/// The interpreter, in the given precision, with ranges in random parts where `partition` is a
/// seed.
class InterpreterRunner : public DeviceRunner {
public:
  explicit InterpreterRunner(InterpreterOptions options) : options(std::move(options)) {}
  explicit InterpreterRunner(Precision precision, ShowOptions shown = {}, uint64_t partition = 0) {
    options.precision = precision;
    options.shown = std::move(shown);
    options.partition = partition;
  }

  RunOutcome run(tile::EntryOpInterface kernel, llvm::ArrayRef<KernelArgument> arguments) override {
    return succeeded(interpret(kernel, arguments, options)) ? RunOutcome::Ran : RunOutcome::Failed;
  }

private:
  InterpreterOptions options;
};

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_DEVICERUNNER_H
