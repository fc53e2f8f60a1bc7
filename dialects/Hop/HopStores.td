// Results and operands that roles write to shared memory, and turns.

#ifndef TESSERA_DIALECTS_HOP_HOPSTORES_TD
#define TESSERA_DIALECTS_HOP_HOPSTORES_TD

include "dialects/Hop/HopOpBase.td"

//===----------------------------------------------------------------------===//
// Results through shared memory
//===----------------------------------------------------------------------===//

def Hop_StagingOp : Hop_Op<"staging", [
    HasParent<"KernelOp">,
    DeclareOpInterfaceMethods<Hop_SharedMemoryOpInterface, ["getSharedBytes", "getSharedAlignment"]>]> {
  let summary = "Declares shared memory that roles write: results on their way, operands of products";
  let description = [{
    One tile, which lies `offset` bytes from the start of shared memory once `hop-allocate-shared-memory` has run: a
    multiple of the bytes after which its swizzle repeats (PTX ISA 5.5.7). Results may lie where a tile was that the
    products have read. `label` names it in reports.

    ```mlir
    %staged = hop.staging "o" at 16384 : !hop.shared<tensor<128x64xbf16>, rows = 128>
    ```
  }];
  let arguments = (ins StrAttr:$label, OptionalAttr<I64Attr>:$offset);
  let results = (outs Hop_SharedMatrix:$tile);
  let assemblyFormat = "$label (`at` $offset^)? attr-dict `:` qualified(type($tile))";
}

def Hop_FetchOp : Hop_Op<"fetch", [Hop_OnWarpgroups, MemoryEffects<[MemRead]>]> {
  let summary = "Reads a tile from shared memory into registers";
  let description = [{
    Each thread reads the elements that it has of the result: of a tile of rank 1 by the layout of columns, or of floats of
    4 bytes by that of rows, of a tile of rank 2, of elements of 2 or 4 bytes, by that of accumulators (for 16 bits ldmatrix, PTX ISA 9.7.14.5.15),
    rows of both in order or as `row_pairs`, of
    floats of 1 byte by `accumulator8`, two at a time. A tile of rank
    2, of floats of 1 byte too, may also have a layout of runs of 8 bytes or more, which a thread reads at once
    (`ld.shared.v4`); others are refused when they are lowered. `transposed` reads floats of 1 byte as columns, by the layout `row_pairs`, 32
    rows and 16 columns of the source a warp and ldmatrix.trans; other tiles are refused. `source` is a slot, or the warpgroup's rows of one (`hop.slice`). On all threads of a role
    with warpgroups, each of which gives the slot back for itself (`hop.pipe.release`).

    ```mlir
    %t = hop.pipe.wait %l : !hop.pipe<tensor<64xf32>, 2> -> !hop.shared<tensor<64xf32>, rows = 64>
    %r = hop.fetch %t : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xf32, #hop.layout<column>>
    %b = hop.fetch %rows : !hop.shared<tensor<64x32xbf16>, rows = 128> -> tensor<64x32xbf16, #hop.layout<accumulator>>
    ```
  }];
  let arguments = (ins Hop_SharedType:$source, UnitAttr:$transposed);
  let results = (outs AnyRankedTensor:$tile);
  let assemblyFormat = "$source (`transposed` $transposed^)? attr-dict `:` qualified(type($source)) `->` type($tile)";
  let hasVerifier = 1;
}

def Hop_StageOp : Hop_Op<"stage", [Hop_OnWarpgroups]> {
  let summary = "Writes a tile of registers into shared memory";
  let description = [{
    `tile` is in the accumulator layout, or in `row_pairs` unless `transposed`, of a type of 16 or 32 bits; shape and type of the destination are
    the same. A vector of f32 that each row has one of is written by the first of the lanes that share a row. The
    writes are of the generic proxy (for 16 bits stmatrix, PTX ISA 9.7.15.3). In a layout of runs of neighbours, as
    `hop.fetch` has it, a thread writes a run at once (`st.shared.v4`). Every product that reads the destination
    has been waited for. On all threads of a role with warpgroups; each warpgroup writes a tile of its own.

    `transposed` writes the columns of a tile as rows (of 16 bits stmatrix.trans): the destination has its shape exchanged.
    `tf32` writes a tile of f32 rounded to nearest even to 10 bits of the mantissa (`cvt.rn.tf32.f32`).

    ```mlir
    hop.stage %o, %mine : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
    hop.stage %p, %columns transposed : tensor<64x32xbf16, #hop.layout<accumulator>>,
      !hop.shared<tensor<32x64xbf16>, rows = 32>
    hop.stage %max, %slot : tensor<64xf32, #hop.layout<row>>, !hop.shared<tensor<64xf32>, rows = 64>
    ```
  }];
  let arguments = (ins Hop_Fragment:$tile, Hop_SharedType:$destination, UnitAttr:$transposed, UnitAttr:$tf32);
  let assemblyFormat =
    "$tile `,` $destination (`transposed` $transposed^)? (`tf32` $tf32^)? attr-dict `:` type($tile) `,` qualified(type($destination))";
  let hasVerifier = 1;
}

def Hop_ProxyFenceOp : Hop_Op<"proxy_fence"> {
  let summary = "Makes earlier writes to shared memory visible to the async proxy";
  let description = [{
    PTX ISA 9.7.13.4, `fence.proxy.async.shared::cta`, by each thread that wrote, before the barrier that joins them. What
    copies of threads write (`hop.gather`) comes later than such a fence: there those who wait for the slot pass one.
    `hop-insert-proxy-fences` puts it in.

    ```mlir
    hop.stage %o, %mine : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
    hop.proxy_fence
    hop.warpgroup_sync
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Hop_WarpgroupSyncOp : Hop_Op<"warpgroup_sync", [Hop_OnWarps]> {
  let summary = "Waits for the role's threads in the warpgroup (a named barrier)";
  let description = [{
    All 128, or those of a role with warps. What they read and wrote before comes before what they do after (PTX ISA
    9.7.13.1, `bar.sync`). On all threads of a role that is not elected; each warpgroup has a barrier of its own.

    ```mlir
    hop.warpgroup_sync
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Hop_RoleSyncOp : Hop_Op<"role_sync", [Hop_OnWarps]> {
  let summary = "Waits for the threads of all warpgroups of the role (a named barrier)";
  let description = [{
    What they read and wrote before, in global memory too, comes before what they do after (PTX ISA 9.7.13.1,
    `bar.sync`). Not inside of a loop with turns.

    ```mlir
    tile.store %x, %c[%c1, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[M, 64], f32>
    hop.role_sync
    tile.store %r, %c[%row, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[M, 64], f32>
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Hop_BulkStoreOp : Hop_Op<"bulk_store"> {
  let summary = "Stores a tile of shared memory to a view by a bulk tensor copy";
  let description = [{
    One thread of the warpgroup, or that of an elected role, starts the copy and waits until shared memory has been read
    (PTX ISA 9.7.9.27.1.2). Elements outside the view are dropped. Indices and `box` as for `tile.store`; the view, of
    the tile's rank or more and of its element type, is an argument of the kernel. With `add` the copy adds elements of f32
    to those of the view (cp.reduce.async.bulk.tensor, PTX ISA 9.7.9.27.1.3).

    With `in_flight` n the thread goes on while its last n copies may still read shared memory. Who writes to the source of
    one of them has met the thread since a later copy that leaves fewer, or since `hop.bulk_read_wait`. At most 7. From a slot
    only in a role of one thread, which waits by `hop.bulk_read_wait` before it gives the slot back, or by later copies of which the
    last one leaves fewer in flight. Before the role ends, a wait for the copies or a copy without `in_flight` comes on every
    way; a role without is refused.

    With `exchanged` the source is this block's part of a sum over its cluster: a block past the end of the grid stores its part
    too (`hop-guard-grid-end`).

    ```mlir
    hop.bulk_store %mine, %O[%row, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 128>, !tile.view<[M, 64], bf16>
    hop.bulk_store %part, %S[%row, %c0] add : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
    ```
  }];
  let arguments = (ins Hop_SharedMatrix:$source, Tile_ViewType:$view, Variadic<Index>:$indices,
                       OptionalAttr<DenseI64ArrayAttr>:$box, UnitAttr:$add,
                       DefaultValuedAttr<I64Attr, "0">:$in_flight, UnitAttr:$exchanged);
  let assemblyFormat =
    "$source `,` $view `[` $indices `]` (`box` $box^)? (`add` $add^)? (`in_flight` $in_flight^)? "
    "(`exchanged` $exchanged^)? attr-dict `:` "
    "qualified(type($source)) `,` qualified(type($view))";
  let hasVerifier = 1;
}

def Hop_BulkStoreWaitOp : Hop_Op<"bulk_store_wait"> {
  let summary = "Waits until the bulk stores of this thread have been written";
  let description = [{
    PTX ISA 9.7.9.27.2.3, `cp.async.bulk.wait_group`. Before the same tile is stored once more (`hop-retry`).

    ```mlir
    hop.bulk_store %mine, %O[%row, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 128>, !tile.view<[M, 64], bf16>
    hop.bulk_store_wait
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Hop_BulkReadWaitOp : Hop_Op<"bulk_read_wait"> {
  let summary = "Waits until the bulk stores of this thread have read shared memory";
  let description = [{
    PTX ISA 9.7.9.27.2.3, `cp.async.bulk.wait_group.read`. Behind stores that leave copies `in_flight`.

    ```mlir
    hop.bulk_read_wait
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Hop_TicketWaitOp : Hop_Op<"ticket.wait"> {
  let summary = "Waits until a tile of a view may be added to";
  let description = [{
    The launch has a ticket of 32 bits for each tile of the view, of extents `tile`, 0 between launches. The thread that
    starts the role's bulk stores waits until ticket `number` is `value` (`ld.acquire.gpu`, PTX ISA 9.7.9.8), and lets
    copies follow that (`fence.proxy.async`, 9.7.13.4). Behind `hop.bulk_store ... add`, `hop.ticket.pass` hands on. With
    `peeked` it only asks where that, which a `hop.ticket.peek` gave, is another value.

    ```mlir
    hop.ticket.wait %S[%number] tile [64, 64] is %n : !tile.view<[M, 64], f32>
    hop.bulk_store %part, %S[%row, %c0] add : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
    hop.ticket.pass %S[%number] tile [64, 64] to %next : !tile.view<[M, 64], f32>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$number, DenseI64ArrayAttr:$tile, Index:$value,
                       Optional<Index>:$peeked);
  let assemblyFormat =
    "$view `[` $number `]` `tile` $tile `is` $value (`peeked` $peeked^)? attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
}

def Hop_TicketPeekOp : Hop_Op<"ticket.peek"> {
  let summary = "Asks what the ticket of a tile is, without waiting";
  let description = [{
    In a role of one thread (`ld.acquire.gpu`, PTX ISA 9.7.9.8). What it tells comes while copies are still written.

    ```mlir
    %t = hop.ticket.peek %S[%later] tile [64, 64] : !tile.view<[M, 64], f32>
    hop.ticket.pass %S[%number] tile [64, 64] to %next : !tile.view<[M, 64], f32>
    hop.ticket.wait %S[%later] tile [64, 64] is %n peeked %t : !tile.view<[M, 64], f32>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$number, DenseI64ArrayAttr:$tile);
  let results = (outs Index:$result);
  let assemblyFormat = "$view `[` $number `]` `tile` $tile attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
}

def Hop_TicketPassOp : Hop_Op<"ticket.pass"> {
  let summary = "Lets the next grid point add to a tile of a view";
  let description = [{
    The thread that starts the role's bulk stores waits until all of them have been written
    (`cp.async.bulk.wait_group`, PTX ISA 9.7.9.27.2.3), and makes ticket `number` `value` (`st.release.gpu`, 9.7.9.11).
    With a condition nothing is done where it is false.

    ```mlir
    hop.ticket.pass %S[%number] tile [64, 64] to %next : !tile.view<[M, 64], f32>
    hop.ticket.pass %S[%number] tile [64, 64] to %next if %pending : !tile.view<[M, 64], f32>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$number, DenseI64ArrayAttr:$tile, Index:$value,
                       Optional<I1>:$condition);
  let assemblyFormat =
    "$view `[` $number `]` `tile` $tile `to` $value (`if` $condition^)? attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
}

def Hop_ClusterFenceOp : Hop_Op<"cluster_fence"> {
  let summary = "Orders what this thread did before and after for all blocks of a cluster";
  let description = [{
    PTX ISA 9.7.13.4, `fence.acq_rel.cluster`. Before an arrival at the mbarriers of other blocks, which has no order of
    its own.

    ```mlir
    hop.cluster_fence
    hop.barrier.arrive %meet[%slot] all blocks 2 : !hop.barriers<1>
    ```
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

class Hop_TurnOp<string mnemonic> : Hop_Op<mnemonic, [Hop_OnWarpgroups]> {
  let arguments = (ins Index:$warpgroup);
  let assemblyFormat = "$warpgroup attr-dict";
  let hasVerifier = 1;
}

def Hop_TurnStartOp : Hop_TurnOp<"turn.start"> {
  let summary = "Gives the first turn to the first warpgroup of the role";
  let description = [{
    Before the first loop with turns, on all threads of a role with warpgroups: the last warpgroup arrives at the
    barrier of the first one (PTX ISA 9.7.13.1, bar.arrive). `warpgroup` is the argument of the role around it; another
    value is refused.

    ```mlir
    hop.turn.start %wg
    ```
  }];
}

def Hop_TurnWaitOp : Hop_TurnOp<"turn.wait"> {
  let summary = "Waits for this warpgroup's turn";
  let description = [{
    Warpgroup `i` of a role waits on a named barrier of its own that the warpgroup before it arrives at
    (bar.sync and bar.arrive, PTX ISA 9.7.13.1; FlashAttention-3, section 3.1). `warpgroup` is the argument of the role
    around it; another value is refused.

    ```mlir
    hop.turn.wait %wg
    ```
  }];
}

def Hop_TurnPassOp : Hop_TurnOp<"turn.pass"> {
  let summary = "Passes the turn to the next warpgroup of the role";
  let description = [{
    The last one passes it to the first (PTX ISA 9.7.13.1, bar.arrive). `warpgroup` is the argument of the role around
    it; another value is refused.

    ```mlir
    hop.turn.wait %wg
    hop.turn.pass %wg
    ```
  }];
}

#endif // TESSERA_DIALECTS_HOP_HOPSTORES_TD
