//===- Tuned.h - Measured schedules in a compilation ----------------------===//

#ifndef TESSERA_LIB_COMPILER_TUNED_H
#define TESSERA_LIB_COMPILER_TUNED_H

#include "dialects/Tile/Tile.h"
#include "lib/Database/Database.h"
#include "lib/Source/Source.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/Compiler.h"

namespace tessera {

/// What the database has for a kernel.
struct TunedKernel {
  std::string name;
  /// The fingerprint of the kernel as it was read.
  std::string program;
  /// The entry that is used; null where there is none, and `note` says why.
  const tuning::Entry *entry = nullptr;
  /// What was measured of the program that is compiled, for any class of shapes.
  std::vector<const tuning::Entry *> measured;
  /// What its tiles take beside those of the others among which a launch chooses; null where nobody
  /// timed them together.
  const tuning::TileTimes *times = nullptr;
  std::string note;
  /// Whether the entry has other tiles than the source.
  bool isChanged = false;
  /// The schedule of the entry alone.
  tile::ScheduleAttr schedule;

  /// Takes the entry back.
  void leaveOut(const llvm::Twine &reason);
  /// For the kernel's report.
  llvm::json::Value describe() const;
};

/// What the database has for a source.
struct TunedForm {
  /// The source, cleaned up, with the tile sizes of the entries. Kernels that have an entry have
  /// its schedule, under the fields that are set. Null where no kernel has one.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Every kernel of the source.
  std::vector<TunedKernel> kernels;
  /// Of the GPU whose measurements count; 0 where the database has none.
  int64_t multiprocessors = 0;
  /// Holds the entries, where they are not of the database that ships.
  std::unique_ptr<tuning::Database> database;
};

/// Reads the source with other definitions than those of the options, and cleans it up.
using ReadForm = llvm::function_ref<CompileStatus(llvm::ArrayRef<source::Define> defines,
                                                  mlir::OwningOpRef<mlir::ModuleOp> &form)>;

/// Looks the kernels of `form`, which was read from `source` with the options' definitions and is
/// cleaned up, up in the database that the options name. Parameters that they define and fields
/// that are set are kept. The kernels of a source share its parameters: an entry may change them
/// where that leaves the other kernels as they are, or these have entries with the same values. An
/// entry for a kernel that cannot be read is a warning, and one for a kernel that was edited since
/// a remark; whether a schedule holds is for the passes to say. UsageError when the options name no
/// database, GPU or class that there is.
CompileStatus findTuned(llvm::StringRef source, llvm::StringRef fileName, mlir::ModuleOp form,
                        const CompileOptions &options, ReadForm read, TunedForm &tuned);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_TUNED_H
