//===- Gaussian.h - Reproducible standard normal numbers ------------------===//

#ifndef TESSERA_LIB_SUPPORT_GAUSSIAN_H
#define TESSERA_LIB_SUPPORT_GAUSSIAN_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <random>

namespace tessera {

/// Standard normal numbers, the same bits on every machine.
///
/// The generator is `std::mt19937_64` seeded with `seed + xxh3_64(name)` (mod 2^64), so that
/// tensors of different names are independent. Pairs come from Marsaglia's polar method: u and v
/// are
/// `(r >> 11) * 2^-52 - 1` of two successive outputs r until 0 < s = u*u + v*v < 1, and the pair is
/// u and v, each times sqrt(-2 log(s) / s). The logarithm is computed here with basic arithmetic
/// only, because libm's may differ in the last place from one system to another.
class Gaussian {
public:
  Gaussian(uint64_t seed, llvm::StringRef name);
  double next();

private:
  std::mt19937_64 generator;
  double spare = 0;
  bool hasSpare = false;
};

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_GAUSSIAN_H
