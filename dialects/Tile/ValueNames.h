//===- ValueNames.h - What the source calls a value -------------*- C++ -*-===//
//
// MLIR forgets the names of values. The reader keeps them in locations, which passes hand on.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_VALUENAMES_H
#define TESSERA_DIALECTS_TILE_VALUENAMES_H

#include "mlir/IR/Value.h"

namespace tessera::tile {

/// Keeps the names of all results of `op`, without `%`.
void setResultNames(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> names);
/// Keeps the name of `argument`, without `%`.
void setArgumentName(mlir::BlockArgument argument, llvm::StringRef name);

/// The name of `value` in the source, without `%`; empty where that has none.
llvm::StringRef getValueName(mlir::Value value);
/// The name of the last result of the operation of the source that stands at `loc`; empty where
/// that has none.
llvm::StringRef getValueName(mlir::Location loc);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_VALUENAMES_H
