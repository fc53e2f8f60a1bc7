//===- Limits.h - What a program may ask of the simulator -------*- C++ -*-===//
//
// Sizes are 64-bit until they have been held against one of these. Sums and products of sizes that
// passed them fit 64 bits by far.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_LIMITS_H
#define TESSERA_SIMULATOR_LIMITS_H

#include <cstdint>

namespace tessera::sim {

/// Of all buffers and of the state of all resident CTAs, so that a process stays below 2 GB.
constexpr uint64_t kMaxMemoryBytes = 1024ull << 20;
/// Dynamic and static, of a CTA (CUDA C++ Programming Guide, compute capability 9.0).
constexpr uint64_t kMaxSharedBytes = 232448;
/// What a multiprocessor has for the CTAs that it holds, and how many it holds (ibid.).
constexpr uint64_t kMultiprocessorSharedBytes = 233472, kMultiprocessorRegisters = 65536;
constexpr uint64_t kMultiprocessorThreads = 2048, kMultiprocessorCtas = 32;
/// Of a thread (CUDA C++ Programming Guide, technical specifications).
constexpr uint64_t kMaxLocalBytes = 512 << 10;
/// Of a kernel's parameters (PTX ISA 5.1.6.1, from sm_70 on).
constexpr uint64_t kMaxParamBytes = 32764;
/// Ten regions of 64 KiB (PTX ISA 5.1.3).
constexpr uint64_t kMaxConstBytes = 640 << 10;
/// Asynchronous operations of a cluster in flight; beyond, some land early.
constexpr uint64_t kMaxPending = 2048;
/// Virtual registers of a kernel; each takes 128 bytes or more of every warp.
constexpr uint64_t kMaxRegisters = 1 << 17;
/// Of a variable's address; shared memory windows are aligned to no more.
constexpr uint64_t kMaxAlign = 1 << 16;
/// Grid, block and cluster (CUDA C++ Programming Guide, technical specifications).
constexpr uint64_t kMaxGridX = (1ull << 31) - 1, kMaxGridYZ = 65535;
constexpr uint64_t kMaxThreads = 1024, kMaxClusterCtas = 16, kMaxRegistersPerThread = 256;
/// What ptxas gives a thread at most, and in which steps.
constexpr uint32_t kMaxAssignedRegisters = 255, kRegisterStep = 8;

/// Whether [at, at + bytes) lies in [0, size), without wrapping.
constexpr bool isInside(uint64_t at, uint64_t bytes, uint64_t size) {
  return at <= size && bytes <= size - at;
}

} // namespace tessera::sim

#endif // TESSERA_SIMULATOR_LIMITS_H
