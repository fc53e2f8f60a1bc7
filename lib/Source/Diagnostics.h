//===- Diagnostics.h - From MLIR's diagnostics to the interface's ---------===//

#ifndef TESSERA_LIB_SOURCE_DIAGNOSTICS_H
#define TESSERA_LIB_SOURCE_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "tessera/Compiler.h"

namespace tessera {

/// A place in the copy `name` of a file: it is called from the import, which is fused with the
/// name.
mlir::Location getLocInCopy(mlir::Location place, mlir::Location import, llvm::StringRef name);

/// The import of the copy of a file in which the first place of a location is, as getLocInCopy has
/// it; null where this is in no copy.
mlir::FusedLoc findImport(mlir::Location loc);

/// Converts a diagnostic and its notes. The position is the first file position that the location
/// holds; of an inlined operation that of the callee. A note says where a copy is imported.
Diagnostic convertDiagnostic(mlir::Diagnostic &diagnostic);

/// While it lives, gives the errors, warnings and (when `remarks` is set) remarks of a context to
/// a handler, without notes that print the operation: the source's line shows it. Without remarks
/// only the first notes are given on, which say the most. Both must outlive the forwarder.
class DiagnosticForwarder : public mlir::ScopedDiagnosticHandler {
public:
  DiagnosticForwarder(mlir::MLIRContext &context, const DiagnosticHandler &handler, bool remarks);
};

/// Keeps the errors of a context from other handlers while it lives, and the text of the first. For
/// what is tried and may fail.
class ErrorCapture : public mlir::ScopedDiagnosticHandler {
public:
  explicit ErrorCapture(mlir::MLIRContext *context);

  const std::string &getFirst() const { return first; }

private:
  std::string first;
};

} // namespace tessera

#endif // TESSERA_LIB_SOURCE_DIAGNOSTICS_H
