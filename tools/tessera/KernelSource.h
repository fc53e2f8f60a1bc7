//===- KernelSource.h - The kernel that the options name ------------------===//

#ifndef TESSERA_TOOLS_TESSERA_KERNELSOURCE_H
#define TESSERA_TOOLS_TESSERA_KERNELSOURCE_H

#include "lib/Compiler/Pipeline.h"
#include "lib/Source/Diagnostics.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "tools/tessera/DiagnosticPrinter.h"
#include "tools/tessera/RunKernel.h"

namespace tessera {

/// A source that is read, and one of its kernels or sequences. Diagnostics go to stderr while it
/// lives.
class KernelSource {
public:
  KernelSource();

  /// Reads the file and finds the kernel or the sequence that the options name, or the only one;
  /// the exit code.
  int read(const RunOptions &options);

  /// The module with schedules chosen, where `overrides` do not say them, and loops overlapped and
  /// split; null after an error.
  mlir::OwningOpRef<mlir::ModuleOp> schedule(llvm::ArrayRef<ScheduleOverride> overrides);
  /// The same with overrides as the command line has them.
  mlir::OwningOpRef<mlir::ModuleOp> schedule(llvm::StringRef overrides);

  const std::string &getText() const { return text; }
  /// What diagnostics call the source.
  const std::string &getName() const { return name; }
  const DiagnosticHandler &getHandler() const { return handler; }
  tile::EntryOpInterface getKernel() { return kernel; }

private:
  DiagnosticPrinter printer;
  DiagnosticHandler handler;
  mlir::MLIRContext context;
  DiagnosticForwarder forwarder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  tile::EntryOpInterface kernel;
  std::string name, text;
  bool split = true; ///< as in CompileOptions
};

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_KERNELSOURCE_H
