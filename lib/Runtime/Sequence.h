//===- Sequence.h - What a call of a sequence comes to ----------*- C++ -*-===//

#ifndef TESSERA_LIB_RUNTIME_SEQUENCE_H
#define TESSERA_LIB_RUNTIME_SEQUENCE_H

#include "lib/Runtime/Bundle.h"

#include "llvm/ADT/ArrayRef.h"

namespace tessera::runtime {

/// One call of a sequence: how large its workspaces are, where they lie in the memory of the call
/// and what each kernel gets. Not movable: arguments point into it.
class SequencePlan {
public:
  /// What workspaces are aligned to in the memory of a call, and that memory itself.
  static constexpr uint64_t kAlignment = 256;

  explicit SequencePlan(const SequenceInfo &sequence) : sequence(sequence) {}
  SequencePlan(const SequencePlan &) = delete;

  /// Takes the arguments of the call and checks them, but not those of each kernel. Errors:
  /// INVALID_ARGUMENT, TYPE_MISMATCH.
  llvm::Error resolve(llvm::ArrayRef<Argument> arguments);

  /// The bytes of memory that the call needs.
  uint64_t getBytes() const { return bytes; }

  /// What a launch of the sequence passes to its kernel, with the workspaces, in the order of
  /// `getParts`, at `addresses`.
  llvm::SmallVector<Argument, 16> getArguments(const StepInfo &step,
                                               llvm::ArrayRef<uint64_t> addresses) const;
  /// The addresses of workspaces in memory at `memory`.
  llvm::SmallVector<uint64_t, 8> place(uint64_t memory) const;

  /// A part of the memory of a call.
  struct Part {
    const WorkspaceInfo *workspace;
    uint64_t offset, bytes;
    llvm::SmallVector<int64_t, 5> shape, strides;
  };
  llvm::ArrayRef<Part> getParts() const { return parts; }

private:
  llvm::Error addPart(const WorkspaceInfo &workspace, llvm::ArrayRef<int64_t> dims);

  const SequenceInfo &sequence;
  llvm::ArrayRef<Argument> arguments;
  std::vector<Part> parts;
  uint64_t bytes = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_SEQUENCE_H
