// What the operations of the hop dialect have in common.

#ifndef TESSERA_DIALECTS_HOP_HOPOPBASE_TD
#define TESSERA_DIALECTS_HOP_HOPOPBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Hop/HopDialect.td"
include "dialects/Hop/HopInterfaces.td"
include "dialects/Hop/HopTypes.td"
include "dialects/Tile/TileTypes.td"
include "dialects/Tile/TileAttrs.td"

class Hop_Op<string mnemonic, list<Trait> traits = []> : Op<Hop_Dialect, mnemonic, traits>;

def Hop_Fragment : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;

#endif // TESSERA_DIALECTS_HOP_HOPOPBASE_TD
