//===- DiagnosticPrinter.h - Diagnostics with the line they are about -----===//

#ifndef TESSERA_TOOLS_TESSERA_DIAGNOSTICPRINTER_H
#define TESSERA_TOOLS_TESSERA_DIAGNOSTICPRINTER_H

#include "tessera/Compiler.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SourceMgr.h"

namespace tessera {

/// Prints diagnostics to stderr as `file:line:col: error: message`, with the line of the source, a
/// caret and the notes; in colours on a terminal.
class DiagnosticPrinter {
public:
  void print(const Diagnostic &diagnostic);

private:
  /// The position in the file as it is now; invalid when there is no such file or position.
  llvm::SMLoc locate(const Diagnostic &diagnostic);

  llvm::SourceMgr sources;
  /// Buffers by file name; 0 for a file that cannot be read.
  llvm::StringMap<unsigned> buffers;
};

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_DIAGNOSTICPRINTER_H
