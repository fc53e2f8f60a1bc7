// How long bulk tensor copies take whose rows begin or end amid sectors of 32 bytes: cycles a row of a box of 64 columns
// of 16 bits, 128-byte swizzle, of which so many columns are inside of the tensor. All multiprocessors copy, or 8 of them.
//
//   nvcc -arch=sm_90a -o unaligned_rows unaligned_rows.cu && ./unaligned_rows
//
// Rows begin a multiple of 256 bytes apart; "from 16" is where they begin 16 bytes behind a sector's first byte. With a
// pitch of 272 bytes every other row of each head does.

#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

constexpr int kRows = 128, kColumns = 64, kBytes = kRows * kColumns * 2, kSlots = 4, kCopies = 600, kHeads = 16, kLength = 4096;

__device__ unsigned address(const void *pointer) { return unsigned(__cvta_generic_to_shared(pointer)); }

__device__ void wait(unsigned barrier, int phase) {
  asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }" ::"r"(barrier),
               "r"(phase)
               : "memory");
}

// A thread of each block keeps four copies in flight.
__global__ void copy(const __grid_constant__ CUtensorMap map, int heads, long long *cycles) {
  extern __shared__ unsigned char shared[];
  __shared__ uint64_t barriers[kSlots];
  unsigned tiles = (address(shared) + 1023) & ~1023u;
  for (int i = 0; i < kSlots; ++i)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&barriers[i])));
  asm volatile("fence.mbarrier_init.release.cluster;");
  long long begin = clock64();
  for (int i = 0; i < kCopies + kSlots; ++i) {
    unsigned barrier = address(&barriers[i % kSlots]);
    if (i >= kSlots)
      wait(barrier, (i / kSlots - 1) & 1);
    if (i >= kCopies)
      continue;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(kBytes));
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {0, %2, %3}], [%4];" ::"r"(
                     tiles + i % kSlots * kBytes),
                 "l"(&map), "r"(int(blockIdx.x) % heads), "r"(i % (kLength / kRows) * kRows), "r"(barrier)
                 : "memory");
  }
  cycles[blockIdx.x] = clock64() - begin;
}

int main() {
  void *found;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
  auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  unsigned char *data;
  long long *cycles, host[132];
  cudaMalloc(&data, kLength * kHeads * 288 + 4096);
  cudaMalloc(&cycles, sizeof(host));
  cudaFuncSetAttribute(copy, cudaFuncAttributeMaxDynamicSharedMemorySize, kSlots * kBytes + 1024);
  for (int blocks : {132, 8})
    for (int promotion : {2, 3})
      for (int pitch : {256, 272})
        for (int from : {0, 16}) {
          printf("%3d blocks, L2 promotion of %d bytes, pitch %d, from %2d:", blocks, 32 << promotion, pitch, from);
          for (int inside = 8; inside <= kColumns; inside += 8) {
            CUtensorMap map;
            uint64_t extents[3] = {uint64_t(inside), kHeads, kLength}, strides[2] = {uint64_t(pitch), uint64_t(pitch) * kHeads};
            uint32_t box[3] = {kColumns, 1, kRows}, ones[3] = {1, 1, 1};
            if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, data + from, extents, strides, box, ones,
                       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CUtensorMapL2promotion(promotion),
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
              return 1;
            for (int run = 0; run < 2; ++run)
              copy<<<blocks, 1, kSlots * kBytes + 1024>>>(map, pitch % 32 ? kHeads : 1, cycles);
            if (cudaMemcpy(host, cycles, blocks * sizeof(host[0]), cudaMemcpyDeviceToHost) != cudaSuccess)
              return 1;
            double sum = 0;
            for (int i = 0; i < blocks; ++i)
              sum += host[i];
            printf(" %d columns %.1f%s", inside, sum / blocks / kCopies / kRows, inside < kColumns ? "," : "\n");
          }
        }
}
