//===- Observer.h - Who looks on at a compilation -------------------------===//

#ifndef TESSERA_LIB_COMPILER_OBSERVER_H
#define TESSERA_LIB_COMPILER_OBSERVER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "tessera/Compiler.h"
#include <memory>

namespace tessera {

/// Sees the forms that the module of a source takes, while it is compiled. A source is read again
/// with other parameters where the database has some, and compiled again where a schedule does not
/// hold: each form of a trial comes from the source that has its parameters.
class CompilationObserver {
public:
  virtual ~CompilationObserver() = default;

  /// A source as it is read, before any pass.
  virtual void readSource(mlir::ModuleOp module) = 0;
  /// A pass ended on the source that was read last, or in the trial that began last.
  virtual void runPass(llvm::StringRef pass, mlir::ModuleOp module, bool hasFailed) = 0;
  /// A trial begins with a source that is cleaned up, and schedules as far as they are set.
  virtual void beginTrial(mlir::ModuleOp form) = 0;
  /// Nothing follows, and the context of the modules still lives.
  virtual void endCompilation() = 0;
};

/// Compiles source text, see tessera/Compiler.h, under the eyes of an observer.
CompileResult compile(const std::string &source, const std::string &fileName,
                      const CompileOptions &options, const DiagnosticHandler &handler,
                      CompilationObserver &observer);

/// Called after each pass with its argument and what it ran on: a kernel, or the module.
using FormHandler = std::function<void(llvm::StringRef pass, mlir::Operation *op, bool hasFailed)>;

std::unique_ptr<mlir::PassInstrumentation> createFormInstrumentation(FormHandler handler);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_OBSERVER_H
