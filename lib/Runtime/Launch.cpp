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
  for (unsigned i = 0; i < info.kernels.size() + info.sequences.size(); ++i)
    kernels.emplace_back(*this, i);
  for (const ChoiceInfo &choice : info.choices)
    kernels.emplace_back(*this, kernels.size(), std::make_unique<Chooser>(info, choice));
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
// Parameters
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

llvm::Error ParameterBlock::fillLayout(llvm::ArrayRef<Argument> arguments,
                                       llvm::ArrayRef<int64_t> dims) {
  for (const LaunchParameter &parameter : kernel.parameters) {
    if (parameter.kind == ParameterKind::Dim)
      set(parameter, dims[parameter.dim]);
    else if (parameter.kind == ParameterKind::Stride)
      if (llvm::Error error = setStride(parameter, arguments[parameter.argument]))
        return error;
  }
  return llvm::Error::success();
}

void ParameterBlock::fillValue(const LaunchParameter &parameter,
                               llvm::ArrayRef<Argument> arguments) {
  if (parameter.kind == ParameterKind::Pointer)
    set(parameter, arguments[parameter.argument].pointer);
  else if (parameter.kind == ParameterKind::Scalar)
    std::memcpy(bytes + parameter.offset, &arguments[parameter.argument].scalar, parameter.bytes);
}

llvm::Error ParameterBlock::fill(llvm::ArrayRef<Argument> arguments, llvm::ArrayRef<int64_t> dims) {
  for (const LaunchParameter &parameter : kernel.parameters)
    fillValue(parameter, arguments);
  return fillLayout(arguments, dims);
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

//===----------------------------------------------------------------------===//
// One launch of one kernel
//===----------------------------------------------------------------------===//

/// A launch of a kernel: planned, then prepared in a context, then queued. Not movable.
class Kernel::KernelLaunch {
public:
  explicit KernelLaunch(std::shared_ptr<const LaunchPlan> plan)
      : plan(std::move(plan)), kernel(this->plan->getKernel()), block(kernel) {}

  bool isEmpty() const { return plan->isEmpty(); }
  /// `graph` is what the stream captures, or null.
  llvm::Error prepare(const Place &place, Stream stream, Graph graph,
                      llvm::ArrayRef<Argument> arguments) {
    block.setBytes(plan->getParameters());
    for (const LaunchParameter *parameter : plan->getParametersOfLaunch())
      block.fillValue(*parameter, arguments);
    if (llvm::Error error = fillTensorMaps(place, arguments))
      return error;
    return fillWorkspaces(place, stream, graph);
  }
  llvm::Error queue(const Place &place, Stream stream);

private:
  llvm::Error fillTensorMaps(const Place &place, llvm::ArrayRef<Argument> arguments);
  llvm::Error fillWorkspaces(const Place &place, Stream stream, Graph graph);

  std::shared_ptr<const LaunchPlan> plan;
  const KernelInfo &kernel;
  ParameterBlock block;
};

llvm::Error Kernel::KernelLaunch::fillTensorMaps(const Place &place,
                                                 llvm::ArrayRef<Argument> arguments) {
  LoadedKernel &loaded = place.module.getKernel(plan->getIndex());
  llvm::SmallVector<unsigned, 16> slots(arguments.size());
  std::lock_guard<std::mutex> lock(loaded.mutex);
  for (unsigned i = 0; i < arguments.size(); ++i)
    if (kernel.arguments[i].isView)
      if (llvm::Error error =
              resolveArgument(place.driver, kernel, i, arguments[i], plan->getDims(),
                              place.scope.getDevice(), loaded.caches[i])
                  .moveInto(slots[i]))
        return error;
  for (const LaunchParameter *parameter : plan->getParametersOfLaunch())
    if (unsigned i = parameter->argument; parameter->kind == ParameterKind::TensorMap)
      block.setTensorMap(*parameter, &loaded.caches[i].getMap(slots[i], parameter->mapOfArgument));
  return llvm::Error::success();
}

llvm::Error Kernel::KernelLaunch::fillWorkspaces(const Place &place, Stream stream, Graph graph) {
  LoadedKernel &loaded = place.module.getKernel(plan->getIndex());
  WorkspaceRequest request{kernel, plan->getWorkspaceBytes(), /*zeroed=*/true};
  DevicePointer ofGraph = 0, ofStream = 0;
  if (graph)
    if (llvm::Error error =
            place.module.retainInGraph(graph, request, loaded.workspaces).moveInto(ofGraph))
      return error;
  // Timelines are read by stream, so captured launches record where others of their stream do.
  if (graph ? kernel.timelineBytes : request.bytes) {
    std::lock_guard<std::mutex> lock(loaded.mutex);
    if (llvm::Error error =
            loaded.workspaces.resolve(place.driver, request, stream).moveInto(ofStream))
      return error;
  }
  for (const LaunchParameter *parameter : plan->getParametersOfLaunch())
    block.setWorkspace(*parameter, graph ? ofGraph : ofStream, ofStream);
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

llvm::Error Kernel::KernelLaunch::queue(const Place &place, Stream stream) {
  const LoadedKernel &loaded = place.module.getKernel(plan->getIndex());
  std::array<unsigned, 3> grid = plan->getGrid();
  if (kernel.persistent)
    grid[0] = std::min(grid[0], loaded.capacity) * kernel.cluster[0];
  return launchFunction(place.driver, kernel, loaded.function, grid, stream, block.getPointers());
}

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

const KernelInfo *Kernel::getKernelInfo() const {
  const BundleInfo &info = bundle.getInfo();
  return index < info.kernels.size() ? &info.kernels[index] : nullptr;
}

const SequenceInfo *Kernel::getSequenceInfo() const {
  const BundleInfo &info = bundle.getInfo();
  size_t position = index - info.kernels.size();
  return position < info.sequences.size() ? &info.sequences[position] : nullptr;
}

Kernel &Kernel::getAlternative(unsigned position) const {
  return bundle.getKernels()[chooser->getInfo().alternatives[position].entry];
}

const Signature &Kernel::getSignature() const {
  if (const KernelInfo *kernel = getKernelInfo())
    return *kernel;
  if (const SequenceInfo *sequence = getSequenceInfo())
    return *sequence;
  return chooser->getInfo();
}

Kernel *Kernel::findSequence(const CallPlan &plan) {
  if (!chooser)
    return getSequenceInfo() ? this : nullptr;
  for (unsigned i = 0; i < chooser->getInfo().alternatives.size(); ++i)
    if (Kernel &taken = getAlternative(i); &taken.getSignature() == &plan.getCallee())
      return taken.findSequence(plan);
  return nullptr;
}

llvm::Expected<Kernel::Place> Kernel::enter(int device) {
  if (llvm::Error error = checkNotForked())
    return error;
  llvm::Expected<const Driver &> driver = bundle.resolveDriver();
  if (!driver)
    return driver.takeError();
  llvm::Expected<ContextScope> scope = ContextScope::enter(*driver, device);
  if (!scope)
    return scope.takeError();
  llvm::Expected<LoadedModule &> module = bundle.resolveModule(*driver, *scope);
  if (!module)
    return module.takeError();
  return Place{*driver, std::move(*scope), *module};
}

llvm::Error Kernel::prepare(int device) { return enter(device).takeError(); }

/// Refuses what only a kernel has, of a sequence of several or a choice among them.
static llvm::Error refuseSeveral(const Kernel &entry, const BundleInfo &bundle,
                                 llvm::StringRef what) {
  const SequenceInfo *sequence = entry.getSequenceInfo();
  llvm::SmallVector<unsigned> kernels;
  auto add = [&](unsigned kernel) {
    if (!llvm::is_contained(kernels, kernel))
      kernels.push_back(kernel);
  };
  if (sequence)
    for (const StepInfo &step : sequence->steps)
      add(step.kernel);
  else
    for (const AlternativeInfo &alternative : entry.getChooser()->getInfo().alternatives)
      for (const TimedLaunch &launch : alternative.launches)
        add(launch.kernel);
  std::string names;
  for (unsigned kernel : kernels)
    names += (names.empty() ? "'" : ", '") + bundle.kernels[kernel].name + "'";
  const Signature &signature = entry.getSignature();
  return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                   "{0} '{1}' launches {2}, of which each has {3} of its own; ask one of {4}",
                   signature.kind, signature.name,
                   sequence ? "several kernels" : "one of several kernels", what, names);
}

llvm::Expected<unsigned> Kernel::getCapacity(int device) {
  if (!getKernelInfo())
    return refuseSeveral(*this, bundle.getInfo(), "a grid");
  const KernelInfo &kernel = *getKernelInfo();
  if (!kernel.persistent)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "kernel '{0}' is not persistent: its grid does not depend on the device",
                     kernel.name);
  llvm::Expected<Place> place = enter(device);
  if (!place)
    return place.takeError();
  return place->module.getKernel(index).capacity * kernel.cluster[0];
}

llvm::Expected<uint64_t> Kernel::getWorkspaceBytes(llvm::ArrayRef<Argument> arguments) const {
  llvm::Expected<std::shared_ptr<const CallPlan>> found = plan(arguments);
  if (!found)
    return found.takeError();
  return (*found)->getLentBytes();
}

llvm::Expected<std::shared_ptr<const CallPlan>>
Kernel::plan(llvm::ArrayRef<Argument> arguments) const {
  // Before anything that another thread may have locked when the process was forked.
  if (llvm::Error error = checkNotForked())
    return error;
  std::optional<uint64_t> hash = hashLayouts(getSignature(), arguments);
  if (hash)
    if (std::shared_ptr<const CallPlan> plan = plans->find(*hash, arguments);
        plan && plan->areAligned(arguments) && plan->takesScalars(arguments))
      return plan;
  llvm::Expected<std::shared_ptr<const CallPlan>> plan = makePlan(arguments);
  // Addresses of nothing need no checks, which those of a plan that is found have.
  if (hash && plan && !(*plan)->isEmpty())
    plans->insert(*hash, *plan);
  return plan;
}

llvm::Expected<std::shared_ptr<const CallPlan>>
Kernel::makePlan(llvm::ArrayRef<Argument> arguments) const {
  const Kernel &taken = chooser ? getAlternative(chooser->choose(arguments)) : *this;
  if (const SequenceInfo *sequence = taken.getSequenceInfo())
    return SequencePlan::make(*sequence, bundle.getInfo(), arguments);
  return LaunchPlan::make(*taken.getKernelInfo(), taken.index, arguments);
}

llvm::Error Kernel::launchKernel(std::shared_ptr<const LaunchPlan> plan, int device, Stream stream,
                                 llvm::ArrayRef<Argument> arguments) {
  KernelLaunch launch(std::move(plan));
  llvm::Expected<Place> place = enter(device);
  if (!place)
    return place.takeError();
  llvm::Expected<Graph> graph = findCapturedGraph(place->driver, stream);
  if (!graph)
    return graph.takeError();
  if (llvm::Error error = launch.prepare(*place, stream, *graph, arguments))
    return error;
  return launch.queue(*place, stream);
}

/// The memory of a call that its caller gives none: that of the stream, or of the graph that
/// captures it.
llvm::Expected<uint64_t> Kernel::findMemory(const Place &place, Stream stream, Graph graph,
                                            uint64_t bytes) {
  LoadedSequence &loaded = place.module.getSequence(index - bundle.getInfo().kernels.size());
  WorkspaceRequest request{*getSequenceInfo(), bytes, /*zeroed=*/false};
  if (graph)
    return place.module.retainInGraph(graph, request, loaded.workspaces);
  std::lock_guard<std::mutex> lock(loaded.mutex);
  return loaded.workspaces.resolve(place.driver, request, stream);
}

/// Says why memory that a caller lends does not serve.
static llvm::Error checkLent(const SequenceInfo &sequence, LentMemory lent, uint64_t bytes) {
  if (lent.address % SequencePlan::kAlignment)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "sequence '{0}': the workspace at {1:x} is no multiple of {2} bytes",
                     sequence.name, lent.address, SequencePlan::kAlignment);
  if (lent.bytes < bytes || (bytes && !lent.address))
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "sequence '{0}': the workspace has {1} bytes; this call needs {2}",
                     sequence.name, lent.address ? lent.bytes : 0, bytes);
  return llvm::Error::success();
}

/// Sets workspaces to zero that are to be.
static llvm::Error zeroParts(const Driver &driver, const SequencePlan &plan, uint64_t memory,
                             Stream stream) {
  for (const SequencePlan::Part &part : plan.getParts())
    if (part.workspace->zeroed && part.bytes)
      if (llvm::Error error = driver.check(
              driver.memsetD8Async(memory + part.offset, 0, part.bytes, stream),
              "sequence '" + plan.getCallee().name + "': cuMemsetD8Async of the workspace '" +
                  part.workspace->name + "'"))
        return error;
  return llvm::Error::success();
}

llvm::Error Kernel::launchSequence(const SequencePlan &plan, int device, Stream stream,
                                   llvm::ArrayRef<Argument> arguments,
                                   std::optional<LentMemory> lent) {
  if (lent)
    if (llvm::Error error = checkLent(*getSequenceInfo(), *lent, plan.getLentBytes()))
      return error;
  llvm::Expected<Place> place = enter(device);
  if (!place)
    return place.takeError();
  llvm::Expected<Graph> graph = findCapturedGraph(place->driver, stream);
  if (!graph)
    return graph.takeError();
  uint64_t memory = lent ? lent->address : 0;
  if (!lent && plan.getLentBytes())
    if (llvm::Error error =
            findMemory(*place, stream, *graph, plan.getLentBytes()).moveInto(memory))
      return error;
  llvm::SmallVector<uint64_t, 8> addresses = plan.place(memory);
  // Each launch is prepared before the first is queued, so that all run or none.
  llvm::SmallVector<std::unique_ptr<KernelLaunch>, 4> launches;
  for (auto [step, ofStep] : llvm::zip_equal(getSequenceInfo()->steps, plan.getLaunches())) {
    if (ofStep->isEmpty())
      continue;
    launches.push_back(std::make_unique<KernelLaunch>(ofStep));
    if (llvm::Error error = launches.back()->prepare(*place, stream, *graph,
                                                     plan.getArguments(step, arguments, addresses)))
      return error;
  }
  if (llvm::Error error = zeroParts(place->driver, plan, memory, stream))
    return error;
  for (const std::unique_ptr<KernelLaunch> &launch : launches)
    if (llvm::Error error = launch->queue(*place, stream))
      return error;
  return llvm::Error::success();
}

llvm::Error Kernel::launch(int device, void *stream, llvm::ArrayRef<Argument> arguments,
                           std::optional<LentMemory> lent) {
  llvm::Expected<std::shared_ptr<const CallPlan>> found = plan(arguments);
  if (!found)
    return found.takeError();
  return launchPlanned(std::move(*found), device, stream, arguments, lent);
}

llvm::Error Kernel::launch(std::shared_ptr<const CallPlan> plan, int device, void *stream,
                           llvm::ArrayRef<Argument> arguments, std::optional<LentMemory> lent) {
  if (llvm::Error error = checkNotForked())
    return error;
  // What of these arguments is refused the other way says.
  if (!plan->areAligned(arguments) || !plan->takesScalars(arguments))
    return launch(device, stream, arguments, lent);
  return launchPlanned(std::move(plan), device, stream, arguments, lent);
}

/// Addresses and scalars are checked, but not what is shared.
llvm::Error Kernel::launchPlanned(std::shared_ptr<const CallPlan> plan, int device,
                                  void *streamHandle, llvm::ArrayRef<Argument> arguments,
                                  std::optional<LentMemory> lent) {
  if (plan->isEmpty())
    return llvm::Error::success();
  if (!plan->areApart(arguments))
    if (llvm::Error error = checkOverlap(plan->getCallee(), arguments))
      return error;
  auto stream = static_cast<Stream>(streamHandle);
  if (Kernel *sequence = findSequence(*plan))
    return sequence->launchSequence(static_cast<const SequencePlan &>(*plan), device, stream,
                                    arguments, lent);
  return launchKernel(std::static_pointer_cast<const LaunchPlan>(std::move(plan)), device, stream,
                      arguments);
}

llvm::Error Kernel::zero(int device, void *stream, uint64_t address, uint64_t bytes) {
  llvm::Expected<Place> place = enter(device);
  if (!place)
    return place.takeError();
  return place->driver.check(
      place->driver.memsetD8Async(address, 0, bytes, static_cast<Stream>(stream)),
      "cuMemsetD8Async of a result");
}

llvm::Expected<const SideStream *> Kernel::findSideStream(int device, void *stream) {
  llvm::Expected<Place> place = enter(device);
  if (!place)
    return place.takeError();
  return SideStream::find(place->driver, device, stream);
}

llvm::Expected<std::vector<char>> Kernel::readTimeline(int device, void *streamHandle) {
  auto stream = static_cast<Stream>(streamHandle);
  if (!getKernelInfo())
    return refuseSeveral(*this, bundle.getInfo(), "a timeline");
  const KernelInfo &kernel = *getKernelInfo();
  if (!kernel.timelineBytes)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "kernel '{0}' records no timeline; compile it with --instrument=timeline",
                     kernel.name);
  llvm::Expected<Place> place = enter(device);
  if (!place)
    return place.takeError();
  const Driver &driver = place->driver;
  std::vector<char> contents(kernel.timelineBytes);
  LoadedKernel &loaded = place->module.getKernel(index);
  std::lock_guard<std::mutex> lock(loaded.mutex);
  DevicePointer memory = loaded.workspaces.find(stream);
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
