// Where a bulk tensor copy may start. The PTX ISA (cp.async.bulk.tensor) and the driver (cuTensorMapEncodeTiled) give
// rules for addresses, strides and boxes, none for coordinates; the machine has one for the first coordinate.
//
//   nvcc -arch=sm_90a -o bulk_columns bulk_columns.cu -lcuda
//   for s in 0 1 2 3; do for b in 1 2 4; do for c in 0 1 4 8 16 -8 -16; do ./bulk_columns $s $b $c 0 0; done; done; done
//
// Arguments: swizzle (0 none, 1 to 3: 32, 64, 128 bytes), bytes of an element, first and second coordinate, and 1 for a
// store in place of a load. A launch that fails leaves no usable context, so each run makes one copy and prints a line.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>

__global__ void copy(const __grid_constant__ CUtensorMap map, int column, int row, int store, int bytes) {
  extern __shared__ unsigned char shared[];
  __shared__ uint64_t barrier;
  // The widest swizzle repeats after 1024 bytes.
  unsigned tile = (unsigned(__cvta_generic_to_shared(shared)) + 1023) & ~1023u;
  unsigned mbarrier = __cvta_generic_to_shared(&barrier);
  if (threadIdx.x != 0)
    return;
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(mbarrier));
  asm volatile("fence.mbarrier_init.release.cluster;");
  asm volatile("fence.proxy.async;");
  if (store) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(column),
                 "r"(row), "r"(tile)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;");
    return;
  }
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(mbarrier), "r"(bytes));
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
               "[%4];" ::"r"(tile),
               "l"(&map), "r"(column), "r"(row), "r"(mbarrier)
               : "memory");
  asm volatile("{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n@!done bra again;\n}" ::"r"(
      mbarrier));
}

int main(int count, char **arguments) {
  if (count != 6) {
    fprintf(stderr, "usage: bulk_columns SWIZZLE ELEMENT_BYTES COLUMN ROW STORE\n");
    return 2;
  }
  int swizzle = atoi(arguments[1]), element = atoi(arguments[2]), column = atoi(arguments[3]);
  int row = atoi(arguments[4]), store = atoi(arguments[5]);
  constexpr int spans[] = {128, 32, 64, 128}, rows = 8;
  CUdevice device;
  CUcontext context;
  CUdeviceptr buffer;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuMemAlloc(&buffer, 1 << 20) || cuMemsetD8(buffer, 0, 1 << 20)) {
    fprintf(stderr, "bulk_columns: no device\n");
    return 2;
  }
  CUtensorMapDataType type = element == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                             : element == 2 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                            : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  cuuint64_t extents[] = {256, 64}, strides[] = {cuuint64_t(256 * element)};
  cuuint32_t box[] = {cuuint32_t(spans[swizzle] / element), rows}, steps[] = {1, 1};
  CUtensorMap map;
  if (cuTensorMapEncodeTiled(&map, type, 2, (void *)buffer, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                             CUtensorMapSwizzle(swizzle), CU_TENSOR_MAP_L2_PROMOTION_NONE,
                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) {
    fprintf(stderr, "bulk_columns: the driver refuses the tensor map\n");
    return 2;
  }
  copy<<<1, 32, 16384>>>(map, column, row, store, spans[swizzle] * rows);
  cudaError_t error = cudaDeviceSynchronize();
  printf("swizzle %3d B, elements of %d B, %s at column %3d (byte %4d), row %3d: %s\n", swizzle ? spans[swizzle] : 0,
         element, store ? "store" : "load ", column, column * element, row, error ? cudaGetErrorString(error) : "ok");
  return 0;
}
