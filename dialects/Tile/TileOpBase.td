// What the operations of the tile dialect have in common.

#ifndef TESSERA_DIALECTS_TILE_TILEOPBASE_TD
#define TESSERA_DIALECTS_TILE_TILEOPBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "dialects/Tile/TileDialect.td"
include "dialects/Tile/TileTypes.td"
include "dialects/Tile/TileAttrs.td"
include "dialects/Tile/TileInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

def Tile_Tile : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger, Index]>;
def Tile_FloatTile : StaticShapeTensorOf<[F16, BF16, F32, F8E4M3FN, F8E5M2]>;
/// What views hold; TileTypes.cpp says the same of them.
defvar memoryElements = [F16, BF16, F32, F8E4M3FN, F8E5M2, I8, I32, I64];
def Tile_MemoryTile : StaticShapeTensorOf<memoryElements>;
def Tile_RowNumbers : StaticShapeTensorOf<[I32, I64]>;

#endif // TESSERA_DIALECTS_TILE_TILEOPBASE_TD
