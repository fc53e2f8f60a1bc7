//===- Overrides.h - Functions that an importing source replaces ----------===//

#ifndef TESSERA_LIB_SOURCE_OVERRIDES_H
#define TESSERA_LIB_SOURCE_OVERRIDES_H

#include "lib/Source/Imports.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// Leaves of the functions of one name that of the file that imports the others, where these are
/// marked `tile.overridable` and of its type. Refuses other definitions of one name in two files,
/// and functions of a source with imports that replace nothing and that nothing uses.
llvm::LogicalResult resolveOverrides(mlir::ModuleOp module, const source::Files &files);

} // namespace tessera

#endif // TESSERA_LIB_SOURCE_OVERRIDES_H
