// Linear bounds of induction variables, and the arithmetic that finds them at run time.

#ifndef TESSERA_PASSES_ANALYSIS_INDUCTIONBOUNDS_H
#define TESSERA_PASSES_ANALYSIS_INDUCTIONBOUNDS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Analysis/IntegerRanges.h"
#include "llvm/ADT/MapVector.h"
#include <memory>

namespace tessera {

struct InductionBound;

/// coefficient * floor(dividend / divisor), of a dividend without the induction variable and a
/// divisor above 0.
struct FloorQuotient {
  int64_t coefficient;
  std::shared_ptr<const InductionBound> dividend;
  int64_t divisor;
};

/// slope * (induction variable) + sum(coefficient * symbol) + sum(quotient) + constant <= 0, in
/// which the symbols are loop-invariant integers.
struct InductionBound {
  int64_t slope = 0;
  llvm::MapVector<mlir::Value, int64_t> symbols;
  llvm::SmallVector<FloorQuotient> quotients;
  int64_t constant = 0;

  /// Adds `factor * other`; false when a coefficient leaves 64 bits.
  bool add(const InductionBound &other, int64_t factor);
};

/// Adds `factor * value` to `sum`; false when that leaves 64 bits.
bool addProduct(int64_t &sum, int64_t value, int64_t factor);

/// Whether 64 bits have what the functions below compute of `bound`. One number of 64 bits may be
/// cut off, which is further from 0 than all else then.
bool isRepresentable(const InductionBound &bound, IntegerRanges &ranges);

/// (sign * (the part of `bound` without the induction variable) + offset) / divisor, rounded up or
/// down: the nearest index, computed in whole numbers.
mlir::Value writeQuotient(const InductionBound &bound, int64_t sign, int64_t offset,
                          int64_t divisor, bool roundsUp, mlir::ImplicitLocOpBuilder &builder);

/// How the part of `bound` without the induction variable compares with `number`.
mlir::Value writeComparison(const InductionBound &bound, mlir::arith::CmpIPredicate predicate,
                            int64_t number, mlir::ImplicitLocOpBuilder &builder);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_INDUCTIONBOUNDS_H
