//===- Tile.h - The tile dialect ------------------------------------------===//
//
// Types, attributes and operations of the tile dialect: kernels as sequential
// programs over tiles. See TileDialect.td for what it means.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_TILE_H
#define TESSERA_DIALECTS_TILE_TILE_H

#include "dialects/Tile/NumberList.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <optional>

#include "dialects/Tile/TileDialect.h.inc"
#include "dialects/Tile/TileEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/TileTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Tile/TileAttrs.h.inc"
#include "dialects/Tile/TileInterfaces.h.inc"

namespace tessera::tile {

/// The terms of 16 bits whose sum stands for each operand of f32. A term is what those before it
/// leave, rounded, so that an infinity becomes NaN with more than one.
struct DotTerms {
  mlir::FloatType type;
  int64_t count;
};

} // namespace tessera::tile
#define GET_OP_CLASSES
#include "dialects/Tile/TileOps.h.inc"

namespace tessera::tile {

/// Whether the elements are floats of 8 bits, f8E4M3FN or f8E5M2.
inline bool isByteFloat(mlir::Type element) {
  return mlir::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(element);
}

/// Whether `op` loads elements of a view, which is its first operand.
bool loadsFromView(mlir::Operation *op);

/// Whether `op` stores to a view, its second operand, in tiles or in single elements. A view that
/// it adds to is one too.
bool storesToView(mlir::Operation *op);

/// Whether `op` adds to elements of a view, which is its second operand; the first is what it adds.
bool addsToView(mlir::Operation *op);

/// The blocks of a cluster that run a grid point, each a part of a range; 1 where one runs it.
int64_t countPointBlocks(KernelOp kernel);

} // namespace tessera::tile

namespace tessera {

/// Two regions with `exact` between them: what may not hold, and what takes its place.
mlir::ParseResult parseSpeculationRegions(mlir::OpAsmParser &parser, mlir::Region &fast,
                                          mlir::Region &exact);
void printSpeculationRegions(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Region &fast,
                             mlir::Region &exact);

/// The operands of a tile.map, each with the axis along which it is repeated.
mlir::ParseResult
parseMapOperands(mlir::OpAsmParser &parser,
                 llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &operands,
                 mlir::DenseI64ArrayAttr &axes);
void printMapOperands(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::OperandRange operands,
                      mlir::DenseI64ArrayAttr axes);

} // namespace tessera

#endif // TESSERA_DIALECTS_TILE_TILE_H
