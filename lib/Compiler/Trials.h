//===- Trials.h - Schedules tried until one compiles ----------------------===//
//
// tile-choose-schedule chooses by a model. What it chose may turn out not to
// compile: a later pass refuses it, or ptxas spills. Then the next schedule of
// its list is tried.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_COMPILER_TRIALS_H
#define TESSERA_LIB_COMPILER_TRIALS_H

#include "dialects/Tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/Compiler.h"

namespace tessera {

/// Compiles one source, whose kernels have the fields that are written, with one schedule after the
/// other. Fields that the source or the options set are never changed.
class Trials {
public:
  /// Lowers a module as far as is asked for. What it reports is held back until it is known whether
  /// the trial counts.
  using Compile = llvm::function_ref<CompileStatus(mlir::OwningOpRef<mlir::ModuleOp>)>;

  Trials(mlir::MLIRContext &context, llvm::StringRef schedule, Compile compile)
      : context(context), schedule(schedule), compile(compile) {}

  /// Compiles `module`, whose kernel has the schedule of `entry` of the database. True when that is
  /// the outcome; after a warning false when the source decides without the entry.
  bool useTuned(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef entry,
                CompileStatus &status);

  /// Compiles `source` with the schedules that are chosen first, and where these are refused with
  /// others. What was given up is a remark; where nothing compiles, the errors are those of the
  /// first, with what else was tried in notes.
  CompileStatus run(mlir::ModuleOp source);

private:
  struct Trial {
    CompileStatus status = CompileStatus::Success;
    std::vector<mlir::Diagnostic> diagnostics;

    const mlir::Diagnostic *findError() const;
  };

  Trial attempt(mlir::OwningOpRef<mlir::ModuleOp> module);
  void replay(Trial &trial);
  CompileStatus tryAll(mlir::ModuleOp source, llvm::StringRef kernel, std::optional<Trial> first,
                       tile::ScheduleAttr &found);
  llvm::SmallVector<tile::ScheduleAttr> list(mlir::ModuleOp source, llvm::StringRef kernel);
  void reportGivenUp(tile::KernelOp kernel, tile::ScheduleAttr schedule, const Trial &trial);
  CompileStatus reportFailure(llvm::ArrayRef<tile::ScheduleAttr> schedules,
                              std::vector<Trial> &trials);

  mlir::MLIRContext &context;
  llvm::StringRef schedule;
  Compile compile;
};

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_TRIALS_H
