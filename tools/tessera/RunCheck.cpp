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

/// The element at a place in C order.
static double getNumber(const HostTensor &tensor, int64_t linear) {
  return tensor.getNumber(linearize(tensor)[linear]);
}

static const char *nameClass(const HostTensor &tensor, int64_t linear) {
  return classNames[classify(getNumber(tensor, linear))];
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
    if (error > measure.max) {
      measure.max = error;
      measure.maxAt = i;
    }
    squaredError += error * error;
    squaredNorm += expected * expected;
  }
  // An exact result of zeros has no relative error; any other value then counts as wholly wrong.
  measure.frobenius =
      squaredNorm > 0 ? std::sqrt(squaredError / squaredNorm) : (squaredError > 0 ? 1 : 0);
  return measure;
}

ErrorMeasure Computed::measureBaseline() const {
  ErrorMeasure measure = measureError(baseline, exact);
  if (!fused)
    return measure;
  ErrorMeasure other = measureError(*fused, exact);
  measure.max = std::max(measure.max, other.max);
  measure.frobenius = std::max(measure.frobenius, other.frobenius);
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

/// Prints the errors of `result` against `right` and those that are usual, of which twice as much
/// is allowed. `aim` says in the first line what the comparison is with.
static bool checkErrors(llvm::StringRef name, llvm::StringRef aim, const HostTensor &result,
                        const HostTensor &right, const ErrorMeasure &usual, llvm::raw_ostream &os) {
  constexpr double floor = 1e-5;
  ErrorMeasure measured = measureError(result, right);
  double maxFloor = floor * largestMagnitude(right);
  bool maxHolds = measured.max <= 2 * usual.max + maxFloor;
  bool normHolds = measured.frobenius <= 2 * usual.frobenius + floor;
  bool holds = maxHolds && normHolds && measured.mismatches == 0;
  os << llvm::formatv("{0}: max error {1:e3} (kernel precision {2:e3}), relative Frobenius error "
                      "{3:e3} (kernel precision {4:e3}): {5} {6}\n",
                      name, measured.max, usual.max, measured.frobenius, usual.frobenius,
                      holds ? "ok" : "FAILED", aim);
  if (measured.mismatches) {
    int64_t at = measured.firstMismatch;
    os << llvm::formatv("  {0} elements are not finite, NaN or infinite as they should be; first "
                        "{1}: expected {2}, got {3}\n",
                        measured.mismatches, formatIndex(right.shape, at), nameClass(right, at),
                        nameClass(result, at));
    if (usual.mismatches)
      os << llvm::formatv("  so are {0} of the same computation in the kernel's precision\n",
                          usual.mismatches);
  }
  if (!maxHolds)
    os << llvm::formatv("  the max error is above {0:e3} = 2 x {1:e3} + {2:e3}; it is at {3}: "
                        "expected {4}, got {5}\n",
                        2 * usual.max + maxFloor, usual.max, maxFloor,
                        formatIndex(right.shape, measured.maxAt), getNumber(right, measured.maxAt),
                        getNumber(result, measured.maxAt));
  if (!normHolds)
    os << llvm::formatv("  the relative Frobenius error is above {0:e3} = 2 x {1:e3} + {2:e3}\n",
                        2 * usual.frobenius + floor, usual.frobenius, floor);
  return holds;
}

bool tessera::checkRounding(llvm::StringRef name, const HostTensor &result,
                            const Computed &computed, llvm::raw_ostream &os) {
  return checkErrors(name, "in rounding", result, computed.exact, computed.measureBaseline(), os);
}

bool tessera::checkExpected(llvm::StringRef name, const HostTensor &result,
                            const Computed &computed, const HostTensor &expected,
                            llvm::StringRef origin, llvm::raw_ostream &os) {
  return checkErrors(name, ("against " + origin).str(), result, expected,
                     computed.measureBaseline(), os);
}
