//===- Machine.h - What Hopper is -----------------------------------------===//
//
// Facts about sm_90a that the compiler computes with, each from its manual: the
// PTX ISA 9.0, or the CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability", column 9.0. Numbers that were measured are in
// passes/Schedule/CostModel.h. The simulator has its own (lib/Simulator/Limits.h),
// so that it checks these.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_MACHINE_H
#define TESSERA_DIALECTS_HOP_MACHINE_H

#include <cstddef>
#include <cstdint>

namespace tessera::hopper {

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// Threads of a warp (PTX ISA 3.1), and of the four warps that issue a wgmma (9.7.15.1).
constexpr int64_t warpThreads = 32;
constexpr int64_t warpgroupThreads = 128;
constexpr int64_t warpgroupWarps = warpgroupThreads / warpThreads;
/// Threads of a thread block, and the threads and blocks that a multiprocessor holds at a time
/// (Programming Guide).
constexpr int64_t mostBlockThreads = 1024;
constexpr int64_t threadsOfMultiprocessor = 2048;
constexpr int64_t blocksOfMultiprocessor = 32;
/// Blocks of a launch in y and in z (Programming Guide); x takes 2^31 - 1.
constexpr int64_t mostBlocksInYZ = 65535;
/// Bytes of the parameters of a launch (PTX ISA 7.1); more take a driver of CUDA 12.1.
constexpr int64_t mostParameterBytes = 4096;
/// Named barriers of a thread block, 0 to 15 (PTX ISA 9.7.13.1).
constexpr int64_t namedBarriers = 16;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// Registers of a multiprocessor and of a thread block, and the most that a thread can address
/// (Programming Guide).
constexpr int64_t registersOfMultiprocessor = 65536;
constexpr int64_t mostThreadRegisters = 255;
/// What setmaxnreg takes: multiples of a step within a range (PTX ISA 9.7.20.5).
constexpr int64_t leastRoleRegisters = 24;
constexpr int64_t mostRoleRegisters = 256;
constexpr int64_t roleRegisterStep = 8;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Bytes that a thread block can ask for, that a multiprocessor has, and that the system takes of
/// them for each block (Programming Guide: 227, 228 and 1 KiB).
constexpr int64_t sharedMemoryOfBlock = 232448;
constexpr int64_t sharedMemoryOfMultiprocessor = 233472;
constexpr int64_t sharedMemoryOfSystem = 1024;
/// Bytes and alignment of an mbarrier (PTX ISA 9.7.13.15.1).
constexpr int64_t mbarrierBytes = 8;
/// Rows after which a swizzle repeats, its spans in bytes (powers of 2), and the bytes that it
/// moves together (PTX ISA 5.5.7). A tile is aligned to the repeat of the widest.
constexpr int64_t swizzleRows = 8;
constexpr int64_t narrowestSwizzle = 32;
constexpr int64_t widestSwizzle = 128;
constexpr int64_t swizzleUnit = 16;
constexpr int64_t tileAlignment = swizzleRows * widestSwizzle;

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

/// Rows of a wgmma; its columns are a multiple of a granule (PTX ISA 9.7.15.2).
constexpr int64_t mmaRows = 64;
constexpr int64_t mmaColumns = 8;
constexpr int64_t mostMmaColumns = 256;
/// Bytes that a wgmma contracts, and the depth that this is for elements of `bits`: 16 of 16 bits
/// (PTX ISA 9.7.15.2).
constexpr int64_t mmaDepthBytes = 32;
constexpr int64_t mmaDepth(int64_t bits) { return 8 * mmaDepthBytes / bits; }
/// Whether wgmma reads elements of `bits` in shared memory across K too (PTX ISA 9.7.15.5.2: the
/// immediates for it are of 16-bit types).
constexpr bool mmaTransposes(int64_t bits) { return bits == 16; }
/// Lanes that hold a row of an accumulator together (PTX ISA 9.7.15.5.1, Figure "WGMMA .m64nNk16
/// register fragment layout for accumulator matrix D").
constexpr int64_t lanesPerRow = 4;

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

/// Bytes that a thread loads or stores at once (PTX ISA 9.7.9.8: vectors have 128 bits).
constexpr int64_t widestAccess = 16;
/// Bytes that the L2 cache takes from memory at once (CUDA C++ Best Practices Guide, "Coalesced
/// Access to Global Memory").
constexpr int64_t sectorBytes = 32;
/// Bytes of a register (PTX ISA 5.2: registers of 32 bits make up wider ones).
constexpr int64_t registerBytes = 4;
/// Bytes and alignment of a tensor map, and the alignment of the tensor (CUDA Driver API,
/// cuTensorMapEncodeTiled).
constexpr int64_t tensorMapBytes = 128;
constexpr int64_t tensorMapAlignment = 64;
constexpr int64_t tensorAlignment = 16;
/// Elements of a box along each dimension (PTX ISA 5.5.2).
constexpr int64_t mostBoxExtent = 256;
/// Dimensions of a tensor map (cuTensorMapEncodeTiled, tensorRank).
constexpr size_t mostMapDims = 5;
/// A bulk copy moves multiples of so many bytes (PTX ISA 9.7.9.25.4).
constexpr int64_t bulkUnit = 16;
/// Alignment in shared memory of what a bulk tensor copy moves (PTX ISA 5.5.7).
constexpr int64_t bulkAlignment = 128;

//===----------------------------------------------------------------------===//
// Rates
//===----------------------------------------------------------------------===//

/// Results of a multiprocessor each cycle (Programming Guide, "Throughput of Native Arithmetic
/// Instructions"): special functions, and instructions on f32.
constexpr double functionsPerCycle = 16;
constexpr double instructionsPerCycle = 128;
/// Multiplications and additions of dots of elements of `bits` (NVIDIA H100 white paper: 989.4
/// TFLOP/s dense of 16 bits and twice as many of 8, of 132 multiprocessors at 1830 MHz).
constexpr double dotStepsPerCycle(int64_t bits) { return 2048.0 * 16 / bits; }

} // namespace tessera::hopper

#endif // TESSERA_DIALECTS_HOP_MACHINE_H
