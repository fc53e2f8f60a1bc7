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

/// Which of its stages a rotated loop runs each part of the body in. The leading
/// dots, which need no other dot of their iteration, are stage 0.
struct OverlapShape {
  /// 1 for a loop that is not rotated, to 3.
  int64_t stages = 2;
  /// The stage of the elementwise work on the results of the leading dots: 0, or
  /// 1 when the leading dots run a step ahead. At most stages - 1, in which the
  /// later dots run, and at least stages - 2.
  int64_t lead = 0;
  /// What a later dot adds onto is scaled in the step of that dot, not after the
  /// dot before it.
  bool rescaleBefore = false;
  /// Its computed operand is rounded in the step of that dot.
  bool packBefore = false;

  /// That of a schedule, which sets `overlap`, `lead`, `rescale` and `pack`.
  static OverlapShape of(const tile::ScheduleFields &fields);
  /// Why no loop has this shape, if none can.
  std::optional<std::string> findConflict() const;
  /// True when the first dot of the next iteration is issued beside the last ones of a step
  /// (LoopLead.h).
  bool leadsAlone() const { return stages == 1 && lead == 1; }
  /// Whether loops are written anew.
  bool changesLoops() const { return stages > 1 || leadsAlone(); }
  /// True when the later dots run in a step after that of the elementwise work.
  bool separatesLate() const { return lead + 1 < stages; }
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
