//===- LoadedModule.cpp - A bundle in a context, shared with graphs -------===//

#include "lib/Runtime/LoadedModule.h"

#include "lib/Runtime/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>

using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

/// Dynamic shared memory above this must be asked for (CUDA C++ Programming Guide, compute
/// capability 9.x).
static constexpr unsigned kDefaultSharedMemory = 48 * 1024;

/// Larger clusters must be allowed: not all devices have them (CUDA C++ Programming Guide, thread
/// block clusters).
static constexpr unsigned kPortableCluster = 8;

LaunchSetup::LaunchSetup(const KernelInfo &kernel, std::array<unsigned, 3> grid, Stream stream) {
  unsigned count = 0;
  if (kernel.cluster != std::array<unsigned, 3>{1, 1, 1}) {
    LaunchAttribute &cluster = attributes[count++];
    cluster.id = kLaunchAttributeClusterDimension;
    cluster.value.cluster = {kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]};
  }
  if (kernel.pdl) {
    LaunchAttribute &serialization = attributes[count++];
    serialization.id = kLaunchAttributeProgrammaticStreamSerialization;
    serialization.value.programmaticStreamSerializationAllowed = 1;
  }
  config = {grid[0],
            grid[1],
            grid[2],
            kernel.block[0],
            kernel.block[1],
            kernel.block[2],
            kernel.sharedMemory,
            stream,
            count ? attributes.data() : nullptr,
            count};
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// True when a device of this compute capability runs code for `target` ("sm_90a": exactly 9.0).
static bool runsTarget(llvm::StringRef target, int major, int minor) {
  unsigned number = 0;
  if (!target.consume_front("sm_") || target.consumeInteger(10, number))
    return false;
  int targetMajor = number / 10, targetMinor = number % 10;
  return target.empty() ? major == targetMajor && minor >= targetMinor
                        : major == targetMajor && minor == targetMinor;
}

/// Refuses a device that cannot run the bundle before the driver does so in fewer words.
static llvm::Error checkDevice(const Driver &driver, const BundleInfo &info, Device device) {
  int major = 0, minor = 0, sharedMemory = 0;
  char name[256] = "";
  for (auto [attribute, value] :
       {std::pair(kComputeCapabilityMajor, &major), std::pair(kComputeCapabilityMinor, &minor),
        std::pair(kMaxSharedMemoryPerBlockOptin, &sharedMemory)})
    if (llvm::Error error = driver.check(driver.deviceGetAttribute(value, attribute, device),
                                         "cuDeviceGetAttribute"))
      return error;
  if (llvm::Error error =
          driver.check(driver.deviceGetName(name, sizeof(name), device), "cuDeviceGetName"))
    return error;
  if (!runsTarget(info.target, major, minor))
    return makeError(TESSERA_RUNTIME_NO_DEVICE,
                     "the bundle is compiled for {0}; device {1} ({2}) has compute capability "
                     "{3}.{4}",
                     info.target, device, name, major, minor);
  for (const KernelInfo &kernel : info.kernels)
    if (kernel.sharedMemory > static_cast<unsigned>(sharedMemory))
      return makeError(TESSERA_RUNTIME_NO_DEVICE,
                       "kernel '{0}' needs {1} bytes of shared memory; a block on device {2} ({3}) "
                       "has at most {4}",
                       kernel.name, kernel.sharedMemory, device, name, sharedMemory);
  return llvm::Error::success();
}

static llvm::Error loadModule(const Driver &driver, const BundleInfo &info,
                              llvm::ArrayRef<char> image, Module &module) {
  char log[8192] = "";
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSizeBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  Result result = driver.moduleLoadDataEx(&module, image.data(), 2, options, values);
  log[sizeof(log) - 1] = '\0';
  return driver.check(result, llvm::Twine("cuModuleLoadDataEx of the ") +
                                  (info.isPtx ? "PTX" : "cubin") + " for " + info.target +
                                  (log[0] ? llvm::Twine(" (") + log + ")" : llvm::Twine()));
}

/// How many clusters of a persistent kernel the device runs at a time.
static llvm::Expected<unsigned> findCapacity(const Driver &driver, const KernelInfo &kernel,
                                             Function function, Device device) {
  int multiprocessors = 0, clusters = 0;
  if (llvm::Error error =
          driver.check(driver.deviceGetAttribute(&multiprocessors, kMultiprocessorCount, device),
                       "cuDeviceGetAttribute"))
    return error;
  unsigned size = kernel.cluster[0], most = multiprocessors * kernel.blocksPerMultiprocessor / size;
  if (size == 1)
    return most;
  // Multiprocessors come in groups that a cluster does not straddle, and the groups are not equal.
  LaunchSetup setup(kernel, {most * size, 1, 1}, nullptr);
  if (llvm::Error error =
          driver.check(driver.occupancyMaxActiveClusters(&clusters, function, &setup.config),
                       "kernel '" + kernel.name + "': cuOccupancyMaxActiveClusters"))
    return error;
  most = std::min(most, static_cast<unsigned>(clusters));
  if (most == 0)
    return makeError(TESSERA_RUNTIME_NO_DEVICE,
                     "kernel '{0}': no cluster of {1} blocks fits on device {2}; compile with a "
                     "smaller cluster",
                     kernel.name, size, device);
  return most;
}

llvm::Error LoadedModule::loadKernel(const ContextScope &scope, const KernelInfo &info,
                                     LoadedKernel &kernel) const {
  if (llvm::Error error = driver.check(
          driver.moduleGetFunction(&kernel.function, modules[info.image], info.symbol.c_str()),
          "cuModuleGetFunction of '" + info.symbol + "'"))
    return error;
  if (info.sharedMemory > kDefaultSharedMemory)
    if (llvm::Error error = driver.check(
            driver.funcSetAttribute(kernel.function, kMaxDynamicSharedSizeBytes, info.sharedMemory),
            "kernel '" + info.name + "': cuFuncSetAttribute of " + llvm::Twine(info.sharedMemory) +
                " bytes of shared memory"))
      return error;
  if (info.cluster[0] > kPortableCluster)
    if (llvm::Error error = driver.check(
            driver.funcSetAttribute(kernel.function, kNonPortableClusterSizeAllowed, 1),
            "kernel '" + info.name + "': cuFuncSetAttribute of a cluster of " +
                llvm::Twine(info.cluster[0]) + " blocks"))
      return error;
  for (const ArgumentInfo &argument : info.arguments)
    kernel.caches.emplace_back(argument.dims.size(), argument.tensorMaps.size());
  if (!info.persistent)
    return llvm::Error::success();
  return findCapacity(driver, info, kernel.function, scope.getDevice()).moveInto(kernel.capacity);
}

llvm::Error LoadedModule::loadAll(const ContextScope &scope, const BundleInfo &info) {
  if (llvm::Error error = checkDevice(driver, info, scope.getDevice()))
    return error;
  for (const std::vector<char> &image : info.images)
    if (llvm::Error error = loadModule(driver, info, image, modules.emplace_back()))
      return error;
  for (auto [kernelInfo, kernel] : llvm::zip_equal(info.kernels, kernels))
    if (llvm::Error error = loadKernel(scope, kernelInfo, kernel))
      return error;
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<LoadedModule>>
LoadedModule::load(const Driver &driver, const ContextScope &scope, const BundleInfo &info) {
  sweep();
  std::shared_ptr<LoadedModule> loaded(new LoadedModule(driver, scope, info), retire);
  llvm::Error error = callDuringCaptures(driver, [&] { return loaded->loadAll(scope, info); });
  if (!error)
    return loaded;
  loaded.reset();
  sweep();
  return error;
}

//===----------------------------------------------------------------------===//
// Unloading
//===----------------------------------------------------------------------===//

namespace {

/// Modules without owners. The mutex is never held while the driver is called.
struct RetiredModules {
  std::mutex mutex;
  std::vector<LoadedModule *> modules;
};

} // namespace

/// Never destroyed: graphs of static storage may end after this file's objects are gone.
static RetiredModules &getRetired() {
  static RetiredModules &retired = *new RetiredModules;
  return retired;
}

void LoadedModule::retire(LoadedModule *module) {
  RetiredModules &retired = getRetired();
  std::lock_guard<std::mutex> lock(retired.mutex);
  retired.modules.push_back(module);
}

void LoadedModule::sweep() {
  RetiredModules &retired = getRetired();
  std::vector<LoadedModule *> modules;
  {
    std::lock_guard<std::mutex> lock(retired.mutex);
    modules.swap(retired.modules);
  }
  for (LoadedModule *module : modules) {
    module->unload();
    delete module;
  }
}

bool LoadedModule::pushContext() const {
  unsigned long long id = 0;
  return driver.ctxGetId(context, &id) == 0 && id == contextId &&
         driver.ctxPushCurrent(context) == 0;
}

void LoadedModule::synchronize() const {
  if (!pushContext())
    return;
  Context popped = nullptr;
  driver.ctxSynchronize();
  driver.ctxPopCurrent(&popped);
}

void LoadedModule::unload() {
  if (modules.empty() || !pushContext())
    return;
  llvm::consumeError(callDuringCaptures(driver, [&] {
    for (LoadedKernel &kernel : kernels)
      kernel.workspaces.free(driver);
    for (LoadedSequence &sequence : sequences)
      sequence.workspaces.free(driver);
    for (Module module : modules)
      if (module)
        driver.moduleUnload(module);
    return llvm::Error::success();
  }));
  Context popped = nullptr;
  driver.ctxPopCurrent(&popped);
}

//===----------------------------------------------------------------------===//
// Captured launches
//===----------------------------------------------------------------------===//

namespace {

/// What a graph owns for one launch that it captured.
struct GraphShare {
  std::shared_ptr<LoadedModule> module;
  WorkspaceCache &workspaces;
  WorkspaceCache::Block workspace;

  ~GraphShare() {
    if (workspace.address)
      workspaces.giveBack(workspace);
  }
  /// Called by the driver, on a thread that may not call it.
  static void destroy(void *share) { delete static_cast<GraphShare *>(share); }
};

} // namespace

llvm::Expected<DevicePointer> LoadedModule::retainInGraph(Graph graph,
                                                          const WorkspaceRequest &request,
                                                          WorkspaceCache &workspaces) {
  WorkspaceCache::Block workspace;
  if (request.bytes)
    if (llvm::Error error = workspaces.take(driver, request).moveInto(workspace))
      return error;
  std::string prefix = request.getPrefix();
  std::unique_ptr<GraphShare> share(new GraphShare{shared_from_this(), workspaces, workspace});
  UserObject object = nullptr;
  if (llvm::Error error =
          driver.check(driver.userObjectCreate(&object, share.get(), GraphShare::destroy, 1,
                                               kUserObjectNoDestructorSync),
                       prefix + "cuUserObjectCreate"))
    return error;
  share.release(); // The object's from now on.
  if (llvm::Error error =
          driver.check(driver.graphRetainUserObject(graph, object, 1, kGraphUserObjectMove),
                       prefix + "cuGraphRetainUserObject")) {
    driver.userObjectRelease(object, 1);
    return error;
  }
  return workspace.address;
}
