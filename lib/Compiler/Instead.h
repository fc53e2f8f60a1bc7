//===- Instead.h - What is taken where registers or memory are short ------===//
//
// Rules say which values parameters take instead where a kernel lacks registers or shared memory.
// They are tried in their order, and the first that compile are taken.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_COMPILER_INSTEAD_H
#define TESSERA_LIB_COMPILER_INSTEAD_H

#include "lib/Source/Source.h"

namespace tessera {

/// Values of parameters, in the order in which they are tried.
using Instead = std::vector<std::vector<source::Define>>;

/// Compiles with options; the last argument gets what rules say to take instead.
using CompileFunction = llvm::function_ref<CompileResult(
    const CompileOptions &options, const DiagnosticHandler &handler, Instead &instead)>;

/// What `run` makes of `options`, or where it is refused for registers or shared memory, of the
/// first values to take instead that compile: then a warning has the refusal. Where none do, the
/// errors are those of the first run.
CompileResult compileOrInstead(const CompileOptions &options, const DiagnosticHandler &handler,
                               CompileFunction run);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_INSTEAD_H
