//===- Measure.h - Timing the contestants of a session --------------------===//

#ifndef TESSERA_LIB_TUNING_MEASURE_H
#define TESSERA_LIB_TUNING_MEASURE_H

#include "lib/Runtime/Driver.h"
#include "lib/Tuning/Session.h"

namespace tessera::tuning {

struct MeasureOptions {
  /// Directory of the bundles.
  std::string directory;
  int device = 0;
  /// Turns of each contestant, and the milliseconds of a turn.
  unsigned rounds = 6;
  double milliseconds = 25;
  /// A contestant that is slower than the best by this factor after a turn has no further one.
  double outrun = 1.15;
  /// A turn that takes longer is a kernel that does not end.
  double limitSeconds = 20;
  /// Called with a line about what is measured.
  std::function<void(const std::string &)> progress;
  /// Called after each shape, and before an error that ends everything.
  std::function<llvm::Error(const Session &)> save;
};

/// Times the contestants of `session` that have no time yet, shape by shape: each runs once and
/// its results are compared with the first one's; then they take turns, forwards and backwards.
/// What fails with one contestant is noted. A kernel that does not end, or a fault, spoils the
/// device for the process: it is noted and saved, and the error says to run again, which goes on
/// with the others; what was on the device is not freed then. The driver's device must be of
/// compute capability 9.0.
llvm::Error measureSession(Session &session, const runtime::cuda::Driver &driver,
                           const MeasureOptions &options);

/// Times a kernel that has no rivals: a few runs for an estimate, warm-up, and `options.rounds`
/// turns, each run with the L2 cache flushed before it. `launch` queues it on the default stream of
/// the device.
llvm::Expected<Timing> timeAlone(llvm::function_ref<llvm::Error()> launch,
                                 const runtime::cuda::Driver &driver,
                                 const MeasureOptions &options);

/// The GPU that `driver` has as number `device`; an error when no kernel can run there.
llvm::Expected<Device> queryDevice(const runtime::cuda::Driver &driver, int device);

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_MEASURE_H
