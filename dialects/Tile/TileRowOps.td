// Operations of the tile dialect on the rows of a view: where they end, and bounds by their values.

#ifndef TESSERA_DIALECTS_TILE_TILEROWOPS_TD
#define TESSERA_DIALECTS_TILE_TILEROWOPS_TD

include "dialects/Tile/TileOpBase.td"

def Tile_RowOp : Tile_Op<"row", [Pure]> {
  let summary = "The first row of a tile, of a view whose rows end before its extent";
  let description = [{
    The index along the rows of what a `tile.load` or a `tile.store` of a tile of rank 2 moves without `box`: the tile begins at
    `row`, and rows from `end` on are as those outside of the view, 0 where they are loaded and dropped where they are stored. `row`
    is 0 or more, and `end` lies between 0 and the extent. Nothing but loads and stores reads the result.

    `tile-find-runs` makes it of the numbers of a `tile.gather` or a `tile.scatter`. A bulk copy takes the end as a coordinate of its
    own: the tensor map has two dimensions more, whose strides lead to the end and back, so that the rows end amid the tensor.

    ```mlir
    // The rows of a sequence, of several that lie one behind the other.
    %own = tile.row %t below %end
    %k = tile.load %K[%b, %h, %own, %c0] : !tile.view<[B, H, S, 64], bf16> -> tensor<64x64xbf16>
    ```
  }];
  let arguments = (ins Index:$row, Index:$end);
  let results = (outs Index:$result);
  let assemblyFormat = "$row `below` $end attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Bounds by values of rows
//===----------------------------------------------------------------------===//

def Tile_ReduceRangeOp : Tile_Op<"reduce_range", [
    MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    SingleBlock]> {
  let summary = "The least or the largest of integers that are computed one by one";
  let description = [{
    The region gives the integer of a number from 0 up to `count`, its argument. It has scalar arithmetic and loads of
    elements, calls of functions that have no more, and no other effects. The result goes on as other scalars do: it may bound a loop that loads through a
    pipe, as no tile in registers is involved. `tile-find-visits` makes it for masks that compare with values loaded for
    each row.

    On Hopper each lane of a warp takes every 32nd number, and the lanes are combined (`redux.sync`, of 64 bits shuffles). A role
    of one warp does so for all others (`tile-warp-specialize`); without a producer each warp does that needs the result. The
    lanes of an elected role stay together where it has such an operation.

    ```mlir
    %least = tile.reduce_range min %i to 128 -> i32 {
      %at = arith.addi %row, %i : index
      %x = tile.load %starts[%b, %at] : !tile.view<[B, S], i32> -> i32
      tile.yield %x : i32
    }
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, ConfinedAttr<I64Attr, [IntPositive]>:$count);
  let results = (outs AnyTypeOf<[I32, I64]>:$result);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getNumber() { return getBody().getArgument(0); }
    ::mlir::Value getYielded() { return getBody().front().getTerminator()->getOperand(0); }
  }];
}

#endif // TESSERA_DIALECTS_TILE_TILEROWOPS_TD
