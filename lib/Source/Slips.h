//===- Slips.h - What the author of a source meant ------------------------===//

#ifndef TESSERA_LIB_SOURCE_SLIPS_H
#define TESSERA_LIB_SOURCE_SLIPS_H

#include "mlir/IR/MLIRContext.h"
#include <optional>
#include <string>

namespace tessera::source {

/// What is wrong at an offset of a text, and perhaps a second place that belongs to it.
struct Slip {
  size_t offset = 0;
  std::string message;
  std::optional<size_t> noteOffset;
  std::string note;
};

/// Says in the words of the language what MLIR's parser reports at `offset` of an expanded source
/// as `message`: what it found there, how the operation is written, which name is near. Nothing
/// where the message serves as it is.
std::optional<Slip> explainSlip(llvm::StringRef text, size_t offset, llvm::StringRef message,
                                mlir::MLIRContext &context);

} // namespace tessera::source

#endif // TESSERA_LIB_SOURCE_SLIPS_H
