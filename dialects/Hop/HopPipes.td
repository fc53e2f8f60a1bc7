// Pipes, and the tiles of shared memory that they give.

#ifndef TESSERA_DIALECTS_HOP_HOPPIPES_TD
#define TESSERA_DIALECTS_HOP_HOPPIPES_TD

include "dialects/Hop/HopOpBase.td"

//===----------------------------------------------------------------------===//
// Pipes
//===----------------------------------------------------------------------===//

def Hop_PipeCreateOp : Hop_Op<"pipe.create", [HasParent<"KernelOp">]> {
  let summary = "Declares a pipe";
  let description = [{
    With `multicast` the fills of all blocks of a cluster are the same, in number and in content: each block loads its
    part of a tile for all of them, and the first block's value is every block's. That takes a schedule with `cluster =
    2` or `4` and a tile that divides among as many blocks, in whole chunks of columns or multiples of 8 rows, or, where
    they come in runs, whole runs. `label` names the pipe in reports.

    A pipe `with` another one is filled, waited for and given back together with it: behind each of its loads and waits
    stands one of the other pipe in the same block, and a release of the other pipe gives back both; that of this one
    stands before it and says up to where the slot is read. It has as many slots; both are loaded in bulk, and neither is
    multicast.

    With `exchanged` the two blocks of a cluster write tiles in the same order, each for both (`hop.pipe.acquire`). The
    upper half of a slot's rows is this block's tile, the lower half the other block's. Threads write the upper half, and what
    they commit is copied to the other block (`hop.exchange`). A slot is free when the readers of both blocks have given it
    back. That takes a schedule with `cluster = exchange` and halves of a multiple of 8 rows.

    ```mlir
    %k = hop.pipe.create "k" : !hop.pipe<tensor<128x64xbf16>, 2>
    %v = hop.pipe.create "v" multicast : !hop.pipe<tensor<128x64xbf16>, 2>
    %scales = hop.pipe.create "scales" with %k : !hop.pipe<tensor<128x64xbf16>, 2> : !hop.pipe<tensor<128xf32>, 2>
    %ds = hop.pipe.create "ds" exchanged : !hop.pipe<tensor<128x64xbf16>, 2>
    ```
  }];
  let arguments = (ins StrAttr:$label, UnitAttr:$multicast, Optional<Hop_PipeType>:$leader, UnitAttr:$exchanged);
  let results = (outs Hop_PipeType:$pipe);
  let assemblyFormat = "$label (`multicast` $multicast^)? (`exchanged` $exchanged^)? "
                       "(`with` $leader^ `:` qualified(type($leader)))? attr-dict `:` qualified(type($pipe))";
  let builders = [OpBuilder<(ins "::mlir::Type":$pipe, "::llvm::StringRef":$label,
                                 CArg<"bool", "false">:$multicast),
                            [{ build($_builder, $_state, pipe, label, multicast, ::mlir::Value()); }]>];
  let hasVerifier = 1;
}

def Hop_PipeLoadOp : Hop_Op<"pipe.load", [Hop_FillsPipe, Hop_OnOneThread, AttrSizedOperandSegments, SingleBlock]> {
  let summary = "Acquires the next slot and starts the load of a tile into it";
  let description = [{
    Waits until every reader has released the slot, then starts a bulk tensor copy (PTX ISA 9.7.9.27.1.1) that signals
    the readers when its bytes have arrived. Runs on one thread: that of an elected role, or the one that `hop.elected`
    chooses, in an `scf.if` of it. All threads of a role with warpgroups are refused.
    Indices and `box` as for `tile.load`; the view, of the tile's rank or more, is an argument of the kernel.

    `alike` says that the pipe gets the same tiles in the same order in all blocks of a cluster. `tile-even-loops` has
    proved it, on the program of a grid point; `hop-cluster` takes its word.

    With `run` the rows of the tile come in runs of so many, as those of a `tile.gather_runs`: the region gives the place of a run
    and how many of its rows there are. A copy moves a run, or a row of one that ends early.

    `tf32` has copies round f32, as `hop.bulk_load` says.

    ```mlir
    hop.pipe.load %k, %K[%row, %c0] : !hop.pipe<tensor<128x64xbf16>, 2>, !tile.view<[N, 64], bf16>
    hop.pipe.load %k, %K[%next, %c0] alike : !hop.pipe<tensor<128x64xbf16>, 2>, !tile.view<[N, 64], bf16>
    hop.pipe.load %k, %K[%c0, %c0] run 16 with (%row : index) {
    ^bb0(%i: index, %first: index):
      %before = arith.muli %i, %c32 : index
      %place = arith.addi %first, %before : index
      hop.yield %place, %c16 : index, index
    } : !hop.pipe<tensor<128x64xbf16>, 2>, !tile.view<[N, 64], bf16>
    ```
  }];
  let arguments = (ins Hop_PipeType:$pipe, Tile_ViewType:$view, Variadic<Index>:$indices,
                       OptionalAttr<DenseI64ArrayAttr>:$box, UnitAttr:$alike, UnitAttr:$tf32,
                       Variadic<AnyType>:$captures,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$run);
  let regions = (region VariadicRegion<SizedRegion<1>>:$runs);
  let assemblyFormat =
    "$pipe `,` $view `[` $indices `]` (`box` $box^)? (`alike` $alike^)? (`tf32` $tf32^)? "
    "(`run` $run^ (`with` `(` $captures^ `:` type($captures) `)`)? $runs)? attr-dict `:` "
    "qualified(type($pipe)) `,` qualified(type($view))";
  let builders = [OpBuilder<(ins "::mlir::Value":$pipe, "::mlir::Value":$view, "::mlir::ValueRange":$indices,
                                 "::mlir::DenseI64ArrayAttr":$box, "::mlir::UnitAttr":$alike, "::mlir::UnitAttr":$tf32),
                            [{ build($_builder, $_state, pipe, view, indices, box, alike, tf32, {}, ::mlir::IntegerAttr(), 0); }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Of a run: its places along as many dimensions of the view, up to that of rows, and how many rows of it there are.
    ::mlir::OperandRange getYielded() { return getBodyOfRun().getTerminator()->getOperands(); }
    ::mlir::Block &getBodyOfRun() { return getRuns().front().front(); }
    int64_t getFirstNumberedDim() {
      return getView().getType().getRank() - static_cast<int64_t>(getYielded().size());
    }
  }];
}

def Hop_YieldOp : Hop_Op<"yield", [Terminator, Pure, ParentOneOf<["PipeLoadOp", "InLanesOp"]>]> {
  let summary = "Ends the region of a hop.pipe.load of runs, or that of a hop.in_lanes";
  let description = [{
    The values are the places of a run along the dimensions that have them, and how many of its rows there are; of a
    `hop.in_lanes` what it gives.

    ```mlir
    hop.pipe.load %k, %K[%c0, %c0] run 16 {
    ^bb0(%i: index):
      %place = arith.muli %i, %c32 : index
      hop.yield %place, %c16 : index, index
    } : !hop.pipe<tensor<128x64xbf16>, 2>, !tile.view<[N, 64], bf16>
    ```
  }];
  let arguments = (ins Variadic<Index>:$values);
  let assemblyFormat = "$values `:` type($values) attr-dict";
}

def Hop_L2PrefetchOp : Hop_Op<"l2_prefetch", [Hop_OnOneThread]> {
  let summary = "Brings elements into the L2 cache that other roles will load";
  let description = [{
    `count` elements along the last dimension of the view, from the indices on; those outside of the view are left out.
    The thread goes on at once (PTX ISA 9.7.9.15, prefetch), and a later load of these elements by any role finds them in
    the cache. The view is an argument of the kernel.

    ```mlir
    hop.l2_prefetch %scales[%b, %row], 128 : !tile.view<[B, S], f32>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$indices, ConfinedAttr<I64Attr, [IntPositive]>:$count);
  let assemblyFormat = "$view `[` $indices `]` `,` $count attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
}

def Hop_PipeWaitOp : Hop_Op<"pipe.wait", [Hop_ReadsPipe, Hop_OnAllThreads]> {
  let summary = "Waits for the next slot to be filled";
  let description = [{
    In any role, on all its threads. The result is the tile in the slot, to be read until `hop.pipe.release`; its type
    is that of the pipe's tile with all its rows, and another one is refused.

    ```mlir
    %t = hop.pipe.wait %k : !hop.pipe<tensor<128x64xbf16>, 2> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    ```
  }];
  let arguments = (ins Hop_PipeType:$pipe);
  let results = (outs Hop_SharedType:$tile);
  let assemblyFormat = "$pipe attr-dict `:` qualified(type($pipe)) `->` qualified(type($tile))";
  let hasVerifier = 1;
}

def Hop_PipePeekOp : Hop_Op<"pipe.peek", [Hop_ReadsPipe, Hop_OnAllThreads]> {
  let summary = "Waits for the next slot to be filled and does not take it";
  let description = [{
    As `hop.pipe.wait`, but the next `hop.pipe.wait` of the role on this pipe takes the same slot, and its
    `hop.pipe.release` gives it back. So the result is to be read in this block alone, by products that the block waits
    for: others are refused. Where the role keeps the slot before, the pipe has two slots or more.

    ```mlir
    %t = hop.pipe.peek %k : !hop.pipe<tensor<128x64xbf16>, 2> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    ```
  }];
  let arguments = (ins Hop_PipeType:$pipe);
  let results = (outs Hop_SharedType:$tile);
  let assemblyFormat = "$pipe attr-dict `:` qualified(type($pipe)) `->` qualified(type($tile))";
  let hasVerifier = 1;
}

def Hop_PipeReleaseOp : Hop_Op<"pipe.release", [Hop_OnAllThreads]> {
  let summary = "Gives a slot back to the role that fills it";
  let description = [{
    `tile` is the result of `hop.pipe.wait` on the same pipe; every product that reads it must have been waited for,
    and what is read of it (`hop.fetch`) be in registers. The verifier refuses a release that comes before one of these.
    On all threads of the role that waited; each warpgroup gives back for itself.

    ```mlir
    %t = hop.pipe.wait %k : !hop.pipe<tensor<128x64xbf16>, 2> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    hop.pipe.release %k, %t : !hop.pipe<tensor<128x64xbf16>, 2>, !hop.shared<tensor<128x64xbf16>, rows = 128>
    ```
  }];
  let arguments = (ins Hop_PipeType:$pipe, Hop_SharedType:$tile);
  let assemblyFormat = "$pipe `,` $tile attr-dict `:` qualified(type($pipe)) `,` qualified(type($tile))";
  let hasVerifier = 1;
}

def Hop_PipeAcquireOp : Hop_Op<"pipe.acquire", [Hop_FillsPipe, Hop_OnWarps]> {
  let summary = "Takes the next slot, for the threads of a role to write";
  let description = [{
    Waits until every reader has released the slot. The result is the tile in the slot, to be written (`hop.stage`)
    or filled by copies (`hop.gather`) until the one `hop.pipe.commit` of it, which stands behind it in the same block. On all
    threads of a role that is not elected; a multicast pipe, which the blocks of a cluster fill together, is refused but
    where two blocks gather half of the rows each. All fills of a pipe are of one kind: loads, writes of threads, or
    gathers.

    ```mlir
    %s = hop.pipe.acquire %o : !hop.pipe<tensor<128x64xbf16>, 2> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %mine = hop.slice %s[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128>
      -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    hop.stage %t, %mine : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
    hop.pipe.commit %o, %s : !hop.pipe<tensor<128x64xbf16>, 2>, !hop.shared<tensor<128x64xbf16>, rows = 128>
    ```
  }];
  let arguments = (ins Hop_PipeType:$pipe);
  let results = (outs Hop_SharedType:$tile);
  let assemblyFormat = "$pipe attr-dict `:` qualified(type($pipe)) `->` qualified(type($tile))";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether `hop.gather` fills the slot, and not writes of the threads.
    bool isFilledByCopies();
  }];
}

def Hop_GatherOp : Hop_Op<"gather", [Hop_OnWarpgroups, AttrSizedOperandSegments]> {
  let summary = "Starts copies of rows that numbers name into a slot";
  let description = [{
    What `tile.gather` loads, into shared memory: each thread of the role copies 16 bytes at a time (PTX ISA 9.7.9.25.3.1,
    `cp.async`), and what is outside of the view is 0. `destination` is a whole slot (`hop.pipe.acquire`), which
    `hop.pipe.commit` hands on; or, once the pipe is a buffer, a part of its rows, which are copied alone while `rows` has
    the numbers of all. Rows of the view start at multiples of 16 bytes, and the column index is a multiple of as many
    elements.

    The copies are of the generic proxy: `hop-insert-proxy-fences` has those who wait for such a slot pass a fence before
    products read it. `layout` says which thread copies what, and `rows` has the numbers of each thread's rows
    (`hop-assign-layouts`).

    ```mlir
    %s = hop.pipe.acquire %k : !hop.pipe<tensor<128x64xbf16>, 2> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    hop.gather %s, %K[%c0, %c0] rows %numbers
      : !hop.shared<tensor<128x64xbf16>, rows = 128>, !tile.view<[N, 64], bf16>, tensor<128xi32>
    hop.pipe.commit %k, %s : !hop.pipe<tensor<128x64xbf16>, 2>, !hop.shared<tensor<128x64xbf16>, rows = 128>
    ```
  }];
  let arguments = (ins Hop_SharedMatrix:$destination, Tile_ViewType:$view, Variadic<Index>:$indices,
                       Variadic<Hop_Fragment>:$rows, OptionalAttr<Hop_LayoutAttr>:$layout);
  let assemblyFormat =
    "$destination `,` $view `[` $indices `]` `rows` $rows (`layout` $layout^)? attr-dict `:` "
    "qualified(type($destination)) `,` qualified(type($view)) `,` type($rows)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The tile with the layout in which the threads copy it.
    ::mlir::RankedTensorType getCopiedType();
    /// The first dimension of the view along which `rows` numbers: the last is that of rows.
    int64_t getFirstNumberedDim() {
      return getView().getType().getRank() - 1 - static_cast<int64_t>(getRows().size());
    }
  }];
}

def Hop_PipeCommitOp : Hop_Op<"pipe.commit", [Hop_OnWarps]> {
  let summary = "Hands a slot that the threads of a role have written to its readers";
  let description = [{
    `tile` is the result of `hop.pipe.acquire` on the same pipe; a write of it that comes later is refused. Readers see
    all that the role wrote, by products and copies too. Each warpgroup hands over for itself: by one thread where a
    `hop.warpgroup_sync` stands between its last write and the commit, by all of them otherwise. Where the slot is filled
    by `hop.gather`, each thread hands over when its copies have come, and waits for nothing.

    ```mlir
    %s = hop.pipe.acquire %o : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.commit %o, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    ```
  }];
  let arguments = (ins Hop_PipeType:$pipe, Hop_SharedType:$tile);
  let assemblyFormat = "$pipe `,` $tile attr-dict `:` qualified(type($pipe)) `,` qualified(type($tile))";
  let hasVerifier = 1;
}

def Hop_PipePutOp : Hop_Op<"pipe.put", [Hop_FillsPipe, Hop_OnOneThread]> {
  let summary = "Acquires the next slot and writes one value into it";
  let description = [{
    Of a pipe of `tensor<1xi32>`, on one thread, as `hop.pipe.load`. Of a multicast pipe those of all
    blocks of the cluster take part, and the value of the first one counts.

    ```mlir
    hop.pipe.put %tiles, %next : !hop.pipe<tensor<1xi32>, 2>
    ```
  }];
  let arguments = (ins Hop_PipeType:$pipe, I32:$value);
  let assemblyFormat = "$pipe `,` $value attr-dict `:` qualified(type($pipe))";
}

def Hop_PipeGetOp : Hop_Op<"pipe.get", [Hop_ReadsPipe, Hop_OnAllThreads]> {
  let summary = "Waits for the next slot, reads its value and releases it";
  let description = [{
    Of a pipe of `tensor<1xi32>`, on all threads of a role, which all get the value.

    ```mlir
    %next = hop.pipe.get %tiles : !hop.pipe<tensor<1xi32>, 2>
    ```
  }];
  let arguments = (ins Hop_PipeType:$pipe);
  let results = (outs I32:$value);
  let assemblyFormat = "$pipe attr-dict `:` qualified(type($pipe))";
}

//===----------------------------------------------------------------------===//
// Parts of slots
//===----------------------------------------------------------------------===//

def Hop_SliceOp : Hop_Op<"slice", [Pure]> {
  let summary = "Part number `index` of a tile in shared memory: some of its rows, or some of its columns";
  let description = [{
    A result of R rows holds rows `index * R` to `(index + 1) * R - 1`. R divides the rows of the source and is a
    multiple of 8, where a repeat of the swizzle starts. A result of fewer columns holds as many of them of all rows, in
    whole chunks, or a multiple of 64 that may begin amid one where `hop.fetch` alone reads them, transposed. Element type and stored rows are
    those of the source. An address, on any threads; it moves nothing.

    ```mlir
    %mine = hop.slice %q[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128>
      -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %columns = hop.slice %p[%wg] : !hop.shared<tensor<32x128xbf16>, rows = 32>
      -> !hop.shared<tensor<32x64xbf16>, rows = 32>
    ```
  }];
  let arguments = (ins Hop_SharedMatrix:$source, Index:$index);
  let results = (outs Hop_SharedMatrix:$result);
  let extraClassDeclaration = [{
    /// Whether the parts are columns of all rows.
    bool isOfColumns() {
      return getResult().getType().getTile().getDimSize(1) != getSource().getType().getTile().getDimSize(1);
    }
  }];
  let assemblyFormat =
    "$source `[` $index `]` attr-dict `:` qualified(type($source)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECTS_HOP_HOPPIPES_TD
