// Operations that tile-expand-ops writes out: none of the passes behind it knows them. ExpandedOps.h declares them.

#ifndef TESSERA_DIALECTS_TILE_TILEEXPANDEDOPS_TD
#define TESSERA_DIALECTS_TILE_TILEEXPANDEDOPS_TD

include "dialects/Tile/TileOpBase.td"

def Tile_ReduceIndexOp : Tile_Op<"reduce_index", [Pure]> {
  let summary = "The largest or smallest elements along one axis, and where they are";
  let description = [{
    The values are those of `tile.reduce`. Beside each is the place of the first element along `axis` that equals it, from 0 on.
    Zeros of either sign are equal. Beside a NaN is the place of the first NaN: with `maximum` and `minimum` where there is one,
    with `max` and `min` where there is nothing else. A sum is no element, so that it has no place.

    On Hopper it is two reductions (`tile-expand-ops`), across threads and warps as any.

    ```mlir
    %score, %expert = tile.reduce_index max %scores axis 1 : tensor<128x64xf32> -> tensor<128xf32>, tensor<128xi32>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, StaticShapeTensorOf<[F32]>:$source,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs StaticShapeTensorOf<[F32]>:$value, StaticShapeTensorOf<[I32]>:$index);
  let assemblyFormat = "$kind $source `axis` $axis attr-dict `:` type($source) `->` type($value) `,` type($index)";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECTS_TILE_TILEEXPANDEDOPS_TD
