//===- FakeDriver.h - A CUDA driver that only takes notes -------*- C++ -*-===//
//
// Serves two ways: as a table of functions for GoogleTest, and as a libcuda.so.1 for tests of the
// whole path. Nothing runs; launches and tensor maps are recorded.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_RUNTIME_FAKEDRIVER_H
#define TESSERA_TEST_UNIT_RUNTIME_FAKEDRIVER_H

#include "lib/Runtime/Driver.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tessera::runtime::fake {

/// Addresses that count as memory of device `n`: [kMemory * (n + 1), kMemory * (n + 2)).
constexpr uint64_t kMemory = uint64_t(1) << 40;
/// Addresses below kMemory that count as pinned host memory.
constexpr uint64_t kPinnedMemory = uint64_t(1) << 39;
/// So do addresses from here on, where the memory of a process lies.
constexpr uint64_t kHeap = uint64_t(1) << 46;

struct LaunchRecord {
  std::string symbol;
  std::array<unsigned, 3> grid, block, cluster;
  bool pdl = false;
  unsigned sharedMemory;
  void *stream;
  int device;
  /// As many bytes of each parameter as its type in PTX has, otherwise as State::parameterSizes
  /// says.
  std::vector<std::vector<char>> parameters;

  template <typename T>
  T get(unsigned index) const {
    T value;
    memcpy(&value, parameters.at(index).data(), sizeof(T));
    return value;
  }
};

struct EncodeRecord {
  int dataType, swizzle, interleave, l2Promotion, oobFill;
  uint64_t address;
  std::vector<uint64_t> dims, strides;
  std::vector<uint32_t> box, elementStrides;
};

/// A graph that was captured: what it has to release when it ends.
struct CapturedGraph {
  std::vector<std::pair<void (*)(void *), void *>> objects;
};

struct State {
  int deviceCount = 2;
  int capabilityMajor = 9, capabilityMinor = 0;
  /// Below it there is no memory.
  uint64_t lowestAddress = kPinnedMemory;
  int sharedMemory = 232448;
  int multiprocessors = 132;
  /// What cuOccupancyMaxActiveClusters answers.
  int activeClusters = 60;
  /// The stream that captures a graph, and the graph. Meanwhile what a capture forbids fails on
  /// threads that did not ask for the relaxed mode.
  void *capturing = nullptr;
  std::unique_ptr<CapturedGraph> captured;
  int version = 12040;
  /// Milliseconds that the launches so far would have taken, from their shared memory.
  double clock = 0;
  /// No event comes to pass; in the shared library with FAKE_CUDA_HANGS in the environment.
  bool isHanging = getenv("FAKE_CUDA_HANGS") != nullptr;
  /// The function of the driver that fails, and how.
  std::string failing;
  cuda::Result failure = 1;

  /// Called by each launch.
  void (*onLaunch)() = nullptr;
  std::vector<unsigned> parameterSizes;
  std::vector<LaunchRecord> launches;
  /// A tensor map holds the number of its record here, from 0, in its first word.
  std::vector<EncodeRecord> encodes;
  std::vector<int> sharedMemoryRequests;
  unsigned largeClusters = 0; ///< kernels that may have such
  unsigned moduleLoads = 0, moduleUnloads = 0, pointerQueries = 0;
  /// The texts of images by module, empty of those that are none.
  std::map<void *, std::string> images;
  /// More cannot be loaded.
  unsigned mostModules = ~0u;
  /// Of which module functions were asked for, in order.
  std::vector<uintptr_t> moduleOf;
  /// What each event was recorded on, and which stream has waited for which one, in order.
  std::map<cuda::Event, cuda::Stream> recorded;
  std::vector<std::pair<cuda::Stream, cuda::Stream>> waits;
  /// How many launches there were before each of these waits.
  std::vector<size_t> launchesBefore;
  /// Calls of cuDeviceGetAttribute, cuOccupancyMaxActiveClusters and cuStreamGetCaptureInfo.
  unsigned attributeQueries = 0, occupancyQueries = 0, captureQueries = 0;
  /// Calls of any function from a graph's destructor, which must make none.
  unsigned callsInDestructors = 0;
  /// Memory that is allocated; of it, what was zeroed as a whole on a stream that was waited for.
  std::map<uint64_t, size_t> memory;
  std::set<uint64_t> zeroed;
  /// Streams that were created, with the memory that was zeroed there and not waited for.
  std::map<void *, std::set<uint64_t>> streams;
};

/// The state of the driver, of which there is one in a process.
State &getState();
/// Back to the state at the beginning, with no context current on this thread.
void reset();
/// Makes the primary context of a device current on this thread, -1 for none.
void setCurrentDevice(int device);
/// A stream captures a graph from now on.
void beginCapture(void *stream);
std::unique_ptr<CapturedGraph> endCapture();
/// Runs the destructors of the graph's objects, on a thread of their own as the driver does.
void destroyGraph(std::unique_ptr<CapturedGraph> graph);
const cuda::Driver &getTable();
/// The function of a name, null when there is none.
void *find(const char *name);

} // namespace tessera::runtime::fake

#endif // TESSERA_TEST_UNIT_RUNTIME_FAKEDRIVER_H
