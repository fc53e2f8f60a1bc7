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
#include "lib/Compiler/Tuned.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/Compiler.h"

namespace tessera {

/// Compiles one source that is cleaned up, whose kernels have the fields that are set, with one
/// schedule after the other. Fields that are set are never changed.
class Trials {
public:
  /// Lowers a module as far as is asked for. What it reports is held back until it is known whether
  /// the trial counts.
  using Compile = llvm::function_ref<CompileStatus(mlir::OwningOpRef<mlir::ModuleOp>)>;

  Trials(mlir::MLIRContext &context, Compile compile) : context(context), compile(compile) {}

  /// Compiles `source` with the schedules that are chosen first, and where these are refused with
  /// others. What was given up is a remark; where nothing compiles, the errors are those of the
  /// first, with what else was tried in notes.
  CompileStatus run(mlir::ModuleOp source);

  /// Compiles what the database has for `source`. Entries that do not hold are left out of `tuned`,
  /// with a remark or a warning that says why, and the rest is as of `run`.
  CompileStatus run(mlir::ModuleOp source, TunedForm &tuned);

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
  llvm::SmallVector<tile::ScheduleAttr> list(tile::KernelOp kernel);
  void leaveOut(tile::KernelOp kernel, TunedKernel &tuned, const Trial &trial);
  void reportGivenUp(tile::KernelOp kernel, tile::ScheduleAttr schedule, const Trial &trial);
  void reportLostProducer(tile::KernelOp kernel, const Trial &preferred);
  CompileStatus reportFailure(tile::KernelOp kernel, llvm::ArrayRef<tile::ScheduleAttr> schedules,
                              std::vector<Trial> &trials);

  mlir::MLIRContext &context;
  Compile compile;
};

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_TRIALS_H
