//===- Requirements.h - What kernels ask of their arguments ---------------===//

#ifndef TESSERA_DIALECTS_TILE_REQUIREMENTS_H
#define TESSERA_DIALECTS_TILE_REQUIREMENTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace tessera::tile {

/// The f64 that the scalar argument of this name is above; null where no requirement says it.
mlir::FloatAttr findBound(std::optional<mlir::ArrayAttr> requirements, llvm::StringRef argument);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_REQUIREMENTS_H
