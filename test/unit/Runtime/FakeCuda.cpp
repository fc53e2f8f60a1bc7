//===- FakeCuda.cpp - The fake driver as a libcuda.so.1 -------------------===//
//
// For tests that go through dlopen: put the directory of this library first in LD_LIBRARY_PATH. The
// functions fake_cuda_* steer it and read its notes, for callers without C++.
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"

#include <cstring>
#include <iterator>

using namespace tessera::runtime;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT cuda::Result cuGetProcAddress_v2(const char *name, void **function, int, uint64_t,
                                        int *status) {
  *function = fake::find(name);
  *status = *function ? 0 : 1;
  return *function ? 0 : 500; // CUDA_ERROR_NOT_FOUND
}

EXPORT void fake_cuda_reset() { fake::reset(); }

/// The device of this thread's context from now on, -1 for none.
EXPORT void fake_cuda_set_device(int device) { fake::setCurrentDevice(device); }

/// That of every device, until the next reset.
EXPORT void fake_cuda_set_capability(int major, int minor) {
  fake::getState().capabilityMajor = major;
  fake::getState().capabilityMinor = minor;
}

/// Of memory, until the next reset: valgrind gives a process lower ones than Linux does.
EXPORT void fake_cuda_set_lowest_address(uint64_t address) {
  fake::getState().lowestAddress = address;
}

/// `sizes` of `count` parameters are to be recorded.
EXPORT void fake_cuda_set_parameter_sizes(const unsigned *sizes, size_t count) {
  fake::getState().parameterSizes.assign(sizes, sizes + count);
}

/// Each launch calls `function` from now on; null: none does.
EXPORT void fake_cuda_set_on_launch(void (*function)()) { fake::getState().onLaunch = function; }

EXPORT size_t fake_cuda_launch_count() { return fake::getState().launches.size(); }

/// Of the last launch: grid, block and cluster sizes, shared memory and device, 11 numbers in all.
EXPORT void fake_cuda_last_launch(unsigned *numbers, void **stream) {
  const fake::LaunchRecord &launch = fake::getState().launches.back();
  for (const auto &triple : {launch.grid, launch.block, launch.cluster})
    for (unsigned size : triple)
      *numbers++ = size;
  *numbers++ = launch.sharedMemory;
  *numbers++ = launch.device;
  *stream = launch.stream;
}

/// Copies a parameter of the last launch.
EXPORT void fake_cuda_last_parameter(size_t index, void *bytes) {
  const std::vector<char> &parameter = fake::getState().launches.back().parameters.at(index);
  memcpy(bytes, parameter.data(), parameter.size());
}

/// How many parameters of a launch there are, from 0 on, and how many bytes each has.
EXPORT size_t fake_cuda_parameter_sizes(size_t launch, unsigned *sizes, size_t most) {
  const auto &parameters = fake::getState().launches.at(launch).parameters;
  for (size_t i = 0; i < parameters.size() && i < most; ++i)
    sizes[i] = parameters[i].size();
  return parameters.size();
}

/// Copies a parameter of a launch.
EXPORT void fake_cuda_parameter(size_t launch, size_t index, void *bytes) {
  const std::vector<char> &parameter = fake::getState().launches.at(launch).parameters.at(index);
  memcpy(bytes, parameter.data(), parameter.size());
}

/// `stream` captures a graph from now on.
EXPORT void fake_cuda_begin_capture(void *stream) { fake::beginCapture(stream); }

/// Ends the capture; the graph is to be destroyed.
EXPORT void *fake_cuda_end_capture() { return fake::endCapture().release(); }

EXPORT void fake_cuda_destroy_graph(void *graph) {
  fake::destroyGraph(
      std::unique_ptr<fake::CapturedGraph>(static_cast<fake::CapturedGraph *>(graph)));
}

/// Whether an address lies in memory that the runtime has allocated.
EXPORT int fake_cuda_is_allocated(uint64_t address) {
  const auto &memory = fake::getState().memory;
  auto behind = memory.upper_bound(address);
  return behind != memory.begin() && address - std::prev(behind)->first < std::prev(behind)->second;
}

/// The allocations that live.
EXPORT size_t fake_cuda_allocation_count() { return fake::getState().memory.size(); }

/// Of a tensor map, from the first on: 6 numbers, extents, strides and box, rank of each.
EXPORT void fake_cuda_encode(size_t index, uint64_t *numbers) {
  const fake::EncodeRecord &map = fake::getState().encodes.at(index);
  for (int number : {map.dataType, map.swizzle, map.interleave, map.l2Promotion, map.oobFill})
    *numbers++ = number;
  *numbers++ = map.address;
  for (uint64_t extent : map.dims)
    *numbers++ = extent;
  for (uint64_t stride : map.strides)
    *numbers++ = stride;
  for (uint32_t size : map.box)
    *numbers++ = size;
}

EXPORT size_t fake_cuda_encode_count() { return fake::getState().encodes.size(); }
