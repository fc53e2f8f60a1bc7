//===- FromIR.h - Compiling what a compilation has printed ----------------===//

#ifndef TESSERA_LIB_COMPILER_FROMIR_H
#define TESSERA_LIB_COMPILER_FROMIR_H

#include "tessera/Compiler.h"

namespace tessera {

/// Compiles a module of the level `from`, which is before PTX, as a compilation to that level gives
/// it, or an edited one: the passes behind the level run. Schedules of the options and of the
/// database are for sources and for EmitKind::Tile.
CompileResult compileIR(const std::string &text, const std::string &fileName, EmitKind from,
                        const CompileOptions &options, const DiagnosticHandler &handler);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_FROMIR_H
