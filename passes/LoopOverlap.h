//===- LoopOverlap.h - Two-stage software pipelining of loops -------------===//
//
// The analysis and the transformation behind tile-overlap. The analysis also
// tells tile-choose-schedule whether a kernel can be overlapped at all.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOOPOVERLAP_H
#define TESSERA_PASSES_LOOPOVERLAP_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace tessera {

/// How the body of a loop is divided into two stages, and the order of a step
/// of the rotated loop, which runs stage 0 of one iteration and stage 1 of the
/// iteration before it.
struct OverlapPlan {
  /// Stage-0 dots and what they need.
  llvm::SmallVector<mlir::Operation *> leading;
  /// All of stage 1.
  llvm::SmallVector<mlir::Operation *> late;
  /// Stage 0 that needs no result of stage 1.
  llvm::SmallVector<mlir::Operation *> independent;
  /// Stage 0 that needs a result of stage 1 of the iteration before, and the
  /// rounding of values that stage 1 will multiply.
  llvm::SmallVector<mlir::Operation *> joining;

  bool isLate(mlir::Operation *op) const { return lateSet.contains(op); }
  llvm::DenseSet<mlir::Operation *> lateSet;
};

/// Why a loop cannot be overlapped, at the operation that forbids it.
struct OverlapRefusal {
  mlir::Operation *op = nullptr;
  std::string reason;
};

/// True when a dot of the loop's body reads, as an operand of its product, a
/// tile that was computed from another dot of the same iteration.
bool hasDependentDots(mlir::scf::ForOp loop);

/// Plans the rotation of `loop`, or fails with the reason in `refusal`.
mlir::FailureOr<OverlapPlan> planOverlap(mlir::scf::ForOp loop, OverlapRefusal &refusal);

/// The loops of `kernel` that hold a dot in their own body, innermost first.
llvm::SmallVector<mlir::scf::ForOp> loopsWithDots(tile::KernelOp kernel);

/// Rotates every loop of `kernel` that can be; the number of them. Calls
/// `refused` for each other loop that holds a dot.
unsigned overlapLoops(tile::KernelOp kernel,
                      llvm::function_ref<void(mlir::scf::ForOp, const OverlapRefusal &)> refused);

} // namespace tessera

#endif // TESSERA_PASSES_LOOPOVERLAP_H
