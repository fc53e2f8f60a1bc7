//===- LoadedModule.h - A bundle in a context, shared with graphs -*- C++ -*-===//
//
// What a bundle has in one context of CUDA: its modules, and for each kernel what launches find
// again. Graphs that captured launches own it together with the bundle, and each captured launch
// has a workspace of its own. A graph's last breath comes on a thread of the driver, where CUDA may
// not be called: there memory is put aside and a module is retired; both are used or freed later.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_LOADEDMODULE_H
#define TESSERA_LIB_RUNTIME_LOADEDMODULE_H

#include "lib/Runtime/Bundle.h"
#include "lib/Runtime/Driver.h"
#include "lib/Runtime/TensorMap.h"

#include "llvm/ADT/DenseMap.h"

#include <memory>
#include <mutex>
#include <vector>

namespace tessera::runtime {

/// What a launch needs of device memory.
struct WorkspaceRequest {
  const Signature &owner;
  uint64_t bytes;
  bool zeroed; ///< before the first use

  /// What messages begin with.
  std::string getPrefix() const { return (owner.kind + " '" + owner.name + "': ").str(); }
};

/// The workspaces of a kernel or a sequence in one context: one for each stream, and those of
/// captured launches.
class WorkspaceCache {
public:
  /// The memory of `stream`, of the bytes that are asked for or more. Where a later request is for
  /// more, it gets other memory, which then is the stream's. The context is current. Errors:
  /// DRIVER_ERROR.
  llvm::Expected<cuda::DevicePointer> resolve(const cuda::Driver &driver,
                                              const WorkspaceRequest &request, cuda::Stream stream);
  /// Memory that nobody else has, until `giveBack`.
  struct Block {
    cuda::DevicePointer address = 0;
    uint64_t bytes = 0;
  };
  llvm::Expected<Block> take(const cuda::Driver &driver, const WorkspaceRequest &request);
  /// Takes memory back of which no launch is under way. Does not call the driver.
  void giveBack(Block block);
  /// The memory of `stream` when it has some, otherwise 0.
  cuda::DevicePointer find(cuda::Stream stream) const;
  /// Frees the memory, of which there is no use any more. The context is current.
  void free(const cuda::Driver &driver);

private:
  /// By stream and, for the stream that each thread has of its own, thread.
  llvm::DenseMap<std::pair<cuda::Stream, uint64_t>, Block> memory;
  /// What was too small. Launches may still use it, and waiting for them could be forbidden by a
  /// capture. As memory grows by half at least, it is less than twice that of the streams.
  std::vector<cuda::DevicePointer> outgrown;
  /// Guards `idle`. Never held while the driver is called, which may wait for a thread in
  /// `giveBack`.
  std::mutex idleMutex;
  std::vector<Block> idle;
};

/// A kernel in one context.
struct LoadedKernel {
  cuda::Function function = nullptr;
  /// Of a persistent kernel: the clusters of a launch, at most.
  unsigned capacity = 0;
  std::mutex mutex; ///< guards the caches
  std::vector<ArgumentCache> caches;
  WorkspaceCache workspaces;
};

/// A sequence in one context.
struct LoadedSequence {
  std::mutex mutex; ///< guards `workspaces`
  WorkspaceCache workspaces;
};

/// The modules of a bundle in one context. The last owner retires them; `sweep` unloads them.
class LoadedModule : public std::enable_shared_from_this<LoadedModule> {
public:
  /// Loads the modules into the current context. Errors: NO_DEVICE, DRIVER_ERROR.
  static llvm::Expected<std::shared_ptr<LoadedModule>>
  load(const cuda::Driver &driver, const cuda::ContextScope &scope, const BundleInfo &info);

  /// Unloads what was retired and frees its memory. Not for threads of the driver.
  static void sweep();

  unsigned long long getContextId() const { return contextId; }
  LoadedKernel &getKernel(unsigned index) { return kernels[index]; }
  LoadedSequence &getSequence(unsigned index) { return sequences[index]; }

  /// Makes `graph` an owner of the module, and gives a launch in it a workspace of its own from
  /// `workspaces`, until the graph and all that was instantiated from it are gone; 0 for a request
  /// of no bytes. Errors: DRIVER_ERROR.
  llvm::Expected<cuda::DevicePointer>
  retainInGraph(cuda::Graph graph, const WorkspaceRequest &request, WorkspaceCache &workspaces);

  /// Waits for the work of the context, which the application may have destroyed.
  void synchronize() const;

private:
  LoadedModule(const cuda::Driver &driver, const cuda::ContextScope &scope, const BundleInfo &info)
      : driver(driver), contextId(scope.getId()), context(scope.getContext()),
        kernels(info.kernels.size()), sequences(info.sequences.size()) {}
  static void retire(LoadedModule *module);
  llvm::Error loadAll(const cuda::ContextScope &scope, const BundleInfo &info);
  llvm::Error loadKernel(const cuda::ContextScope &scope, const KernelInfo &info,
                         LoadedKernel &kernel) const;
  /// Makes the context current, until it is popped; false when it is gone.
  bool pushContext() const;
  void unload();

  const cuda::Driver &driver;
  unsigned long long contextId;
  cuda::Context context;
  std::vector<cuda::Module> modules; ///< of each image
  std::vector<LoadedKernel> kernels;
  std::vector<LoadedSequence> sequences;
};

/// The configuration of a launch, with the attributes that it points to. Not movable.
struct LaunchSetup {
  LaunchSetup(const KernelInfo &kernel, std::array<unsigned, 3> grid, cuda::Stream stream);
  LaunchSetup(const LaunchSetup &) = delete;

  std::array<cuda::LaunchAttribute, 2> attributes = {};
  cuda::LaunchConfig config;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_LOADEDMODULE_H
