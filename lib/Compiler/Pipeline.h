//===- Pipeline.h - The passes of each stage ------------------------------===//
//
// `tessera compile` runs the stages in their order and stops where --emit says.
// This is the one list of what runs when; docs/architecture.md says what each is for.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_COMPILER_PIPELINE_H
#define TESSERA_LIB_COMPILER_PIPELINE_H

#include "dialects/Tile/Tile.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/LLVM.h"
#include "tessera/Compiler.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tessera {

struct InstrumentTimelineOptions;

struct PipelineOptions {
  int64_t producers = 1; ///< roles that load
  bool split = true;     ///< as CompileOptions::split
  bool pdl = false;      ///< as CompileOptions::pdl
  /// With the options of hop-instrument-timeline kernels record one.
  const InstrumentTimelineOptions *timeline = nullptr;
};

/// Passes that establish a level, by whose name --emit stops behind them.
struct Stage {
  llvm::StringLiteral name;
  EmitKind level;
  void (*build)(mlir::OpPassManager &, const PipelineOptions &);
};

/// All stages, in their order.
llvm::ArrayRef<Stage> getStages();

/// Adds the stages from `first` to `last`.
void buildStages(mlir::OpPassManager &pm, EmitKind first, EmitKind last,
                 const PipelineOptions &options = {});

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

/// Whether `module` has a kernel of a level before PTX.
bool hasKernel(mlir::ModuleOp module, EmitKind level);

/// Every dialect that occurs between the source and the PTX.
mlir::DialectRegistry makeCompilerRegistry();

/// Registers every pass of Tessera, for tools that name them.
void registerCompilerPasses();

/// Registers each stage as the pass pipeline tessera-NAME, tessera-schedule{schedule=...} of chosen
/// and scheduled, tessera-hop{producers=...} of roles to hop, and tessera-emission, which prepares
/// the LLVM dialect for translation, for use by tools like tessera-opt.
void registerStagePipelines();

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_PIPELINE_H
