// A kernel that only reads: K and V of a cache from end to end, 16 KiB at a time, two thread blocks a
// multiprocessor. bench/serving.py builds it, and takes its time as the floor of what reads as many bytes.
//
//   nvcc -gencode=arch=compute_90a,code=sm_90a -std=c++17 -shared -Xcompiler -fPIC -o flat_reads.so flat_reads.cu

#include <cstdint>
#include <cuda_runtime.h>

constexpr int kSlots = 6, kBytes = 16384;

__device__ unsigned address(const void *pointer) {
  return unsigned(__cvta_generic_to_shared(pointer));
}

__global__ void read(const char *k, const char *v, long long chunks) {
  extern __shared__ unsigned char shared[];
  __shared__ uint64_t full[kSlots];
  unsigned slots = (address(shared) + 127) & ~127u;
  for (auto &barrier : full)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&barrier)));
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  int steps = int((2 * chunks - blockIdx.x + gridDim.x - 1) / gridDim.x);
  auto issue = [&](int step) {
    long long n = blockIdx.x + (long long)step * gridDim.x;
    const char *from = (n & 1 ? v : k) + (n >> 1) * kBytes;
    unsigned slot = step % kSlots, barrier = address(full + slot);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "n"(kBytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(slots + slot * kBytes),
                 "l"(from), "n"(kBytes), "r"(barrier)
                 : "memory");
  };
  for (int step = 0; step < kSlots && step < steps; ++step)
    issue(step);
  for (int step = 0; step < steps; ++step) {
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
                 "@!done bra again; }" ::"r"(address(full + step % kSlots)),
                 "r"(step / kSlots & 1)
                 : "memory");
    if (step + kSlots < steps)
      issue(step + kSlots);
  }
}

/// Reads `bytes` of each, as far as they fill chunks, on a stream.
extern "C" int flatRead(const char *k, const char *v, long long bytes, int blocks, cudaStream_t stream) {
  constexpr int kShared = kSlots * kBytes + 128;
  cudaFuncSetAttribute(read, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  read<<<blocks, 1, kShared, stream>>>(k, v, bytes / kBytes);
  return cudaGetLastError();
}
