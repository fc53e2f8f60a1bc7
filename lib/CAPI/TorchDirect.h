//===- TorchDirect.h - Calls past PyTorch's dispatcher ----------*- C++ -*-===//

#ifndef TESSERA_CAPI_TORCHDIRECT_H
#define TESSERA_CAPI_TORCHDIRECT_H

#include "PreparedCalls.h"
#include "PythonObjects.h"
#include "tessera-c/Torch.h"

#include <mutex>
#include <optional>

namespace tessera {

/// What a call gives beside tensors.
struct CallNumbers {
  std::optional<double> scale;
  llvm::SmallVector<double, 4> others;
  llvm::SmallVector<int64_t, 4> integers;
};

} // namespace tessera

struct tessera_torch_direct {
  explicit tessera_torch_direct(const tessera_torch_direct_options &given)
      : options(given), text(given.text), numbers(given.numbers) {}

  /// From a tuple of numbers; false where it has none that the calls take.
  bool readNumbers(void *tuple, tessera::CallNumbers &read) const;
  using Results = llvm::SmallVector<tessera::Object, 4>;
  /// The results of a call of tensors, objects or None, of which the last ones may be missing.
  /// Nothing when the op is to be called.
  std::optional<Results> run(llvm::ArrayRef<void *> tensors, const tessera::CallNumbers &given);

private:
  /// How calls are computed that are alike.
  struct Plan {
    std::shared_ptr<const tessera::PreparedCall> call;
    /// The arguments that make an empty tensor for each result and each copy, and for the
    /// workspace.
    Results results, copies;
    tessera::Object workspace;
  };
  struct Slot {
    std::string key;
    unsigned generation = 0;
    std::optional<Plan> plan;
  };

  bool readTensor(void *object, tessera::CallTensor &tensor, int32_t &device) const;
  bool readTensors(llvm::ArrayRef<void *> tensors, tessera::CallArguments &arguments,
                   int32_t &device) const;
  std::optional<Plan> find(const tessera::CallKey &key, const tessera::CallArguments &arguments);
  std::optional<Plan> makePlan(const tessera::CallKey &key) const;
  tessera::Object describeEmpty(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> strides,
                                void *elementType) const;
  tessera::Object describeEmpty(const tessera::CallLayout &layout) const;
  tessera::Object makeEmpty(const tessera::Object &arguments, uint64_t &address) const;
  /// Makes a tensor of each description; false where one cannot be made.
  bool makeAll(llvm::ArrayRef<tessera::Object> descriptions, Results &made,
               llvm::SmallVectorImpl<uint64_t> &addresses) const;
  /// Makes the copies of a plan.
  bool copy(const Plan &plan, llvm::ArrayRef<void *> tensors, Results &made,
            llvm::SmallVectorImpl<uint64_t> &addresses) const;
  bool launch(const Plan &plan, const tessera::CallArguments &arguments, int32_t device,
              llvm::ArrayRef<uint64_t> results, llvm::ArrayRef<uint64_t> copies) const;
  /// For what failed in Python.
  bool clearError() const {
    python.clearError();
    return false;
  }

  const tessera::Interpreter &python = tessera::Interpreter::get();
  const tessera_torch_direct_options options;
  const std::string text, numbers;
  std::mutex mutex; ///< guards `slots`
  std::array<Slot, 64> slots;
};

#endif // TESSERA_CAPI_TORCHDIRECT_H
