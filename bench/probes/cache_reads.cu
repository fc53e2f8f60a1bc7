// How fast bulk tensor copies alone read K and V of a cache [B, N, 8, D] of 16 bits, as decoding
// does: a block for each head and sequence reads tiles of some keys, of K and V in turn, into as
// many slots as fit 100 or 64 KiB. Microseconds and GB/s by how much L2 fetches for what is read
// (CUtensorMapL2promotion: 0 none, 1 64, 2 128, 3 256 bytes), beside plain loads of the same rows.
//
//   nvcc -arch=sm_90a -std=c++17 -lcuda -o cache_reads cache_reads.cu && ./cache_reads
//
// With a delay a slot is read again so many cycles after its tile has come.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <tuple>

constexpr int kHeads = 8, kMostSlots = 16, kRuns = 12;

void check(int error, int line) {
  if (error) {
    std::printf("error %d in line %d\n", error, line);
    std::exit(1);
  }
}
#define CHECK(call) check(int(call), __LINE__)

__device__ unsigned address(const void *pointer) {
  return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ void wait(unsigned barrier, int phase) {
  asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
               "@!done bra again; }" ::"r"(barrier),
               "r"(phase)
               : "memory");
}

__global__ void readTiles(const __grid_constant__ CUtensorMap k,
                          const __grid_constant__ CUtensorMap v, int keys, int rows, int slots,
                          int d, int delay) {
  extern __shared__ unsigned char shared[];
  __shared__ uint64_t full[kMostSlots];
  unsigned tiles = (address(shared) + 1023) & ~1023u;
  int steps = 2 * (keys / rows), bytes = rows * d * 2;
  for (int i = 0; i < slots; ++i)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(full + i)));
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  auto issue = [&](int step) {
    unsigned slot = step % slots, barrier = address(full + slot), to = tiles + slot * bytes;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
    for (int column = 0; column < d; column += 64)
      asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                   "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to + column * rows * 2),
                   "l"(step & 1 ? &v : &k), "r"(column), "r"(blockIdx.x), "r"((step >> 1) * rows),
                   "r"(blockIdx.y), "r"(barrier)
                   : "memory");
  };
  for (int step = 0; step < slots && step < steps; ++step)
    issue(step);
  for (int step = 0; step < steps; ++step) {
    wait(address(full + step % slots), step / slots & 1);
    for (long long start = clock64(); delay && clock64() - start < delay;) {
    }
    if (step + slots < steps)
      issue(step + slots);
  }
}

/// Each block reads the rows of its head and sequence, 16 bytes a thread.
__global__ void readRows(const uint4 *k, const uint4 *v, int keys, int perRow, int *out) {
  unsigned found = 0, rows = blockDim.x / perRow, column = threadIdx.x % perRow;
  for (unsigned row = threadIdx.x / perRow; row < keys; row += rows * 8)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      size_t at =
          ((size_t(blockIdx.y) * keys + row + i * rows) * kHeads + blockIdx.x) * perRow + column;
      uint4 a = k[at], b = v[at];
      found |= a.x | a.y | a.z | a.w | b.x | b.y | b.z | b.w;
    }
  if (found == 12345)
    *out = 1;
}

CUtensorMap encode(void *tensor, int batch, int keys, int d, int rows, int promotion) {
  CUtensorMap map;
  cuuint64_t dims[4] = {cuuint64_t(d), kHeads, cuuint64_t(keys), cuuint64_t(batch)};
  cuuint64_t strides[3] = {dims[0] * 2, dims[0] * 2 * kHeads, dims[0] * 2 * kHeads * keys};
  cuuint32_t box[4] = {64, 1, cuuint32_t(rows), 1}, ones[4] = {1, 1, 1, 1};
  CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, tensor, dims, strides,
                               box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                               CUtensorMapL2promotion(promotion),
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

/// Two caches are read in turn, so that L2 has nothing of one that is read again.
struct Caches {
  void *tensors[2][2];
  int batch, keys, d, *out;

  Caches(int batch, int keys, int d) : batch(batch), keys(keys), d(d) {
    for (auto &pair : tensors)
      for (void *&tensor : pair)
        CHECK(cudaMalloc(&tensor, bytes() / 2));
    CHECK(cudaMalloc(&out, sizeof(int)));
  }
  ~Caches() {
    for (auto &pair : tensors)
      for (void *tensor : pair)
        cudaFree(tensor);
    cudaFree(out);
  }

  size_t bytes() const { return size_t(4) * batch * keys * kHeads * d; }

  template <typename Launch>
  void time(const char *what, Launch launch) {
    float times[kRuns];
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (int run = 0; run < kRuns; ++run) {
      cudaEventRecord(begin);
      launch(run % 2);
      cudaEventRecord(end);
      CHECK(cudaDeviceSynchronize());
      cudaEventElapsedTime(times + run, begin, end);
    }
    std::sort(times + 2, times + kRuns);
    float us = 1000 * times[2 + (kRuns - 2) / 2];
    std::printf("B %d N %d D %d %-44s %.1f us %.0f GB/s\n", batch, keys, d, what, us,
                bytes() / us / 1e3);
    std::fflush(stdout);
  }

  void timeTiles(int rows, int promotion, int kib, int delay) {
    int size = rows * d * 2, slots = std::min(kib * 1024 / size, kMostSlots);
    if (slots < 2)
      return;
    CUtensorMap maps[2][2];
    for (int cache = 0; cache < 2; ++cache)
      for (int i = 0; i < 2; ++i)
        maps[cache][i] = encode(tensors[cache][i], batch, keys, d, rows, promotion);
    char name[64];
    std::snprintf(name, sizeof(name), "tiles of %d, promotion %d, %d slots, delay %d", rows,
                  promotion, slots, delay);
    time(name, [&](int cache) {
      // As much memory as lets a multiprocessor have two blocks.
      readTiles<<<dim3(kHeads, batch), 1, std::max(slots * size + 1024, 80000)>>>(
          maps[cache][0], maps[cache][1], keys, rows, slots, d, delay);
    });
  }
};

int main() {
  CHECK(cudaFree(nullptr));
  CHECK(cudaFuncSetAttribute(readTiles, cudaFuncAttributeMaxDynamicSharedMemorySize, 110000));
  for (auto [batch, keys, d] :
       {std::tuple(64, 4096, 128), std::tuple(32, 8192, 128), std::tuple(64, 4096, 64)}) {
    Caches caches(batch, keys, d);
    caches.time("rows by 256 threads", [&, keys = keys, d = d](int cache) {
      auto &[k, v] = caches.tensors[cache];
      readRows<<<dim3(kHeads, caches.batch), 256>>>((uint4 *)k, (uint4 *)v, keys, d / 8,
                                                    caches.out);
    });
    for (int promotion = 0; promotion < 4; ++promotion)
      for (int rows : {32, 64, 128})
        caches.timeTiles(rows, promotion, 100, 0);
    for (int promotion = 2; promotion < 4; ++promotion)
      for (int rows : {64, 128})
        for (int kib : {100, 64})
          caches.timeTiles(rows, promotion, kib, 800);
  }
}
