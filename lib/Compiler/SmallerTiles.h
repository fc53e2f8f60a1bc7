//===- SmallerTiles.h - Values of parameters that need fewer registers ----===//

#ifndef TESSERA_LIB_COMPILER_SMALLERTILES_H
#define TESSERA_LIB_COMPILER_SMALLERTILES_H

#include "mlir/IR/MLIRContext.h"
#include "tessera/Compiler.h"
#include "llvm/ADT/StringRef.h"

namespace tessera {

/// Whether smaller tiles may mend a refusal.
inline bool lacksRoom(RefusalKind kind) {
  return kind == RefusalKind::Registers || kind == RefusalKind::SharedMemory;
}

/// Which parameters may have other values.
enum class Varied {
  Defaults, ///< those that the options leave to their defaults
  All       ///< those too that the options give, whose author asks what would fit
};

/// The next smaller value of a parameter, "BN = 48 in place of 64", with which a kernel has smaller
/// tiles and the same arguments, and compiles with a schedule that has a producer; of `All` as far
/// as to roles and pipes. Empty where none is found among the next ones. Reports nothing.
std::string findSmallerTiles(llvm::StringRef text, llvm::StringRef fileName,
                             const CompileOptions &options, llvm::StringRef kernel, Varied varied,
                             mlir::MLIRContext &context);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_SMALLERTILES_H
