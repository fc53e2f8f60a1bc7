//===- Tuned.h - Measured schedules in a compilation ----------------------===//

#ifndef TESSERA_LIB_COMPILER_TUNED_H
#define TESSERA_LIB_COMPILER_TUNED_H

#include "dialects/Tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/Compiler.h"

namespace tessera {

struct TunedResult {
  /// UsageError when the options name no database, GPU or class that there is.
  CompileStatus status = CompileStatus::Success;
  /// The source again, with the tile sizes and the schedule of an entry of the database; it holds
  /// the one kernel. Null where the database has nothing that can be used.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The entry, for diagnostics.
  std::string entry;
};

/// Looks `kernel`, which was read from `source` with the options' definitions, up in the database
/// that the options name. Parameters that they define and fields that they or the kernel set are
/// kept. What is taken from the database has passed the same tests as a schedule that is written; a
/// remark says what it was measured for. An entry for this kernel that cannot hold is a warning.
TunedResult findTuned(llvm::StringRef source, llvm::StringRef fileName, tile::KernelOp kernel,
                      const CompileOptions &options);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_TUNED_H
