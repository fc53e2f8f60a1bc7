//===- Signature.h - The arguments of kernels and sequences -----*- C++ -*-===//

#ifndef TESSERA_DIALECTS_TILE_SIGNATURE_H
#define TESSERA_DIALECTS_TILE_SIGNATURE_H

#include "dialects/Tile/Tile.h"
#include "mlir/IR/OpImplementation.h"

namespace tessera::tile {

/// Parses `(%x: !tile.view<[M], f32>, %a: f32)`, with the types as TypeAttr and the names as
/// StringAttr.
mlir::ParseResult parseSignature(mlir::OpAsmParser &parser,
                                 llvm::SmallVectorImpl<mlir::OpAsmParser::Argument> &arguments,
                                 llvm::SmallVectorImpl<mlir::Attribute> &types,
                                 llvm::SmallVectorImpl<mlir::Attribute> &names);

/// True for views, f32, i32, i64 and index.
bool isArgumentType(mlir::Type type);

/// The names of the run-time dimensions of the views among `types`, which are of TypeAttr, in order
/// of first appearance.
llvm::SmallVector<llvm::StringRef> getDimNames(mlir::ArrayAttr types);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_SIGNATURE_H
