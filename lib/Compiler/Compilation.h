//===- Compilation.h - One compilation ------------------------------------===//

#ifndef TESSERA_LIB_COMPILER_COMPILATION_H
#define TESSERA_LIB_COMPILER_COMPILATION_H

#include "lib/Compiler/Instead.h"

namespace tessera {

class CompilationObserver;

/// Compiles a source with the values of the parameters that `options` define and no others, or goes
/// on from IR of the level `from`; `instead` gets what rules say to take in their place. `isRead`
/// says whether somebody receives the diagnostics, and `observer` may be null.
CompileResult compileOnce(const std::string &source, const std::string &fileName,
                          const CompileOptions &options, const DiagnosticHandler &handler,
                          bool isRead, CompilationObserver *observer, std::optional<EmitKind> from,
                          Instead &instead);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_COMPILATION_H
