//===- Launch.h - Checking arguments and launching --------------*- C++ -*-===//
//
// A bundle in memory, its modules on the devices, and launches of its kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_LAUNCH_H
#define TESSERA_LIB_RUNTIME_LAUNCH_H

#include "lib/Runtime/Bundle.h"
#include "lib/Runtime/Choice.h"
#include "lib/Runtime/Driver.h"
#include "lib/Runtime/LaunchPlan.h"
#include "lib/Runtime/LoadedModule.h"
#include "lib/Runtime/Sequence.h"
#include "lib/Runtime/SideStream.h"
#include "lib/Runtime/TensorMap.h"

#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace tessera::runtime {

/// Checks arguments against the description of a kernel or a sequence and finds the extents of its
/// named dimensions (in the order of Signature::dims). Addresses are not looked at beyond their
/// alignment. Extents of 0 are let through when `computeGrid` finds no blocks. Errors:
/// INVALID_ARGUMENT, TYPE_MISMATCH.
llvm::Error checkArguments(const Signature &callee, llvm::ArrayRef<Argument> arguments,
                           DimValues &dims);

/// Whether a scalar, of the type of `info`, is what a launch takes.
bool takesScalar(const ArgumentInfo &info, const Argument &argument);

/// Refuses arguments, checked otherwise, of which one that is written shares an element with
/// another or has one at two indices. Layouts whose dimensions do not nest are let through where a
/// thousand steps do not show that they meet. Errors: INVALID_ARGUMENT.
llvm::Error checkOverlap(const Signature &callee, llvm::ArrayRef<Argument> arguments);
/// The bytes of a view, checked otherwise, from its first element to its last.
int64_t countSpan(const ArgumentInfo &info, const Argument &argument);
/// Whether two indices of it may be one element. Exact for dimensions that are nested in some
/// order, as those of all slices of an array are.
bool sharesWithItself(const ArgumentInfo &info, const Argument &argument);

/// The blocks of a launch; all zero when there is nothing to do. Of a persistent kernel, the number
/// of all that its clusters walk over, in x. Of a flat one that has too many in y or z, all are in
/// x. Errors: INVALID_ARGUMENT when a size exceeds what the
/// hardware numbers.
llvm::Expected<std::array<unsigned, 3>> computeGrid(const KernelInfo &kernel,
                                                    llvm::ArrayRef<int64_t> dims);

/// The memory that a stream has for launches of these extents: workspaces, the timeline and
/// tickets. Errors: INVALID_ARGUMENT when there are more tickets than a kernel numbers.
llvm::Expected<uint64_t> countWorkspaceBytes(const KernelInfo &kernel,
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

  /// Fills in extents and strides.
  llvm::Error fillLayout(llvm::ArrayRef<Argument> arguments, llvm::ArrayRef<int64_t> dims);
  /// Fills in an address or a scalar; other parameters stay as they are.
  void fillValue(const LaunchParameter &parameter, llvm::ArrayRef<Argument> arguments);
  /// Fills in everything except the tensor maps and the workspaces.
  llvm::Error fill(llvm::ArrayRef<Argument> arguments, llvm::ArrayRef<int64_t> dims);
  llvm::ArrayRef<char> getBytes() const { return {bytes, kernel.parameterBytes}; }
  void setBytes(llvm::ArrayRef<char> given) { std::memcpy(bytes, given.data(), given.size()); }
  void setTensorMap(const LaunchParameter &parameter, const void *map) {
    std::memcpy(bytes + parameter.offset, map, sizeof(cuda::TensorMap));
  }
  /// Gives the workspaces their places in `workspace` and the timeline its place in `timeline`.
  void setWorkspaces(uint64_t workspace, uint64_t timeline) {
    for (const LaunchParameter &parameter : kernel.parameters)
      setWorkspace(parameter, workspace, timeline);
  }
  /// The same for one parameter; those that are no such places stay as they are.
  void setWorkspace(const LaunchParameter &parameter, uint64_t workspace, uint64_t timeline) {
    if (parameter.kind == ParameterKind::Workspace || parameter.kind == ParameterKind::Tickets)
      set(parameter, workspace + parameter.workspaceOffset);
    else if (parameter.kind == ParameterKind::Timeline)
      set(parameter, timeline + parameter.workspaceOffset);
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

class Bundle;

/// Memory that a caller lends to a call.
struct LentMemory {
  uint64_t address, bytes;
};

/// A kernel of a bundle, or a sequence of its kernels or a choice among them, which are launched as
/// a kernel is.
class Kernel {
public:
  Kernel(Bundle &bundle, unsigned index, std::unique_ptr<Chooser> chooser = nullptr)
      : bundle(bundle), index(index), chooser(std::move(chooser)),
        plans(std::make_unique<CallPlans>()) {}

  const Signature &getSignature() const;
  /// Null but for a kernel, a sequence and a choice.
  const KernelInfo *getKernelInfo() const;
  const SequenceInfo *getSequenceInfo() const;
  Chooser *getChooser() const { return chooser.get(); }
  /// The kernel or sequence of a choice at a position.
  Kernel &getAlternative(unsigned position) const;
  /// See tessera_kernel_prepare.
  llvm::Error prepare(int device);
  /// See tessera_kernel_capacity.
  llvm::Expected<unsigned> getCapacity(int device);
  /// See tessera_kernel_workspace_bytes.
  llvm::Expected<uint64_t> getWorkspaceBytes(llvm::ArrayRef<Argument> arguments) const;
  /// What calls with arguments of this layout share. Everything is checked but what they share.
  /// Errors: INVALID_ARGUMENT, TYPE_MISMATCH.
  llvm::Expected<std::shared_ptr<const CallPlan>> plan(llvm::ArrayRef<Argument> arguments) const;
  /// See tessera_kernel_launch and, with `lent` memory, tessera_kernel_launch_with_workspace.
  llvm::Error launch(int device, void *stream, llvm::ArrayRef<Argument> arguments,
                     std::optional<LentMemory> lent = std::nullopt);
  /// The same by the plan of arguments with this layout.
  llvm::Error launch(std::shared_ptr<const CallPlan> plan, int device, void *stream,
                     llvm::ArrayRef<Argument> arguments,
                     std::optional<LentMemory> lent = std::nullopt);
  /// Sets memory of a call to zero, on the stream before what is launched next. Errors: NO_DEVICE,
  /// DRIVER_ERROR.
  llvm::Error zero(int device, void *stream, uint64_t address, uint64_t bytes);
  /// As `SideStream::find`. Errors: NO_DEVICE, DRIVER_ERROR.
  llvm::Expected<const SideStream *> findSideStream(int device, void *stream);
  /// Waits for the device and returns what launches on the stream have recorded since the last
  /// call, KernelInfo::timelineBytes (docs/bundle.md); then clears it. All zero before the first
  /// launch. Errors: INVALID_ARGUMENT when the kernel records no timeline, NO_DEVICE, DRIVER_ERROR.
  llvm::Expected<std::vector<char>> readTimeline(int device, void *stream);

private:
  class KernelLaunch;

  /// What has the memory of calls by a plan of this entry: null for that of one kernel.
  Kernel *findSequence(const CallPlan &plan);

  /// Where a call works: the context that is current as long as this lives, and the module in it.
  struct Place {
    const cuda::Driver &driver;
    cuda::ContextScope scope;
    LoadedModule &module;
  };
  llvm::Expected<Place> enter(int device);
  llvm::Expected<std::shared_ptr<const CallPlan>>
  makePlan(llvm::ArrayRef<Argument> arguments) const;
  llvm::Error launchKernel(std::shared_ptr<const LaunchPlan> plan, int device, cuda::Stream stream,
                           llvm::ArrayRef<Argument> arguments);
  llvm::Error launchSequence(const SequencePlan &plan, int device, cuda::Stream stream,
                             llvm::ArrayRef<Argument> arguments, std::optional<LentMemory> lent);
  llvm::Error launchPlanned(std::shared_ptr<const CallPlan> plan, int device, void *stream,
                            llvm::ArrayRef<Argument> arguments, std::optional<LentMemory> lent);
  llvm::Expected<uint64_t> findMemory(const Place &place, cuda::Stream stream, cuda::Graph graph,
                                      uint64_t bytes);

  Bundle &bundle;
  unsigned index;                   ///< of the bundle's kernels, sequences and choices
  std::unique_ptr<Chooser> chooser; ///< null but for a choice
  std::unique_ptr<CallPlans> plans;
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
  /// The kernels, behind them the sequences, and behind these the choices.
  llvm::MutableArrayRef<Kernel> getKernels() { return kernels; }
  llvm::ArrayRef<Kernel> getKernels() const { return kernels; }

private:
  friend class Kernel;

  Bundle(BundleInfo info, const cuda::Driver *driver);
  llvm::Expected<const cuda::Driver &> resolveDriver();
  llvm::Expected<LoadedModule &> resolveModule(const cuda::Driver &driver,
                                               const cuda::ContextScope &scope);

  BundleInfo info;
  std::vector<Kernel> kernels;
  const cuda::Driver *driver;
  std::mutex mutex; ///< guards `driver` and `modules`
  std::vector<std::shared_ptr<LoadedModule>> modules;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_LAUNCH_H
