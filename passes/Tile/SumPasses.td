// Passes from the tile dialect to itself: sums that grid points and iterations add to memory.

#ifndef TESSERA_PASSES_SUMPASSES_TD
#define TESSERA_PASSES_SUMPASSES_TD

include "mlir/Pass/PassBase.td"

def TileCarrySums : Pass<"tile-carry-sums", "::tessera::tile::KernelOp"> {
  let summary = "Adds to memory behind a loop what each of its iterations adds to one place";
  let description = [{
    A `tile.store ... add` or a `tile.scatter_add` of a tile of rank 1 whose indices do not change in a loop: the loop
    carries the sum of its tiles, and adds it once. A sum that is made of a `tile.reduce` costs a thread an addition for
    each of its rows then, as threads combine their parts behind the loop (`hop-assign-layouts`). What it is multiplied with
    goes behind the loop too where that does not change in it. Tiles of rank 2 stay: to carry one would take its registers.

    ```mlir
    scf.for %j = %c0 to %n step %c1 {
      %sum = tile.reduce sum %t axis 1 : tensor<64x64xf32> -> tensor<64xf32>
      tile.scatter_add %sum, %dslopes[%h] : tensor<64xf32>, !tile.view<[H], f32>, index
    }
    // becomes
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %all = scf.for %j = %c0 to %n step %c1 iter_args(%old = %zero) -> (tensor<64xf32>) {
      %sum = tile.reduce sum %t axis 1 : tensor<64x64xf32> -> tensor<64xf32>
      %new = arith.addf %old, %sum : tensor<64xf32>
      scf.yield %new : tensor<64xf32>
    }
    tile.scatter_add %all, %dslopes[%h] : tensor<64xf32>, !tile.view<[H], f32>, index
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileShareReferences : Pass<"tile-share-references", "::tessera::tile::KernelOp"> {
  let summary = "Takes one reference for the rows of a thread, where they have other numbers in common";
  let description = [{
    A thread has elements of rows r and r + 8 in the same columns. Of a sum `x + n - m`, where `x` differs by element, `n` by column alone
    and `m` by row, each element takes two additions. Where `m` is a `tile.reference`, it may be one number for both rows. Then
    `n - m` is computed once for both, and each element takes one addition more. The same holds for what is a function of one index, as the
    distance of row and column: the elements of r and r + 8 whose columns differ by 8 have one.

    What rows alone have a number of, `g`, goes with the reference: `m - g` is shared, and what else uses `m` gets that plus `g`. So
    `g` leaves the loop. Where nothing gains, the reference is its operand.

    ```mlir
    %m = tile.reference %largest : tensor<64xf32>
    %less = arith.subf %g, %m : tensor<64xf32>
    %of_rows = tile.broadcast %less axis 1 : tensor<64xf32> -> tensor<64x32xf32>
    %of_columns = tile.broadcast %n axis 0 : tensor<32xf32> -> tensor<64x32xf32>
    %e = arith.addf %x, %of_rows : tensor<64x32xf32>
    %y = arith.addf %e, %of_columns : tensor<64x32xf32>
    // becomes
    %own = arith.subf %largest, %g : tensor<64xf32>
    %shared = tile.reference %own : tensor<64xf32>
    %m = arith.addf %shared, %g : tensor<64xf32>
    %of_rows = tile.broadcast %shared axis 1 : tensor<64xf32> -> tensor<64x32xf32>
    %of_columns = tile.broadcast %n axis 0 : tensor<32xf32> -> tensor<64x32xf32>
    %less = arith.subf %of_columns, %of_rows : tensor<64x32xf32>
    %y = arith.addf %x, %less : tensor<64x32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileTicketSums : Pass<"tile-ticket-sums", "::tessera::tile::KernelOp"> {
  let summary = "Gives each tile that grid points add to a ticket, which they pass on in a fixed order";
  let description = [{
    For `fixed_sums`. The grid points that add to a tile of a view are those that differ in the one grid index on which
    its place does not depend, and whose loops come to the tile. Each waits for the one before it, and passes the ticket of
    the tile on to the one behind it (`tile.store`, `ticket`). With `order = descending`, along the first grid dimension,
    the one before has the next higher index, else the next lower one: it has a smaller number, so that it has started.

    Whether a neighbour comes to a tile is asked of the bounds of the loops, computed for the neighbour's index. The bounds
    move in one direction as the index grows, so that no one is beyond a neighbour that does not come. So of a bound the
    neighbour on one side has passed what this grid point has, and is not compared. A ticket says between which two grid
    points it is, by the higher index, and is 0 before the first and behind the last.

    ```mlir
    scf.for %j = %first to %blocks step %c1 {          // %first grows with grid index %n
      tile.store %t, %S[%row, %c0] add : tensor<64x64xf32>, !tile.view<[M, 64], f32>
    }
    // becomes, with order = descending
    %next = arith.addi %n, %c1 : index
    %first_of_next = arith.divui %next, %c2 : index
    scf.for %j = %first to %blocks step %c1 {
      %comes = arith.cmpi sle, %first_of_next, %j : index
      %x = arith.select %comes, %next, %c0 : index
      tile.store %t, %S[%row, %c0] add ticket %j from %x to %n : tensor<64x64xf32>, !tile.view<[M, 64], f32>
    }
    ```

    A tile outside of its view gets no sums, and nobody waits for it. Where it is not known to lie inside, its ticket is one behind
    those of all views (two with `cluster = exchange`), which stays 0:

    ```mlir
    %is_tile = arith.cmpi ult, %row, %m : index          // %m is the extent of the view
    %ticket = arith.select %is_tile, %number, %all : index
    %from = arith.select %is_tile, %n, %c0 : index
    %to = arith.select %is_tile, %x, %c0 : index
    ```

    Nobody waits in a circle, in whatever order tiles are gone over: of the grid points that have not ended, the one with the
    smallest number waits for smaller ones alone, and these have ended.

    A tile says in which iteration of each loop around its store it is reached, which is the same one at all grid points. An
    iteration that the place does not contain follows from the bounds of a loop within. One from `max(s c, ..)` up to
    `min(s c + s, ..)`, for a constant s, has no iteration in common with that of another c. So all heads can be gone over for a
    part of the tiles, before the next part comes. Where the outer loop ends at `k - f / s`, and the inner one begins at f or later,
    the outer end needs no comparison: behind it f is not below the end of a part.

    ```mlir
    scf.for %i = %c0 to %seen step %c1 {             // %seen = %parts - %first / 4
      %part = arith.subi %last, %i : index           // %last = %parts - 1
      %begin = arith.muli %part, %c4 : index
      %end = arith.addi %begin, %c4 : index
      %from = arith.maxsi %begin, %first : index
      scf.for %h = %c0 to %heads step %c1 {
        scf.for %j = %from to %end step %c1 {
          tile.store %t, %S[%h, %row, %c0] add : tensor<64x64xf32>, !tile.view<[H, M, 64], f32>
        }
      }
    }
    // becomes, with order = ascending
    %comes = arith.cmpi sle, %first_of_next, %j : index
    %x = arith.select %comes, %next, %c0 : index
    tile.store %t, %S[%h, %row, %c0] add ticket %number from %n to %x : tensor<64x64xf32>, !tile.view<[H, M, 64], f32>
    ```

    With `order = turns` sections of the grid are `descending` and `ascending` in turn, and with `last_turns` all are `descending`
    but the last one. The loop of an `ascending` one goes
    from its end to its beginning: then the grid point that begins first, and has the most to do, is the first at each
    tile that it shares. Its ticket comes from the neighbour on the other side (`tile.walk`, `tile.walks_down`). The loop may
    only hand on sums of products, whose order is free.

    ```mlir
    %down = tile.walks_down
    %c1 = arith.constant 1 : index
    scf.for %i = %first to %blocks step %c1 {
      %j = tile.walk %i from %first to %blocks down %down
      %from = arith.select %down, %n, %x : index
      %to = arith.select %down, %x, %n : index
      tile.store %t, %S[%row, %c0] add ticket %j from %from to %to : tensor<64x64xf32>, !tile.view<[M, 64], f32>
    }
    ```

    With `cluster = exchange` two grid points make a sum together, and pairs follow each other. The tile has a ticket for
    each, that of the second behind that of the first:

    ```mlir
    %pair = arith.divui %n, %c2 : index
    %next = arith.addi %pair, %c1 : index
    %leader_of_next = arith.muli %next, %c2 : index      // the bounds of loops are those of the pair's first grid point
    %comes = arith.cmpi slt, %leader_of_next, %count : index
    %y = arith.select %comes, %next, %c0 : index
    %number = arith.muli %j, %c2 : index                 // one of each
    tile.store %t, %S[%row, %c0] add ticket %number from %x to %y : tensor<64x256xf32>, !tile.view<[M, 256], f32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileExchangeSums : Pass<"tile-exchange-sums", "::tessera::tile::KernelOp"> {
  let summary = "Lets the two thread blocks of a cluster add up what they add to one place of memory";
  let description = [{
    For `cluster = exchange`. The sums that a role of its own makes (`placement = apart` or `divided`): a dot of a computed tile
    whose result only leaves by a store that adds it. Where the place of the store, and how often it runs, do not depend on the
    first grid index within a cluster of two, both blocks add to the same tiles in the same order. Then each needs to add half of
    the columns only, for both:

        block 0 adds    A0 B0[:, left] + A1 B1[:, left]
        block 1 adds    A0 B0[:, right] + A1 B1[:, right]

    Such stores are marked `exchanged`. The proof is made while loops are whole: later passes cut them where a mask changes, at
    places that may differ from block to block, but keep the order of the stores. `tile-warp-specialize` lets the blocks send
    each other the computed operands, A, and load half of the columns of the other's B. B is loaded at a place that
    follows from the first grid index by arithmetic. Where half of B is no whole chunk of columns as B lies in shared memory, at 192
    columns, a block loads half of its own B once more.

    ```mlir
    scf.for %j = %c0 to %blocks step %c1 {
      %dq = tile.dot %ds, %k : tensor<64x64xbf16>, tensor<64x256xbf16> -> tensor<64x256xf32>
      tile.store %dq, %DQ[%j, %c0] add : tensor<64x256xf32>, !tile.view<[M, 256], f32>
    }
    // becomes
    scf.for %j = %c0 to %blocks step %c1 {
      %dq = tile.dot %ds, %k : tensor<64x64xbf16>, tensor<64x256xbf16> -> tensor<64x256xf32>
      tile.store %dq, %DQ[%j, %c0] add exchanged : tensor<64x256xf32>, !tile.view<[M, 256], f32>
    }
    ```
  }];
}

#endif // TESSERA_PASSES_SUMPASSES_TD
