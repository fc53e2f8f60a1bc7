//===- RunCheck.cpp - Errors against the exact result ---------------------===//

#include "tools/tessera/RunCheck.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace tessera;

/// 0 finite, 1 NaN, 2 +inf, 3 -inf.
static int classify(double x) {
  if (x != x)
    return 1;
  return std::isinf(x) ? (x > 0 ? 2 : 3) : 0;
}
static const char *const classNames[] = {"finite", "NaN", "+inf", "-inf"};

/// Where the elements are, in C order.
static std::vector<int64_t> linearize(const HostTensor &tensor) {
  std::vector<int64_t> offsets(tensor.numElements());
  tensor.forEach([&](int64_t linear, int64_t offset) { offsets[linear] = offset; });
  return offsets;
}

static const char *nameClass(const HostTensor &tensor, int64_t linear) {
  return classNames[classify(tensor.getNumber(linearize(tensor)[linear]))];
}

ErrorMeasure tessera::measureError(const HostTensor &tensor, const HostTensor &exact) {
  std::vector<int64_t> offsets = linearize(tensor), exactOffsets = linearize(exact);
  ErrorMeasure measure;
  double squaredError = 0, squaredNorm = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    double expected = exact.getNumber(exactOffsets[i]);
    if (classify(tensor.getNumber(offsets[i])) != classify(expected)) {
      if (measure.mismatches++ == 0)
        measure.firstMismatch = i;
      continue;
    }
    if (classify(expected) != 0)
      continue;
    double error = tensor.getDistance(offsets[i], exact, exactOffsets[i]);
    measure.max = std::max(measure.max, error);
    squaredError += error * error;
    squaredNorm += expected * expected;
  }
  // An exact result of zeros has no relative error; any other value then counts as wholly wrong.
  measure.frobenius =
      squaredNorm > 0 ? std::sqrt(squaredError / squaredNorm) : (squaredError > 0 ? 1 : 0);
  return measure;
}

static double largestMagnitude(const HostTensor &tensor) {
  double largest = 0;
  tensor.forEach([&](int64_t, int64_t offset) {
    if (double number = tensor.getNumber(offset); std::isfinite(number))
      largest = std::max(largest, std::fabs(number));
  });
  return largest;
}

/// "[1, 0, 17]"
static std::string formatIndex(const std::vector<int64_t> &shape, int64_t linear) {
  std::string text;
  for (size_t i = shape.size(); i-- > 0; linear /= shape[i])
    text = std::to_string(linear % shape[i]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

bool tessera::checkOutput(llvm::StringRef name, const HostTensor &result,
                          const HostTensor &baseline, const HostTensor &exact,
                          llvm::raw_ostream &os) {
  constexpr double floor = 1e-5;
  ErrorMeasure measured = measureError(result, exact), allowed = measureError(baseline, exact);
  double maxFloor = floor * largestMagnitude(exact);
  bool maxHolds = measured.max <= 2 * allowed.max + maxFloor;
  bool normHolds = measured.frobenius <= 2 * allowed.frobenius + floor;
  os << llvm::formatv("{0}: max error {1:e3} (kernel precision {2:e3}), relative Frobenius error "
                      "{3:e3} (kernel precision {4:e3}): {5}\n",
                      name, measured.max, allowed.max, measured.frobenius, allowed.frobenius,
                      maxHolds && normHolds && measured.mismatches == 0 ? "ok" : "FAILED");
  if (measured.mismatches) {
    int64_t at = measured.firstMismatch;
    os << llvm::formatv("  {0} elements are not finite, NaN or infinite as they should be; first "
                        "{1}: expected {2}, got {3}\n",
                        measured.mismatches, formatIndex(exact.shape, at), nameClass(exact, at),
                        nameClass(result, at));
    if (allowed.mismatches)
      os << llvm::formatv("  so are {0} of the same computation in the kernel's precision\n",
                          allowed.mismatches);
  }
  if (!maxHolds)
    os << llvm::formatv("  the max error is above {0:e3} = 2 x {1:e3} + {2:e3}\n",
                        2 * allowed.max + maxFloor, allowed.max, maxFloor);
  if (!normHolds)
    os << llvm::formatv("  the relative Frobenius error is above {0:e3} = 2 x {1:e3} + {2:e3}\n",
                        2 * allowed.frobenius + floor, allowed.frobenius, floor);
  return maxHolds && normHolds && measured.mismatches == 0;
}
