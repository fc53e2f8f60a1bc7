// C = A B^T with TMA, mbarriers and wgmma, written with inline assembly as one does in plain CUDA C++.
// nvcc -arch=sm_90a -ptx gemm.cu
#include <cstdint>
#include <cuda_bf16.h>

struct alignas(64) Map {
  char opaque[128];
};

constexpr int BM = 64, BN = 16, BK = 64, STAGES = 3;

__device__ uint32_t smem(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ void initBarrier(uint64_t *b, uint32_t n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(b)), "r"(n));
}
__device__ void expect(uint64_t *b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(b)), "r"(bytes) : "memory");
}
__device__ void arrive(uint64_t *b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem(b)) : "memory");
}
__device__ void wait(uint64_t *b, uint32_t parity) {
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\nbra LAB_WAIT;\n"
               "DONE:\n}" ::"r"(smem(b)), "r"(parity) : "memory");
}
__device__ void load(void *dst, const Map *map, uint64_t *b, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(smem(dst)),
               "l"(map), "r"(smem(b)), "r"(x), "r"(y) : "memory");
}
__device__ uint64_t descriptor(const void *p) {
  return uint64_t((smem(p) & 0x3ffff) >> 4) | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}
__device__ void mma(float (&d)[8], uint64_t a, uint64_t b, int accumulate) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, 0, 0;\n}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
               : "l"(a), "l"(b), "r"(accumulate));
}

extern "C" __global__ void __launch_bounds__(256)
    gemm(const __grid_constant__ Map mapA, const __grid_constant__ Map mapB, float *c, int n, int k) {
  extern __shared__ __align__(1024) char storage[];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  char *a = storage, *b = storage + STAGES * BM * BK * 2;
  int blocks = k / BK;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      initBarrier(&full[s], 1);
      initBarrier(&empty[s], 128);
    }
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128)
#pragma unroll 1
      for (int i = 0; i < blocks; ++i) {
        int s = i % STAGES;
        wait(&empty[s], (i / STAGES & 1) ^ 1);
        expect(&full[s], (BM + BN) * BK * 2);
        load(a + s * BM * BK * 2, &mapA, &full[s], i * BK, blockIdx.y * BM);
        load(b + s * BN * BK * 2, &mapB, &full[s], i * BK, blockIdx.x * BN);
      }
    return;
  }
  float d[8];
  for (int i = 0; i < 8; ++i)
    d[i] = 0;
#pragma unroll 1
  for (int i = 0; i < blocks; ++i) {
    int s = i % STAGES;
    wait(&full[s], i / STAGES & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int kk = 0; kk < BK / 16; ++kk)
      mma(d, descriptor(a + s * BM * BK * 2 + kk * 32), descriptor(b + s * BN * BK * 2 + kk * 32), 1);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    arrive(&empty[s]);
  }
  int row = blockIdx.y * BM + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  for (int i = 0; i < 8; ++i)
    c[size_t(row + (i / 2 % 2) * 8) * n + blockIdx.x * BN + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = d[i];
}
