//===- IndexFacts.h - What index arithmetic says of its result ------------===//
//
// Of the indices of a kernel on both dialects, where no analysis of ranges has run: from constants,
// loops and arithmetic alone. "No" is always a possible answer.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_INDEXFACTS_H
#define TESSERA_PASSES_ANALYSIS_INDEXFACTS_H

#include "dialects/Tile/Tile.h"
#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/MapVector.h"

namespace tessera {

/// Whether `index` is a multiple of `factor`, a power of two.
bool isMultipleOf(mlir::Value index, int64_t factor);

/// Whether `index` is at least 0. Indices have 32 bits, and sums and products stay within them.
bool isNonNegative(mlir::Value index, unsigned depth = 16);

/// A sum of indices, each so many times, and of a constant.
struct IndexTerms {
  llvm::SmallMapVector<mlir::Value, int64_t, 4> of;
  int64_t constant = 0;

  /// Adds `value`, so many times: what it is a sum or a difference of.
  IndexTerms &add(mlir::Value value, int64_t times);
};

/// The same of a sum.
bool isNonNegative(const IndexTerms &terms, unsigned depth = 16);

/// Whether `count` elements from `index` on are known to lie inside of dimension `dim` of the view,
/// at a place of the kernel around `op`.
bool liesInside(mlir::Operation *op, tile::ViewType view, int64_t dim, mlir::Value index,
                int64_t count);

/// Refuses `op` where it is a quotient or a remainder of integers by the constant 0.
llvm::LogicalResult checkDivisor(mlir::Operation *op);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_INDEXFACTS_H
