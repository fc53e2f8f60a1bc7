//===- PreparedCalls.h - What calls of frameworks launch --------*- C++ -*-===//
//
// A call is prepared once for its text and the layouts of its tensors: kernels, how their arguments
// are found, their plans, results, and the bytes of memory that it needs. Calls from PyTorch's
// dispatcher, past it and from XLA find it again by one look-up. What is left for each are
// addresses and numbers.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CAPI_PREPAREDCALLS_H
#define TESSERA_CAPI_PREPAREDCALLS_H

#include "tessera-c/Calls.h"

#include "lib/Runtime/Launch.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"

#include <atomic>
#include <vector>

namespace tessera {

using CallLayout = tessera_call_layout;

/// A tensor of a call. Its layout stays as it was read, whatever becomes of the tensor.
struct CallTensor {
  CallLayout layout = {};
  uint64_t address = 0;

  bool isGiven() const { return layout.type; }
  /// Takes extents and strides; false where there are too many.
  bool setShape(int32_t rank, const int64_t *extents, const int64_t *strides);
};

/// What a call gives beside its text.
struct CallArguments {
  llvm::SmallVector<CallTensor, 8> tensors;
  llvm::SmallVector<double, 4> numbers;
  llvm::SmallVector<int64_t, 4> integers;
};

/// What is wrong with a call.
struct CallProblem {
  tessera_runtime_status status = TESSERA_RUNTIME_SUCCESS;
  std::string text;

  explicit operator bool() const { return !text.empty(); }
};

/// The memory of one call, in the order of the recipe. Without a workspace sequences have that of
/// their stream, and there are no temporaries.
struct CallMemory {
  llvm::ArrayRef<uint64_t> results, copies;
  uint64_t workspace;
};

class PreparedCall {
public:
  /// What workspaces are aligned to.
  static constexpr uint64_t kAlignment = runtime::SequencePlan::kAlignment;

  /// Checks everything but addresses, with the tensors and numbers of the first call.
  static std::shared_ptr<const PreparedCall>
  make(const tessera_call_recipe &recipe, const CallArguments &arguments, CallProblem &problem);

  /// Results have no elements, or are filled with one number.
  bool isEmpty() const { return steps.empty(); }
  /// Its steps are for an interpreter, and for no device.
  bool isInterpreted() const { return !isEmpty() && !steps.front().kernel; }
  llvm::ArrayRef<CallLayout> getResults() const { return results; }
  llvm::ArrayRef<tessera_call_copy> getCopies() const { return copies; }
  /// The bytes of memory that a call needs for its time, at a multiple of `kAlignment`.
  uint64_t getWorkspaceBytes() const { return workspaceBytes; }

  /// Queues the steps for arguments of these layouts.
  CallProblem launch(const CallArguments &arguments, const CallMemory &memory, int device,
                     void *stream) const;
  /// Runs the steps by an interpreter.
  CallProblem interpret(const CallArguments &arguments, const CallMemory &memory,
                        tessera_call_interpreter interpreter) const;

private:
  struct Step {
    runtime::Kernel *kernel;
    tessera_program *program;
    llvm::SmallVector<tessera_call_operand, 12> operands;
    std::shared_ptr<const runtime::CallPlan> plan;
    uint64_t offset = 0; ///< of its workspaces, where those of other steps lie too
    bool isBeside = false;
    bool waits = false; ///< for the steps before it that run beside others
  };
  using Arguments = llvm::SmallVector<runtime::Argument, 16>;

  CallProblem plan(Step &step, const CallArguments &arguments);
  /// Whether one of two steps stores to memory that the other one takes or stores to.
  bool meet(const Step &one, const Step &other) const;
  llvm::Error fill(const CallMemory &memory, int device, void *stream) const;
  CallProblem launch(const Step &step, const CallArguments &arguments, const CallMemory &memory,
                     int device, void *stream) const;
  /// Where the memory of an operand begins.
  uint64_t findAddress(const tessera_call_operand &operand, const CallArguments &arguments,
                       const CallMemory &memory) const;
  CallProblem bind(const Step &step, const CallArguments &arguments, const CallMemory &memory,
                   Arguments &bound) const;
  CallProblem bindScalar(const Step &step, unsigned position, const CallArguments &arguments,
                         runtime::Argument &argument) const;

  llvm::SmallVector<Step, 2> steps;
  llvm::SmallVector<CallLayout, 4> results, temporaries;
  llvm::SmallVector<uint64_t, 4> temporaryOffsets;
  llvm::SmallVector<tessera_call_copy, 2> copies;
  llvm::SmallVector<tessera_call_view, 0> views;
  uint64_t temporaryBytes = 0, workspaceBytes = 0;
};

/// What calls launch whose tensors have other free numbers than the first one's.
class CallFamily {
public:
  CallFamily(const tessera_call_recipe &recipe, llvm::ArrayRef<CallTensor> tensors);

  /// The call for these tensors, null where they are not of the family or nothing plans them.
  std::shared_ptr<const PreparedCall> prepare(const CallArguments &arguments) const;

private:
  /// Which numbers of a tensor are free.
  struct FreeNumbers {
    bool extents[TESSERA_CALL_MOST_DIMS] = {}, strides[TESSERA_CALL_MOST_DIMS] = {};
  };

  bool takes(llvm::ArrayRef<CallTensor> tensors) const;
  /// Whether tensor `index` may have this layout, but for the bounds of free numbers.
  bool isAlike(size_t index, const CallLayout &other) const;

  tessera_call_recipe recipe; ///< of the arrays below
  llvm::SmallVector<CallTensor, 8> tensors;
  llvm::SmallVector<FreeNumbers, 8> isFree; ///< by tensor
  std::vector<tessera_call_step> steps;
  std::vector<std::vector<tessera_call_operand>> operands;
  std::vector<CallLayout> results, temporaries;
  std::vector<tessera_call_copy> copies;
  std::vector<tessera_call_view> views;
  std::vector<tessera_call_free> free;
  std::vector<tessera_call_following> followings;
};

/// A text and the layouts of tensors as bytes.
using CallKey = llvm::SmallString<1024>;
CallKey makeCallKey(llvm::StringRef text, llvm::ArrayRef<CallTensor> tensors);

/// Those of a resolver. Any thread may ask.
class PreparedCalls {
public:
  void setResolver(tessera_call_resolver newResolver) { resolver = newResolver; }
  /// Null where there is nothing, with the reason in `problem`. May wait for the compiler.
  std::shared_ptr<const PreparedCall> find(llvm::StringRef text, const CallArguments &arguments,
                                           CallProblem &problem);
  /// The call itself where it was found before, or one of a family that was; or null. Asks nobody.
  std::shared_ptr<const PreparedCall> findAlike(llvm::StringRef text,
                                                const CallArguments &arguments);
  /// Only what was found before, or null.
  std::shared_ptr<const PreparedCall> findKnown(const CallKey &key) const;
  void clear();
  /// Another one after each `clear`.
  unsigned getGeneration() const { return generation; }

private:
  using Families = std::vector<std::shared_ptr<const CallFamily>>;

  void keep(const CallKey &key, std::shared_ptr<const PreparedCall> call, unsigned since);
  void keep(llvm::StringRef text, std::shared_ptr<const CallFamily> family, unsigned since);

  tessera_call_resolver resolver = nullptr;
  std::atomic<unsigned> generation = 0;
  /// Those of a text are read without the lock, and made anew where one is added.
  llvm::StringMap<std::shared_ptr<const Families>> families;
  llvm::StringMap<std::shared_ptr<const PreparedCall>> calls;
};

/// The bytes from the first element of a layout to its last.
uint64_t countBytes(const CallLayout &layout);

/// Those of PyTorch.
PreparedCalls &getTorchCalls();

} // namespace tessera

#endif // TESSERA_CAPI_PREPAREDCALLS_H
