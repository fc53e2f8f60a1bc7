//===- DeviceBuffer.h - Device memory for the tools -------------*- C++ -*-===//
//
// Memory on a device that is freed with the object. Applications bring their own; `tessera run` has
// none.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_DEVICEBUFFER_H
#define TESSERA_LIB_RUNTIME_DEVICEBUFFER_H

#include "lib/Runtime/Driver.h"

#include "llvm/ADT/ArrayRef.h"

namespace tessera::runtime {

/// Bytes on a device. The object must not outlive `driver`. All errors have status DRIVER_ERROR,
/// beyond those of finding the device (NO_DEVICE).
class DeviceBuffer {
public:
  /// `bytes` of memory, at least 1, in the primary context of device `device` (or in the current
  /// context when it belongs to the device).
  static llvm::Expected<DeviceBuffer> allocate(const cuda::Driver &driver, int device,
                                               size_t bytes);
  DeviceBuffer(DeviceBuffer &&other);
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(DeviceBuffer &&) = delete;
  ~DeviceBuffer();

  uint64_t getAddress() const { return address; }
  size_t getSize() const { return bytes; }

  /// Copies `data`, which has the buffer's size, to the device.
  llvm::Error upload(llvm::ArrayRef<char> data) const;
  /// Waits for the work of the device and copies the buffer to `data`, which has its size. An error
  /// may stem from an earlier launch.
  llvm::Error download(llvm::MutableArrayRef<char> data) const;

private:
  /// The context of the device, for a copy of `size` bytes.
  llvm::Expected<cuda::ContextScope> enterForCopy(size_t size) const;

  DeviceBuffer(const cuda::Driver &driver, int device, uint64_t address, size_t bytes)
      : driver(&driver), device(device), address(address), bytes(bytes) {}

  const cuda::Driver *driver;
  int device;
  uint64_t address;
  size_t bytes;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_DEVICEBUFFER_H
