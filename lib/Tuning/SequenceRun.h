//===- SequenceRun.h - A sequence with kernels of several bundles ---------===//
//
// A contestant of a kernel of a sequence runs in the whole sequence, with what won of the other
// kernels. Each is compiled into a bundle by itself: a bundle for each combination would be a
// compilation for each.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TUNING_SEQUENCERUN_H
#define TESSERA_LIB_TUNING_SEQUENCERUN_H

#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Runtime/Launch.h"
#include "lib/Runtime/Sequence.h"
#include <map>

namespace tessera::tuning {

/// Launches on the default stream, in memory that is lent.
class SequenceRun {
public:
  /// `form` has the sequence `name`; kernels that are not in `replaced` are its own. All must
  /// outlive this.
  static llvm::Expected<std::unique_ptr<SequenceRun>>
  create(runtime::Bundle &form, llvm::StringRef name,
         const std::map<std::string, runtime::Kernel *> &replaced,
         llvm::ArrayRef<runtime::Argument> arguments);

  const runtime::SequenceInfo &getInfo() const { return info; }
  /// The bytes of memory that it needs.
  uint64_t getBytes() const { return plan->getLentBytes(); }
  /// The kernel of this name, and what the first launch of it passes to it, in memory at `memory`.
  runtime::Kernel *getKernel(llvm::StringRef kernel) const;
  llvm::SmallVector<runtime::Argument, 16> getArguments(llvm::StringRef kernel,
                                                        uint64_t memory) const;

  /// Queues the launches of all kernels, or of `kernel` alone.
  llvm::Error launch(const runtime::cuda::Driver &driver, int device, uint64_t memory,
                     llvm::StringRef kernel = "") const;

private:
  SequenceRun(const runtime::SequenceInfo &info, llvm::ArrayRef<runtime::Argument> arguments)
      : info(info), arguments(arguments) {}
  const std::string &getName(size_t step) const { return kernels[step]->getSignature().name; }

  const runtime::SequenceInfo &info;
  llvm::ArrayRef<runtime::Argument> arguments;
  std::shared_ptr<const runtime::SequencePlan> plan;
  std::vector<runtime::Kernel *> kernels; ///< of each step
};

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_SEQUENCERUN_H
