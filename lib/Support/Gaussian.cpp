//===- Gaussian.cpp - Reproducible standard normal numbers ----------------===//

#include "lib/Support/Gaussian.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

namespace tessera {

/// log(x) for 0 < x < 1 to about 1e-15: x = m * 2^e with m around 1, and
/// log(m) = 2 artanh((m - 1) / (m + 1)) by its series.
static double portableLog(double x) {
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  double t = (m - 1) / (m + 1), square = t * t, sum = 0;
  // |t| < 0.172: the first term left out is below 1e-17.
  for (int k = 21; k >= 1; k -= 2)
    sum = sum * square + 1.0 / k;
  return exponent * 0.69314718055994531 + 2 * t * sum;
}

Gaussian::Gaussian(uint64_t seed, llvm::StringRef name)
    : generator(seed + llvm::xxh3_64bits(name)) {}

double Gaussian::next() {
  if (hasSpare) {
    hasSpare = false;
    return spare;
  }
  auto uniform = [&] { return static_cast<double>(generator() >> 11) * 0x1p-52 - 1; };
  double u, v, s;
  do {
    u = uniform();
    v = uniform();
    s = u * u + v * v;
  } while (s >= 1 || s == 0);
  double factor = std::sqrt(-2 * portableLog(s) / s);
  spare = v * factor;
  hasSpare = true;
  return u * factor;
}

} // namespace tessera
