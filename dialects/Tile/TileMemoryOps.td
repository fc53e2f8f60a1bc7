// Operations of the tile dialect that read and write views.

#ifndef TESSERA_DIALECTS_TILE_TILEMEMORYOPS_TD
#define TESSERA_DIALECTS_TILE_TILEMEMORYOPS_TD

include "dialects/Tile/TileOpBase.td"

def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>, Tile_LoadOpInterface]> {
  let summary = "Loads a tile of a view";
  let description = [{
    One index per dimension of the view; the tile covers the innermost `rank(tile)` dimensions from there
    (rank 1 or 2), at step 1. Elements outside the view are 0: along the tiled dimensions any index is
    allowed; the outer indices must lie inside. The element types agree. A scalar result is the one element at
    the indices, all of which must lie inside. An index that comes from memory, with whatever is computed from it, may
    be any number all the same: where it is outside, loads give 0 and stores do nothing.

    With `box` the tile covers as many elements along each dimension of the view as the box says, and its rows
    (the elements, of a tile of rank 1) run over all dimensions but the last (over all of them), the innermost
    fastest. Every dimension is held against the view on its own: along the innermost `rank(tile)` ones the
    box may reach outside, so that the rows past the end of each `%h` below are 0; along the others all of it
    lies inside. One copy of the tensor memory accelerator moves such a tile as it does any other.

    What passes know about a load is part of it, and copies of it keep it:

    * `site n`: it is one of several places where the source loads a tile of this type from this view; places other than
      the first are counted from 1 (`tile-inline-functions`). Equal loads of one site may become one, those of two sites
      stay two.
    * `pipe n`: its tile goes through the pipe of this number, whose slots it shares with other loads of the number
      (`tile-choose-schedule`). Loads of one number have one tile type.
    * `alike`: its pipe gets the same tiles in the same order in all blocks of a cluster (`tile-even-loops`). Passes may
      move the load within the order of its pipe. A load without a pipe cannot have it.
    * `ahead`: its tile is the one that the next load of its pipe without `ahead` loads, or a `tile.skip_loads` of the pipe
      lets pass (`tile-overlap`). The tile is loaded once, where this load stands, and the pipe keeps it until then. A load
      without a pipe cannot have it.
    * `wide`: its tile lies in shared memory in chunks of 128 bytes of its rows, whatever their length
      (`tile-choose-schedule`). All loads of a pipe are wide, or none is. A load without a pipe cannot have it.

    ```mlir
    %k = tile.load %K[%b, %h, %row, %c0] : !tile.view<[B, H, SK, 64], bf16> -> tensor<128x64xbf16>
    %slope = tile.load %slopes[%h] : !tile.view<[H], f32> -> f32
    // The page of a sequence, by a table.
    %number = tile.load %table[%h] : !tile.view<[H], i32> -> i32
    %page = arith.index_cast %number : i32 to index
    %p = tile.load %K[%page, %h, %row, %c0] : !tile.view<[B, H, SK, 64], bf16> -> tensor<128x64xbf16>
    // Row r is row %row + r mod 16 of head %h + r / 16.
    %q = tile.load %Q[%b, %h, %row, %c0] box [1, 8, 16, 64] : !tile.view<[B, H, SQ, 64], bf16> -> tensor<128x64xbf16>
    // The second place where this tile is loaded, into pipe 2.
    %v = tile.load %K[%b, %h, %row, %c0] site 1 pipe 2 alike : !tile.view<[B, H, SK, 64], bf16> -> tensor<128x64xbf16>
    // A dot of this step reads a tile that dots of the next one read too.
    %next = tile.load %K[%b, %h, %after, %c0] pipe 3 ahead : !tile.view<[B, H, SK, 64], bf16> -> tensor<128x64xbf16>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$indices, OptionalAttr<DenseI64ArrayAttr>:$box,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$site,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$pipe, UnitAttr:$alike,
                       UnitAttr:$ahead, UnitAttr:$wide);
  let results = (outs AnyTypeOf<[Tile_MemoryTile] # memoryElements>:$result);
  let assemblyFormat =
    "$view `[` $indices `]` (`box` $box^)? (`site` $site^)? (`pipe` $pipe^)? (`alike` $alike^)? (`ahead` $ahead^)? "
    "(`wide` $wide^)? attr-dict `:` qualified(type($view)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [MemoryEffects<[MemRead]>, Tile_LoadOpInterface, AttrSizedOperandSegments]> {
  let summary = "Loads rows of a view that tiles of numbers name";
  let description = [{
    Row r of the tile is the row of the view whose number is the index of that dimension plus element r of `rows`, from
    the column of the last index on. Of a tile of rank 1, element r is the element so named of the last dimension. The
    numbers are i32 or i64 and may be any: rows outside the view, before or behind, are 0. The other indices are as for
    `tile.load`. A tile that feeds a dot goes through a pipe, which the producer's threads fill with copies of 16 bytes;
    `pipe` is its number, as for `tile.load`.

    Several tiles of numbers name places along as many dimensions, of which that of rows is the last: a page and the row
    in it, or a head and a row. A row is 0 where one of its numbers is outside of its dimension.

    ```mlir
    %numbers = tile.load %list[%i] : !tile.view<[N], i32> -> tensor<32xi32>
    %rows = tile.gather %table[%c0, %c0] rows %numbers
      : !tile.view<[V, 256], bf16>, tensor<32xi32> -> tensor<32x256xbf16>
    // Row r is row %places[r] of page %numbers[r].
    %places = tile.iota %i axis 0 period 16 : tensor<32xi32>
    %keys = tile.gather %cache[%head, %c0, %c0, %c0] rows %numbers, %places
      : !tile.view<[H, PAGES, 16, 64], bf16>, tensor<32xi32>, tensor<32xi32> -> tensor<32x64xbf16>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$indices, Variadic<Tile_RowNumbers>:$rows,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$pipe);
  let results = (outs Tile_MemoryTile:$result);
  let assemblyFormat = "$view `[` $indices `]` `rows` $rows (`pipe` $pipe^)? attr-dict `:` qualified(type($view)) `,` "
                       "type($rows) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The last dimension of the view along which `rows` numbers, and the first.
    int64_t getRowDim() {
      return getView().getType().getRank() - ::llvm::cast<::mlir::RankedTensorType>(getType()).getRank();
    }
    int64_t getFirstNumberedDim() { return getRowDim() + 1 - static_cast<int64_t>(getRows().size()); }
  }];
}

def Tile_GatherRunsOp : Tile_Op<"gather_runs", [
    MemoryEffects<[MemRead]>, Tile_LoadOpInterface, AttrSizedOperandSegments, SingleBlock]> {
  let summary = "Loads rows of a view that follow each other in runs";
  let description = [{
    What a `tile.gather` loads whose numbers follow each other for `run` rows at a time: `tile-find-runs` makes one of the other.
    The region gives the place of a run, of the number that is its first argument: where the run's first row lies, a number for
    each dimension that has them, of which that of rows is the last, and how many of its rows there are, from 0 to `run`. Its
    other rows are 0, and so are those outside of the view. The region's other arguments are `with` values from outside. It
    has scalar arithmetic and loads of elements, from views that the kernel does not store to. The rest is as for
    `tile.gather`.

    A tile that feeds a dot goes through a pipe, which one thread fills: with a bulk copy for each run, and for each row of
    one that ends early.

    ```mlir
    // Row r is row r mod 16 of page %pages[%col / 16 + r / 16].
    %keys = tile.gather_runs %cache[%head, %c0, %c0, %c0] run 16 with (%col : index) {
    ^bb0(%i: index, %first: index):
      %before = arith.divui %first, %c16 : index
      %number = arith.addi %before, %i : index
      %entry = tile.load %pages[%number] : !tile.view<[N], i32> -> i32
      %page = arith.index_cast %entry : i32 to index
      tile.yield %page, %c0, %c16 : index, index, index
    } : !tile.view<[H, PAGES, 16, 64], bf16> -> tensor<32x64xbf16>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$indices, Variadic<AnyType>:$captures,
                       ConfinedAttr<I64Attr, [IntPositive]>:$run, OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$pipe);
  let results = (outs Tile_MemoryTile:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$view `[` $indices `]` `run` $run (`pipe` $pipe^)? (`with` `(` $captures^ `:` type($captures) `)`)? $body "
                       "attr-dict `:` qualified(type($view)) `->` type($result)";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The places of the run, and how many rows of it there are.
    ::mlir::OperandRange getYielded() { return getBody().front().getTerminator()->getOperands(); }
    /// The last dimension of the view along which there are numbers, and the first.
    int64_t getRowDim() {
      return getView().getType().getRank() - ::llvm::cast<::mlir::RankedTensorType>(getType()).getRank();
    }
    int64_t getFirstNumberedDim() { return getRowDim() + 2 - static_cast<int64_t>(getYielded().size()); }
  }];
}

def Tile_GatherElementsOp : Tile_Op<"gather_elements", [MemoryEffects<[MemRead]>]> {
  let summary = "Loads an element of a view for each element of a tile";
  let description = [{
    One index per dimension of the view: a scalar, which is the same for all elements and lies inside, or a tile of i32 or
    i64 with the shape of the result, which may hold any numbers. Elements outside of the view are 0. The kernel does not store to
    the view. Each element is a load of its own: where rows of the view are loaded as they are, `tile.gather` is faster,
    and a tile of neighbours is a `tile.load`. 8-bit floats are loaded as tiles only.

    ```mlir
    // A table of the distances of queries and keys.
    %away = arith.subi %queries, %keys : tensor<128x64xi32>
    %bias = tile.gather_elements %table[%h, %away]
      : !tile.view<[H, N], f32>, index, tensor<128x64xi32> -> tensor<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<AnyTypeOf<[Index, Tile_RowNumbers]>>:$indices);
  let results = (outs StaticShapeTensorOf<[F16, BF16, F32, I8, I32, I64]>:$result);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` qualified(type($view)) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Stores a tile to a view";
  let description = [{
    Indices and `box` as for `tile.load`. Elements outside the view are dropped. A scalar is stored to the one element at
    the indices, all of which must lie inside.

    With `add` the tile, of f32, is added to what the view holds. Any number of grid points may add to one element, in
    an order that is not specified; so the kernel neither loads nor plainly stores such a view, and has no
    `tile.speculate`, which would add twice. The caller says what the sums start with.

    With `ticket` the order is given. The launch has memory with numbered tickets, one for each tile of the view and 0 at
    its start. `ticket N from X to Y` waits until ticket N is X, adds, and then makes the ticket Y; who adds last leaves 0.
    `tile-ticket-sums` writes it.

    With `exchanged` the blocks of a cluster add at the same places in the same order, and may add up before: each stores a
    part of the columns for all. `tile-exchange-sums` has proved it, on the program of a grid point, and passes that cut loops
    take its word. A store without `add` cannot have it. With a ticket the blocks of a cluster follow each other at once, and
    each has tickets for its columns.

    ```mlir
    tile.store %o, %O[%b, %h, %row, %c0] : tensor<128x64xbf16>, !tile.view<[B, H, SQ, 64], bf16>
    tile.store %l, %L[%b, %h, %row] box [1, 8, 16] : tensor<128xf32>, !tile.view<[B, H, SQ], f32>
    tile.store %part, %sum[%row, %c0] add : tensor<128x64xf32>, !tile.view<[M, 64], f32>
    tile.store %part, %sum[%row, %c0] add ticket %m from %n to %next : tensor<128x64xf32>, !tile.view<[M, 64], f32>
    tile.store %part, %sum[%row, %c0] add exchanged : tensor<128x64xf32>, !tile.view<[M, 64], f32>
    tile.store %count, %counts[%h] : i32, !tile.view<[H], i32>
    ```
  }];
  // The indices, and behind them what a ticket takes: one list, so that stores without a ticket look as they did before there
  // were any, and programs that a database knows keep their fingerprints.
  let arguments = (ins AnyTypeOf<[Tile_MemoryTile] # memoryElements>:$value, Tile_ViewType:$view, Variadic<Index>:$places,
                       OptionalAttr<DenseI64ArrayAttr>:$box, UnitAttr:$add, UnitAttr:$ticketed, UnitAttr:$exchanged);
  let assemblyFormat =
    "$value `,` $view `` custom<StorePlaces>($places, $box, $add, $ticketed) (`exchanged` $exchanged^)? attr-dict `:` type($value) `,` "
    "qualified(type($view))";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::OperandRange getIndices() { return getPlaces().drop_back(getTicketed() ? 3 : 0); }
    /// The number of the ticket, what it is when the store may add and what it is then; null without one.
    ::mlir::Value getTicket() { return ofTicket(0); }
    ::mlir::Value getFrom() { return ofTicket(1); }
    ::mlir::Value getTo() { return ofTicket(2); }
    void setTicket(::mlir::Value number, ::mlir::Value from, ::mlir::Value to);

  private:
    ::mlir::Value ofTicket(unsigned i) {
      return getTicketed() ? getPlaces().take_back(3)[i] : ::mlir::Value();
    }

  public:
  }];
}

def Tile_ScatterOp : Tile_Op<"scatter", [MemoryEffects<[MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "Stores rows of a tile to those of a view that tiles of numbers name";
  let description = [{
    The counterpart of `tile.gather`. Row r of the tile is stored to the row of the view that the numbers name, and nowhere
    where one of them is outside of its dimension, before or behind. So a number of -1 leaves a row out. Columns past the end of
    the view are dropped. No two rows of a tile, and no two grid points, name one row. The kernel does not load the view.

    ```mlir
    %slots = tile.load %slot_mapping[%i] : !tile.view<[N], i64> -> tensor<32xi64>
    %keys = tile.load %new[%i, %c0] : !tile.view<[N, 64], bf16> -> tensor<32x64xbf16>
    tile.scatter %keys, %cache[%c0, %c0] rows %slots : tensor<32x64xbf16>, !tile.view<[SLOTS, 64], bf16>, tensor<32xi64>
    ```
  }];
  let arguments = (ins Tile_MemoryTile:$value, Tile_ViewType:$view, Variadic<Index>:$indices,
                       Variadic<Tile_RowNumbers>:$rows);
  let assemblyFormat = "$value `,` $view `[` $indices `]` `rows` $rows attr-dict `:` type($value) `,` "
                       "qualified(type($view)) `,` type($rows)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The last dimension of the view along which `rows` numbers, and the first.
    int64_t getRowDim() {
      return getView().getType().getRank() - ::llvm::cast<::mlir::RankedTensorType>(getValue().getType()).getRank();
    }
    int64_t getFirstNumberedDim() { return getRowDim() + 1 - static_cast<int64_t>(getRows().size()); }
  }];
}

def Tile_ScatterAddOp : Tile_Op<"scatter_add", [MemoryEffects<[MemWrite]>]> {
  let summary = "Adds each element of a tile to an element of a view";
  let description = [{
    The counterpart of `tile.gather_elements`. One index per dimension of the view: a scalar, which is the same for all
    elements, or a tile of i32 or i64 with the shape of `value`, which may hold any numbers. Elements outside of the view are
    dropped. Several elements may go to one place, and with scalars alone all do: then each warp adds its sum. As with
    `tile.store ... add`, elements are f32, other grid points may add to the same ones, the order is not specified, the
    kernel neither loads nor plainly stores the view and has no `tile.speculate`, and the caller says what the sums start
    with. Each element is an addition of its own: where neighbours go to neighbours, `tile.store ... add` is faster.

    ```mlir
    // The gradient of a table of the distances of queries and keys.
    %away = arith.subi %queries, %keys : tensor<128x64xi32>
    tile.scatter_add %ds, %dtable[%h, %away]
      : tensor<128x64xf32>, !tile.view<[H, N], f32>, index, tensor<128x64xi32>
    // The sum of all elements.
    tile.scatter_add %row_sums, %dslopes[%h] : tensor<128xf32>, !tile.view<[H], f32>, index
    ```
  }];
  let arguments = (ins StaticShapeTensorOf<[F32]>:$value, Tile_ViewType:$view,
                       Variadic<AnyTypeOf<[Index, Tile_RowNumbers]>>:$indices);
  let assemblyFormat = "$value `,` $view `[` $indices `]` attr-dict `:` type($value) `,` qualified(type($view)) "
                       "(`,` type($indices)^)?";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECTS_TILE_TILEMEMORYOPS_TD
