// Operations of the hop dialect.

#ifndef TESSERA_DIALECTS_HOP_HOPOPS_TD
#define TESSERA_DIALECTS_HOP_HOPOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Hop/HopDialect.td"
include "dialects/Hop/HopTypes.td"
include "dialects/Tile/TileTypes.td"
include "dialects/Tile/TileAttrs.td"

class Hop_Op<string mnemonic, list<Trait> traits = []> : Op<Hop_Dialect, mnemonic, traits>;

def Hop_Fragment : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Hop_KernelOp : Hop_Op<"kernel", [
    IsolatedFromAbove, Symbol, NoTerminator, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "A kernel as roles of one thread block";
  let description = [{
    Arguments, grid and requirements are those of the `tile.kernel` it came from, and so are the block
    arguments: first the kernel's arguments, then the grid indices. The body declares pipes (later buffers
    and barriers) and then the roles.
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeArrayAttr:$argument_types,
    StrArrayAttr:$argument_names,
    ArrayAttr:$grid,
    OptionalAttr<ArrayAttr>:$requirements,
    Tile_ScheduleAttr:$schedule,
    OptionalAttr<I64Attr>:$shared_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumArguments() { return getArgumentTypes().size(); }
    ::mlir::BlockArgument getArgument(unsigned i) { return getBody().getArgument(i); }
    ::mlir::BlockArgument getGridIndex(unsigned i) {
      return getBody().getArgument(getNumArguments() + i);
    }
    ::llvm::StringRef getArgumentName(unsigned i) {
      return ::llvm::cast<::mlir::StringAttr>(getArgumentNames()[i]).getValue();
    }
    /// Warpgroups of all roles.
    int64_t getNumWarpgroups();
    /// The timeline that the kernel records; null when it records none.
    ::tessera::hop::TimelineOp getTimeline();
    /// Thread blocks of a cluster.
    int64_t getClusterSize() {
      return getSchedule().getCluster().value_or(tile::ScheduleAttr::Fields::usualCluster);
    }
  }];
}

def Hop_RoleOp : Hop_Op<"role", [NoTerminator, SingleBlock, HasParent<"KernelOp">]> {
  let summary = "The program of one or more warpgroups";
  let description = [{
    A consumer role runs on every thread of its warpgroups; the block argument is the index of the
    warpgroup within the role. A producer role has one warpgroup of which a single elected thread runs.
    `registers` is the number of registers per thread the role asks for (PTX ISA 9.7.20.5, setmaxnreg).

    ```mlir
    hop.role consumer warpgroups(2) registers(240) {
    ^bb0(%wg: index):
    }
    ```
  }];
  let arguments = (ins Hop_RoleKind:$kind, I64Attr:$warpgroups, OptionalAttr<I64Attr>:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
    "$kind `warpgroups` `(` $warpgroups `)` (`registers` `(` $registers^ `)`)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Hop_ElectedOp : Hop_Op<"elected", [Pure]> {
  let summary = "True in one thread of the role's first warpgroup";
  let arguments = (ins Index:$warpgroup);
  let results = (outs I1:$result);
  let assemblyFormat = "$warpgroup attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Speculation
//===----------------------------------------------------------------------===//

def Hop_AttemptOp : Hop_Op<"attempt", [NoTerminator, SingleBlock]> {
  let summary = "A role's program of a tile of the grid, in a fast form that may not hold and an exact one";
  let description = [{
    Every role of a kernel has it or none. The exact region runs too, in every role, when the predicate of a
    `hop.doubt` in the fast region was false in some thread of the thread block.

    ```mlir
    hop.attempt {
      hop.doubt %valid : tensor<64xi1, #hop.layout<row>>
    } exact {
      hop.warpgroup_sync
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$fast, SizedRegion<1>:$exact);
  let assemblyFormat = "attr-dict-with-keyword custom<SpeculationRegions>($fast, $exact)";
}

def Hop_DoubtOp : Hop_Op<"doubt"> {
  let summary = "Asks for the exact program of this tile of the grid unless `valid` is true in every element";
  let arguments = (ins AnyTypeOf<[I1, Hop_Fragment]>:$valid);
  let assemblyFormat = "$valid attr-dict `:` type($valid)";
}

def Hop_FlagOp : Hop_Op<"flag"> {
  let summary = "Sets the bits of `value` in a slot unless `valid` is true in every element";
  let description = [{
    By every thread for which it is not: an atomic or of shared memory (PTX ISA 9.7.13.6, red), so that any
    number of threads may do it at once. In a cluster the slot is set in every thread block.
  }];
  let arguments = (ins AnyTypeOf<[I1, Hop_Fragment]>:$valid, I32:$value, Hop_BufferType:$buffer, I32:$index);
  let assemblyFormat =
    "$valid `,` $value `,` $buffer `[` $index `]` attr-dict `:` type($valid) `,` qualified(type($buffer))";
}

//===----------------------------------------------------------------------===//
// Pipes
//===----------------------------------------------------------------------===//

def Hop_PipeCreateOp : Hop_Op<"pipe.create", [HasParent<"KernelOp">]> {
  let summary = "Declares a pipe";
  let description = [{
    With `multicast` the fills of all blocks of a cluster are the same, in number and in content: each block
    loads its part of a tile for all of them, and the first block's value is every block's.

    ```mlir
    %k = hop.pipe.create "k" : !hop.pipe<tensor<128x64xbf16>, 2>
    %v = hop.pipe.create "v" multicast : !hop.pipe<tensor<128x64xbf16>, 2>
    ```
  }];
  let arguments = (ins StrAttr:$label, UnitAttr:$multicast);
  let results = (outs Hop_PipeType:$pipe);
  let assemblyFormat = "$label (`multicast` $multicast^)? attr-dict `:` qualified(type($pipe))";
  let hasVerifier = 1;
}

def Hop_PipeLoadOp : Hop_Op<"pipe.load"> {
  let summary = "Acquires the next slot and starts the load of a tile into it";
  let description = [{
    Waits until every reader has released the slot, then starts a bulk tensor copy that signals the readers
    when its bytes have arrived. Indices and `box` as for `tile.load`.
  }];
  let arguments = (ins Hop_PipeType:$pipe, Tile_ViewType:$view, Variadic<Index>:$indices,
                       OptionalAttr<DenseI64ArrayAttr>:$box);
  let assemblyFormat =
    "$pipe `,` $view `[` $indices `]` (`box` $box^)? attr-dict `:` qualified(type($pipe)) `,` qualified(type($view))";
  let hasVerifier = 1;
}

def Hop_PipeWaitOp : Hop_Op<"pipe.wait"> {
  let summary = "Waits for the next slot to be filled";
  let arguments = (ins Hop_PipeType:$pipe);
  let results = (outs Hop_SharedType:$tile);
  let assemblyFormat = "$pipe attr-dict `:` qualified(type($pipe)) `->` qualified(type($tile))";
  let hasVerifier = 1;
}

def Hop_PipeReleaseOp : Hop_Op<"pipe.release"> {
  let summary = "Gives a slot back to the role that fills it";
  let description = [{
    `tile` is the result of `hop.pipe.wait`; every product that reads it must have been waited for, and what lies
    over it must have been stored.
  }];
  let arguments = (ins Hop_PipeType:$pipe, Hop_SharedType:$tile);
  let assemblyFormat = "$pipe `,` $tile attr-dict `:` qualified(type($pipe)) `,` qualified(type($tile))";
  let hasVerifier = 1;
}

def Hop_PipeLendOp : Hop_Op<"pipe.lend"> {
  let summary = "Acquires the next slot and hands it to the readers without a load";
  let description = [{
    Waits until every reader has released the slot. What the slot holds is undefined: the readers, who wait for it
    and release it as they do after a load, may write it meanwhile (`hop.overlay`). Of a multicast pipe each
    block lends a slot of its own.

    ```mlir
    hop.pipe.lend %v : !hop.pipe<tensor<128x64xbf16>, 2>
    ```
  }];
  let arguments = (ins Hop_PipeType:$pipe);
  let assemblyFormat = "$pipe attr-dict `:` qualified(type($pipe))";
}

def Hop_PipePutOp : Hop_Op<"pipe.put"> {
  let summary = "Acquires the next slot and writes one value into it";
  let description = [{
    Of a pipe of `tensor<1xi32>`, by the one thread of a producer. Of a multicast pipe the producers of all
    blocks of the cluster take part, and the value of the first one counts.
  }];
  let arguments = (ins Hop_PipeType:$pipe, I32:$value);
  let assemblyFormat = "$pipe `,` $value attr-dict `:` qualified(type($pipe))";
}

def Hop_PipeGetOp : Hop_Op<"pipe.get"> {
  let summary = "Waits for the next slot, reads its value and releases it";
  let arguments = (ins Hop_PipeType:$pipe);
  let results = (outs I32:$value);
  let assemblyFormat = "$pipe attr-dict `:` qualified(type($pipe))";
}

def Hop_SliceOp : Hop_Op<"slice", [Pure]> {
  let summary = "Rows `index * R` to `(index + 1) * R - 1` of a tile in shared memory, for a result of R rows";
  let arguments = (ins Hop_SharedType:$source, Index:$index);
  let results = (outs Hop_SharedType:$result);
  let assemblyFormat =
    "$source `[` $index `]` attr-dict `:` qualified(type($source)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Hop_OverlayOp : Hop_Op<"overlay", [Pure]> {
  let summary = "Room for tile number `index` in slots that hold something else otherwise";
  let description = [{
    Each slot has room for as many whole tiles of the result's type as fit in its bytes; they are numbered slot by
    slot. The slots are of one type, and their bytes repeat in multiples of the result's swizzle.

    ```mlir
    %part = hop.overlay %a, %b[%wg] : !hop.shared<tensor<80x256xbf16>, rows = 80>,
      !hop.shared<tensor<80x256xbf16>, rows = 80> -> !hop.shared<tensor<64x256xbf16>, rows = 64>
    ```
  }];
  let arguments = (ins Variadic<Hop_SharedType>:$slots, Index:$index);
  let results = (outs Hop_SharedType:$result);
  let assemblyFormat =
    "$slots `[` $index `]` attr-dict `:` qualified(type($slots)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

class Hop_MmaBase<string mnemonic, list<Trait> traits = []> : Hop_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Hop_MmaOp : Hop_MmaBase<"mma", [MemoryEffects<[MemRead]>]> {
  let summary = "Matrix product of a warpgroup, complete when the operation is";
  let description = [{
    `a * b + acc` for MxK `a` (in shared memory, or in registers with the accumulator layout), KxN `b` in
    shared memory, MxN f32 `acc` and result in the accumulator layout. `transpose_a` and `transpose_b` say
    that the tile in shared memory is stored as KxM, NxK.

    ```mlir
    %s = hop.mma %q, %k {transpose_b} : !hop.shared<tensor<64x64xbf16>, rows = 128>,
      !hop.shared<tensor<128x64xbf16>, rows = 128> -> tensor<64x128xf32, #hop.layout<accumulator>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Hop_SharedType, Hop_Fragment]>:$a, Hop_SharedType:$b,
                       Optional<Hop_Fragment>:$acc, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat =
    "$a `,` $b (`acc` `(` $acc^ `:` type($acc) `)`)? attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `->` type($result)";
}

def Hop_MmaIssueOp : Hop_MmaBase<"mma_issue"> {
  let summary = "Starts a matrix product (wgmma.mma_async) as a group of its own";
  let description = [{
    As `hop.mma`, but the result is a flight, and so may be the accumulator. Groups complete in the order in
    which they were issued. Registers of `a` and of the accumulator must not change until the wait.
  }];
  let arguments = (ins AnyTypeOf<[Hop_SharedType, Hop_Fragment]>:$a, Hop_SharedType:$b,
                       Optional<AnyTypeOf<[Hop_Fragment, Hop_FlightType]>>:$acc,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Hop_FlightType:$flight);
  let assemblyFormat =
    "$a `,` $b (`acc` `(` $acc^ `:` qualified(type($acc)) `)`)? attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `->` qualified(type($flight))";
}

def Hop_MmaWaitOp : Hop_Op<"mma_wait", [AttrSizedOperandSegments]> {
  let summary = "Waits until at most `pending` later groups are in flight";
  let description = [{
    Turns flights into tiles (wgmma.wait_group, PTX ISA 9.7.15.7.3). `kept` are register operands of the
    products waited for, which must stay alive until here. `behind` are tiles that are complete before the wait,
    and that nothing may move behind it (`hop-pin-waits`).
  }];
  let arguments = (ins Variadic<Hop_FlightType>:$flights, Variadic<Hop_Fragment>:$kept,
                       Variadic<Hop_Fragment>:$behind, I64Attr:$pending);
  let results = (outs Variadic<Hop_Fragment>:$tiles);
  let assemblyFormat =
    "$flights (`keep` $kept^)? (`behind` $behind^)? `pending` $pending attr-dict `:` qualified(type($flights)) "
    "(`keep` type($kept)^)? (`behind` type($behind)^)? `->` type($tiles)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

def Hop_ConvertLayoutOp : Hop_Op<"convert_layout", [Pure]> {
  let summary = "Changes how a rank-1 tile is spread over the warpgroup";
  let description = [{
    From `row_partial` to `row`: the four lanes of a quad are combined, by a sum or as a maximum or minimum. Or
    back: of a sum all but one lane of a quad become 0, and a maximum or minimum is one in every lane.
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Hop_Fragment:$source);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat = "$kind $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Hop_RowFactorOp : Hop_Op<"row_factor", [Pure]> {
  let summary = "A row tile as the factor of partial sums";
  let description = [{
    The same elements: a sum over a quad is scaled by scaling each part. The result is typed `row_partial` so
    that it can be multiplied with partial sums.
  }];
  let arguments = (ins Hop_Fragment:$source);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Results through shared memory
//===----------------------------------------------------------------------===//

def Hop_StageOp : Hop_Op<"stage"> {
  let summary = "Writes a tile of registers into shared memory";
  let description = [{
    `tile` is in the accumulator layout, of a 16-bit type; the writes are of the generic proxy (stmatrix). Every
    product that reads the destination has been waited for.
  }];
  let arguments = (ins Hop_Fragment:$tile, Hop_SharedType:$destination);
  let assemblyFormat = "$tile `,` $destination attr-dict `:` type($tile) `,` qualified(type($destination))";
  let hasVerifier = 1;
}

def Hop_ProxyFenceOp : Hop_Op<"proxy_fence"> {
  let summary = "Makes earlier writes to shared memory visible to the async proxy";
  let description = [{PTX ISA 9.7.13.4, `fence.proxy.async.shared::cta`.}];
  let assemblyFormat = "attr-dict";
}

def Hop_WarpgroupSyncOp : Hop_Op<"warpgroup_sync"> {
  let summary = "Waits for the 128 threads of the warpgroup (a named barrier)";
  let assemblyFormat = "attr-dict";
}

def Hop_RoleSyncOp : Hop_Op<"role_sync"> {
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
    One thread of the warpgroup starts the copy and waits until shared memory has been read (PTX ISA
    9.7.9.27.1.2). Elements outside the view are dropped. Indices and `box` as for `tile.store`.
  }];
  let arguments = (ins Hop_SharedType:$source, Tile_ViewType:$view, Variadic<Index>:$indices,
                       OptionalAttr<DenseI64ArrayAttr>:$box);
  let assemblyFormat =
    "$source `,` $view `[` $indices `]` (`box` $box^)? attr-dict `:` qualified(type($source)) `,` qualified(type($view))";
  let hasVerifier = 1;
}

def Hop_ClusterFenceOp : Hop_Op<"cluster_fence"> {
  let summary = "Orders what this thread did before and after for all blocks of a cluster";
  let description = [{PTX ISA 9.7.13.4, `fence.acq_rel.cluster`.}];
  let assemblyFormat = "attr-dict";
}

def Hop_BulkStoreWaitOp : Hop_Op<"bulk_store_wait"> {
  let summary = "Waits until the bulk stores of this thread have been written";
  let description = [{PTX ISA 9.7.9.27.2.3, `cp.async.bulk.wait_group`.}];
  let assemblyFormat = "attr-dict";
}

def Hop_StagingOp : Hop_Op<"staging", [HasParent<"KernelOp">]> {
  let summary = "Declares shared memory that consumers write: results on their way, operands of products";
  let arguments = (ins StrAttr:$label, OptionalAttr<I64Attr>:$offset);
  let results = (outs Hop_SharedType:$tile);
  let assemblyFormat = "$label (`at` $offset^)? attr-dict `:` qualified(type($tile))";
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

def Hop_TurnStartOp : Hop_Op<"turn.start"> {
  let summary = "Gives the first turn to the first warpgroup of the role";
  let arguments = (ins Index:$warpgroup);
  let assemblyFormat = "$warpgroup attr-dict";
  let hasVerifier = 1;
}

def Hop_TurnWaitOp : Hop_Op<"turn.wait"> {
  let summary = "Waits for this warpgroup's turn";
  let description = [{
    Warpgroup `i` of a role waits on a named barrier of its own that the warpgroup before it arrives at
    (bar.sync and bar.arrive, PTX ISA 9.7.13.1; FlashAttention-3, section 3.1).
  }];
  let arguments = (ins Index:$warpgroup);
  let assemblyFormat = "$warpgroup attr-dict";
  let hasVerifier = 1;
}

def Hop_TurnPassOp : Hop_Op<"turn.pass"> {
  let summary = "Passes the turn to the next warpgroup of the role";
  let arguments = (ins Index:$warpgroup);
  let assemblyFormat = "$warpgroup attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles of the grid
//===----------------------------------------------------------------------===//

def Hop_BlockIndexOp : Hop_Op<"block_index", [Pure]> {
  let summary = "The index of this thread block in the launch";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Hop_BlockCountOp : Hop_Op<"block_count", [Pure]> {
  let summary = "The number of thread blocks of the launch";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Hop_ClusterRankOp : Hop_Op<"cluster_rank", [Pure]> {
  let summary = "The index of this thread block in its cluster";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Hop_NextTileOp : Hop_Op<"next_tile"> {
  let summary = "Takes the number of a tile from the launch's counter";
  let description = [{
    Numbers from the number of thread blocks on, in order; each is given out once in a launch. In clusters the
    first block of each takes a number, from the number of clusters on; the result of the others is undefined.
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Hop_ResetTilesOp : Hop_Op<"reset_tiles"> {
  let summary = "Leaves the launch's counter at zero once every thread block is here";
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Buffers and mbarriers
//===----------------------------------------------------------------------===//

def Hop_BufferOp : Hop_Op<"buffer", [HasParent<"KernelOp">]> {
  let summary = "Declares slots of shared memory";
  let description = [{With `zeroed`, which slots of one value may have, the kernel starts with zeros in them.}];
  let arguments = (ins StrAttr:$label, OptionalAttr<I64Attr>:$offset, UnitAttr:$zeroed);
  let results = (outs Hop_BufferType:$buffer);
  let assemblyFormat = "$label (`at` $offset^)? attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Hop_BarriersOp : Hop_Op<"barriers", [HasParent<"KernelOp">]> {
  let summary = "Declares mbarriers, each completing after `count` arrivals (and its bytes)";
  let arguments = (ins StrAttr:$label, I64Attr:$count, OptionalAttr<I64Attr>:$offset);
  let results = (outs Hop_BarriersType:$barriers);
  let assemblyFormat = "$label `count` $count (`at` $offset^)? attr-dict `:` qualified(type($barriers))";
}

def Hop_SlotOp : Hop_Op<"slot", [Pure]> {
  let summary = "The tile in slot `index` of a buffer";
  let arguments = (ins Hop_BufferType:$buffer, I32:$index);
  let results = (outs Hop_SharedType:$tile);
  let assemblyFormat = "$buffer `[` $index `]` attr-dict `:` qualified(type($buffer)) `->` qualified(type($tile))";
  let hasVerifier = 1;
}

def Hop_BarrierWaitOp : Hop_Op<"barrier.wait"> {
  let summary = "Waits for the phase of the given parity to complete";
  let description = [{
    mbarrier.try_wait.parity in a loop (PTX ISA 9.7.13.15.16). With `cluster` what other blocks of the cluster
    wrote before it completed is visible; copies of the async proxy always are.
  }];
  let arguments = (ins Hop_BarriersType:$barriers, I32:$index, I32:$parity, UnitAttr:$cluster);
  let assemblyFormat =
    "$barriers `[` $index `]` `,` $parity (`cluster` $cluster^)? attr-dict `:` qualified(type($barriers))";
}

def Hop_BarrierExpectOp : Hop_Op<"barrier.expect"> {
  let summary = "Arrives and adds bytes to what the current phase waits for";
  let arguments = (ins Hop_BarriersType:$barriers, I32:$index, I64Attr:$bytes);
  let assemblyFormat = "$barriers `[` $index `]` `bytes` $bytes attr-dict `:` qualified(type($barriers))";
}

def Hop_BarrierArriveOp : Hop_Op<"barrier.arrive"> {
  let summary = "One thread of the warpgroup arrives, or every running one with `all`";
  let description = [{
    At the barrier of this block, or with `blocks` at that of each of the first so many blocks of the cluster
    (PTX ISA 9.7.13.15.13, on the addresses that `mapa` gives).
  }];
  let arguments = (ins Hop_BarriersType:$barriers, I32:$index, UnitAttr:$all, OptionalAttr<I64Attr>:$blocks);
  let assemblyFormat =
    "$barriers `[` $index `]` (`all` $all^)? (`blocks` $blocks^)? attr-dict `:` qualified(type($barriers))";
  let hasVerifier = 1;
}

def Hop_SlotStoreOp : Hop_Op<"slot_store"> {
  let summary = "Writes the one value of a slot";
  let arguments = (ins I32:$value, Hop_BufferType:$buffer, I32:$index);
  let assemblyFormat = "$value `,` $buffer `[` $index `]` attr-dict `:` qualified(type($buffer))";
}

def Hop_SlotMulticastOp : Hop_Op<"slot_multicast"> {
  let summary = "Writes the one value of a slot in every block of the cluster";
  let description = [{
    Its 4 bytes are counted on the mbarrier of each block (st.async, PTX ISA 9.7.9.12).
  }];
  let arguments = (ins I32:$value, Hop_BufferType:$buffer, Hop_BarriersType:$barriers, I32:$index);
  let assemblyFormat =
    "$value `,` $buffer `,` $barriers `[` $index `]` attr-dict `:` qualified(type($buffer)) `,` qualified(type($barriers))";
}

def Hop_SlotLoadOp : Hop_Op<"slot_load"> {
  let summary = "Reads the one value of a slot, the same in all threads";
  let arguments = (ins Hop_BufferType:$buffer, I32:$index);
  let results = (outs I32:$value);
  let assemblyFormat = "$buffer `[` $index `]` attr-dict `:` qualified(type($buffer))";
}

def Hop_BulkLoadOp : Hop_Op<"bulk_load"> {
  let summary = "Starts a bulk tensor copy of a tile into shared memory";
  let description = [{
    Its bytes are counted on the mbarrier (PTX ISA 9.7.9.27.1.1). Elements outside the view are 0. With
    `multicast` the block copies its part of the tile, one of as many as the cluster has blocks, to the same
    place in each of them, where the bytes are counted on the block's own mbarrier. Indices and `box` as for
    `tile.load`.
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$indices, OptionalAttr<DenseI64ArrayAttr>:$box,
                       Hop_SharedType:$destination, Hop_BarriersType:$barriers, I32:$barrier,
                       UnitAttr:$multicast);
  let assemblyFormat =
    "$view `[` $indices `]` (`box` $box^)? `,` $destination `,` $barriers `[` $barrier `]` (`multicast` $multicast^)? attr-dict `:` qualified(type($view)) `,` qualified(type($destination)) `,` qualified(type($barriers))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Timelines
//===----------------------------------------------------------------------===//

def Hop_TimelineOp : Hop_Op<"timeline", [HasParent<"KernelOp">]> {
  let summary = "Declares a record of the stages that warpgroups go through";
  let description = [{
    Each warpgroup of the thread blocks numbered `first` to `first + blocks - 1` (x varies fastest) records the
    last `events` stages that it entered, a power of two, in memory of the launch (docs/seeing.md).

    ```mlir
    hop.timeline blocks 4 from 0 events 1024 stages [#hop.stage<wait, "k.full", line = 82, column = 11>]
    ```
  }];
  let arguments = (ins I64Attr:$blocks, I64Attr:$first, I64Attr:$events,
                       TypedArrayAttrBase<Hop_StageAttr, "stages">:$stages);
  let assemblyFormat = "`blocks` $blocks `from` $first `events` $events `stages` $stages attr-dict";
  let hasVerifier = 1;
}

def Hop_MarkOp : Hop_Op<"mark"> {
  let summary = "Enters a stage of the kernel's timeline";
  let description = [{
    Ends the stage before it. `at` is the index of the innermost loop around it.

    ```mlir
    hop.timeline blocks 4 from 0 events 1024 stages [#hop.stage<wait, "k.full", line = 82, column = 11>]
    hop.mark 0 at %j : index
    ```
  }];
  let arguments = (ins I64Attr:$stage, Optional<AnyTypeOf<[Index, I32]>>:$at);
  let assemblyFormat = "$stage (`at` $at^ `:` type($at))? attr-dict";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECTS_HOP_HOPOPS_TD
