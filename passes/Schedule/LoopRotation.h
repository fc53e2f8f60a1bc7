//===- LoopRotation.h - A loop whose step runs several iterations at once --===//
//
// The rewriting half of software pipelining: given a stage for each operation of
// a body and their order in a step, builds prologue, steady loop and epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_LOOPROTATION_H
#define TESSERA_PASSES_SCHEDULE_LOOPROTATION_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera {

/// Step `t` of the rotated loop runs an operation of stage `s` for iteration
/// `t - s`, the operations one after another in the order of `order`.
struct RotationPlan {
  /// The number of stages, at least 2.
  unsigned stages = 2;
  /// Every operation of the body but the terminator and what `isRemade` says is made anew.
  llvm::SmallVector<mlir::Operation *> order;
  llvm::DenseMap<mlir::Operation *, unsigned> stage;
};

/// True for scalar index arithmetic of the body of `loop` on its induction
/// variable and on values from outside: each stage computes it for itself.
bool isRemade(mlir::scf::ForOp loop, mlir::Operation *op);

/// The operations of the body of `loop`, or arguments of the body, that `op` and the operations
/// nested in it read, and what they read from outside.
llvm::SmallVector<mlir::Value> inputsOf(mlir::Operation *op);

/// The first operation of `plan` that reads a result that its step, or a later
/// one, computes after it; null when the plan can be built.
mlir::Operation *findPrematureUse(mlir::scf::ForOp loop, const RotationPlan &plan);

/// Builds the rotated form of `loop` at `builder` and returns the values that
/// replace its results. A loop of fewer iterations than the prologue has runs them
/// one after another, unless `runsLongEnough` says that there are always enough.
llvm::SmallVector<mlir::Value> rotateLoop(mlir::scf::ForOp loop, const RotationPlan &plan,
                                          bool runsLongEnough, mlir::OpBuilder &builder);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_LOOPROTATION_H
