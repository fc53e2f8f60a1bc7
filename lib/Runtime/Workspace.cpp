//===- Workspace.cpp - Device memory that kernels keep between launches ---===//

#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"

#include "llvm/ADT/Twine.h"

#include <atomic>

using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

/// A number of the calling thread that no other thread ever has, unlike its id.
static uint64_t getThreadNumber() {
  static std::atomic<uint64_t> next(1);
  thread_local uint64_t number = next++;
  return number;
}

static std::pair<Stream, uint64_t> getKey(Stream stream) {
  return {stream, stream == kStreamPerThread ? getThreadNumber() : 0};
}

DevicePointer WorkspaceCache::find(Stream stream) const { return memory.lookup(getKey(stream)); }

llvm::Expected<DevicePointer> WorkspaceCache::resolve(const Driver &driver,
                                                      const KernelInfo &kernel, Stream stream) {
  if (DevicePointer found = find(stream))
    return found;

  int status = kCaptureStatusNone;
  if (llvm::Error error =
          driver.check(driver.streamIsCapturing(stream, &status), "cuStreamIsCapturing"))
    return error;
  if (status != kCaptureStatusNone)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "kernel '{0}' needs {1} bytes of workspace on this stream, which cannot be "
                     "allocated while the stream is capturing a graph; launch the kernel once on "
                     "the stream before the capture",
                     kernel.name, kernel.workspaceBytes);
  DevicePointer address = 0;
  if (llvm::Error error =
          driver.check(driver.memAlloc(&address, kernel.workspaceBytes),
                       "kernel '" + kernel.name + "': cuMemAlloc of " +
                           llvm::Twine(kernel.workspaceBytes) + " bytes of workspace"))
    return error;
  if (llvm::Error error =
          driver.check(driver.memsetD8Async(address, 0, kernel.workspaceBytes, stream),
                       "kernel '" + kernel.name + "': cuMemsetD8Async of the workspace")) {
    driver.memFree(address);
    return error;
  }
  memory[getKey(stream)] = address;
  return address;
}

void WorkspaceCache::free(const Driver &driver) {
  for (auto &[key, address] : memory)
    driver.memFree(address);
  memory.clear();
}
