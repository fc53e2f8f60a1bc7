//===- SideStream.cpp - Launches beside those of a stream -----------------===//

#include "lib/Runtime/SideStream.h"

#include <map>
#include <memory>
#include <mutex>

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

/// Where more streams come, as those that are made for a while, nothing runs beside them.
static constexpr size_t kMostStreams = 256;

llvm::Error SideStream::make() {
  return callDuringCaptures(driver, [&]() -> llvm::Error {
    if (llvm::Error error =
            driver.check(driver.streamCreate(&own, kStreamNonBlocking), "cuStreamCreate"))
      return error;
    for (Event *event : {&forked, &joined})
      if (llvm::Error error =
              driver.check(driver.eventCreate(event, kEventDisableTiming), "cuEventCreate"))
        return error;
    return llvm::Error::success();
  });
}

llvm::Expected<const SideStream *> SideStream::find(const Driver &driver, int device,
                                                    void *stream) {
  if (stream == kStreamPerThread) // Threads would share the events of one side stream.
    return nullptr;
  llvm::Expected<ContextScope> scope = ContextScope::enter(driver, device);
  if (!scope)
    return scope.takeError();
  // They live as long as the process: work may be left in them.
  static std::mutex &mutex = *new std::mutex;
  static auto &known =
      *new std::map<std::pair<unsigned long long, void *>, std::unique_ptr<SideStream>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = known.find({scope->getId(), stream});
  if (found != known.end())
    return found->second.get();
  if (known.size() >= kMostStreams)
    return nullptr;
  std::unique_ptr<SideStream> made(new SideStream(driver, device, static_cast<Stream>(stream)));
  if (llvm::Error error = made->make())
    return error;
  return (known[{scope->getId(), stream}] = std::move(made)).get();
}

llvm::Error SideStream::wait(Stream first, Stream second, Event event) const {
  llvm::Expected<ContextScope> scope = ContextScope::enter(driver, device);
  if (!scope)
    return scope.takeError();
  if (llvm::Error error = driver.check(driver.eventRecord(event, first), "cuEventRecord"))
    return error;
  return driver.check(driver.streamWaitEvent(second, event, 0), "cuStreamWaitEvent");
}
