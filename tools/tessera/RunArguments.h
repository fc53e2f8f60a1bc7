//===- RunArguments.h - The tensors and scalars of one run ----------------===//

#ifndef TESSERA_TOOLS_TESSERA_RUNARGUMENTS_H
#define TESSERA_TOOLS_TESSERA_RUNARGUMENTS_H

#include "lib/Interpreter/Interpreter.h"
#include "tools/tessera/RunKernel.h"
#include "llvm/Support/Error.h"
#include <map>
#include <memory>

namespace tessera {

/// What the user expects of an output, and the file that it is from.
struct ExpectedOutput {
  HostTensor tensor;
  std::string path;
};

/// The arguments of a kernel in their state before a run. Movable only: `values` points into
/// `tensors`.
class RunArguments {
public:
  /// Makes every argument as the options say. Inputs that no file gives are drawn from the seed;
  /// inputs are rounded to the element type; views that are stored and not loaded are NaN. The
  /// error says which option is wrong and what would work.
  static llvm::Expected<RunArguments> create(tile::EntryOpInterface kernel,
                                             const RunOptions &options);

  /// A copy in which stored views have tensors of their own; loaded ones are shared with this,
  /// which must outlive it.
  RunArguments cloneForRun() const;

  /// Writes each view that the kernel loads to DIRECTORY/NAME.npy.
  llvm::Error saveInputs(tile::EntryOpInterface kernel, llvm::StringRef directory) const;

  /// What the user expects of a view argument, or null.
  const ExpectedOutput *findExpected(unsigned index) const;

  llvm::ArrayRef<KernelArgument> getValues() const { return values; }
  /// The tensor of a view argument.
  const HostTensor &getTensor(unsigned index) const {
    return *std::get<HostTensor *>(values[index]);
  }

private:
  std::vector<KernelArgument> values;
  std::vector<bool> isStored;
  std::map<unsigned, ExpectedOutput> expected;
  std::vector<std::unique_ptr<HostTensor>> tensors;
};

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUNARGUMENTS_H
