//===- DeviceRunner.h - Something that executes a kernel ------------------===//

#ifndef TESSERA_TOOLS_TESSERA_DEVICERUNNER_H
#define TESSERA_TOOLS_TESSERA_DEVICERUNNER_H

#include "lib/Interpreter/Interpreter.h"
#include "lib/Timeline/Timeline.h"
#include "lib/Tuning/Session.h"

namespace tessera {

/// One `--device` of `tessera run`.
class DeviceRunner {
public:
  virtual ~DeviceRunner() = default;

  /// Runs `kernel` once and waits for it. Tensors of stored views receive the results; elements of
  /// f16, bf16 and f32 views are values of those types. Says why when it cannot, through the
  /// diagnostics of the kernel's context.
  virtual llvm::LogicalResult run(tile::KernelOp kernel,
                                  llvm::ArrayRef<KernelArgument> arguments) = 0;

  /// The schedule that the kernel was compiled with; null for what compiles none.
  virtual tile::ScheduleAttr getSchedule(mlir::MLIRContext *) const { return {}; }

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

/// The interpreter, in the given precision.
class InterpreterRunner : public DeviceRunner {
public:
  explicit InterpreterRunner(Precision precision) : precision(precision) {}

  llvm::LogicalResult run(tile::KernelOp kernel,
                          llvm::ArrayRef<KernelArgument> arguments) override {
    InterpreterOptions options;
    options.precision = precision;
    return interpret(kernel, arguments, options);
  }

private:
  Precision precision;
};

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_DEVICERUNNER_H
