//===- Launch.cpp - Modules, caches and launches --------------------------===//

#include "lib/Runtime/Launch.h"

#include "lib/Runtime/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <cstring>

using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

/// Dynamic shared memory above this must be asked for (CUDA C++ Programming Guide, compute
/// capability 9.x).
static constexpr unsigned kDefaultSharedMemory = 48 * 1024;

//===----------------------------------------------------------------------===//
// Bundle: modules
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<Bundle>> Bundle::create(llvm::StringRef text, const Driver *driver) {
  llvm::Expected<BundleInfo> info = readBundle(text);
  if (!info)
    return info.takeError();
  return std::unique_ptr<Bundle>(new Bundle(std::move(*info), driver));
}

Bundle::Bundle(BundleInfo bundleInfo, const Driver *driver)
    : info(std::move(bundleInfo)), driver(driver) {
  for (unsigned i = 0; i < info.kernels.size(); ++i)
    kernels.emplace_back(*this, i);
}

Bundle::~Bundle() {
  for (const std::unique_ptr<ContextState> &state : contexts) {
    // The application may have destroyed the context, and the module with it.
    unsigned long long id = 0;
    if (!state->module || driver->ctxGetId(state->context, &id) != 0 || id != state->id ||
        driver->ctxPushCurrent(state->context) != 0)
      continue;
    // The last launch may still run, and its caller may have no more use for the bundle.
    Context popped = nullptr;
    driver->ctxSynchronize();
    for (KernelState &kernel : state->kernels)
      kernel.workspaces.free(*driver);
    driver->moduleUnload(state->module);
    driver->ctxPopCurrent(&popped);
  }
}

llvm::Expected<const Driver &> Bundle::resolveDriver() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!driver) {
    llvm::Expected<const Driver &> found = getDriver();
    if (!found)
      return found.takeError();
    driver = &*found;
  }
  return *driver;
}

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

static llvm::Error loadModule(const Driver &driver, const BundleInfo &info, Module &module) {
  char log[8192] = "";
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSizeBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  Result result = driver.moduleLoadDataEx(&module, info.image.data(), 2, options, values);
  log[sizeof(log) - 1] = '\0';
  return driver.check(result, llvm::Twine("cuModuleLoadDataEx of the ") +
                                  (info.isPtx ? "PTX" : "cubin") + " for " + info.target +
                                  (log[0] ? llvm::Twine(" (") + log + ")" : llvm::Twine()));
}

using LaunchAttributes = std::array<LaunchAttribute, 2>;

/// Fills `attributes`, which the result points to.
static LaunchConfig makeConfig(const KernelInfo &kernel, std::array<unsigned, 3> grid,
                               Stream stream, LaunchAttributes &attributes) {
  attributes = {};
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
  return {grid[0],
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

/// How many clusters of a persistent kernel the device runs at a time, with one block on a
/// multiprocessor.
static llvm::Expected<unsigned> findCapacity(const Driver &driver, const KernelInfo &kernel,
                                             Function function, Device device) {
  int multiprocessors = 0, clusters = 0;
  if (llvm::Error error =
          driver.check(driver.deviceGetAttribute(&multiprocessors, kMultiprocessorCount, device),
                       "cuDeviceGetAttribute"))
    return error;
  unsigned size = kernel.cluster[0], most = multiprocessors / size;
  if (size == 1)
    return most;
  // Multiprocessors come in groups that a cluster does not straddle, and the groups are not equal.
  LaunchAttributes attributes;
  LaunchConfig config = makeConfig(kernel, {most * size, 1, 1}, nullptr, attributes);
  if (llvm::Error error =
          driver.check(driver.occupancyMaxActiveClusters(&clusters, function, &config),
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

llvm::Error Bundle::loadKernel(const Driver &driver, const ContextScope &scope,
                               const KernelInfo &kernel, Module module, KernelState &state) {
  if (llvm::Error error =
          driver.check(driver.moduleGetFunction(&state.function, module, kernel.symbol.c_str()),
                       "cuModuleGetFunction of '" + kernel.symbol + "'"))
    return error;
  if (kernel.sharedMemory > kDefaultSharedMemory)
    if (llvm::Error error =
            driver.check(driver.funcSetAttribute(state.function, kMaxDynamicSharedSizeBytes,
                                                 kernel.sharedMemory),
                         "kernel '" + kernel.name + "': cuFuncSetAttribute of " +
                             llvm::Twine(kernel.sharedMemory) + " bytes of shared memory"))
      return error;
  for (const ArgumentInfo &argument : kernel.arguments)
    state.caches.emplace_back(argument.dims.size(), argument.tensorMaps.size());
  if (!kernel.persistent)
    return llvm::Error::success();
  return findCapacity(driver, kernel, state.function, scope.getDevice()).moveInto(state.capacity);
}

llvm::Error Bundle::load(const Driver &driver, const ContextScope &scope, ContextState &state) {
  if (llvm::Error error = checkDevice(driver, info, scope.getDevice()))
    return error;
  if (llvm::Error error = loadModule(driver, info, state.module))
    return error;
  for (auto [kernel, kernelState] : llvm::zip_equal(info.kernels, state.kernels))
    if (llvm::Error error = loadKernel(driver, scope, kernel, state.module, kernelState))
      return error;
  return llvm::Error::success();
}

llvm::Expected<Bundle::ContextState &> Bundle::resolveContext(const Driver &driver,
                                                              const ContextScope &scope) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const std::unique_ptr<ContextState> &state : contexts)
    if (state->id == scope.getId())
      return *state;
  auto state = std::make_unique<ContextState>();
  state->id = scope.getId();
  state->context = scope.getContext();
  state->kernels = std::vector<KernelState>(info.kernels.size());
  if (llvm::Error error = load(driver, scope, *state)) {
    if (state->module)
      driver.moduleUnload(state->module);
    return error;
  }
  contexts.push_back(std::move(state));
  return *contexts.back();
}

//===----------------------------------------------------------------------===//
// Kernel: launches
//===----------------------------------------------------------------------===//

llvm::Error ParameterBlock::setStride(const LaunchParameter &parameter, const Argument &argument) {
  // The stride of a dimension of extent 1 was not checked, and no address depends on it.
  int64_t stride = argument.shape[parameter.dim] > 1 ? argument.strides[parameter.dim] : 0;
  if (parameter.bytes == 4 && !llvm::isInt<32>(stride))
    return makeError(
        TESSERA_RUNTIME_INVALID_ARGUMENT,
        "kernel '{0}': argument '{1}': dimension {2} has stride {3}; this kernel takes "
        "32-bit strides",
        kernel.name, kernel.arguments[parameter.argument].name, parameter.dim, stride);
  set(parameter, stride);
  return llvm::Error::success();
}

llvm::Error ParameterBlock::fill(llvm::ArrayRef<Argument> arguments, llvm::ArrayRef<int64_t> dims) {
  for (const LaunchParameter &parameter : kernel.parameters) {
    switch (parameter.kind) {
    case ParameterKind::TensorMap:
    case ParameterKind::Workspace:
    case ParameterKind::Timeline:
      break;
    case ParameterKind::Pointer:
      set(parameter, arguments[parameter.argument].pointer);
      break;
    case ParameterKind::Dim:
      set(parameter, dims[parameter.dim]);
      break;
    case ParameterKind::Stride:
      if (llvm::Error error = setStride(parameter, arguments[parameter.argument]))
        return error;
      break;
    case ParameterKind::Scalar:
      std::memcpy(bytes + parameter.offset, &arguments[parameter.argument].scalar, parameter.bytes);
      break;
    }
  }
  return llvm::Error::success();
}

/// Refuses host memory and other devices' memory, on which the kernel would fault and take the
/// application's context with it.
static llvm::Error checkAddress(const Driver &driver, const KernelInfo &kernel, unsigned index,
                                uint64_t address, Device device) {
  const std::string &name = kernel.arguments[index].name;
  unsigned memoryType = 0;
  if (Result result = driver.pointerGetAttribute(&memoryType, kPointerMemoryType, address))
    return makeError(
        TESSERA_RUNTIME_INVALID_ARGUMENT,
        "kernel '{0}': argument '{1}': the address {2:x} is not memory that CUDA knows "
        "(cuPointerGetAttribute: {3}); pass a device address",
        kernel.name, name, address, driver.describe(result));
  if (memoryType != kMemoryTypeDevice)
    return llvm::Error::success(); // Pinned host memory, which devices reach.
  int owner = -1;
  if (llvm::Error error =
          driver.check(driver.pointerGetAttribute(&owner, kPointerDeviceOrdinal, address),
                       "cuPointerGetAttribute of the device"))
    return error;
  if (owner == device)
    return llvm::Error::success();
  return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                   "kernel '{0}': argument '{1}' lies on device {2}; the launch is on device {3}",
                   kernel.name, name, owner, device);
}

/// Makes the cache hold `argument`; returns its slot.
static llvm::Expected<unsigned> resolveArgument(const Driver &driver, const KernelInfo &kernel,
                                                unsigned index, const Argument &argument,
                                                llvm::ArrayRef<int64_t> dims, Device device,
                                                ArgumentCache &cache) {
  unsigned slot = cache.getSlot(argument);
  if (cache.holds(slot, argument))
    return slot;
  if (llvm::Error error = checkAddress(driver, kernel, index, argument.pointer, device))
    return error;
  std::vector<TensorMap> maps;
  for (unsigned map : kernel.arguments[index].tensorMaps)
    if (llvm::Error error = encodeTensorMap(driver, kernel, kernel.tensorMaps[map], argument, dims,
                                            maps.emplace_back()))
      return error;
  cache.fill(slot, argument, maps);
  return slot;
}

const KernelInfo &Kernel::getInfo() const { return bundle.getInfo().kernels[index]; }

llvm::Error Kernel::prepare(int device) {
  llvm::Expected<const Driver &> driver = bundle.resolveDriver();
  if (!driver)
    return driver.takeError();
  llvm::Expected<ContextScope> scope = ContextScope::enter(*driver, device);
  if (!scope)
    return scope.takeError();
  return bundle.resolveContext(*driver, *scope).takeError();
}

llvm::Expected<unsigned> Kernel::getCapacity(int device) {
  const KernelInfo &kernel = getInfo();
  if (!kernel.persistent)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "kernel '{0}' is not persistent: its grid does not depend on the device",
                     kernel.name);
  llvm::Expected<const Driver &> driver = bundle.resolveDriver();
  if (!driver)
    return driver.takeError();
  llvm::Expected<ContextScope> scope = ContextScope::enter(*driver, device);
  if (!scope)
    return scope.takeError();
  llvm::Expected<Bundle::ContextState &> context = bundle.resolveContext(*driver, *scope);
  if (!context)
    return context.takeError();
  return context->kernels[index].capacity * kernel.cluster[0];
}

static llvm::Error launchFunction(const Driver &driver, const KernelInfo &kernel, Function function,
                                  std::array<unsigned, 3> grid, Stream stream, void **parameters) {
  LaunchAttributes attributes;
  LaunchConfig config = makeConfig(kernel, grid, stream, attributes);
  Result result = driver.launchKernelEx(&config, function, parameters, nullptr);
  if (result == 0)
    return llvm::Error::success();
  return makeError(TESSERA_RUNTIME_DRIVER_ERROR,
                   "kernel '{0}': cuLaunchKernelEx of {1}x{2}x{3} blocks of {4} threads with {5} "
                   "bytes of shared memory: {6}",
                   kernel.name, grid[0], grid[1], grid[2],
                   kernel.block[0] * kernel.block[1] * kernel.block[2], kernel.sharedMemory,
                   driver.describe(result));
}

llvm::Error Kernel::launch(int device, void *streamHandle, llvm::ArrayRef<Argument> arguments) {
  auto stream = static_cast<Stream>(streamHandle);
  const KernelInfo &kernel = getInfo();
  DimValues dims;
  if (llvm::Error error = checkArguments(kernel, arguments, dims))
    return error;
  llvm::Expected<std::array<unsigned, 3>> grid = computeGrid(kernel, dims);
  if (!grid)
    return grid.takeError();
  if ((*grid)[0] == 0)
    return llvm::Error::success();
  if (llvm::Error error = checkOverlap(kernel, arguments))
    return error;
  ParameterBlock block(kernel);
  if (llvm::Error error = block.fill(arguments, dims))
    return error;

  llvm::Expected<const Driver &> driver = bundle.resolveDriver();
  if (!driver)
    return driver.takeError();
  llvm::Expected<ContextScope> scope = ContextScope::enter(*driver, device);
  if (!scope)
    return scope.takeError();
  llvm::Expected<Bundle::ContextState &> context = bundle.resolveContext(*driver, *scope);
  if (!context)
    return context.takeError();
  Bundle::KernelState &state = context->kernels[index];
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    for (unsigned i = 0; i < arguments.size(); ++i) {
      if (!kernel.arguments[i].isView)
        continue;
      llvm::Expected<unsigned> slot = resolveArgument(*driver, kernel, i, arguments[i], dims,
                                                      scope->getDevice(), state.caches[i]);
      if (!slot)
        return slot.takeError();
      for (const LaunchParameter &parameter : kernel.parameters)
        if (parameter.kind == ParameterKind::TensorMap && parameter.argument == i)
          block.setTensorMap(parameter, &state.caches[i].getMap(*slot, parameter.mapOfArgument));
    }
    if (kernel.workspaceBytes) {
      llvm::Expected<DevicePointer> memory = state.workspaces.resolve(*driver, kernel, stream);
      if (!memory)
        return memory.takeError();
      block.setWorkspaces(*memory);
    }
  }
  if (kernel.persistent)
    (*grid)[0] = std::min((*grid)[0], state.capacity) * kernel.cluster[0];
  return launchFunction(*driver, kernel, state.function, *grid, stream, block.getPointers());
}

llvm::Expected<std::vector<char>> Kernel::readTimeline(int device, void *streamHandle) {
  auto stream = static_cast<Stream>(streamHandle);
  const KernelInfo &kernel = getInfo();
  if (!kernel.timelineBytes)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "kernel '{0}' records no timeline; compile it with --instrument=timeline",
                     kernel.name);
  llvm::Expected<const Driver &> driver = bundle.resolveDriver();
  if (!driver)
    return driver.takeError();
  llvm::Expected<ContextScope> scope = ContextScope::enter(*driver, device);
  if (!scope)
    return scope.takeError();
  llvm::Expected<Bundle::ContextState &> context = bundle.resolveContext(*driver, *scope);
  if (!context)
    return context.takeError();
  Bundle::KernelState &state = context->kernels[index];
  std::vector<char> contents(kernel.timelineBytes);
  std::lock_guard<std::mutex> lock(state.mutex);
  DevicePointer memory = state.workspaces.find(stream);
  if (!memory)
    return contents;
  DevicePointer timeline = memory + kernel.timelineOffset;
  if (llvm::Error error = driver->check(driver->ctxSynchronize(), "cuCtxSynchronize"))
    return error;
  if (llvm::Error error =
          driver->check(driver->memcpyDtoH(contents.data(), timeline, contents.size()),
                        "cuMemcpyDtoH of the timeline"))
    return error;
  if (llvm::Error error = driver->check(driver->memsetD8Async(timeline, 0, contents.size(), stream),
                                        "cuMemsetD8Async of the timeline"))
    return error;
  return contents;
}
