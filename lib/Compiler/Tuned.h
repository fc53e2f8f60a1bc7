//===- Tuned.h - Measured schedules in a compilation ----------------------===//

#ifndef TESSERA_LIB_COMPILER_TUNED_H
#define TESSERA_LIB_COMPILER_TUNED_H

#include "dialects/Tile/Tile.h"
#include "lib/Source/Source.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/Compiler.h"

namespace tessera {

/// What the database has for a source.
struct TunedForm {
  /// The source, cleaned up, with the entry's tile sizes. Its kernel has the entry's schedule,
  /// under the fields that are set. Null where the database has nothing.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The entry's schedule alone.
  tile::ScheduleAttr schedule;
  /// The entry, and the remark that says what it was measured for.
  std::string entry, description;
};

/// Reads the source with other definitions than those of the options, and cleans it up.
using ReadForm = llvm::function_ref<CompileStatus(llvm::ArrayRef<source::Define> defines,
                                                  mlir::OwningOpRef<mlir::ModuleOp> &form)>;

/// Looks the kernel of `form`, which was read from `source` with the options' definitions and is
/// cleaned up, up in the database that the options name. Parameters that they define and fields
/// that are set are kept. An entry for this kernel that cannot be read is a warning; whether its
/// schedule holds is for the passes to say. UsageError when the options name no database, GPU or
/// class that there is.
CompileStatus findTuned(llvm::StringRef source, llvm::StringRef fileName, mlir::ModuleOp form,
                        const CompileOptions &options, ReadForm read, TunedForm &tuned);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_TUNED_H
