//===- RunReference.h - What the outputs of a run should be ---------------===//

#ifndef TESSERA_TOOLS_TESSERA_RUNREFERENCE_H
#define TESSERA_TOOLS_TESSERA_RUNREFERENCE_H

#include "tools/tessera/RunArguments.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

namespace tessera {

/// The results of the interpreter on some arguments, exact and in the kernel's precision, for each
/// form of the kernel that schedules run.
class RunReference {
public:
  /// `kernel` and `arguments` must outlive this.
  RunReference(tile::KernelOp kernel, const RunArguments &arguments)
      : kernel(kernel), arguments(arguments) {}

  /// Applies `checkOutput` to every output and says whether all are good enough. `schedule` is what
  /// the kernel was compiled with, or null. False after a diagnostic when the interpreter fails.
  bool check(tile::ScheduleAttr schedule, const RunArguments &results, llvm::raw_ostream &os);

private:
  struct Expected {
    RunArguments exact, rounded;
  };
  const Expected *find(tile::ScheduleAttr schedule);

  tile::KernelOp kernel;
  const RunArguments &arguments;
  /// By whether the kernel speculates, and how many sixteenths of its exponentials are polynomials.
  std::map<std::pair<bool, int64_t>, Expected> forms;
};

/// Refuses a check that would succeed whatever the kernel does: of a kernel that stores nothing, or
/// of a launch without grid points.
llvm::Error checkIsPossible(tile::KernelOp kernel, const Launch &launch);

/// Whether argument `index` is a view that the kernel stores.
bool isOutput(tile::KernelOp kernel, unsigned index);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUNREFERENCE_H
