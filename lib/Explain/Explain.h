//===- Explain.h - What the compiler made of a source, and why ------------===//
//
// Compiles a source, keeps what the compiler found out on the way, and writes
// it as a page to read in a browser. See docs/seeing.md.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_EXPLAIN_EXPLAIN_H
#define TESSERA_LIB_EXPLAIN_EXPLAIN_H

#include "lib/Explain/Pictures.h"
#include "tessera/Compiler.h"

namespace tessera::explain {

struct ExplainOptions {
  /// Remarks go to the page in any case. How far to compile is not for the options to say.
  CompileOptions compile;
  PictureRequest pictures;
  /// Path of nvdisasm; empty to look for it.
  std::string nvdisasm;
};

struct Explanation {
  CompileStatus status = CompileStatus::Success;
  /// What docs/seeing.md lists. Complete but for "timeline".
  llvm::json::Object data;
};

/// Compiles and explains. Errors and warnings go to the handler too, if there is one; after an
/// error in the source there is all that was known by then. Of a UsageError nothing is to be shown.
Explanation explain(const std::string &source, const std::string &fileName,
                    const ExplainOptions &options, const DiagnosticHandler &handler);

/// The page, which needs no other file.
std::string writePage(llvm::json::Object data);

} // namespace tessera::explain

#endif // TESSERA_LIB_EXPLAIN_EXPLAIN_H
