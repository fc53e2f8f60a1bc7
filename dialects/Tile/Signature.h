//===- Signature.h - The arguments of kernels and sequences -----*- C++ -*-===//

#ifndef TESSERA_DIALECTS_TILE_SIGNATURE_H
#define TESSERA_DIALECTS_TILE_SIGNATURE_H

#include "dialects/Tile/Tile.h"
#include "mlir/IR/OpImplementation.h"

namespace tessera {
struct ElementType;
}

namespace tessera::tile {

/// Parses `(%x: !tile.view<[M], f32>, %a: f32)`, with the types as TypeAttr and the names as
/// StringAttr.
mlir::ParseResult parseSignature(mlir::OpAsmParser &parser,
                                 llvm::SmallVectorImpl<mlir::OpAsmParser::Argument> &arguments,
                                 llvm::SmallVectorImpl<mlir::Attribute> &types,
                                 llvm::SmallVectorImpl<mlir::Attribute> &names);

/// What the table of argument types has of a type of elements; null where no view has such
/// elements.
const ElementType *findElementType(mlir::Type type);
inline const ElementType &getElementType(ViewType view) {
  return *findElementType(view.getElementType());
}
/// What it has of a number that is passed by value, of i64 for index; null where none is.
const ElementType *findScalarType(mlir::Type type);
/// Whether kernels and sequences take arguments of `type`, and the names of those that they do.
bool isArgumentType(mlir::Type type);
std::string listArgumentTypes();

/// The names of the run-time dimensions of the views among `types`, which are of TypeAttr, in order
/// of first appearance.
llvm::SmallVector<llvm::StringRef> getDimNames(mlir::ArrayAttr types);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_SIGNATURE_H
