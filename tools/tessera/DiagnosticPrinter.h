//===- DiagnosticPrinter.h - Diagnostics with the line they are about -----===//

#ifndef TESSERA_TOOLS_TESSERA_DIAGNOSTICPRINTER_H
#define TESSERA_TOOLS_TESSERA_DIAGNOSTICPRINTER_H

#include "tessera/Compiler.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SourceMgr.h"
#include <set>
#include <tuple>

namespace tessera {

/// Prints diagnostics to stderr as `file:line:col: error: message`, with the line of the source, a
/// caret and the notes; in colours on a terminal. A warning is printed once: a source may be read
/// several times.
class DiagnosticPrinter {
public:
  void print(const Diagnostic &diagnostic);

private:
  /// The position in the file as it is now; invalid when there is no such file or position.
  llvm::SMLoc locate(const Diagnostic &diagnostic);

  llvm::SourceMgr sources;
  /// Buffers by file name; 0 for a file that cannot be read.
  llvm::StringMap<unsigned> buffers;
  /// The warnings that were printed.
  std::set<std::tuple<std::string, unsigned, unsigned, std::string>> warned;
};

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_DIAGNOSTICPRINTER_H
