//===- Driver.h - The part of the CUDA driver API that is used --*- C++ -*-===//
//
// Declares the few types and functions of the CUDA driver API (CUDA Driver API Reference Manual,
// CUDA 12.0) that launching needs, so that no CUDA header is needed to build. The functions are
// reached through a table, which tests replace.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_DRIVER_H
#define TESSERA_LIB_RUNTIME_DRIVER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera::runtime::cuda {

using Result = int;             // CUresult; 0 is CUDA_SUCCESS
using Device = int;             // CUdevice
using DevicePointer = uint64_t; // CUdeviceptr
using Context = struct OpaqueContext *;
using Module = struct OpaqueModule *;
using Function = struct OpaqueFunction *;
using Stream = struct OpaqueStream *;
using Event = struct OpaqueEvent *;
using Graph = struct OpaqueGraph *;
using UserObject = struct OpaqueUserObject *;

/// CUDA_ERROR_NOT_READY, which cuEventQuery returns for work that is under way.
constexpr Result kNotReady = 600;

/// CU_STREAM_PER_THREAD, which names another stream on each thread.
inline const Stream kStreamPerThread = reinterpret_cast<Stream>(uintptr_t(2));

// CUdevice_attribute
constexpr int kMaxGridDimX = 5;
constexpr int kMultiprocessorCount = 16;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;
constexpr int kMaxSharedMemoryPerBlockOptin = 97;
// CUfunction_attribute
constexpr int kMaxDynamicSharedSizeBytes = 8;
constexpr int kNonPortableClusterSizeAllowed = 14;
// CUpointer_attribute
constexpr int kPointerMemoryType = 2;
constexpr int kPointerDeviceOrdinal = 9;
// CUjit_option
constexpr int kJitErrorLogBuffer = 5;
constexpr int kJitErrorLogBufferSizeBytes = 6;
// CUmemorytype
constexpr unsigned kMemoryTypeDevice = 2;
// CUstreamCaptureStatus
constexpr int kCaptureStatusActive = 1;
// CUstreamCaptureMode
constexpr int kCaptureModeRelaxed = 2;
// CUstream_flags
constexpr unsigned kStreamNonBlocking = 1;
// CUevent_flags
constexpr unsigned kEventDisableTiming = 2;
// CUuserObject_flags, CUuserObjectRetain_flags
constexpr unsigned kUserObjectNoDestructorSync = 1;
constexpr unsigned kGraphUserObjectMove = 1;
// CUlaunchAttributeID
constexpr int kLaunchAttributeClusterDimension = 4;
constexpr int kLaunchAttributeProgrammaticStreamSerialization = 6;
// CUtensorMapInterleave, CUtensorMapL2promotion, CUtensorMapFloatOOBfill
constexpr int kTensorMapInterleaveNone = 0;
constexpr int kTensorMapL2Promotion128B = 2; // 256 bytes read memory slower (docs/lab/memory.md).
constexpr int kTensorMapOobFillZero = 0;

/// CUtensorMap: 128 opaque bytes that the driver wants on a 64-byte boundary.
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};
static_assert(sizeof(TensorMap) == 128, "CUtensorMap has 128 bytes");

/// CUlaunchAttribute, with the values that are used.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    struct {
      unsigned x, y, z;
    } cluster;
    int programmaticStreamSerializationAllowed;
    uint64_t words[8];
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72, "CUlaunchAttribute has 72 bytes");

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedMemoryBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};
static_assert(sizeof(LaunchConfig) == 56, "CUlaunchConfig has 56 bytes");

/// X(member, name in the driver, return and parameter types)
#define TESSERA_CUDA_FUNCTIONS(X)                                                                  \
  X(init, "cuInit", Result(unsigned flags))                                                        \
  X(driverGetVersion, "cuDriverGetVersion", Result(int *version))                                  \
  X(getErrorName, "cuGetErrorName", Result(Result error, const char **name))                       \
  X(getErrorString, "cuGetErrorString", Result(Result error, const char **text))                   \
  X(deviceGetCount, "cuDeviceGetCount", Result(int *count))                                        \
  X(deviceGet, "cuDeviceGet", Result(Device *device, int ordinal))                                 \
  X(deviceGetName, "cuDeviceGetName", Result(char *name, int size, Device device))                 \
  X(deviceGetAttribute, "cuDeviceGetAttribute", Result(int *value, int attribute, Device device))  \
  X(deviceGetPCIBusId, "cuDeviceGetPCIBusId", Result(char *id, int size, Device device))           \
  X(devicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", Result(Context *context, Device device))   \
  X(ctxGetCurrent, "cuCtxGetCurrent", Result(Context *context))                                    \
  X(ctxGetDevice, "cuCtxGetDevice", Result(Device *device))                                        \
  X(ctxGetId, "cuCtxGetId", Result(Context context, unsigned long long *id))                       \
  X(ctxPushCurrent, "cuCtxPushCurrent", Result(Context context))                                   \
  X(ctxPopCurrent, "cuCtxPopCurrent", Result(Context *context))                                    \
  X(ctxSynchronize, "cuCtxSynchronize", Result())                                                  \
  X(moduleLoadDataEx, "cuModuleLoadDataEx",                                                        \
    Result(Module *module, const void *image, unsigned count, int *options, void **values))        \
  X(moduleUnload, "cuModuleUnload", Result(Module module))                                         \
  X(moduleGetFunction, "cuModuleGetFunction",                                                      \
    Result(Function *function, Module module, const char *name))                                   \
  X(funcSetAttribute, "cuFuncSetAttribute", Result(Function function, int attribute, int value))   \
  X(occupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters",                                    \
    Result(int *clusters, Function function, const LaunchConfig *config))                          \
  X(streamCreate, "cuStreamCreate", Result(Stream *stream, unsigned flags))                        \
  X(streamDestroy, "cuStreamDestroy", Result(Stream stream))                                       \
  X(streamSynchronize, "cuStreamSynchronize", Result(Stream stream))                               \
  X(streamGetCaptureInfo, "cuStreamGetCaptureInfo",                                                \
    Result(Stream stream, int *status, uint64_t *id, Graph *graph, const void **dependencies,      \
           size_t *dependencyCount))                                                               \
  X(streamWaitEvent, "cuStreamWaitEvent", Result(Stream stream, Event event, unsigned flags))      \
  X(threadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", Result(int *mode))       \
  X(userObjectCreate, "cuUserObjectCreate",                                                        \
    Result(UserObject *object, void *value, void (*destroy)(void *value), unsigned references,     \
           unsigned flags))                                                                        \
  X(userObjectRelease, "cuUserObjectRelease", Result(UserObject object, unsigned references))      \
  X(graphRetainUserObject, "cuGraphRetainUserObject",                                              \
    Result(Graph graph, UserObject object, unsigned references, unsigned flags))                   \
  X(pointerGetAttribute, "cuPointerGetAttribute",                                                  \
    Result(void *data, int attribute, DevicePointer pointer))                                      \
  X(tensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                                \
    Result(TensorMap *map, int dataType, uint32_t rank, void *address, const uint64_t *dims,       \
           const uint64_t *strides, const uint32_t *box, const uint32_t *elementStrides,           \
           int interleave, int swizzle, int l2Promotion, int oobFill))                             \
  X(launchKernelEx, "cuLaunchKernelEx",                                                            \
    Result(const LaunchConfig *config, Function function, void **parameters, void **extra))        \
  X(eventCreate, "cuEventCreate", Result(Event *event, unsigned flags))                            \
  X(eventDestroy, "cuEventDestroy", Result(Event event))                                           \
  X(eventRecord, "cuEventRecord", Result(Event event, Stream stream))                              \
  X(eventQuery, "cuEventQuery", Result(Event event))                                               \
  X(eventElapsedTime, "cuEventElapsedTime", Result(float *ms, Event start, Event end))             \
  X(memAlloc, "cuMemAlloc", Result(DevicePointer *pointer, size_t bytes))                          \
  X(memFree, "cuMemFree", Result(DevicePointer pointer))                                           \
  X(memsetD8Async, "cuMemsetD8Async",                                                              \
    Result(DevicePointer to, unsigned char value, size_t bytes, Stream stream))                    \
  X(memcpyHtoD, "cuMemcpyHtoD", Result(DevicePointer to, const void *from, size_t bytes))          \
  X(memcpyDtoH, "cuMemcpyDtoH", Result(void *to, DevicePointer from, size_t bytes))

/// The functions of the driver. Every member is set in a table that `getDriver` returns.
struct Driver {
  template <typename Signature>
  using Pointer = Signature *;
#define TESSERA_CUDA_MEMBER(MEMBER, NAME, ...) Pointer<__VA_ARGS__> MEMBER = nullptr;
  TESSERA_CUDA_FUNCTIONS(TESSERA_CUDA_MEMBER)
#undef TESSERA_CUDA_MEMBER

  /// Success, or an error of status DRIVER_ERROR: "<what>: <name of the error>: <its description>".
  llvm::Error check(Result result, const llvm::Twine &what) const;

  /// "CUDA_ERROR_INVALID_VALUE (invalid argument)".
  std::string describe(Result result) const;
};

/// The driver of this machine: opens libcuda.so.1 and calls cuInit, once a process. Fails with
/// status NO_DEVICE when there is no driver, when it is older than CUDA 12.0, or when it finds no
/// device; the failure is remembered.
llvm::Expected<const Driver &> getDriver();

/// Refuses whatever needs the driver in a process that was forked after `getDriver` had found one:
/// CUDA works in the process alone that began with it. Errors: NO_DEVICE.
llvm::Error checkNotForked();

/// Calls `act` with calls of the driver allowed that the capture of a CUDA graph, on any stream of
/// any thread, forbids otherwise: allocations, loading, synchronization of streams outside the
/// capture.
llvm::Error callDuringCaptures(const Driver &driver, llvm::function_ref<llvm::Error()> act);

/// The graph that a stream captures, null when it captures none.
llvm::Expected<Graph> findCapturedGraph(const Driver &driver, Stream stream);

/// Makes a context of a device current for the lifetime of the object, unless one is already.
class ContextScope {
public:
  /// `device` is an ordinal, or -1 for the device of the current context.
  static llvm::Expected<ContextScope> enter(const Driver &driver, int device);
  ContextScope(ContextScope &&other);
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  ContextScope &operator=(ContextScope &&) = delete;
  ~ContextScope();

  Context getContext() const { return context; }
  Device getDevice() const { return device; }
  /// Unlike the handle, the number is never given out twice (cuCtxGetId).
  unsigned long long getId() const { return id; }

private:
  ContextScope(const Driver &driver, Context context, Device device, unsigned long long id,
               bool pushed)
      : driver(&driver), context(context), device(device), id(id), pushed(pushed) {}

  const Driver *driver;
  Context context;
  Device device;
  unsigned long long id;
  bool pushed;
};

} // namespace tessera::runtime::cuda

#endif // TESSERA_LIB_RUNTIME_DRIVER_H
