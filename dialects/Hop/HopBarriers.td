// Buffers and mbarriers: what hop-insert-mbarriers makes of pipes.

#ifndef TESSERA_DIALECTS_HOP_HOPBARRIERS_TD
#define TESSERA_DIALECTS_HOP_HOPBARRIERS_TD

include "dialects/Hop/HopOpBase.td"

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

def Hop_BufferOp : Hop_Op<"buffer", [
    HasParent<"KernelOp">,
    DeclareOpInterfaceMethods<Hop_SharedMemoryOpInterface, ["getSharedBytes", "getSharedAlignment"]>]> {
  let summary = "Declares slots of shared memory";
  let description = [{
    Slots of a tile of rank 2, or of one i32. They lie one behind the other, `offset` bytes from the start of shared
    memory once `hop-allocate-shared-memory` has run: a multiple of the bytes after which the swizzle of a tile repeats
    (PTX ISA 5.5.7), of 8 for values. With `zeroed`, which slots of one value may have, the kernel starts with zeros in
    them. `label` names it in reports.

    ```mlir
    %k = hop.buffer "k" at 0 : !hop.buffer<tensor<128x64xbf16>, 2>
    %doubted = hop.buffer "doubted" zeroed : !hop.buffer<tensor<1xi32>, 2>
    ```
  }];
  let arguments = (ins StrAttr:$label, OptionalAttr<I64Attr>:$offset, UnitAttr:$zeroed);
  let results = (outs Hop_BufferType:$buffer);
  let assemblyFormat = "$label (`at` $offset^)? (`zeroed` $zeroed^)? attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Hop_BarriersOp : Hop_Op<"barriers", [
    HasParent<"KernelOp">,
    DeclareOpInterfaceMethods<Hop_SharedMemoryOpInterface, ["getSharedBytes", "getSharedAlignment"]>]> {
  let summary = "Declares mbarriers, each completing after `count` arrivals (and its bytes)";
  let description = [{
    8 bytes each, at a multiple of 8 (PTX ISA 9.7.13.15). One thread makes them before the roles start
    (`mbarrier.init`, PTX ISA 9.7.13.15.9). `label` names them in reports and timelines.

    ```mlir
    %full = hop.barriers "k.full" count 1 at 32768 : !hop.barriers<2>
    ```
  }];
  let arguments = (ins StrAttr:$label, I64Attr:$count, OptionalAttr<I64Attr>:$offset);
  let results = (outs Hop_BarriersType:$barriers);
  let assemblyFormat = "$label `count` $count (`at` $offset^)? attr-dict `:` qualified(type($barriers))";
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

def Hop_BarrierWaitOp : Hop_Op<"barrier.wait"> {
  let summary = "Waits for the phase of the given parity to complete";
  let description = [{
    mbarrier.try_wait.parity in a loop (PTX ISA 9.7.13.15.16), by each thread that runs it. `index` is the mbarrier's
    place in the array, `parity` 0 or 1. With `cluster` what other blocks of the cluster wrote before it completed is
    visible; copies of the async proxy always are.

    ```mlir
    hop.barrier.wait %full[%slot], %parity : !hop.barriers<2>
    ```
  }];
  let arguments = (ins Hop_BarriersType:$barriers, I32:$index, I32:$parity, UnitAttr:$cluster);
  let assemblyFormat =
    "$barriers `[` $index `]` `,` $parity (`cluster` $cluster^)? attr-dict `:` qualified(type($barriers))";
}

def Hop_BarrierExpectOp : Hop_Op<"barrier.expect", [Hop_OnOneThread]> {
  let summary = "Arrives and adds bytes to what the current phase waits for";
  let description = [{
    On the one thread that starts the copy: mbarrier.arrive.expect_tx (PTX ISA 9.7.13.15.13). The phase completes when
    all have arrived and the bytes have been written.

    ```mlir
    hop.barrier.expect %full[%slot] bytes 16384 : !hop.barriers<2>
    ```
  }];
  let arguments = (ins Hop_BarriersType:$barriers, I32:$index, I64Attr:$bytes);
  let assemblyFormat = "$barriers `[` $index `]` `bytes` $bytes attr-dict `:` qualified(type($barriers))";
}

def Hop_BarrierArriveOp : Hop_Op<"barrier.arrive"> {
  let summary = "One thread of the warpgroup arrives, or every running one with `all`";
  let description = [{
    With `copies` every running thread arrives when the copies that it started before (`hop.gather`) have come (PTX ISA
    9.7.13.15.16, `cp.async.mbarrier.arrive.noinc`).
    At the barrier of this block, or with `blocks` at that of each of the first so many blocks of the cluster
    (PTX ISA 9.7.13.15.13, on the addresses that `mapa` gives). More blocks than the cluster has are refused.
    With `after` each thread waits for its first element of a tile, and so for all that this is made of.

    ```mlir
    hop.barrier.arrive %empty[%slot] : !hop.barriers<2>
    hop.barrier.arrive %empty[%slot] blocks 2 : !hop.barriers<2>
    hop.barrier.arrive %full[%slot] copies : !hop.barriers<2>
    hop.barrier.arrive %empty[%slot] all : !hop.barriers<2> after %sums : tensor<64xf32, #hop.layout<row_partial>>
    ```
  }];
  let arguments = (ins Hop_BarriersType:$barriers, I32:$index, UnitAttr:$all, UnitAttr:$copies,
                       OptionalAttr<I64Attr>:$blocks, Optional<AnyRankedTensor>:$after);
  let assemblyFormat =
    "$barriers `[` $index `]` (`all` $all^)? (`copies` $copies^)? (`blocks` $blocks^)? attr-dict `:` "
    "qualified(type($barriers)) (`after` $after^ `:` type($after))?";
  let builders = [OpBuilder<(ins "mlir::Value":$barriers, "mlir::Value":$index, "bool":$all, "bool":$copies,
                                 "mlir::IntegerAttr":$blocks),
                            "build($_builder, $_state, barriers, index, all, copies, blocks, /*after=*/mlir::Value());">];
  let hasVerifier = 1;
}

def Hop_ExchangeOp : Hop_Op<"exchange", [Hop_OnWarpgroups, AllTypesMatch<["own", "theirs"]>]> {
  let summary = "Sends a tile to the other block of a cluster of two, and arrives for what comes from there";
  let description = [{
    One thread of the warpgroup starts bulk copies of `own` to the place that `theirs` has in the other block, where the bytes
    are counted on its mbarrier (PTX ISA 9.7.9.27.1.1, `.shared::cluster.shared::cta`). It also arrives at the mbarrier of this block,
    whose phase then waits for as many bytes of `theirs`. Both are of one type. All threads have written `own`, passed a
    proxy fence and met. Blocks that gather half of the rows of a slot each send them to the place that they have
    themselves: `own` is `theirs` then.

    ```mlir
    hop.exchange %own, %theirs, %full[%slot] : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.barriers<2>
    ```
  }];
  let arguments = (ins Hop_SharedMatrix:$own, Hop_SharedMatrix:$theirs, Hop_BarriersType:$barriers, I32:$index);
  let assemblyFormat =
    "$own `,` $theirs `,` $barriers `[` $index `]` attr-dict `:` qualified(type($own)) `,` qualified(type($barriers))";
  let hasVerifier = 1;
}

def Hop_FromBlockOp : Hop_Op<"from_block", [
    Hop_OnWarpgroups, MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["source", "result"]>]> {
  let summary = "Sends a tile to a later block of the cluster, or waits for that of an earlier one";
  let description = [{
    What `tile.from_block` becomes. Blocks whose number and 1 are `distance` more than a multiple of its double store their
    registers to `buffer` of the block `distance` on (`st.async`, PTX ISA 9.7.9.13), whose mbarrier counts the bytes, and go on with their
    own tile. Those a multiple of the double wait for them and read the tile: register i of thread t is at [i][t], and of a
    tile that several threads have each element lies there once. The buffer is written once. On all threads of a role with warpgroups.

    ```mlir
    hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>],
        schedule = #tile.schedule<cluster = 2>, parts} {
    ^bb0(%m: index):
      %buffer = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 4096>
      %arrived = hop.barriers "arrived" count 1 : !hop.barriers<1>
      hop.role @consumer warpgroups(1) {
      ^bb0(%warpgroup: index):
        %acc = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
        %theirs = hop.from_block %acc before 1 through %buffer, %arrived
          : tensor<64x64xf32, #hop.layout<accumulator>>, !hop.buffer<tensor<1xi32>, 4096>, !hop.barriers<1>
      }
    }
    ```
  }];
  let arguments = (ins Hop_Fragment:$source, I64Attr:$distance, Hop_BufferType:$buffer, Hop_BarriersType:$barriers);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat = "$source `before` $distance `through` $buffer `,` $barriers attr-dict `:` type($source) `,` "
    "qualified(type($buffer)) `,` qualified(type($barriers))";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Slots of 4 bytes that `source` takes in the role.
    static int64_t getSlots(::mlir::RankedTensorType source, ::tessera::hop::RoleOp role);
  }];
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

def Hop_SlotOp : Hop_Op<"slot", [Pure]> {
  let summary = "The tile in slot `index` of a buffer";
  let description = [{
    An address, on any threads. The result is the buffer's tile with all its rows; a slot of one value has no tile, and
    is refused.

    ```mlir
    %t = hop.slot %k[%slot] : !hop.buffer<tensor<128x64xbf16>, 2> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    ```
  }];
  let arguments = (ins Hop_BufferType:$buffer, I32:$index);
  let results = (outs Hop_SharedType:$tile);
  let assemblyFormat = "$buffer `[` $index `]` attr-dict `:` qualified(type($buffer)) `->` qualified(type($tile))";
  let hasVerifier = 1;
}

def Hop_SlotStoreOp : Hop_Op<"slot_store"> {
  let summary = "Writes the one value of a slot";
  let description = [{
    Of a buffer of `tensor<1xi32>`, by each thread that runs it (PTX ISA 9.7.9, st.shared): the one of an elected
    role, or threads that all write the same.

    ```mlir
    hop.slot_store %zero, %list[%place] : !hop.buffer<tensor<1xi32>, 512>
    ```
  }];
  let arguments = (ins I32:$value, Hop_BufferType:$buffer, I32:$index);
  let assemblyFormat = "$value `,` $buffer `[` $index `]` attr-dict `:` qualified(type($buffer))";
}

def Hop_SlotMulticastOp : Hop_Op<"slot_multicast", [Hop_OnOneThread]> {
  let summary = "Writes the one value of a slot in every block of the cluster";
  let description = [{
    Its 4 bytes are counted on the mbarrier of each block (st.async, PTX ISA 9.7.9.12). On the one thread of the
    elected role of the first block.

    ```mlir
    hop.slot_multicast %next, %tiles, %full[%slot] : !hop.buffer<tensor<1xi32>, 2>, !hop.barriers<2>
    ```
  }];
  let arguments = (ins I32:$value, Hop_BufferType:$buffer, Hop_BarriersType:$barriers, I32:$index);
  let assemblyFormat =
    "$value `,` $buffer `,` $barriers `[` $index `]` attr-dict `:` qualified(type($buffer)) `,` "
    "qualified(type($barriers))";
}

def Hop_SlotLoadOp : Hop_Op<"slot_load"> {
  let summary = "Reads the one value of a slot, the same in all threads";
  let description = [{
    Of a buffer of `tensor<1xi32>`. In a role with warpgroups lane 0 of each warp hands it to the others, so that ptxas knows
    it to be the same in a whole warp (PTX ISA 9.7.9.8, ld.shared; 9.7.9.6, shfl.sync).

    ```mlir
    %next = hop.slot_load %tiles[%slot] : !hop.buffer<tensor<1xi32>, 2>
    ```
  }];
  let arguments = (ins Hop_BufferType:$buffer, I32:$index);
  let results = (outs I32:$value);
  let assemblyFormat = "$buffer `[` $index `]` attr-dict `:` qualified(type($buffer))";
}

def Hop_BulkLoadOp : Hop_Op<"bulk_load", [Hop_OnOneThread, AttrSizedOperandSegments]> {
  let summary = "Starts a bulk tensor copy of a tile into shared memory";
  let description = [{
    Its bytes are counted on the mbarrier (PTX ISA 9.7.9.27.1.1). Elements outside the view are 0. With `multicast` the
    block copies its part of the tile, one of as many as the cluster has blocks, to the same place in each of them,
    where the bytes are counted on the block's own mbarrier. Indices and `box` as for `tile.load`; the view, of rank 2
    or more and of the tile's element type, is an argument of the kernel. On one thread: that of an elected role, or
    the one that `hop.elected` chooses.

    With `rows` it copies so many rows of the tile, those from `row` on, and the indices are of the first of them. They begin at
    a multiple of 128 bytes of a chunk. With both it copies these rows to each block. With `tf32` it rounds f32 on its way,
    to nearest even to 10 bits of the mantissa (CU_TENSOR_MAP_DATA_TYPE_TFLOAT32).

    ```mlir
    hop.barrier.expect %full[%slot] bytes 16384 : !hop.barriers<2>
    hop.bulk_load %K[%row, %c0], %t, %full[%slot] : !tile.view<[N, 64], bf16>,
      !hop.shared<tensor<128x64xbf16>, rows = 128>, !hop.barriers<2>
    hop.bulk_load %K[%row, %c0], %t, %full[%slot] rows 16 row %c32 : !tile.view<[N, 64], bf16>,
      !hop.shared<tensor<128x64xbf16>, rows = 128>, !hop.barriers<2>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$indices, OptionalAttr<DenseI64ArrayAttr>:$box,
                       Hop_SharedType:$destination, Hop_BarriersType:$barriers, I32:$barrier,
                       UnitAttr:$multicast, UnitAttr:$tf32, Optional<Index>:$row,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$rows);
  let builders = [OpBuilder<(ins "::mlir::Value":$view, "::mlir::ValueRange":$indices, "::mlir::DenseI64ArrayAttr":$box,
                                 "::mlir::Value":$destination, "::mlir::Value":$barriers, "::mlir::Value":$barrier,
                                 "bool":$multicast, "bool":$tf32), [{
    build($_builder, $_state, view, indices, box, destination, barriers, barrier,
          multicast ? $_builder.getUnitAttr() : nullptr, tf32 ? $_builder.getUnitAttr() : nullptr, ::mlir::Value(),
          ::mlir::IntegerAttr());
  }]>];
  let extraClassDeclaration = [{
    /// What it copies: the tile, or rows of it.
    ::mlir::RankedTensorType getCopied();
  }];
  let assemblyFormat =
    "$view `[` $indices `]` (`box` $box^)? `,` $destination `,` $barriers `[` $barrier `]` "
    "(`multicast` $multicast^)? (`tf32` $tf32^)? (`rows` $rows^ `row` $row)? attr-dict `:` "
    "qualified(type($view)) `,` qualified(type($destination)) `,` qualified(type($barriers))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

def Hop_InLanesOp : Hop_Op<"in_lanes", [MemoryEffects<[MemRead]>, SingleBlock]> {
  let summary = "Computes places for several numbers, each in a lane of its own";
  let description = [{
    The region gives the places of a number from 0 up to that of the elements of a result, its argument, 32 at most. It has scalar
    arithmetic and loads of elements, and no other effects. In an elected role, whose 32 lanes stay together where it has such an
    operation: each lane computes those of another number, so that loads that wait for each other take their time once. All else that one
    thread does is done by one of them, and its copies stand in a `hop.one_lane`. `hop.of_lane` gives the place of a number to all.

    ```mlir
    %page, %row = hop.in_lanes {
    ^bb0(%i: index):
      %entry = tile.load %table[%i] : !tile.view<[N], i32> -> i32
      %number = arith.index_cast %entry : i32 to index
      hop.yield %number, %c0 : index, index
    } : vector<8xindex>, vector<8xindex>
    ```
  }];
  let results = (outs Variadic<VectorOfRankAndType<[1], [Index]>>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict `:` type($results)";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getCount() { return ::llvm::cast<::mlir::VectorType>(getResultTypes().front()).getNumElements(); }
    ::mlir::OperandRange getYielded() { return getBody().front().getTerminator()->getOperands(); }
  }];
}

def Hop_OfLaneOp : Hop_Op<"of_lane", [Pure]> {
  let summary = "What the region of a hop.in_lanes gives for a number";
  let description = [{
    The lane that has computed it hands it to the others (PTX ISA 9.7.9.6, shfl.sync). The number is below that of the elements.

    ```mlir
    %page = hop.in_lanes {
    ^bb0(%i: index):
      %number = arith.divui %i, %c2 : index
      hop.yield %number : index
    } : vector<8xindex>
    %first = hop.of_lane %page[%c0] : vector<8xindex>
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[1], [Index]>:$places, Index:$number);
  let results = (outs Index:$place);
  let assemblyFormat = "$places `[` $number `]` attr-dict `:` type($places)";
  let hasVerifier = 1;
}

def Hop_OneLaneOp : Hop_Op<"one_lane", [NoTerminator, SingleBlock]> {
  let summary = "What one of the lanes that stay together does by itself";
  let description = [{
    In an elected role with a `hop.in_lanes`: it waits for a slot and starts the copies into it. They stand behind the wait, in one
    branch with it. For ptxas takes the branch from around copies alone, as it knows that `elect.sync` chooses one lane of those that come
    together. Lanes need not stay together for long: those that wait for the one in a loop may go on without it. Then both parts of the
    warp would start the copies. It does not take the branch from around a loop.

    Lanes meet in shuffles and reductions, which the region has none of.

    ```mlir
    hop.one_lane {
      hop.barrier.wait %empty[%i], %parity : !hop.barriers<2>
      hop.barrier.expect %full[%i] bytes 8192 : !hop.barriers<2>
      %slot = hop.slot %k[%i] : !hop.buffer<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.bulk_load %K[%b, %j, %c0], %slot, %full[%i]
        : !tile.view<[B, S, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<2>
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasRegionVerifier = 1;
}

#endif // TESSERA_DIALECTS_HOP_HOPBARRIERS_TD
