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

/// Runs on all threads of its role: an `scf.if` of `hop.elected`, where one comes, cannot hold it.
def Hop_OnAllThreads : NativeOpTrait<"OnAllThreads"> {
  let cppNamespace = "::tessera::hop";
}

/// Runs on all threads of a warpgroup: neither a role that shares one, nor an `scf.if` of `hop.elected` can hold it.
def Hop_OnWarpgroups : NativeOpTrait<"OnWarpgroups"> {
  let cppNamespace = "::tessera::hop";
}

/// Runs on all threads of whole warps: of a role with warpgroups, or with warps of the one that elected roles share.
def Hop_OnWarps : NativeOpTrait<"OnWarps"> {
  let cppNamespace = "::tessera::hop";
}

/// Runs on one thread: that of an elected role, or the one that `hop.elected` chooses.
def Hop_OnOneThread : NativeOpTrait<"OnOneThread"> {
  let cppNamespace = "::tessera::hop";
}

/// Takes the next slot of a pipe, its first operand, to fill it.
def Hop_FillsPipe : NativeOpTrait<"FillsPipe"> {
  let cppNamespace = "::tessera::hop";
}

/// Waits until the next slot of a pipe, its first operand, has been filled.
def Hop_ReadsPipe : NativeOpTrait<"ReadsPipe"> {
  let cppNamespace = "::tessera::hop";
}

class Hop_Op<string mnemonic, list<Trait> traits = []> : Op<Hop_Dialect, mnemonic, traits>;

def Hop_Fragment : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;

#endif // TESSERA_DIALECTS_HOP_HOPOPBASE_TD
