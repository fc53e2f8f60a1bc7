// Launches kernels that the build compiled into this program.
#include "gemm.h"
#include "product_128.h"
#include "product_64.h"
#include <cstdio>

namespace {
using Launch = int(int, void *, const tessera_tensor *, const tessera_tensor *,
                   const tessera_tensor *, char *, size_t);

int run(Launch *launch, int64_t columns, char *error) {
  const int64_t shape[] = {256, columns}, otherShape[] = {64, columns}, strides[] = {columns, 1};
  const int64_t resultShape[] = {256, 64}, resultStrides[] = {64, 1};
  // Addresses that the stand-in takes for memory of device 0.
  const uint64_t memory = uint64_t(1) << 40, apart = uint64_t(1) << 30;
  const tessera_tensor a = {memory, shape, strides}, b = {memory + apart, otherShape, strides};
  const tessera_tensor c = {memory + 2 * apart, resultShape, resultStrides};
  return launch(0, nullptr, &a, &b, &c, error, 200);
}
} // namespace

int main() {
  char error[200] = "";
  std::printf("64: status %d\n", run(product_64, 64, error));
  std::printf("128: status %d\n", run(product_128, 128, error));
  std::printf("sequence: status %d\n", run(gemm, 4096, error));
  int status = run(product_64, 96, error);
  std::printf("another extent: status %d, %s\n", status, error);
}
