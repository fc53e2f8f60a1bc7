//===- LoopLead.h - A loop whose step issues the first dot of the next one -===//
//
// Software pipelining of chains of dots in which nothing lives twice: the first dot of an
// iteration is issued beside the last dots of the one before, in registers that are free by then.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_LOOPLEAD_H
#define TESSERA_PASSES_SCHEDULE_LOOPLEAD_H

#include "passes/Schedule/LoopOverlap.h"

namespace tessera {

/// What of a loop's body runs a step ahead, and beside which dot.
struct LeadPlan {
  /// The first dot with all of the iteration that it is computed from, in the order of the body.
  llvm::SmallVector<mlir::Operation *> ahead;
  tile::DotOp first;
  /// The last dot of the same role, behind which `first` of the next iteration is issued.
  tile::DotOp last;
  /// Loads of `ahead` whose tiles dots of the step itself read too.
  llvm::SmallVector<tile::LoadOp> kept;
};

/// Plans the lead of the first dot of `loop`, whose operations `elsewhere` are another role's; or
/// fails with the reason in `refusal`.
mlir::FailureOr<LeadPlan> planLead(mlir::scf::ForOp loop,
                                   const llvm::DenseSet<mlir::Operation *> &elsewhere,
                                   OverlapRefusal &refusal);

/// Gives every loop of `kernel` that can have one a lead; the number of them. Calls `refused` for
/// each other loop that holds a dot.
unsigned leadLoops(tile::KernelOp kernel,
                   llvm::function_ref<void(mlir::scf::ForOp, const OverlapRefusal &)> refused);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_LOOPLEAD_H
