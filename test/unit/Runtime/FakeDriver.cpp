//===- FakeDriver.cpp - A CUDA driver that only takes notes ---------------===//

#include "FakeDriver.h"

#include <cctype>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <sstream>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace tessera::runtime::cuda;
using namespace tessera::runtime::fake;

static thread_local std::vector<Context> contexts;
/// CU_STREAM_CAPTURE_MODE_GLOBAL, which is each thread's at first.
static thread_local int captureMode = 0;
static thread_local bool isInDestructor = false;

State &tessera::runtime::fake::getState() {
  static State state;
  return state;
}

void tessera::runtime::fake::reset() {
  getState() = State();
  contexts.clear();
}

/// The context of device n is the number n + 1.
static Context toContext(int device) {
  return reinterpret_cast<Context>(static_cast<uintptr_t>(device + 1));
}
static int toDevice(Context context) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
}

void tessera::runtime::fake::setCurrentDevice(int device) {
  contexts.clear();
  if (device >= 0)
    contexts.push_back(toContext(device));
}

void tessera::runtime::fake::beginCapture(void *stream) {
  getState().capturing = stream;
  getState().captured = std::make_unique<CapturedGraph>();
}

std::unique_ptr<CapturedGraph> tessera::runtime::fake::endCapture() {
  getState().capturing = nullptr;
  return std::move(getState().captured);
}

void tessera::runtime::fake::destroyGraph(std::unique_ptr<CapturedGraph> graph) {
  std::thread([&] {
    isInDestructor = true;
    for (auto [destroy, value] : graph->objects)
      destroy(value);
  }).join();
}

/// Guards what functions note down.
static std::mutex notes;

/// What a function of this name returns.
static Result outcome(const char *name) {
  if (isInDestructor) {
    ++getState().callsInDestructors;
    return 800; // CUDA_ERROR_NOT_PERMITTED
  }
  static const std::set<std::string> kForbiddenInCaptures = {
      "cuModuleLoadDataEx", "cuModuleUnload", "cuMemAlloc",
      "cuMemFree",          "cuStreamCreate", "cuStreamSynchronize"};
  if (getState().capturing && captureMode != kCaptureModeRelaxed &&
      kForbiddenInCaptures.count(name))
    return 900; // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  return getState().failing == name ? getState().failure : 0;
}

/// Sets memory of cuMemAlloc to 0. Whole pages go back to the system, which gives pages of zeros to
/// who touches them: tuning sets more memory to 0 than the L2 holds before each launch.
static void setToZero(DevicePointer to, size_t bytes) {
  const DevicePointer page = sysconf(_SC_PAGESIZE), end = to + bytes;
  const DevicePointer first = (to + page - 1) / page * page, last = end / page * page;
  void *pages = reinterpret_cast<void *>(first);
  if (first >= last || madvise(pages, last - first, MADV_DONTNEED)) {
    memset(reinterpret_cast<void *>(to), 0, bytes);
    return;
  }
  memset(reinterpret_cast<void *>(to), 0, first - to);
  memset(reinterpret_cast<void *>(last), 0, end - last);
}

namespace {

/// A kernel of a module.
struct Entry {
  std::string name;
  /// Those of its parameters, where the image is PTX.
  std::vector<unsigned> parameterSizes;
};

} // namespace

/// The sizes of the parameters of an entry, where an image is PTX.
static std::vector<unsigned> readParameterSizes(const std::string &image, const std::string &name) {
  size_t begin = image.find(".entry " + name + "(");
  std::vector<unsigned> sizes;
  if (begin == std::string::npos)
    return sizes;
  std::istringstream words(image.substr(begin, image.find(')', begin) - begin));
  for (std::string word; words >> word;) {
    if (word == ".b8") { // name[size]
      words >> word;
      sizes.push_back(std::stoul(word.substr(word.find('[') + 1)));
    } else if (word.size() == 4 && word[0] == '.' && isdigit(word[2])) { // .u64, .f32
      sizes.push_back(std::stoul(word.substr(2)) / 8);
    }
  }
  return sizes;
}

#define FAKE(NAME, ...)                                                                            \
  static Result fake_##NAME(__VA_ARGS__) {                                                         \
    std::unique_lock<std::mutex> lock(notes);                                                      \
    if (Result failure = outcome(#NAME))                                                           \
      return failure;

FAKE(cuInit, unsigned)
return 0;
}
FAKE(cuDriverGetVersion, int *version)
*version = getState().version;
return 0;
}
FAKE(cuGetErrorName, Result error, const char **name)
*name = error == 1 ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_OTHER";
return 0;
}
FAKE(cuGetErrorString, Result error, const char **text)
*text = error == 1 ? "invalid argument" : "another error";
return 0;
}
FAKE(cuDeviceGetCount, int *count)
*count = getState().deviceCount;
return 0;
}
FAKE(cuDeviceGet, Device *device, int ordinal)
*device = ordinal;
return 0;
}
FAKE(cuDeviceGetName, char *name, int size, Device)
// A test may be about the cards that numbers and rules are of.
const char *card = getenv("TESSERA_FAKE_CARD");
strncpy(name, card ? card : "Fake Hopper", size);
return 0;
}
FAKE(cuDeviceGetAttribute, int *value, int attribute, Device)
++getState().attributeQueries;
switch (attribute) {
case kComputeCapabilityMajor:
  *value = getState().capabilityMajor;
  return 0;
case kComputeCapabilityMinor:
  *value = getState().capabilityMinor;
  return 0;
case kMultiprocessorCount:
  *value = getState().multiprocessors;
  return 0;
case kMaxSharedMemoryPerBlockOptin:
  *value = getState().sharedMemory;
  return 0;
default:
  return 1;
}
}
FAKE(cuDevicePrimaryCtxRetain, Context *context, Device device)
*context = toContext(device);
return 0;
}
FAKE(cuCtxGetCurrent, Context *context)
*context = contexts.empty() ? nullptr : contexts.back();
return 0;
}
FAKE(cuCtxGetDevice, Device *device)
*device = toDevice(contexts.back());
return 0;
}
FAKE(cuCtxGetId, Context context, unsigned long long *id)
*id = 100 + toDevice(context);
return 0;
}
FAKE(cuCtxPushCurrent, Context context)
contexts.push_back(context);
return 0;
}
FAKE(cuCtxPopCurrent, Context *context)
*context = contexts.back();
contexts.pop_back();
return 0;
}
static Result fake_cuCtxSynchronize() { return outcome("cuCtxSynchronize"); }

static Result fake_cuModuleLoadDataEx(Module *module, const void *image, unsigned count,
                                      int *options, void **values) {
  if (getState().moduleLoads == getState().mostModules)
    return 2;
  *module = reinterpret_cast<Module>(static_cast<uintptr_t>(++getState().moduleLoads));
  // Texts begin with a comment.
  const char *text = static_cast<const char *>(image);
  getState().images[*module] = text[0] == '/' && text[1] == '/' ? text : "";
  Result result = outcome("cuModuleLoadDataEx");
  for (unsigned i = 0; result && i < count; ++i)
    if (options[i] == kJitErrorLogBuffer)
      strcpy(static_cast<char *>(values[i]), "the assembler's log");
  return result;
}
FAKE(cuModuleUnload, Module)
++getState().moduleUnloads;
return 0;
}
FAKE(cuModuleGetFunction, Function *function, Module module, const char *name)
getState().moduleOf.push_back(reinterpret_cast<uintptr_t>(module));
// Lives as long as the test.
*function = reinterpret_cast<Function>(
    new Entry{name, readParameterSizes(getState().images[module], name)});
return 0;
}
FAKE(cuFuncSetAttribute, Function, int attribute, int value)
if (attribute == kMaxDynamicSharedSizeBytes)
  getState().sharedMemoryRequests.push_back(value);
getState().largeClusters += attribute == kNonPortableClusterSizeAllowed && value == 1;
return 0;
}
FAKE(cuOccupancyMaxActiveClusters, int *clusters, Function function, const LaunchConfig *config)
++getState().occupancyQueries;
bool hasCluster =
    config->attributeCount >= 1 && config->attributes[0].id == kLaunchAttributeClusterDimension;
if (!function || !hasCluster || config->gridX % config->attributes[0].value.cluster.x)
  return 1;
*clusters = getState().activeClusters;
return 0;
}
FAKE(cuStreamCreate, Stream *stream, unsigned flags)
if (flags != kStreamNonBlocking)
  return 1;
static uintptr_t next = 0x10000;
*stream = reinterpret_cast<Stream>(++next);
getState().streams[*stream];
return 0;
}
FAKE(cuStreamDestroy, Stream stream)
return getState().streams.erase(stream) ? 0 : 1;
}
FAKE(cuStreamSynchronize, Stream stream)
getState().zeroed.merge(getState().streams.at(stream));
return 0;
}
FAKE(cuStreamGetCaptureInfo, Stream stream, int *status, uint64_t *id, Graph *graph, const void **,
     size_t *)
++getState().captureQueries;
if (id)
  return 1;
*status = stream && stream == getState().capturing ? kCaptureStatusActive : 0;
if (*status)
  *graph = reinterpret_cast<Graph>(getState().captured.get());
return 0;
}
FAKE(cuThreadExchangeStreamCaptureMode, int *mode)
std::swap(*mode, captureMode);
return 0;
}
using UserObjectEntry = std::pair<void (*)(void *), void *>;
FAKE(cuUserObjectCreate, UserObject *object, void *value, void (*destroy)(void *),
     unsigned references, unsigned flags)
if (references != 1 || flags != kUserObjectNoDestructorSync)
  return 1;
*object = reinterpret_cast<UserObject>(new UserObjectEntry(destroy, value));
return 0;
}
static Result fake_cuUserObjectRelease(UserObject object, unsigned) {
  auto *entry = reinterpret_cast<UserObjectEntry *>(object);
  auto graph = std::make_unique<CapturedGraph>();
  graph->objects.push_back(*entry);
  delete entry;
  destroyGraph(std::move(graph));
  return outcome("cuUserObjectRelease");
}
FAKE(cuGraphRetainUserObject, Graph graph, UserObject object, unsigned references, unsigned flags)
if (references != 1 || flags != kGraphUserObjectMove)
  return 1;
auto *entry = reinterpret_cast<UserObjectEntry *>(object);
reinterpret_cast<CapturedGraph *>(graph)->objects.push_back(*entry);
delete entry;
return 0;
}
FAKE(cuPointerGetAttribute, void *data, int attribute, DevicePointer pointer)
++getState().pointerQueries;
if (pointer < getState().lowestAddress)
  return 1;
// What was allocated is on device 0, wherever it is in the memory of the process.
bool isAllocated = getState().memory.count(pointer) != 0;
// The memory of the process itself counts as pinned memory of the host.
int device = isAllocated ? 0 : pointer >= kHeap ? -1 : static_cast<int>(pointer / kMemory) - 1;
unsigned value = attribute == kPointerMemoryType ? (device < 0 ? 1 : kMemoryTypeDevice) : device;
memcpy(data, &value, sizeof(value));
return 0;
}
FAKE(cuTensorMapEncodeTiled, TensorMap *map, int dataType, uint32_t rank, void *address,
     const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
     const uint32_t *elementStrides, int interleave, int swizzle, int l2Promotion, int oobFill)
if (reinterpret_cast<uintptr_t>(map) % 64)
  return 1;
*map = {};
map->opaque[0] = getState().encodes.size();
getState().encodes.push_back({dataType,
                              swizzle,
                              interleave,
                              l2Promotion,
                              oobFill,
                              reinterpret_cast<uint64_t>(address),
                              {dims, dims + rank},
                              {strides, strides + rank - 1},
                              {box, box + rank},
                              {elementStrides, elementStrides + rank}});
return 0;
}
FAKE(cuLaunchKernelEx, const LaunchConfig *config, Function function, void **parameters, void **)
LaunchRecord record;
const auto &entry = *reinterpret_cast<Entry *>(function);
const std::vector<unsigned> &sizes =
    entry.parameterSizes.empty() ? getState().parameterSizes : entry.parameterSizes;
record.symbol = entry.name;
record.grid = {config->gridX, config->gridY, config->gridZ};
record.block = {config->blockX, config->blockY, config->blockZ};
record.cluster = {1, 1, 1};
for (unsigned i = 0; i < config->attributeCount; ++i)
  if (config->attributes[i].id == kLaunchAttributeClusterDimension) {
    const auto &cluster = config->attributes[i].value.cluster;
    record.cluster = {cluster.x, cluster.y, cluster.z};
  } else if (config->attributes[i].id == kLaunchAttributeProgrammaticStreamSerialization) {
    record.pdl = config->attributes[i].value.programmaticStreamSerializationAllowed;
  }
record.sharedMemory = config->sharedMemoryBytes;
record.stream = config->stream;
record.device = toDevice(contexts.back());
for (unsigned i = 0; i < sizes.size(); ++i) {
  const char *bytes = static_cast<const char *>(parameters[i]);
  record.parameters.emplace_back(bytes, bytes + sizes[i]);
}
// Kernels take longer the less shared memory they have, and those with none the more blocks.
getState().clock +=
    1 + (record.sharedMemory ? 1e5 / record.sharedMemory : 1e-4 * config->gridX * config->gridY);
getState().launches.push_back(std::move(record));
// What is called may call the driver: a bundle that Python collects there unloads its module.
lock.unlock();
if (getState().onLaunch)
  getState().onLaunch();
return 0;
}
FAKE(cuDeviceGetPCIBusId, char *id, int size, Device device)
snprintf(id, size, "0000:%02x:00.0", device);
return 0;
}
/// An event is the time at which it was recorded.
FAKE(cuEventCreate, Event *event, unsigned)
*event = reinterpret_cast<Event>(new double(0));
return 0;
}
FAKE(cuEventDestroy, Event event)
delete reinterpret_cast<double *>(event);
return 0;
}
FAKE(cuEventRecord, Event event, Stream stream)
getState().recorded[event] = stream;
*reinterpret_cast<double *>(event) = getState().clock;
return 0;
}
FAKE(cuStreamWaitEvent, Stream stream, Event event, unsigned)
getState().waits.emplace_back(stream, getState().recorded[event]);
getState().launchesBefore.push_back(getState().launches.size());
return 0;
}
FAKE(cuEventQuery, Event)
return getState().isHanging ? kNotReady : 0;
}
FAKE(cuEventElapsedTime, float *ms, Event start, Event end)
*ms = *reinterpret_cast<double *>(end) - *reinterpret_cast<double *>(start);
return 0;
}
FAKE(cuMemAlloc, DevicePointer *pointer, size_t bytes)
// As the driver does, on boundaries of 256 bytes. Sizes of aligned_alloc are multiples of these.
*pointer = reinterpret_cast<DevicePointer>(aligned_alloc(256, (bytes + 255) / 256 * 256));
getState().memory[*pointer] = bytes;
return 0;
}
FAKE(cuMemsetD8Async, DevicePointer to, unsigned char value, size_t bytes, Stream stream)
auto memory = getState().memory.find(to);
// Other memory may be shared with others.
if (value == 0 && memory != getState().memory.end())
  setToZero(to, bytes);
else
  memset(reinterpret_cast<void *>(to), value, bytes);
auto own = getState().streams.find(stream);
bool isWhole = memory != getState().memory.end() && memory->second == bytes;
if (value == 0 && isWhole && own != getState().streams.end())
  own->second.insert(to);
return 0;
}
FAKE(cuMemFree, DevicePointer pointer)
getState().memory.erase(pointer);
getState().zeroed.erase(pointer);
free(reinterpret_cast<void *>(pointer));
return 0;
}
FAKE(cuMemcpyHtoD, DevicePointer to, const void *from, size_t bytes)
memcpy(reinterpret_cast<void *>(to), from, bytes);
return 0;
}
FAKE(cuMemcpyDtoH, void *to, DevicePointer from, size_t bytes)
memcpy(to, reinterpret_cast<void *>(from), bytes);
return 0;
}

#undef FAKE

const Driver &tessera::runtime::fake::getTable() {
  static const Driver table = [] {
    Driver driver;
#define FAKE_MEMBER(MEMBER, NAME, ...)                                                             \
  driver.MEMBER = reinterpret_cast<decltype(driver.MEMBER)>(find(NAME));
    TESSERA_CUDA_FUNCTIONS(FAKE_MEMBER)
#undef FAKE_MEMBER
    return driver;
  }();
  return table;
}

#define FAKE_ENTRY(NAME) {#NAME, reinterpret_cast<void *>(fake_##NAME)}

void *tessera::runtime::fake::find(const char *name) {
  static const std::pair<const char *, void *> kFunctions[] = {
      FAKE_ENTRY(cuInit),
      FAKE_ENTRY(cuDriverGetVersion),
      FAKE_ENTRY(cuGetErrorName),
      FAKE_ENTRY(cuGetErrorString),
      FAKE_ENTRY(cuDeviceGetCount),
      FAKE_ENTRY(cuDeviceGet),
      FAKE_ENTRY(cuDeviceGetName),
      FAKE_ENTRY(cuDeviceGetAttribute),
      FAKE_ENTRY(cuDevicePrimaryCtxRetain),
      FAKE_ENTRY(cuCtxGetCurrent),
      FAKE_ENTRY(cuCtxGetDevice),
      FAKE_ENTRY(cuCtxGetId),
      FAKE_ENTRY(cuCtxPushCurrent),
      FAKE_ENTRY(cuCtxPopCurrent),
      FAKE_ENTRY(cuCtxSynchronize),
      FAKE_ENTRY(cuModuleLoadDataEx),
      FAKE_ENTRY(cuModuleUnload),
      FAKE_ENTRY(cuModuleGetFunction),
      FAKE_ENTRY(cuFuncSetAttribute),
      FAKE_ENTRY(cuOccupancyMaxActiveClusters),
      FAKE_ENTRY(cuStreamCreate),
      FAKE_ENTRY(cuStreamDestroy),
      FAKE_ENTRY(cuStreamSynchronize),
      FAKE_ENTRY(cuStreamGetCaptureInfo),
      FAKE_ENTRY(cuThreadExchangeStreamCaptureMode),
      FAKE_ENTRY(cuUserObjectCreate),
      FAKE_ENTRY(cuUserObjectRelease),
      FAKE_ENTRY(cuGraphRetainUserObject),
      FAKE_ENTRY(cuPointerGetAttribute),
      FAKE_ENTRY(cuTensorMapEncodeTiled),
      FAKE_ENTRY(cuLaunchKernelEx),
      FAKE_ENTRY(cuDeviceGetPCIBusId),
      FAKE_ENTRY(cuEventCreate),
      FAKE_ENTRY(cuEventDestroy),
      FAKE_ENTRY(cuEventRecord),
      FAKE_ENTRY(cuStreamWaitEvent),
      FAKE_ENTRY(cuEventQuery),
      FAKE_ENTRY(cuEventElapsedTime),
      FAKE_ENTRY(cuMemAlloc),
      FAKE_ENTRY(cuMemFree),
      FAKE_ENTRY(cuMemsetD8Async),
      FAKE_ENTRY(cuMemcpyHtoD),
      FAKE_ENTRY(cuMemcpyDtoH),
  };
  for (const auto &[functionName, function] : kFunctions)
    if (strcmp(functionName, name) == 0)
      return function;
  return nullptr;
}
