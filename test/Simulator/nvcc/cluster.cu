// A cluster of two: each CTA loads half of a tile and multicasts it to both; then the sums of the halves are exchanged through
// distributed shared memory. nvcc -arch=sm_90a -ptx cluster.cu
#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;

struct alignas(64) Map {
  char opaque[128];
};

__device__ uint32_t smem(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }

// in: rows x 32 floats. Every cluster sums 64 rows; out[cluster * 2 + rank] is the whole sum, counted by an atomic too.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_sum(const __grid_constant__ Map map, float *out, unsigned *count) {
  __shared__ __align__(1024) float tile[64 * 32];
  __shared__ uint64_t barrier;
  __shared__ float total, other;
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem(&barrier)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(&barrier)), "r"(64 * 32 * 4) : "memory");
    total = 0;
  }
  cluster.sync();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(smem(tile + rank * 32 * 32)),
                 "l"(&map), "r"(smem(&barrier)), "r"(0), "r"(int(blockIdx.x / 2 * 64 + rank * 32)), "h"(uint16_t(3))
                 : "memory");
  }
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(
                   smem(&barrier)),
               "r"(0)
               : "memory");
  float s = 0;
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x)
    s += tile[rank * 32 * 32 + i];
  for (int d = 16; d; d /= 2)
    s += __shfl_xor_sync(0xffffffffu, s, d);
  if (threadIdx.x % 32 == 0)
    atomicAdd(&total, s);
  __syncthreads();
  if (threadIdx.x == 0) {
    *cluster.map_shared_rank(&other, rank ^ 1) = total;
    atomicAdd(count, 1u);
  }
  cluster.sync();
  if (threadIdx.x == 0)
    out[blockIdx.x] = total + other;
}
