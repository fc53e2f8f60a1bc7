//===- ScheduleChoice.h - The choice of tile-choose-schedule --------------===//
//
// The search of tile-choose-schedule as a function, for what compares several
// schedules of a kernel or asks whether one can hold.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_SCHEDULECHOICE_H
#define TESSERA_PASSES_SCHEDULE_SCHEDULECHOICE_H

#include "dialects/Tile/Refusal.h"
#include "dialects/Tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Schedule/CostModel.h"
#include <string>

namespace tessera {

/// A schedule that was preferred and cannot hold, and why, in numbers.
struct ScheduleRejection {
  std::string candidate, reason;
  RefusalKind kind = RefusalKind::Unsupported;

  bool operator==(const ScheduleRejection &other) const {
    return candidate == other.candidate && reason == other.reason;
  }
};

/// What the search makes of some requested fields.
struct ScheduleChoice {
  /// Complete; null when nothing with these fields fits.
  tile::ScheduleAttr schedule;
  llvm::SmallVector<ScheduleRejection> rejections;
  /// The registers and the shared memory that `schedule` takes.
  std::string use;
};

/// Sets `fields` in the schedule of a kernel, in place of what it writes.
void overrideSchedule(tile::KernelOp kernel, tile::ScheduleAttr fields);

/// The same in the schedule of each kernel of `module`.
void overrideSchedules(mlir::ModuleOp module, tile::ScheduleAttr fields);

/// What is set of the schedule of `kernel`: no field where it has none.
tile::ScheduleAttr getRequestedSchedule(tile::KernelOp kernel);

/// The schedules that tile-choose-schedule would give `kernel`, which is as it leaves the cleanup
/// of a source, for each of `requested`, whose fields are kept. What the kernel writes itself does
/// not count. Fails after a diagnostic where no schedule can run the kernel's dots. By the model of
/// the module's card, where no other is given.
mlir::FailureOr<llvm::SmallVector<ScheduleChoice>>
chooseSchedules(tile::KernelOp kernel, llvm::ArrayRef<tile::ScheduleAttr> requested,
                const CostModel *model = nullptr);

/// At most `most` schedules for `kernel`, which is as it leaves the cleanup of a source, the most
/// preferred first: the first is what tile-choose-schedule gives it. All keep the fields of
/// `requested`; what the kernel writes itself does not count. Empty where none can hold.
llvm::SmallVector<tile::ScheduleAttr> listSchedules(tile::KernelOp kernel,
                                                    tile::ScheduleAttr requested, size_t most);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SCHEDULECHOICE_H
