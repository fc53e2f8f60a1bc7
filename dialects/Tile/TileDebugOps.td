// Operations of the tile dialect by which an author looks into a kernel.

#ifndef TESSERA_DIALECTS_TILE_TILEDEBUGOPS_TD
#define TESSERA_DIALECTS_TILE_TILEDEBUGOPS_TD

include "dialects/Tile/TileOpBase.td"

def Tile_PrintOp : Tile_Op<"print"> {
  let summary = "Shows a value where the program runs, with its name";
  let description = [{
    Shows the scalar or tile under `label`, with the grid point, each time that it is reached, or only where `condition` is
    true. It changes nothing that the kernel computes.

    ```mlir
    tile.print "running sum" %sum : tensor<128xf32>
    tile.print "scores of the first block" %s if %first : tensor<128x64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$label, AnyTypeOf<[AnyFloat, AnySignlessInteger, Index, Tile_Tile]>:$value,
                       Optional<I1>:$condition);
  let assemblyFormat = "$label $value (`if` $condition^)? attr-dict `:` type($value)";
}

def Tile_AssertOp : Tile_Op<"assert"> {
  let summary = "Ends the run with a message where a condition does not hold";
  let description = [{
    The condition is an i1 or a tile of i1, of which each element must be true. The message is shown with the grid point, the
    place in the source and the first element that is false. It changes nothing that the kernel computes.

    ```mlir
    tile.assert %positive, "a row without a key" : tensor<128xi1>
    ```
  }];
  let arguments = (ins AnyTypeOf<[I1, StaticShapeTensorOf<[I1]>]>:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}

#endif // TESSERA_DIALECTS_TILE_TILEDEBUGOPS_TD
