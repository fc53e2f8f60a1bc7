//===- Shipped.h - The kernels that ship with the compiler ----------------===//

#ifndef TESSERA_LIB_SOURCE_SHIPPED_H
#define TESSERA_LIB_SOURCE_SHIPPED_H

#include "tessera/Compiler.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tessera {

/// Names of sources that ship, as "attention_fwd.tile", and of their rules, and their texts.
llvm::ArrayRef<std::pair<llvm::StringRef, const char *>> getShippedTexts();

/// What diagnostics call a source that ships.
std::string getShippedFileName(llvm::StringRef name);

/// The source at `path`, or where there is no such file the one that ships of this name, with or
/// without .tile; "-" is standard input. The error names the path and the nearest that there is.
llvm::Expected<SourceFile> openSource(llvm::StringRef path);

} // namespace tessera

#endif // TESSERA_LIB_SOURCE_SHIPPED_H
