// Causal attention from C++: the kernel is a function that the build compiled into this program
// (CMakeLists.txt).
//
//   attention             on a Hopper GPU, compared with the same in double
//   attention --launch    only launches, for machines with a stand-in for the driver

#include "../driver.h"
#include "attention_causal.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr int64_t batch = 1, heads = 4, keyHeads = 2, length = 203, width = 64;
constexpr float scale = 0.125f;

/// A tensor of bf16, [batch, heads, length, width], on the host and on the device.
struct Tensor {
  int64_t shape[4], strides[4];
  std::vector<uint16_t> values;
  tessera_tensor view;

  Tensor(const Driver &driver, int64_t heads, unsigned seed)
      : shape{batch, heads, length, width},
        strides{heads * length * width, length * width, width, 1},
        values(batch * heads * length * width) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (uint16_t &value : values)
      value = toBFloat16(normal(random));
    view = {put(&driver, values.data(), values.size() * 2), shape, strides};
  }
  const uint16_t *getRow(int64_t head, int64_t row) const {
    return values.data() + head * strides[1] + row * strides[2];
  }
};

/// The largest difference of `o` from attention in double.
double findError(const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &o) {
  double worst = 0;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t row = 0; row < length; ++row) {
      int64_t keyHead = head / (heads / keyHeads);
      double sum = 0, expected[width] = {};
      for (int64_t key = 0; key <= row; ++key) {
        double score = 0;
        for (int64_t i = 0; i < width; ++i)
          score += fromBFloat16(q.getRow(head, row)[i]) * fromBFloat16(k.getRow(keyHead, key)[i]);
        double weight = std::exp(score * scale);
        sum += weight;
        for (int64_t i = 0; i < width; ++i)
          expected[i] += weight * fromBFloat16(v.getRow(keyHead, key)[i]);
      }
      for (int64_t i = 0; i < width; ++i)
        worst =
            std::max(worst, std::fabs(expected[i] / sum - fromBFloat16(o.getRow(head, row)[i])));
    }
  return worst;
}

} // namespace

int main(int argc, char **argv) {
  Driver driver = openDriver();
  Tensor q(driver, heads, 1), k(driver, keyHeads, 2), v(driver, keyHeads, 3), o(driver, heads, 4);

  // Device 0, its default stream, and the arguments in the order of the source.
  char error[256] = "";
  if (attention_causal(0, nullptr, &q.view, &k.view, &v.view, &o.view, scale, error,
                       sizeof error)) {
    std::fprintf(stderr, "%s\n", error);
    return 1;
  }
  finishLaunches(&driver, argc, argv);

  check(driver.toHost(o.values.data(), o.view.data, o.values.size() * 2), "cuMemcpyDtoH");
  return report(findError(q, k, v, o), 0.03);
}
