//===- RunReference.h - What the outputs of a run should be ---------------===//

#ifndef TESSERA_TOOLS_TESSERA_RUNREFERENCE_H
#define TESSERA_TOOLS_TESSERA_RUNREFERENCE_H

#include "mlir/IR/OwningOpRef.h"
#include "tools/tessera/DeviceRunner.h"
#include "tools/tessera/RunArguments.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera {

/// The results of the interpreter on some arguments, exact and in the kernel's precision, for each
/// form of the kernel that schedules run.
class RunReference {
public:
  /// `kernel` and `arguments` must outlive this.
  RunReference(tile::EntryOpInterface kernel, const RunArguments &arguments)
      : kernel(kernel), arguments(arguments) {}

  /// Checks the rounding of every output and compares those of which the user expects something;
  /// says whether all are good enough. `schedules` are what kernels were compiled with. False after
  /// a diagnostic when the interpreter fails.
  bool check(const Schedules &schedules, const RunArguments &results, llvm::raw_ostream &os);

  /// A line about the outputs that were compared with the kernel's own formula alone.
  void printUnchecked(llvm::raw_ostream &os);

private:
  struct Expected {
    RunArguments exact, rounded;
    mlir::OwningOpRef<mlir::ModuleOp> module;
    /// As rounded, with products that sums take before they are rounded. Only run where a result is
    /// not good enough beside the others.
    std::optional<RunArguments> fused = {};
  };
  Expected *find(const Schedules &schedules);
  bool runFused(Expected &expected);
  bool compare(const Expected &expected, const RunArguments &results, llvm::raw_ostream &os);
  /// Says whether random partitions of ranges give what the whole ranges do; an error if not.
  bool checkPartitions(tile::EntryOpInterface form, const Expected &expected);

  tile::EntryOpInterface kernel;
  const RunArguments &arguments;
  /// By whether each kernel speculates, and how many sixteenths of its exponentials are
  /// polynomials.
  std::map<std::vector<std::pair<bool, int64_t>>, Expected> forms;
};

/// Refuses a check that would succeed whatever the kernel does: of a kernel that stores nothing, or
/// of a launch without grid points.
llvm::Error checkIsPossible(tile::EntryOpInterface kernel, const Launch &launch);

/// Whether argument `index` is a view that the kernel stores.
bool isOutput(tile::EntryOpInterface kernel, unsigned index);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUNREFERENCE_H
