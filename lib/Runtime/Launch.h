//===- Launch.h - Checking arguments and launching --------------*- C++ -*-===//
//
// A bundle in memory, its modules on the devices, and launches of its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_LAUNCH_H
#define TESSERA_LIB_RUNTIME_LAUNCH_H

#include "lib/Runtime/Bundle.h"
#include "lib/Runtime/Driver.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace tessera::runtime {

/// The C interface's structure is used as it is: a launch copies nothing.
using Argument = tessera_argument;

using DimValues = llvm::SmallVector<int64_t, 16>;

/// Checks arguments against the kernel's description and finds the extents of its named dimensions
/// (in the order of KernelInfo::dims). Addresses are not looked at beyond their alignment. Extents
/// of 0 are let through when `computeGrid` finds no blocks. Errors: INVALID_ARGUMENT,
/// TYPE_MISMATCH.
llvm::Error checkArguments(const KernelInfo &kernel, llvm::ArrayRef<Argument> arguments,
                           DimValues &dims);

/// Refuses arguments, checked otherwise, of which one that is written shares an element with
/// another or has one at two indices. Layouts whose dimensions do not nest are let through where a
/// thousand steps do not show that they meet. Errors: INVALID_ARGUMENT.
llvm::Error checkOverlap(const KernelInfo &kernel, llvm::ArrayRef<Argument> arguments);

/// The blocks of a launch; all zero when there is nothing to do. Of a persistent kernel, the number
/// of all that its clusters walk over, in x. Errors: INVALID_ARGUMENT when a size exceeds what the
/// hardware numbers.
llvm::Expected<std::array<unsigned, 3>> computeGrid(const KernelInfo &kernel,
                                                    llvm::ArrayRef<int64_t> dims);

/// The values of a kernel's parameters, laid out as LaunchParameter::offset says. Not movable.
class ParameterBlock {
public:
  explicit ParameterBlock(const KernelInfo &kernel) : kernel(kernel) {
    pointers.reserve(kernel.parameters.size());
    for (const LaunchParameter &parameter : kernel.parameters)
      pointers.push_back(bytes + parameter.offset);
  }
  ParameterBlock(const ParameterBlock &) = delete;

  /// Fills in everything except the tensor maps and the workspaces.
  llvm::Error fill(llvm::ArrayRef<Argument> arguments, llvm::ArrayRef<int64_t> dims);
  void setTensorMap(const LaunchParameter &parameter, const void *map) {
    std::memcpy(bytes + parameter.offset, map, sizeof(cuda::TensorMap));
  }
  void setWorkspaces(uint64_t memory) {
    for (const LaunchParameter &parameter : kernel.parameters)
      if (parameter.kind == ParameterKind::Workspace || parameter.kind == ParameterKind::Timeline)
        set(parameter, memory + parameter.workspaceOffset);
  }
  /// The values in the order of KernelInfo::parameters, each LaunchParameter::bytes long.
  void **getPointers() { return pointers.data(); }

private:
  void set(const LaunchParameter &parameter, int64_t value) {
    // Little-endian: the low bytes of the value come first.
    std::memcpy(bytes + parameter.offset, &value, parameter.bytes);
  }
  llvm::Error setStride(const LaunchParameter &parameter, const Argument &argument);

  const KernelInfo &kernel;
  llvm::SmallVector<void *, 64> pointers;
  alignas(64) char bytes[kMaxParameterBytes];
};

/// The parameters of a tensor map that depend on the launch.
struct TensorMapExtents {
  uint64_t dims[kMaxTensorMapRank];
  uint64_t strides[kMaxTensorMapRank]; ///< bytes, of dimensions 1 and up
};
TensorMapExtents evaluateTensorMap(const TensorMapRecipe &recipe, const Argument &argument,
                                   llvm::ArrayRef<int64_t> dims);

/// Encodes a tensor map over checked arguments of which no extent is 0. Errors: DRIVER_ERROR, with
/// the whole recipe in the text.
llvm::Error encodeTensorMap(const cuda::Driver &driver, const KernelInfo &kernel,
                            const TensorMapRecipe &recipe, const Argument &argument,
                            llvm::ArrayRef<int64_t> dims, cuda::TensorMap &map);

/// The tensor maps of recent values of one argument, and the knowledge that the device reaches
/// them. Replaces by position (hash modulo size), so that a look-up neither searches nor allocates.
class ArgumentCache {
public:
  ArgumentCache(unsigned rank, unsigned mapCount);

  /// The slot that holds, or is to hold, what belongs to these values of the argument.
  unsigned getSlot(const Argument &argument) const;
  bool holds(unsigned slot, const Argument &argument) const;
  /// Marks the slot as holding these values, whose maps are `maps`.
  void fill(unsigned slot, const Argument &argument, llvm::ArrayRef<cuda::TensorMap> maps);
  const cuda::TensorMap &getMap(unsigned slot, unsigned index) const {
    return maps[slot * mapCount + index];
  }

private:
  unsigned rank, mapCount;
  std::vector<bool> used;
  /// For each slot the address, the extents and the strides.
  std::vector<int64_t> keys;
  std::vector<cuda::TensorMap> maps;
};

/// The workspaces of a kernel in one context, one for each stream.
class WorkspaceCache {
public:
  /// The memory of `stream` for the kernel's workspaces: KernelInfo::workspaceBytes, zeroed on the
  /// stream before the first use. The context is current. Errors: DRIVER_ERROR, INVALID_ARGUMENT
  /// when the stream is capturing and has no memory yet.
  llvm::Expected<cuda::DevicePointer> resolve(const cuda::Driver &driver, const KernelInfo &kernel,
                                              cuda::Stream stream);
  /// The memory of `stream` when it has some, otherwise 0.
  cuda::DevicePointer find(cuda::Stream stream) const;
  /// Frees the memory, of which there is no use any more. The context is current.
  void free(const cuda::Driver &driver);

private:
  /// By stream and, for the stream that each thread has of its own, thread.
  llvm::DenseMap<std::pair<cuda::Stream, uint64_t>, cuda::DevicePointer> memory;
};

class Bundle;

/// A kernel of a bundle.
class Kernel {
public:
  Kernel(Bundle &bundle, unsigned index) : bundle(bundle), index(index) {}

  const KernelInfo &getInfo() const;
  /// See tessera_kernel_prepare.
  llvm::Error prepare(int device);
  /// See tessera_kernel_capacity.
  llvm::Expected<unsigned> getCapacity(int device);
  /// See tessera_kernel_launch.
  llvm::Error launch(int device, void *stream, llvm::ArrayRef<Argument> arguments);
  /// Waits for the device and returns what launches on the stream have recorded since the last
  /// call, KernelInfo::timelineBytes (docs/bundle.md); then clears it. All zero before the first
  /// launch. Errors: INVALID_ARGUMENT when the kernel records no timeline, NO_DEVICE, DRIVER_ERROR.
  llvm::Expected<std::vector<char>> readTimeline(int device, void *stream);

private:
  Bundle &bundle;
  unsigned index;
};

/// A bundle, with its modules in the contexts where kernels were launched.
class Bundle {
public:
  /// Uses `driver` when given, otherwise that of the machine, which is looked for at the first
  /// launch.
  static llvm::Expected<std::unique_ptr<Bundle>> create(llvm::StringRef text,
                                                        const cuda::Driver *driver = nullptr);
  ~Bundle();

  const BundleInfo &getInfo() const { return info; }
  llvm::MutableArrayRef<Kernel> getKernels() { return kernels; }
  llvm::ArrayRef<Kernel> getKernels() const { return kernels; }

private:
  friend class Kernel;

  /// A kernel in one context.
  struct KernelState {
    cuda::Function function = nullptr;
    /// Of a persistent kernel: the clusters of a launch, at most.
    unsigned capacity = 0;
    std::mutex mutex; ///< guards the caches
    std::vector<ArgumentCache> caches;
    WorkspaceCache workspaces;
  };
  /// The module in one context.
  struct ContextState {
    unsigned long long id = 0;
    cuda::Context context = nullptr;
    cuda::Module module = nullptr;
    std::vector<KernelState> kernels;
  };

  Bundle(BundleInfo info, const cuda::Driver *driver);
  llvm::Expected<const cuda::Driver &> resolveDriver();
  llvm::Error loadKernel(const cuda::Driver &driver, const cuda::ContextScope &scope,
                         const KernelInfo &kernel, cuda::Module module, KernelState &state);
  llvm::Expected<ContextState &> resolveContext(const cuda::Driver &driver,
                                                const cuda::ContextScope &scope);
  llvm::Error load(const cuda::Driver &driver, const cuda::ContextScope &scope,
                   ContextState &state);

  BundleInfo info;
  std::vector<Kernel> kernels;
  const cuda::Driver *driver;
  std::mutex mutex; ///< guards `driver` and `contexts`
  std::vector<std::unique_ptr<ContextState>> contexts;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_LAUNCH_H
