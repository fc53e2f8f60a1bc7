//===- DeviceBuffer.cpp - Device memory for the tools ---------------------===//

#include "lib/Runtime/DeviceBuffer.h"

#include "lib/Runtime/Error.h"

#include "llvm/ADT/Twine.h"

using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

llvm::Expected<DeviceBuffer> DeviceBuffer::allocate(const Driver &driver, int device,
                                                    size_t bytes) {
  llvm::Expected<ContextScope> scope = ContextScope::enter(driver, device);
  if (!scope)
    return scope.takeError();
  DevicePointer address = 0;
  if (llvm::Error error = driver.check(driver.memAlloc(&address, bytes),
                                       "cuMemAlloc of " + llvm::Twine(bytes) + " bytes"))
    return error;
  return DeviceBuffer(driver, scope->getDevice(), address, bytes);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer &&other)
    : driver(other.driver), device(other.device), address(other.address), bytes(other.bytes) {
  other.address = 0;
}

DeviceBuffer::~DeviceBuffer() {
  if (!address)
    return;
  llvm::Expected<ContextScope> scope = ContextScope::enter(*driver, device);
  if (scope)
    driver->memFree(address);
  else
    llvm::consumeError(scope.takeError());
}

llvm::Expected<ContextScope> DeviceBuffer::enterForCopy(size_t size) const {
  if (size != bytes)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT, "{0} bytes for a buffer of {1}", size,
                     bytes);
  return ContextScope::enter(*driver, device);
}

llvm::Error DeviceBuffer::upload(llvm::ArrayRef<char> data) const {
  llvm::Expected<ContextScope> scope = enterForCopy(data.size());
  if (!scope)
    return scope.takeError();
  return driver->check(driver->memcpyHtoD(address, data.data(), bytes), "cuMemcpyHtoD");
}

llvm::Error DeviceBuffer::download(llvm::MutableArrayRef<char> data) const {
  llvm::Expected<ContextScope> scope = enterForCopy(data.size());
  if (!scope)
    return scope.takeError();
  if (llvm::Error error = driver->check(driver->ctxSynchronize(), "cuCtxSynchronize"))
    return error;
  return driver->check(driver->memcpyDtoH(data.data(), address, bytes), "cuMemcpyDtoH");
}
