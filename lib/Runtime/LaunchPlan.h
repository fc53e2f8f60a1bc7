//===- LaunchPlan.h - What calls of one layout share ------------*- C++ -*-===//
//
// Checks of extents and strides, the choice among kernels, the grid, the bytes of a workspace and
// the parameters that hold extents and strides are the same in all calls whose arguments have the
// same layout. They are computed once and found again by that layout. What is left for each call
// are addresses and scalars.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_LAUNCHPLAN_H
#define TESSERA_LIB_RUNTIME_LAUNCHPLAN_H

#include "lib/Runtime/Bundle.h"

#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <memory>
#include <mutex>
#include <optional>

namespace tessera::runtime {

/// Bytes of a device's address space (47 bits are in use).
constexpr int64_t kAddressSpace = int64_t(1) << 47;

using DimValues = llvm::SmallVector<int64_t, 16>;

/// A number for the extents and strides of a view and for another number, which few others have.
uint64_t hashLayout(const Argument &argument, uint64_t other = 0);

/// The same for all views. Nothing when arguments are not of the types and ranks that `callee`
/// takes.
std::optional<uint64_t> hashLayouts(const Signature &callee, llvm::ArrayRef<Argument> arguments);

/// Of a kernel or a sequence.
class CallPlan {
public:
  virtual ~CallPlan() = default;
  CallPlan(const CallPlan &) = delete;

  /// Whether arguments, of the types and ranks that are taken, have the layout of the plan.
  bool hasLayout(llvm::ArrayRef<Argument> arguments) const;
  /// Whether the addresses of arguments with the layout of the plan are as they are taken.
  bool areAligned(llvm::ArrayRef<Argument> arguments) const;
  /// Whether scalars are as they are taken.
  bool takesScalars(llvm::ArrayRef<Argument> arguments) const;
  /// Whether they surely share nothing that is written. Where not, `checkOverlap` says whether they
  /// do.
  bool areApart(llvm::ArrayRef<Argument> arguments) const;

  /// That of the kernel, which may be the alternative of a choice, or of the sequence.
  const Signature &getCallee() const { return callee; }
  /// Nothing is to be launched.
  virtual bool isEmpty() const = 0;
  /// The memory that a caller may lend.
  virtual uint64_t getLentBytes() const = 0;

protected:
  explicit CallPlan(const Signature &callee) : callee(callee) {}
  /// Takes the layout of arguments that `checkArguments` has let through.
  void setLayout(llvm::ArrayRef<Argument> arguments);

private:
  /// A view, of so many bytes from its first element to its last.
  struct View {
    unsigned argument;
    uint64_t lowBits; ///< that are 0 in an aligned address
    int64_t bytes;
    bool isWritten;
  };

  const Signature &callee;
  llvm::SmallVector<View, 8> views;
  llvm::SmallVector<unsigned, 2> bounded; ///< scalars that are above a number
  llvm::SmallVector<int64_t, 0> layout;   ///< extents and strides of each view
  bool isFolded = false; ///< a view that is written may have one element at two indices
};

class LaunchPlan : public CallPlan {
public:
  /// Checks all but what arguments share. Errors: INVALID_ARGUMENT, TYPE_MISMATCH.
  static llvm::Expected<std::shared_ptr<const LaunchPlan>>
  make(const KernelInfo &kernel, unsigned index, llvm::ArrayRef<Argument> arguments);

  const KernelInfo &getKernel() const { return kernel; }
  /// The kernel's position in its bundle.
  unsigned getIndex() const { return index; }
  llvm::ArrayRef<int64_t> getDims() const { return dims; }
  const std::array<unsigned, 3> &getGrid() const { return grid; }
  bool isEmpty() const override { return grid[0] == 0; }
  uint64_t getLentBytes() const override { return 0; }
  /// The memory that a stream or a graph has for the kernel.
  uint64_t getWorkspaceBytes() const { return workspaceBytes; }
  /// The parameters with their extents and strides.
  llvm::ArrayRef<char> getParameters() const { return parameters; }
  /// The other parameters, of which each launch has its own.
  llvm::ArrayRef<const LaunchParameter *> getParametersOfLaunch() const { return ofLaunch; }

private:
  LaunchPlan(const KernelInfo &kernel, unsigned index)
      : CallPlan(kernel), kernel(kernel), index(index) {}

  const KernelInfo &kernel;
  unsigned index;
  DimValues dims;
  std::array<unsigned, 3> grid;
  uint64_t workspaceBytes = 0;
  llvm::SmallVector<char, 0> parameters;
  llvm::SmallVector<const LaunchParameter *, 16> ofLaunch;
};

/// Recent plans, by the layout of arguments. Replaces by position (hash modulo size). Any thread
/// may ask. `hash` is that of `hashLayouts`.
class CallPlans {
public:
  /// Null when there is none.
  std::shared_ptr<const CallPlan> find(uint64_t hash, llvm::ArrayRef<Argument> arguments);
  void insert(uint64_t hash, std::shared_ptr<const CallPlan> plan);

private:
  std::mutex mutex; ///< guards `slots`
  std::array<std::shared_ptr<const CallPlan>, 256> slots;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_LAUNCHPLAN_H
