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

  /// Applies `checkOutput` to every output and says whether all are good enough.
  bool check(tile::KernelOp kernel, const RunArguments &results, llvm::raw_ostream &os) const;

private:
  RunReference(RunArguments exact, RunArguments baseline)
      : exact(std::move(exact)), baseline(std::move(baseline)) {}

  RunArguments exact, baseline;
};

/// Whether argument `index` is a view that the kernel stores.
bool isOutput(tile::KernelOp kernel, unsigned index);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUNREFERENCE_H
