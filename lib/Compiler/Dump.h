//===- Dump.h - Files of what each stage made -----------------------------===//

#ifndef TESSERA_LIB_COMPILER_DUMP_H
#define TESSERA_LIB_COMPILER_DUMP_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace mlir {
class PassManager;
} // namespace mlir

namespace tessera {

/// Writes files into a directory: `NN-PASS.KERNEL.mlir` after each pass, of the kernel that it
/// changed, and what the code generator makes. Reports files that it cannot write as errors, once.
class Dump {
public:
  /// An empty directory name makes an object that writes nothing.
  explicit Dump(llvm::StringRef directory) : directory(directory.str()) {}

  bool isEnabled() const { return !directory.empty(); }

  /// True after a file could not be written.
  bool hasFailed() const { return reportedFailure; }

  /// Creates the directory; reports at the module and fails when that is not possible.
  mlir::LogicalResult prepare(mlir::ModuleOp module);

  /// Writes `op`, a kernel, or all kernels of a module, under the next number: each of them that is
  /// not as it was written last.
  void writeForm(mlir::Operation *op, llvm::StringRef stage);

  /// Writes one file.
  void write(llvm::StringRef fileName, llvm::StringRef contents, mlir::Location loc);

private:
  std::string directory;
  std::vector<std::string> kernels;
  llvm::StringMap<std::string> written; ///< by kernel, what was written last
  unsigned nextNumber = 0;
  bool reportedFailure = false;
};

/// Runs passes on `module`. Where one fails or crashes, `file` gets what they were given, for
/// tessera-opt --run-reproducer; what cannot be written is an error.
mlir::LogicalResult runReproducibly(mlir::PassManager &passes, mlir::ModuleOp module,
                                    llvm::StringRef file);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_DUMP_H
