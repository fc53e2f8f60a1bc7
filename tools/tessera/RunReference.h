//===- RunReference.h - What the outputs of a run should be ---------------===//

#ifndef TESSERA_TOOLS_TESSERA_RUNREFERENCE_H
#define TESSERA_TOOLS_TESSERA_RUNREFERENCE_H

#include "tools/tessera/RunArguments.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera {

/// The results of the interpreter on some arguments, exact and in the kernel's precision.
class RunReference {
public:
  /// Computes both. `arguments` must outlive the result. Fails after a diagnostic.
  static llvm::FailureOr<RunReference> compute(tile::KernelOp kernel,
                                               const RunArguments &arguments);

  /// Applies `checkOutput` to every output and says whether all are good enough. `schedule` is what
  /// the kernel was compiled with, or null.
  bool check(tile::KernelOp kernel, tile::ScheduleAttr schedule, const RunArguments &results,
             llvm::raw_ostream &os);

private:
  RunReference(const RunArguments &arguments)
      : arguments(arguments), exact(arguments.cloneForRun()), baseline(arguments.cloneForRun()) {}
  const RunArguments *findBaseline(tile::KernelOp kernel, tile::ScheduleAttr schedule);

  const RunArguments &arguments;
  RunArguments exact, baseline;
  /// In the kernel's precision, with polynomials for exponentials; computed when a schedule has
  /// them.
  std::optional<RunArguments> polynomial;
};

/// Whether argument `index` is a view that the kernel stores.
bool isOutput(tile::KernelOp kernel, unsigned index);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUNREFERENCE_H
