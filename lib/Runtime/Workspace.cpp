//===- Workspace.cpp - Device memory that launches keep ------------------===//

#include "lib/Runtime/LoadedModule.h"

#include "llvm/ADT/STLExtras.h"
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
static llvm::Error zero(const Driver &driver, const WorkspaceRequest &request,
                        DevicePointer address) {
  std::string prefix = request.getPrefix();
  Stream stream = nullptr;
  if (llvm::Error error = driver.check(driver.streamCreate(&stream, kStreamNonBlocking),
                                       prefix + "cuStreamCreate to zero the workspace"))
    return error;
  llvm::Error error = driver.check(driver.memsetD8Async(address, 0, request.bytes, stream),
                                   prefix + "cuMemsetD8Async of the workspace");
  if (!error)
    error = driver.check(driver.streamSynchronize(stream),
                         prefix + "cuStreamSynchronize after zeroing the workspace");
  driver.streamDestroy(stream);
  return error;
}

static llvm::Expected<DevicePointer> allocate(const Driver &driver,
                                              const WorkspaceRequest &request) {
  DevicePointer address = 0;
  llvm::Error error = callDuringCaptures(driver, [&]() -> llvm::Error {
    if (llvm::Error failure = driver.check(driver.memAlloc(&address, request.bytes),
                                           request.getPrefix() + "cuMemAlloc of " +
                                               llvm::Twine(request.bytes) + " bytes of workspace"))
      return failure;
    if (!request.zeroed)
      return llvm::Error::success();
    llvm::Error failure = zero(driver, request, address);
    if (failure)
      driver.memFree(address);
    return failure;
  });
  if (error)
    return error;
  return address;
}

DevicePointer WorkspaceCache::find(Stream stream) const {
  return memory.lookup(getKey(stream)).address;
}

llvm::Expected<DevicePointer>
WorkspaceCache::resolve(const Driver &driver, const WorkspaceRequest &request, Stream stream) {
  Block &block = memory[getKey(stream)];
  if (block.address && block.bytes >= request.bytes)
    return block.address;
  WorkspaceRequest larger{request.owner, std::max(request.bytes, block.bytes + block.bytes / 2),
                          request.zeroed};
  llvm::Expected<DevicePointer> address = allocate(driver, larger);
  if (!address)
    return address;
  if (block.address)
    outgrown.push_back(block.address);
  block = {*address, larger.bytes};
  return address;
}

llvm::Expected<WorkspaceCache::Block> WorkspaceCache::take(const Driver &driver,
                                                           const WorkspaceRequest &request) {
  {
    std::lock_guard<std::mutex> lock(idleMutex);
    auto found = llvm::find_if(idle, [&](Block block) { return block.bytes >= request.bytes; });
    if (found != idle.end()) {
      Block block = *found;
      idle.erase(found);
      return block;
    }
  }
  llvm::Expected<DevicePointer> address = allocate(driver, request);
  if (!address)
    return address.takeError();
  return Block{*address, request.bytes};
}

void WorkspaceCache::giveBack(Block block) {
  std::lock_guard<std::mutex> lock(idleMutex);
  idle.push_back(block);
}

void WorkspaceCache::free(const Driver &driver) {
  for (auto &[key, block] : memory)
    driver.memFree(block.address);
  for (DevicePointer address : outgrown)
    driver.memFree(address);
  for (Block block : idle)
    driver.memFree(block.address);
  memory.clear();
  outgrown.clear();
  idle.clear();
}
