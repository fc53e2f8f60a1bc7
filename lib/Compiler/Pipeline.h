//===- Pipeline.h - The passes of each phase ------------------------------===//
//
// One function per phase; `tessera compile` runs them in this order and stops
// where --emit says. This is the one list of what runs when.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_COMPILER_PIPELINE_H
#define TESSERA_LIB_COMPILER_PIPELINE_H

#include "dialects/Tile/Tile.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tessera {

struct InstrumentTimelineOptions;

/// Cleans up a source as it was read: constants folded, common expressions shared.
void buildTilePhase(mlir::OpPassManager &pm);

/// Completes the schedule of each kernel, then overlaps and splits loops.
void buildSchedulePhase(mlir::OpPassManager &pm);

/// From the tile dialect to roles, pipes and flights of the hop dialect; `producers` roles load.
void buildHopPhase(mlir::OpPassManager &pm, int64_t producers = 1);

/// From pipes to mbarriers, fences and offsets in shared memory; with `timeline`, the options of
/// hop-instrument-timeline, kernels record one.
void buildBarriersPhase(mlir::OpPassManager &pm,
                        const InstrumentTimelineOptions *timeline = nullptr);

/// Reads fields of a schedule ("consumers=2,overlap=1"). What is wrong is an error without a
/// position: a misspelt field is one of usage and not of the source.
mlir::FailureOr<tile::ScheduleAttr> parseSchedule(mlir::MLIRContext &context, llvm::StringRef text);

/// Fields for the kernel of a name, or with an empty name for all.
struct ScheduleOverride {
  std::string kernel;
  tile::ScheduleAttr fields;
};

/// Reads CompileOptions::schedule: fields, and behind semicolons others; "gradients:stages=2" are
/// those of one kernel. Errors as above.
mlir::FailureOr<llvm::SmallVector<ScheduleOverride>> parseSchedules(mlir::MLIRContext &context,
                                                                    llvm::StringRef text);

/// Sets fields in the schedules of `module`, in place of what its kernels write; a later one
/// counts. Fails after an error that names a kernel which there is not.
llvm::LogicalResult overrideSchedules(mlir::ModuleOp module,
                                      llvm::ArrayRef<ScheduleOverride> overrides);

/// Reads CompileOptions::instrument. Nothing for an empty text; an error says what is wrong.
llvm::Expected<std::optional<InstrumentTimelineOptions>> parseInstrument(llvm::StringRef text);

/// From the hop dialect to functions of the LLVM and NVVM dialects.
void buildLLVMPhase(mlir::OpPassManager &pm);

/// Registers every dialect that occurs between the source and the PTX.
void registerCompilerDialects(mlir::DialectRegistry &registry);

/// Registers the phases as the pass pipelines tessera-tile, tessera-schedule{schedule=...},
/// tessera-hop, tessera-barriers, tessera-llvm and tessera-emission (which prepares the LLVM
/// dialect for translation), for use by tools like tessera-opt.
void registerPhasePipelines();

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_PIPELINE_H
