//===- SideStream.h - Launches beside those of a stream ---------*- C++ -*-===//

#ifndef TESSERA_LIB_RUNTIME_SIDESTREAM_H
#define TESSERA_LIB_RUNTIME_SIDESTREAM_H

#include "lib/Runtime/Driver.h"

namespace tessera::runtime {

/// A stream beside another one of a device. Each has one of its own, so that what one captures
/// holds no launch of another.
class SideStream {
public:
  /// That of a stream, made once for the process; null where there are too many, and of
  /// kStreamPerThread, which is another stream in each thread. `device` is an ordinal, or -1 for
  /// the device of the current context.
  static llvm::Expected<const SideStream *> find(const cuda::Driver &driver, int device,
                                                 void *stream);

  void *get() const { return own; }
  /// What is launched here from now on waits for what the other stream has.
  llvm::Error fork() const { return wait(other, own, forked); }
  /// What is launched there from now on waits for what this stream has.
  llvm::Error join() const { return wait(own, other, joined); }

private:
  SideStream(const cuda::Driver &driver, int device, cuda::Stream other)
      : driver(driver), device(device), other(other) {}
  llvm::Error make();
  llvm::Error wait(cuda::Stream first, cuda::Stream second, cuda::Event event) const;

  const cuda::Driver &driver;
  int device;
  cuda::Stream other, own = nullptr;
  cuda::Event forked = nullptr, joined = nullptr;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_SIDESTREAM_H
