//===- Launch.cpp - Modules, caches and launches --------------------------===//

#include "lib/Runtime/Launch.h"

#include "lib/Runtime/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <cstring>

using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

//===----------------------------------------------------------------------===//
// Bundle
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
  // The last launch may still run, and its caller may have no more use for the bundle.
  for (const std::shared_ptr<LoadedModule> &module : modules)
    module->synchronize();
  modules.clear();
  LoadedModule::sweep();
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

llvm::Expected<LoadedModule &> Bundle::resolveModule(const Driver &driver,
                                                     const ContextScope &scope) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const std::shared_ptr<LoadedModule> &module : modules)
    if (module->getContextId() == scope.getId())
      return *module;
  llvm::Expected<std::shared_ptr<LoadedModule>> loaded = LoadedModule::load(driver, scope, info);
  if (!loaded)
    return loaded.takeError();
  return *modules.emplace_back(std::move(*loaded));
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

llvm::Expected<Kernel::Place> Kernel::enter(int device) {
  llvm::Expected<const Driver &> driver = bundle.resolveDriver();
  if (!driver)
    return driver.takeError();
  llvm::Expected<ContextScope> scope = ContextScope::enter(*driver, device);
  if (!scope)
    return scope.takeError();
  llvm::Expected<LoadedModule &> module = bundle.resolveModule(*driver, *scope);
  if (!module)
    return module.takeError();
  return Place{*driver, std::move(*scope), *module, module->getKernel(index)};
}

llvm::Error Kernel::prepare(int device) { return enter(device).takeError(); }

llvm::Expected<unsigned> Kernel::getCapacity(int device) {
  const KernelInfo &kernel = getInfo();
  if (!kernel.persistent)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "kernel '{0}' is not persistent: its grid does not depend on the device",
                     kernel.name);
  llvm::Expected<Place> place = enter(device);
  if (!place)
    return place.takeError();
  return place->kernel.capacity * kernel.cluster[0];
}

llvm::Error Kernel::fillTensorMaps(const Place &place, llvm::ArrayRef<Argument> arguments,
                                   llvm::ArrayRef<int64_t> dims, ParameterBlock &block) {
  const KernelInfo &kernel = getInfo();
  std::lock_guard<std::mutex> lock(place.kernel.mutex);
  for (unsigned i = 0; i < arguments.size(); ++i) {
    if (!kernel.arguments[i].isView)
      continue;
    ArgumentCache &cache = place.kernel.caches[i];
    llvm::Expected<unsigned> slot = resolveArgument(place.driver, kernel, i, arguments[i], dims,
                                                    place.scope.getDevice(), cache);
    if (!slot)
      return slot.takeError();
    for (const LaunchParameter &parameter : kernel.parameters)
      if (parameter.kind == ParameterKind::TensorMap && parameter.argument == i)
        block.setTensorMap(parameter, &cache.getMap(*slot, parameter.mapOfArgument));
  }
  return llvm::Error::success();
}

llvm::Error Kernel::fillWorkspaces(const Place &place, Stream stream, ParameterBlock &block) {
  const KernelInfo &kernel = getInfo();
  llvm::Expected<Graph> graph = findCapturedGraph(place.driver, stream);
  if (!graph)
    return graph.takeError();
  DevicePointer ofGraph = 0, ofStream = 0;
  if (*graph)
    if (llvm::Error error =
            place.module.retainInGraph(*graph, kernel, place.kernel).moveInto(ofGraph))
      return error;
  // Timelines are read by stream, so captured launches record where others of their stream do.
  if (*graph ? kernel.timelineBytes : kernel.workspaceBytes) {
    std::lock_guard<std::mutex> lock(place.kernel.mutex);
    if (llvm::Error error =
            place.kernel.workspaces.resolve(place.driver, kernel, stream).moveInto(ofStream))
      return error;
  }
  block.setWorkspaces(*graph ? ofGraph : ofStream, ofStream);
  return llvm::Error::success();
}

static llvm::Error launchFunction(const Driver &driver, const KernelInfo &kernel, Function function,
                                  std::array<unsigned, 3> grid, Stream stream, void **parameters) {
  LaunchSetup setup(kernel, grid, stream);
  Result result = driver.launchKernelEx(&setup.config, function, parameters, nullptr);
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

  llvm::Expected<Place> place = enter(device);
  if (!place)
    return place.takeError();
  if (llvm::Error error = fillTensorMaps(*place, arguments, dims, block))
    return error;
  if (llvm::Error error = fillWorkspaces(*place, stream, block))
    return error;
  if (kernel.persistent)
    (*grid)[0] = std::min((*grid)[0], place->kernel.capacity) * kernel.cluster[0];
  return launchFunction(place->driver, kernel, place->kernel.function, *grid, stream,
                        block.getPointers());
}

llvm::Expected<std::vector<char>> Kernel::readTimeline(int device, void *streamHandle) {
  auto stream = static_cast<Stream>(streamHandle);
  const KernelInfo &kernel = getInfo();
  if (!kernel.timelineBytes)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "kernel '{0}' records no timeline; compile it with --instrument=timeline",
                     kernel.name);
  llvm::Expected<Place> place = enter(device);
  if (!place)
    return place.takeError();
  const Driver &driver = place->driver;
  std::vector<char> contents(kernel.timelineBytes);
  std::lock_guard<std::mutex> lock(place->kernel.mutex);
  DevicePointer memory = place->kernel.workspaces.find(stream);
  if (!memory)
    return contents;
  DevicePointer timeline = memory + kernel.timelineOffset;
  if (llvm::Error error = driver.check(driver.ctxSynchronize(), "cuCtxSynchronize"))
    return error;
  if (llvm::Error error =
          driver.check(driver.memcpyDtoH(contents.data(), timeline, contents.size()),
                       "cuMemcpyDtoH of the timeline"))
    return error;
  if (llvm::Error error = driver.check(driver.memsetD8Async(timeline, 0, contents.size(), stream),
                                       "cuMemsetD8Async of the timeline"))
    return error;
  return contents;
}
