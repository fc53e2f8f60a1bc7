//===- Sequence.h - What calls of a sequence come to ----------*- C++ -*-===//

#ifndef TESSERA_LIB_RUNTIME_SEQUENCE_H
#define TESSERA_LIB_RUNTIME_SEQUENCE_H

#include "lib/Runtime/LaunchPlan.h"

#include "llvm/ADT/ArrayRef.h"

namespace tessera::runtime {

/// The extents of the dimensions that a sequence derives, behind those that `dims` has. Errors:
/// INVALID_ARGUMENT where one is 2^31 or more.
llvm::Error deriveDims(const SequenceInfo &sequence, DimValues &dims);

/// What calls of a sequence with one layout share: how large its workspaces are, where they lie in
/// the memory of a call, what each kernel gets and, where kernels were planned, the launch of each.
class SequencePlan : public CallPlan {
public:
  /// What workspaces are aligned to in the memory of a call, and that memory itself.
  static constexpr uint64_t kAlignment = 256;

  /// Checks the arguments of a call, but not what they share. Errors: INVALID_ARGUMENT,
  /// TYPE_MISMATCH.
  static llvm::Expected<std::shared_ptr<const SequencePlan>>
  make(const SequenceInfo &sequence, llvm::ArrayRef<Argument> arguments);
  /// The same with the launches of the steps, whose kernels are those of a bundle, and checks of
  /// each.
  static llvm::Expected<std::shared_ptr<const SequencePlan>>
  make(const SequenceInfo &sequence, const BundleInfo &bundle, llvm::ArrayRef<Argument> arguments);

  bool isEmpty() const override { return false; }
  /// The bytes of memory that a call needs.
  uint64_t getLentBytes() const override { return bytes; }

  /// What a launch of the sequence passes to its kernel, of the arguments of a call and of the
  /// workspaces, in the order of `getParts`, at `addresses`.
  llvm::SmallVector<Argument, 16> getArguments(const StepInfo &step,
                                               llvm::ArrayRef<Argument> arguments,
                                               llvm::ArrayRef<uint64_t> addresses) const;
  /// The addresses of workspaces in memory at `memory`.
  llvm::SmallVector<uint64_t, 8> place(uint64_t memory) const;
  /// Of each step; none where the kernels were not planned.
  llvm::ArrayRef<std::shared_ptr<const LaunchPlan>> getLaunches() const { return launches; }

  /// A part of the memory of a call.
  struct Part {
    const WorkspaceInfo *workspace;
    uint64_t offset, bytes;
    llvm::SmallVector<int64_t, 5> shape, strides;
  };
  llvm::ArrayRef<Part> getParts() const { return parts; }

private:
  explicit SequencePlan(const SequenceInfo &sequence) : CallPlan(sequence), sequence(sequence) {}
  llvm::Error resolve(llvm::ArrayRef<Argument> arguments);
  llvm::Error addPart(const WorkspaceInfo &workspace, llvm::ArrayRef<int64_t> dims);

  const SequenceInfo &sequence;
  std::vector<Part> parts;
  std::vector<std::shared_ptr<const LaunchPlan>> launches;
  uint64_t bytes = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_SEQUENCE_H
