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
#include "lib/Codegen/Gate.h"
#include "lib/Compiler/SmallerTiles.h"
#include "lib/Compiler/Tuned.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/Compiler.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace tessera {

/// What lowers the module of a trial as far as is asked for.
class TrialCompiler {
public:
  virtual ~TrialCompiler() = default;

  /// Compiles a module, whose form becomes the result where that succeeds.
  virtual CompileStatus compile(mlir::OwningOpRef<mlir::ModuleOp> form) = 0;
  /// One for each error of the last module, where the assembler refused it.
  virtual llvm::ArrayRef<Refusal> getRefusals() const = 0;
  /// Forgets what is kept of kernels.
  virtual void forget() = 0;
  /// Whether the code of a kernel is kept: of the last module in which it was not refused.
  virtual bool isKept(llvm::StringRef kernel) const = 0;
  /// Whether what is kept of the kernels of `source`, which may not have been compiled together, is
  /// all that is asked for.
  virtual bool canJoin(mlir::ModuleOp source) const = 0;
  /// Makes the result of what is kept of the kernels of `source`.
  virtual CompileStatus join(mlir::ModuleOp source) = 0;
  /// A smaller value of a parameter with which `kernel` compiles with a producer, as of
  /// findSmallerTiles.
  virtual std::string findSmaller(llvm::StringRef kernel, Varied varied) = 0;
};

/// Compiles one source that is cleaned up, whose kernels have the fields that are set, with one
/// schedule after the other. Fields that are set are never changed.
class Trials {
public:
  Trials(mlir::MLIRContext &context, TrialCompiler &compiler)
      : context(context), compiler(compiler) {}

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
    /// What was reported, held back until it is known whether the trial counts.
    std::vector<mlir::Diagnostic> diagnostics;
    /// As of TrialCompiler::getRefusals.
    std::vector<Refusal> refusals;

    const mlir::Diagnostic *findError() const;
    /// What a thread spills, where that is all that was wrong.
    unsigned spilledBytes() const;
    /// Whether it was refused where smaller tiles may fit.
    bool lacksRoom();
  };

  Trial attempt(mlir::OwningOpRef<mlir::ModuleOp> module);
  void replay(Trial &trial);
  void replayRest(Trial &whole);
  std::optional<Trial> takeRefusal(Trial &whole, tile::KernelOp kernel);
  /// A schedule that was tried; null where there is none to set.
  struct Attempt {
    tile::ScheduleAttr schedule;
    Trial trial;
  };

  CompileStatus tryAll(mlir::ModuleOp source, llvm::StringRef kernel, std::optional<Trial> first,
                       tile::ScheduleAttr &found);
  CompileStatus accept(tile::KernelOp kernel, std::vector<Attempt> &refused, Attempt &accepted);
  CompileStatus finish(mlir::ModuleOp source);
  llvm::SmallVector<tile::ScheduleAttr> list(tile::KernelOp kernel);
  void leaveOut(tile::KernelOp kernel, TunedKernel &tuned, const Trial &trial);
  void reportGivenUp(tile::KernelOp kernel, tile::ScheduleAttr schedule, const Trial &trial);
  void reportLostProducer(tile::KernelOp kernel, const Trial &preferred);
  CompileStatus reportFailure(tile::KernelOp kernel, std::vector<Attempt> &attempts);

  mlir::MLIRContext &context;
  TrialCompiler &compiler;
  /// What was reported, with its places: kernels have functions in common.
  llvm::DenseMap<mlir::Location, llvm::StringSet<>> reported;
};

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_TRIALS_H
