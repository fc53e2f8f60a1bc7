//===- Guard.h - What is kept from MLIR's parser ----------------*- C++ -*-===//

#ifndef TESSERA_LIB_SOURCE_GUARD_H
#define TESSERA_LIB_SOURCE_GUARD_H

#include "lib/Source/Parameters.h"

namespace tessera::source {

/// Refuses an expanded source that MLIR 22.1 could not read safely: brackets and aliases that nest
/// beyond the stack, numbers that make it allocate or compute without bound, and builtin types and
/// attributes that it crashes on and no kernel has a use for. Reports the first at its offset in
/// `text` and returns false.
bool checkParsable(llvm::StringRef text, ErrorSink error);

} // namespace tessera::source

#endif // TESSERA_LIB_SOURCE_GUARD_H
