//===- Exponentials.h - Exponentials that may be polynomials --------------===//
//
// Which exponentials of a kernel need not be exact to the last bits of f32, and
// what the loops around them take of a Hopper SM.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_EXPONENTIALS_H
#define TESSERA_PASSES_SCHEDULE_EXPONENTIALS_H

#include "dialects/Tile/PolynomialExp.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Schedule/CostModel.h"

namespace tessera {

/// What a Hopper SM does in one iteration of each of some loops, in cycles: 4096 floating-point
/// operations of dots, 16 results of special functions or 128 instructions of threads a cycle.
struct CycleBudget {
  double dots = 0, functions = 0, instructions = 0;
  /// Exponentials that may be polynomials, in cycles of the special functions; and the instructions
  /// that all of them would take more as polynomials.
  double exponentials = 0, polynomials = 0;

  /// The special functions and the instructions when `share` sixteenths of `exponentials` are
  /// polynomials.
  double functionsWith(int64_t share) const;
  double instructionsWith(int64_t share) const;
};

/// Cycles of the tensor cores of one dot.
double dotCycles(tile::DotOp dot);

/// The budget of `loops`. Masks do not count, as most iterations run without them.
CycleBudget cycleBudget(llvm::ArrayRef<mlir::scf::ForOp> loops, const CostModel &model);

/// The cycles of an iteration with `share` sixteenths of polynomials.
double expectedCycles(const CycleBudget &budget, int64_t share, const CostModel &model);

/// The share of the exponentials with which an iteration should take the least: 0 or one of those
/// that `model` tries.
int64_t fastestShare(const CycleBudget &budget, const CostModel &model);

/// True for an exponential of a tile.
bool isExponential(mlir::Operation *op);

/// The operation that uses the result of the exponential `op` as f32 otherwise than in a sum; null
/// when `op` may be a polynomial.
mlir::Operation *findExactUse(mlir::Operation *op);

/// True when results of the exponential `op`, of which it has sums, reach an output as f32, and
/// exponents are precise enough for it. Then its polynomials are those of
/// `tile.polynomial_precise`.
bool staysPrecise(mlir::Operation *op);

/// The exponentials of tiles in the loops with dots of `kernel`.
llvm::SmallVector<mlir::Operation *> exponentialsInLoops(tile::KernelOp kernel);

/// Gives `op` the attribute `tile.polynomial`, and `tile.polynomial_precise` where it needs it.
void markPolynomial(mlir::Operation *op, int64_t share);

/// The loops with dots that run first for each grid point: those of the fast region where `kernel`
/// speculates.
llvm::SmallVector<mlir::scf::ForOp> firstLoopsWithDots(tile::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_EXPONENTIALS_H
