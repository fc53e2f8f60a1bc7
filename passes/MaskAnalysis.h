//===- MaskAnalysis.h - Iterations in which a mask is uniform -------------===//
//
// Derives from the affine form of a mask for which values of a loop's induction
// variable all of its elements are true, or all are false.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_MASKANALYSIS_H
#define TESSERA_PASSES_MASKANALYSIS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include <optional>
#include <string>

namespace tessera {

/// slope * (induction variable) + sum(coefficient * symbol) + constant <= 0, in
/// which the symbols are loop-invariant integers.
struct InductionBound {
  int64_t slope = 0;
  llvm::MapVector<mlir::Value, int64_t> symbols;
  int64_t constant = 0;
};

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
/// loop-invariant scalars, combined by andi, ori and xori with true, splat,
/// broadcast or transposed. When neither range can be derived, returns
/// std::nullopt and says why in `reason`. Integer arithmetic is taken not to wrap.
std::optional<MaskRanges> analyzeMask(mlir::Value condition, mlir::scf::ForOp loop,
                                      std::string &reason);

} // namespace tessera

#endif // TESSERA_PASSES_MASKANALYSIS_H
