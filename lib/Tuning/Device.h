//===- Device.h - Tensors and timing on a GPU -----------------------------===//

#ifndef TESSERA_LIB_TUNING_DEVICE_H
#define TESSERA_LIB_TUNING_DEVICE_H

#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Runtime/Launch.h"
#include "lib/Runtime/PowerMeter.h"
#include "lib/Tuning/Session.h"

namespace tessera::tuning {

/// The arguments of a kernel or a sequence on a device, for one shape: views that are loaded hold
/// normal numbers, since the power that a product takes depends on its operands, or the number that
/// --set gives.
class DeviceTensors {
public:
  /// Allocates and fills. The error names the extent, the scalar or the order that is missing or
  /// wrong.
  static llvm::Expected<DeviceTensors> create(const runtime::cuda::Driver &driver, int device,
                                              const runtime::Signature &callee,
                                              const Target &target, const Extents &extents);

  llvm::ArrayRef<runtime::Argument> getArguments() const { return arguments; }

  /// Makes what kernels store NaN again, or what it was before if they also load it.
  llvm::Error resetResults();
  /// The bytes of the views that the kernel stores, in the order of the arguments.
  llvm::Expected<std::vector<std::vector<char>>> downloadResults() const;
  /// The norm of the difference of two results over that of `reference`; infinite where one has a
  /// NaN or an infinity that the other has not.
  double compareResults(llvm::ArrayRef<std::vector<char>> results,
                        llvm::ArrayRef<std::vector<char>> reference) const;

private:
  struct View {
    unsigned argument;
    const ElementType *type;
    runtime::Access access;
    std::vector<int64_t> shape, strides;
    std::optional<double> number; ///< what all elements are, where normal numbers do not serve
    std::optional<runtime::DeviceBuffer> buffer;
  };

  DeviceTensors(const runtime::cuda::Driver &driver) : driver(&driver) {}
  llvm::Error addView(int device, const runtime::ArgumentInfo &info, unsigned number,
                      const runtime::Signature &callee, const Target &target,
                      const Extents &extents);
  llvm::Error addScalar(const runtime::ArgumentInfo &info, const runtime::Signature &callee,
                        const Target &target);
  llvm::Error fill(const View &view) const;

  const runtime::cuda::Driver *driver;
  std::vector<View> views;
  std::vector<runtime::Argument> arguments;
};

/// Times work on the default stream of a device with events, the L2 cache flushed before each run.
class Stopwatch {
public:
  /// `limitSeconds` is how long the work of one turn may take.
  static llvm::Expected<Stopwatch> create(const runtime::cuda::Driver &driver, int device,
                                          double limitSeconds);
  Stopwatch(Stopwatch &&) = default;
  ~Stopwatch();

  /// Runs `launch` `count` times and appends the milliseconds of each to `samples`, and what the
  /// power meter said meanwhile to `readings`.
  llvm::Error time(llvm::function_ref<llvm::Error()> launch, unsigned count,
                   std::vector<double> &samples,
                   std::vector<runtime::PowerMeter::Reading> &readings);
  /// Waits for the work that is queued. The error says that it failed or did not end; the device
  /// is then of no use to this process any more.
  llvm::Error wait(std::vector<runtime::PowerMeter::Reading> &readings);

private:
  Stopwatch(const runtime::cuda::Driver &driver, double limitSeconds, runtime::DeviceBuffer flushed,
            std::unique_ptr<runtime::PowerMeter> meter)
      : driver(&driver), limitSeconds(limitSeconds), flushed(std::move(flushed)),
        meter(std::move(meter)) {}
  llvm::Error addEvents(size_t count);

  const runtime::cuda::Driver *driver;
  double limitSeconds;
  runtime::DeviceBuffer flushed;
  std::unique_ptr<runtime::PowerMeter> meter;
  std::vector<runtime::cuda::Event> events;
};

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_DEVICE_H
