//===- MaskAnalysis.h - Iterations in which a mask is uniform -------------===//
//
// Derives from the affine form of a mask for which values of a loop's induction
// variable all of its elements are true, or all are false.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_MASKANALYSIS_H
#define TESSERA_PASSES_ANALYSIS_MASKANALYSIS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/InductionBounds.h"
#include <optional>
#include <string>

namespace tessera {

class RowBounds;

/// Iterations in which a mask is uniform: those in which every bound of a list
/// holds. A list that is absent says nothing.
struct MaskRanges {
  std::optional<llvm::SmallVector<InductionBound>> allTrue, allFalse;
};

/// True when `condition` has an integer comparison of tiles in it: a mask by
/// position and not by data.
bool isPositionMask(mlir::Value condition);

/// Analyses a tile of i1: comparisons slt, sle, sgt, sge, eq and ne of integer
/// tiles that are affine in tile.iota, the induction variable of `loop` and
/// loop-invariant scalars, or minima, maxima and absolute values of such tiles, combined by andi,
/// ori and xori with true, splat, broadcast or transposed. When neither range can be derived,
/// returns std::nullopt and says why in `reason`; so it does where arithmetic may wrap. Without
/// a loop all scalars are invariant, and the bounds are conditions. With `rows` tiles may also have
/// integers in them that are loaded for each row or column, whose bounds become symbols.
std::optional<MaskRanges> analyzeMask(mlir::Value condition, mlir::scf::ForOp loop,
                                      std::string &reason, RowBounds *rows = nullptr);

/// Where the bound holds, no element of `lhs` compares as `predicate`, one of slt, sle, sgt and
/// sge, with that of `rhs`. std::nullopt with a `reason` where they are not affine as above.
std::optional<InductionBound> boundWhereFalse(mlir::arith::CmpIPredicate predicate, mlir::Value lhs,
                                              mlir::Value rhs, mlir::scf::ForOp loop,
                                              std::string &reason, RowBounds *rows = nullptr);

/// Why nothing is said of `value`, which may have wrapped.
std::string explainWrapped(mlir::Value value);

/// The predicate that holds of b and a where `predicate` does of a and b.
mlir::arith::CmpIPredicate mirrorPredicate(mlir::arith::CmpIPredicate predicate);

/// Moves scalar integer arithmetic on loop-invariant values out of `loop`, so that the analysis
/// meets it as one value.
void hoistInvariantScalars(mlir::scf::ForOp loop);

/// What `condition` is combined of, by andi or else by ori.
llvm::SmallVector<mlir::Value> getMaskTerms(mlir::Value condition, bool byAnd);

/// `terms`, of which there is at least one, combined by andi or else by ori.
mlir::Value combineMaskTerms(llvm::ArrayRef<mlir::Value> terms, bool byAnd,
                             mlir::ImplicitLocOpBuilder &builder);

/// Which arm of `select` is computed, the true one or not; none when its condition is no position
/// mask, or when both or none of its arms are a constant or a splat.
std::optional<bool> getComputedArm(mlir::arith::SelectOp select);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_MASKANALYSIS_H
