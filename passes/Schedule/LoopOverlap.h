//===- LoopOverlap.h - Software pipelining of loops with dots -------------===//
//
// The analysis and the transformation behind tile-overlap. The analysis also
// tells tile-choose-schedule whether a kernel can be overlapped at all.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_LOOPOVERLAP_H
#define TESSERA_PASSES_SCHEDULE_LOOPOVERLAP_H

#include "dialects/Tile/ScheduleFields.h"
#include "passes/Schedule/LoopRotation.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace tessera {

/// Which of its stages a rotated loop runs each part of the body in. The leading dots, which need
/// no other dot of their iteration, are stage 0, and the later ones are in the last. Between them
/// is the elementwise work on the results of the leading dots.
struct OverlapShape {
  tile::OverlapKind kind = tile::OverlapKind::Two;

  /// 1 for a loop that is not rotated.
  int64_t getStages() const {
    return kind == tile::OverlapKind::Three                                      ? 3
           : kind == tile::OverlapKind::Two || kind == tile::OverlapKind::Scaled ? 2
                                                                                 : 1;
  }
  /// The stage of the elementwise work: 1 where the leading dots run a step ahead of it.
  int64_t getStageOfWork() const { return kind == tile::OverlapKind::Three; }
  /// What a later dot adds onto is scaled in the step of that dot, not after the dot before it.
  bool scalesLate() const { return kind == tile::OverlapKind::Scaled; }
  /// The first dot of the next iteration is issued beside the last ones of a step (LoopLead.h).
  bool leadsAlone() const { return kind == tile::OverlapKind::Lead; }
  /// Whether loops are written anew.
  bool changesLoops() const { return kind != tile::OverlapKind::One; }
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
mlir::FailureOr<RotationPlan> planOverlap(mlir::scf::ForOp loop, const OverlapShape &shape,
                                          OverlapRefusal &refusal);

/// The loops of `kernel` that hold a dot in their own body, innermost first.
llvm::SmallVector<mlir::scf::ForOp> loopsWithDots(tile::KernelOp kernel);

/// Rotates every loop of `kernel` that can be; the number of them. Calls
/// `refused` for each other loop that holds a dot.
unsigned overlapLoops(tile::KernelOp kernel, const OverlapShape &shape,
                      llvm::function_ref<void(mlir::scf::ForOp, const OverlapRefusal &)> refused);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_LOOPOVERLAP_H
