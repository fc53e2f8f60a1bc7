//===- RunCheck.h - Errors against the exact result -----------------------===//

#ifndef TESSERA_TOOLS_TESSERA_RUNCHECK_H
#define TESSERA_TOOLS_TESSERA_RUNCHECK_H

#include "lib/Support/HostTensor.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera {

/// How far a tensor is from the exact one.
struct ErrorMeasure {
  double max = 0;       ///< largest |x - exact| over elements where both are finite
  int64_t maxAt = 0;    ///< where it is, in C order
  double frobenius = 0; ///< sqrt(sum (x - exact)^2 / sum exact^2) over the same elements
  /// Elements (in C order) whose class (finite, NaN, +inf, -inf) differs from the exact one's.
  int64_t mismatches = 0;
  int64_t firstMismatch = -1;
};

/// Tensors of one shape; their strides may differ.
ErrorMeasure measureError(const HostTensor &tensor, const HostTensor &exact);

/// What a kernel gives by the interpreter, in double and in the kernel's precision.
struct Computed {
  const HostTensor &exact, &baseline;
  /// With products that sums take before they are rounded; null where that is not asked for.
  const HostTensor *fused = nullptr;

  /// The error in the kernel's precision: the larger one.
  ErrorMeasure measureBaseline() const;
};

/// Prints the errors of `result` beside those of the baseline, the same computation in the kernel's
/// precision, and says whether `result` is good enough: its NaN and infinities are where the exact
/// ones are, and both its errors are at most twice the baseline's plus 1e-5 (relative to the
/// largest exact magnitude, or to the norm). The floor is for f32 outputs, whose baseline error may
/// vanish.
bool checkRounding(llvm::StringRef name, const HostTensor &result, const Computed &computed,
                   llvm::raw_ostream &os);

/// The same of the errors against `expected`, which the user has from elsewhere and calls `origin`.
bool checkExpected(llvm::StringRef name, const HostTensor &result, const Computed &computed,
                   const HostTensor &expected, llvm::StringRef origin, llvm::raw_ostream &os);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUNCHECK_H
