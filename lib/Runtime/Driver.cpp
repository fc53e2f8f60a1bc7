//===- Driver.cpp - Finding the CUDA driver and its contexts --------------===//

#include "lib/Runtime/Driver.h"

#include "lib/Runtime/Error.h"

#include "llvm/ADT/Twine.h"

#include <atomic>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <pthread.h>

using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

char RuntimeError::ID = 0;

/// The version of the API whose entry points are asked for: the first with tensor maps.
static constexpr int kApiVersion = 12000;

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (getErrorName(result, &name) != 0 || !name)
    return llvm::formatv("error {0}", result).str();
  if (getErrorString(result, &text) != 0 || !text)
    return name;
  return llvm::formatv("{0} ({1})", name, text).str();
}

llvm::Error Driver::check(Result result, const llvm::Twine &what) const {
  if (result == 0)
    return llvm::Error::success();
  return makeError(TESSERA_RUNTIME_DRIVER_ERROR, "{0}: {1}", what.str(), describe(result));
}

/// cuGetProcAddress of CUDA 12.0 (exported as cuGetProcAddress_v2).
using GetProcAddress = Result(const char *name, void **function, int version, uint64_t flags,
                              int *status);

static llvm::Error lookUp(GetProcAddress *getProcAddress, const char *name, void **function) {
  int status = 0;
  if (getProcAddress(name, function, kApiVersion, 0, &status) != 0 || !*function)
    return makeError(
        TESSERA_RUNTIME_NO_DEVICE,
        "the CUDA driver has no {0} of CUDA 12.0; a driver of release 525 or newer does", name);
  return llvm::Error::success();
}

static llvm::Error loadDriver(Driver &driver) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return makeError(TESSERA_RUNTIME_NO_DEVICE,
                     "cannot open the CUDA driver: {0}; install an NVIDIA driver (libcuda.so.1) or "
                     "add its directory to LD_LIBRARY_PATH",
                     reason ? reason : "libcuda.so.1 not found");
  }
  auto *getProcAddress = reinterpret_cast<GetProcAddress *>(dlsym(library, "cuGetProcAddress_v2"));
  if (!getProcAddress)
    return makeError(TESSERA_RUNTIME_NO_DEVICE,
                     "libcuda.so.1 has no cuGetProcAddress_v2, so it is older than CUDA 12.0; a "
                     "driver of release 525 or newer works");
#define TESSERA_CUDA_LOOKUP(MEMBER, NAME, ...)                                                     \
  if (llvm::Error error = lookUp(getProcAddress, NAME, reinterpret_cast<void **>(&driver.MEMBER))) \
    return error;
  TESSERA_CUDA_FUNCTIONS(TESSERA_CUDA_LOOKUP)
#undef TESSERA_CUDA_LOOKUP

  if (Result result = driver.init(0))
    return makeError(TESSERA_RUNTIME_NO_DEVICE, "cuInit: {0}", driver.describe(result));
  int version = 0;
  if (Result result = driver.driverGetVersion(&version))
    return makeError(TESSERA_RUNTIME_NO_DEVICE, "cuDriverGetVersion: {0}", driver.describe(result));
  if (version < kApiVersion)
    return makeError(TESSERA_RUNTIME_NO_DEVICE,
                     "the CUDA driver supports CUDA {0}.{1}; 12.0 or newer is needed",
                     version / 1000, version % 1000 / 10);
  return llvm::Error::success();
}

static std::atomic<bool> wasForked = false;

llvm::Error tessera::runtime::cuda::checkNotForked() {
  if (!wasForked)
    return llvm::Error::success();
  return makeError(TESSERA_RUNTIME_NO_DEVICE,
                   "this process was forked from one that had used CUDA, which does not work in "
                   "its children: start processes by the method 'spawn'");
}

llvm::Expected<const Driver &> tessera::runtime::cuda::getDriver() {
  struct State {
    Driver driver;
    std::string failure;
    State() {
      llvm::handleAllErrors(loadDriver(driver),
                            [&](const RuntimeError &error) { failure = error.getText(); });
      pthread_atfork(nullptr, nullptr, [] { wasForked = true; });
    }
  };
  // Never destroyed: bundles of static storage may be unloaded after this file's objects are gone.
  static const State &state = *new State;
  if (!state.failure.empty())
    return makeError(TESSERA_RUNTIME_NO_DEVICE, "{0}", state.failure);
  return state.driver;
}

llvm::Error tessera::runtime::cuda::callDuringCaptures(const Driver &driver,
                                                       llvm::function_ref<llvm::Error()> act) {
  int mode = kCaptureModeRelaxed;
  if (llvm::Error error = driver.check(driver.threadExchangeStreamCaptureMode(&mode),
                                       "cuThreadExchangeStreamCaptureMode"))
    return error;
  llvm::Error result = act();
  driver.threadExchangeStreamCaptureMode(&mode);
  return result;
}

llvm::Expected<Graph> tessera::runtime::cuda::findCapturedGraph(const Driver &driver,
                                                                Stream stream) {
  int status = 0;
  Graph graph = nullptr;
  if (llvm::Error error = driver.check(
          driver.streamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr),
          "cuStreamGetCaptureInfo"))
    return error;
  return status == kCaptureStatusActive ? graph : nullptr;
}

/// The primary context of a device, which is retained for the rest of the process: it belongs to
/// the application as much as to this library, and releasing it last would destroy the
/// application's memory.
static llvm::Expected<Context> retainPrimaryContext(const Driver &driver, int ordinal) {
  int count = 0;
  if (llvm::Error error = driver.check(driver.deviceGetCount(&count), "cuDeviceGetCount"))
    return error;
  if (ordinal < 0 || ordinal >= count)
    return makeError(TESSERA_RUNTIME_NO_DEVICE, "there is no CUDA device {0}; this machine has {1}",
                     ordinal, count);
  static std::mutex mutex;
  static auto &contexts = *new std::unique_ptr<Context[]>;
  std::lock_guard<std::mutex> lock(mutex);
  if (!contexts)
    contexts = std::make_unique<Context[]>(count);
  if (contexts[ordinal])
    return contexts[ordinal];
  Device device = 0;
  if (llvm::Error error = driver.check(driver.deviceGet(&device, ordinal), "cuDeviceGet"))
    return error;
  if (llvm::Error error =
          driver.check(driver.devicePrimaryCtxRetain(&contexts[ordinal], device),
                       "cuDevicePrimaryCtxRetain of device " + llvm::Twine(ordinal)))
    return error;
  return contexts[ordinal];
}

llvm::Expected<ContextScope> ContextScope::enter(const Driver &driver, int wanted) {
  Context context = nullptr;
  Device device = -1;
  if (llvm::Error error = driver.check(driver.ctxGetCurrent(&context), "cuCtxGetCurrent"))
    return error;
  if (context)
    if (llvm::Error error = driver.check(driver.ctxGetDevice(&device), "cuCtxGetDevice"))
      return error;
  if (!context && wanted < 0)
    return makeError(TESSERA_RUNTIME_NO_DEVICE,
                     "no CUDA context is current on this thread; name a device number instead");

  bool push = wanted >= 0 && device != wanted;
  if (push) {
    llvm::Expected<Context> primary = retainPrimaryContext(driver, wanted);
    if (!primary)
      return primary.takeError();
    context = *primary;
    device = wanted;
    if (llvm::Error error = driver.check(driver.ctxPushCurrent(context), "cuCtxPushCurrent"))
      return error;
  }
  ContextScope scope(driver, context, device, 0, push);
  if (llvm::Error error = driver.check(driver.ctxGetId(context, &scope.id), "cuCtxGetId"))
    return error;
  return scope;
}

ContextScope::ContextScope(ContextScope &&other)
    : driver(other.driver), context(other.context), device(other.device), id(other.id),
      pushed(other.pushed) {
  other.pushed = false;
}

ContextScope::~ContextScope() {
  Context popped = nullptr;
  if (pushed)
    driver->ctxPopCurrent(&popped);
}
