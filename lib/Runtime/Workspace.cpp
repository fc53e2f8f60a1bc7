//===- Workspace.cpp - Device memory that kernels keep between launches ---===//

#include "lib/Runtime/LoadedModule.h"

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

/// Sets memory to zero and waits for that. It is done on a stream of its own, since the stream of
/// the launch may be capturing a graph: there it would happen whenever the graph runs.
static llvm::Error zero(const Driver &driver, const KernelInfo &kernel, DevicePointer address) {
  std::string prefix = "kernel '" + kernel.name + "': ";
  Stream stream = nullptr;
  if (llvm::Error error = driver.check(driver.streamCreate(&stream, kStreamNonBlocking),
                                       prefix + "cuStreamCreate to zero the workspace"))
    return error;
  llvm::Error error = driver.check(driver.memsetD8Async(address, 0, kernel.workspaceBytes, stream),
                                   prefix + "cuMemsetD8Async of the workspace");
  if (!error)
    error = driver.check(driver.streamSynchronize(stream),
                         prefix + "cuStreamSynchronize after zeroing the workspace");
  driver.streamDestroy(stream);
  return error;
}

static llvm::Expected<DevicePointer> allocate(const Driver &driver, const KernelInfo &kernel) {
  DevicePointer address = 0;
  llvm::Error error = callDuringCaptures(driver, [&]() -> llvm::Error {
    if (llvm::Error failure =
            driver.check(driver.memAlloc(&address, kernel.workspaceBytes),
                         "kernel '" + kernel.name + "': cuMemAlloc of " +
                             llvm::Twine(kernel.workspaceBytes) + " bytes of workspace"))
      return failure;
    llvm::Error failure = zero(driver, kernel, address);
    if (failure)
      driver.memFree(address);
    return failure;
  });
  if (error)
    return error;
  return address;
}

DevicePointer WorkspaceCache::find(Stream stream) const { return memory.lookup(getKey(stream)); }

llvm::Expected<DevicePointer> WorkspaceCache::resolve(const Driver &driver,
                                                      const KernelInfo &kernel, Stream stream) {
  if (DevicePointer found = find(stream))
    return found;
  llvm::Expected<DevicePointer> address = allocate(driver, kernel);
  if (address)
    memory[getKey(stream)] = *address;
  return address;
}

llvm::Expected<DevicePointer> WorkspaceCache::take(const Driver &driver, const KernelInfo &kernel) {
  {
    std::lock_guard<std::mutex> lock(idleMutex);
    if (!idle.empty()) {
      DevicePointer address = idle.back();
      idle.pop_back();
      return address;
    }
  }
  return allocate(driver, kernel);
}

void WorkspaceCache::giveBack(DevicePointer address) {
  std::lock_guard<std::mutex> lock(idleMutex);
  idle.push_back(address);
}

void WorkspaceCache::free(const Driver &driver) {
  for (auto &[key, address] : memory)
    driver.memFree(address);
  for (DevicePointer address : idle)
    driver.memFree(address);
  memory.clear();
  idle.clear();
}
