// Matrix products, and tiles in registers.

#ifndef TESSERA_DIALECTS_HOP_HOPPRODUCTS_TD
#define TESSERA_DIALECTS_HOP_HOPPRODUCTS_TD

include "dialects/Hop/HopOpBase.td"

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

class Hop_MmaBase<string mnemonic, list<Trait> traits = []> : Hop_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Hop_MmaOp : Hop_MmaBase<"mma", [Hop_OnWarpgroups, MemoryEffects<[MemRead]>]> {
  let summary = "Matrix product of a warpgroup, complete when the operation is";
  let description = [{
    `a * b + acc` for MxK `a` and KxN `b` (in shared memory, or in registers with the accumulator layout), MxN f32
    `acc` and result in the accumulator layout. `transpose_a` and `transpose_b` say that the tile is stored as KxM, NxK.
    `a` and `b` are of one type, f16, bf16, f8E4M3FN, f8E5M2 or f32, which is read as tf32; M is a multiple of 64, K of 16
    (of 32 for 8 bits, 8 for f32) and N of 8 (PTX ISA 9.7.15.2, "Matrix shape"). Other shapes and types are refused. On all threads of a role with
    warpgroups; each warpgroup computes a product of its own.

    wgmma reads `b`, and what is transposed, from shared memory: until `hop-stage-operands` they may be in registers. Of
    a `b` in registers each warpgroup has an equal share of the rows, and all of them multiply the whole. f32 it reads from
    there alone, along K.

    wgmma reads 8-bit elements along K alone, and a fragment of them in the layout `operand8`. Until
    `hop-convert-fp8-layouts` other operands are allowed. With `in_accumulator_order` the fragment `a` has the layout
    `accumulator8`, and `b` is a tile that `hop.transpose` made: of each 16 that are contracted, both have them in the
    order in which the lanes of an accumulator's row hold its columns.

    ```mlir
    %s = hop.mma %q, %k {transpose_b} : !hop.shared<tensor<64x64xbf16>, rows = 128>,
      !hop.shared<tensor<128x64xbf16>, rows = 128> -> tensor<64x128xf32, #hop.layout<accumulator>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Hop_SharedMatrix, Hop_Fragment]>:$a, AnyTypeOf<[Hop_SharedMatrix, Hop_Fragment]>:$b,
                       Optional<Hop_Fragment>:$acc, UnitAttr:$transpose_a, UnitAttr:$transpose_b,
                       UnitAttr:$in_accumulator_order);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat =
    "$a `,` $b (`acc` `(` $acc^ `:` type($acc) `)`)? attr-dict `:` qualified(type($a)) `,` qualified(type($b)) "
    "`->` type($result)";
  let extraClassDeclaration = [{
    /// The tile that is multiplied: that of all warpgroups, where `b` is in registers.
    ::mlir::RankedTensorType getWholeB();
    /// How many shares of the contracted rows or columns of `b` there are, of which a warpgroup multiplies its own: those
    /// of the rows that it has of a transposed operand in registers.
    int64_t getContractedShares();
  }];
}

def Hop_MmaIssueOp : Hop_MmaBase<"mma_issue", [Hop_OnWarpgroups]> {
  let summary = "Starts a matrix product (wgmma.mma_async) as a group of its own";
  let description = [{
    As `hop.mma`, but the result is a flight, and so may be the accumulator. Groups complete in the order in
    which they were issued. Registers of `a` and of the accumulator must not change until the wait (PTX ISA 9.7.15). A
    flight that has not exactly one use is refused, and so is an operand of 8 or 32 bits that wgmma does not read. With `copies_a` it
    multiplies copies of the registers of `a`, which may then be read while it is in flight; in shared memory `a` has none,
    and the attribute is refused.

    ```mlir
    %f = hop.mma_issue %q, %k {transpose_b} : !hop.shared<tensor<64x64xbf16>, rows = 128>,
      !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.flight<tensor<64x128xf32, #hop.layout<accumulator>>>
    %s = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x128xf32, #hop.layout<accumulator>>>
      -> tensor<64x128xf32, #hop.layout<accumulator>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Hop_SharedMatrix, Hop_Fragment]>:$a, Hop_SharedMatrix:$b,
                       Optional<AnyTypeOf<[Hop_Fragment, Hop_FlightType]>>:$acc,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b,
                       UnitAttr:$in_accumulator_order, UnitAttr:$copies_a);
  let results = (outs Hop_FlightType:$flight);
  let assemblyFormat =
    "$a `,` $b (`acc` `(` $acc^ `:` qualified(type($acc)) `)`)? attr-dict `:` qualified(type($a)) `,` "
    "qualified(type($b)) `->` qualified(type($flight))";
}

def Hop_MmaWaitOp : Hop_Op<"mma_wait", [Hop_OnWarpgroups, AttrSizedOperandSegments]> {
  let summary = "Waits until at most `pending` later groups are in flight";
  let description = [{
    Turns flights into tiles (wgmma.wait_group, PTX ISA 9.7.15.7.3), each into one of its type. `kept` are register
    operands of the products waited for, which must stay alive until here. `behind` are tiles that are complete before
    the wait, and that nothing may move behind it (`hop-pin-work`). On all threads of a role with warpgroups.

    ```mlir
    %o = hop.mma_wait %f keep %p pending 1 : !hop.flight<tensor<64x128xf32, #hop.layout<accumulator>>>
      keep tensor<64x64xbf16, #hop.layout<accumulator>> -> tensor<64x128xf32, #hop.layout<accumulator>>
    ```
  }];
  let arguments = (ins Variadic<Hop_FlightType>:$flights, Variadic<Hop_Fragment>:$kept,
                       Variadic<Hop_Fragment>:$behind, I64Attr:$pending);
  let results = (outs Variadic<Hop_Fragment>:$tiles);
  let assemblyFormat =
    "$flights (`keep` $kept^)? (`behind` $behind^)? `pending` $pending attr-dict `:` qualified(type($flights)) "
    "(`keep` type($kept)^)? (`behind` type($behind)^)? `->` type($tiles)";
  let hasVerifier = 1;
}

def Hop_PinOp : Hop_Op<"pin", [Hop_OnWarpgroups]> {
  let summary = "Nothing that `tiles` are computed from moves behind this place";
  let description = [{
    For the assembler, which sees no dependence from arithmetic to a product that follows it, and interleaves the two: then
    the registers of both live at once. Lowered, what follows is in a block of its own. Moves nothing and computes nothing;
    `hop-pin-work` places it. On all threads of a role with warpgroups.

    ```mlir
    hop.pin %p : tensor<64x64xbf16, #hop.layout<accumulator>>
    ```
  }];
  let arguments = (ins Variadic<Hop_Fragment>:$tiles);
  let assemblyFormat = "$tiles attr-dict `:` type($tiles)";
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

def Hop_ConvertLayoutOp : Hop_Op<"convert_layout", [Pure]> {
  let summary = "Makes a tile of rank 1 of the parts that lanes hold, or parts of a tile";
  let description = [{
    From a layout that is `partial` to the same one that is not: the lanes that share an element combine their parts, by
    a sum or as a maximum or minimum (PTX ISA 9.7.9.6, shfl.sync). Or back: of a sum all threads that share an element
    but one hold 0, and a maximum or minimum is one in every thread. Shape and element type stay; other conversions are
    refused, and so are parts in several warps, for which `hop.combine` is. On all threads of a role with warpgroups.

    ```mlir
    %sum = hop.convert_layout sum %partial : tensor<64xf32, #hop.layout<row_partial>>
      -> tensor<64xf32, #hop.layout<row>>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Hop_Fragment:$source);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat = "$kind $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Hop_ColumnsOp : Hop_Op<"columns", [Pure]> {
  let summary = "Part number `index` of the columns of an accumulator";
  let description = [{
    Of f32, as a product makes it: registers that each thread has. The columns of a part are a multiple of 8 and divide those of
    the tile. It moves nothing.

    ```mlir
    %right = hop.columns %t[1] : tensor<64x64xf32, #hop.layout<accumulator>>
      -> tensor<64x32xf32, #hop.layout<accumulator>>
    ```
  }];
  let arguments = (ins Hop_Fragment:$tile, ConfinedAttr<I64Attr, [IntNonNegative]>:$index);
  let results = (outs Hop_Fragment:$part);
  let assemblyFormat = "$tile `[` $index `]` attr-dict `:` type($tile) `->` type($part)";
  let hasVerifier = 1;
}

def Hop_RearrangeOp : Hop_Op<"rearrange", [Pure]> {
  let summary = "A tile of rank 2 in another layout";
  let description = [{
    The same elements in other registers. From `accumulator` to `accumulator8` and back each thread keeps its elements
    and no instruction is made of it; elements of 8 bits have no `accumulator`. From `accumulator8` to `operand8`, of
    elements of 8 bits, the 4 lanes of a row exchange their columns: two shuffles (PTX ISA 9.7.9.6, shfl.sync) and four
    byte permutes (9.7.9.7, prmt) for 8 elements of a thread. Other conversions are refused. On all threads of a role
    with warpgroups.

    ```mlir
    %words = hop.rearrange %p : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64x64xf32, #hop.layout<accumulator8>>
    %p8 = arith.truncf %words : tensor<64x64xf32, #hop.layout<accumulator8>>
      to tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>
    %a = hop.rearrange %p8 : tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>
      -> tensor<64x64xf8E4M3FN, #hop.layout<operand8>>
    ```
  }];
  let arguments = (ins Hop_Fragment:$source);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Hop_TransposeOp : Hop_Op<"transpose", [Hop_OnWarps]> {
  let summary = "Writes a tile of 8-bit elements to shared memory transposed";
  let description = [{
    From KxN `source` to NxK `destination`, both in shared memory and of one 8-bit type: ldmatrix.trans, byte permutes
    and stmatrix (PTX ISA 9.7.14.5.15 and 9.7.14.5.16). Of each 16 columns of the destination column `4l + 2b + e` is row
    `8b + 2l + e` of the source, for `l` from 0 to 3 and `b` and `e` from 0 to 1: the order in which lanes hold the
    columns of an accumulator, for `hop.mma` with `in_accumulator_order`. The writes are of the generic proxy. Every
    product that reads the destination has been waited for. K is a multiple of 16 and N of 32; other shapes are refused.
    On all threads of a role that is not elected; each warpgroup, or the warps of a role with warps, writes a tile of its
    own, and meets before it reads it. Each warp has up to 4 matrices of 16x32 elements on their way at a time.

    ```mlir
    hop.transpose %v, %vt : !hop.shared<tensor<128x64xf8E4M3FN>, rows = 128>,
      !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
    ```
  }];
  let arguments = (ins Hop_SharedMatrix:$source, Hop_SharedMatrix:$destination);
  let assemblyFormat =
    "$source `,` $destination attr-dict `:` qualified(type($source)) `,` qualified(type($destination))";
  let hasVerifier = 1;
}

def Hop_CombineOp : Hop_Op<"combine", [Hop_OnWarpgroups,
    TypesMatchWith<"result is the source, whole", "source", "result", "::tessera::hop::wholeOf($_self)">]> {
  let summary = "Makes a tile of rank 1 of the parts that several warps hold";
  let description = [{
    The lanes of a warp that share an element combine their parts as in `hop.convert_layout`. One of them writes the
    result to `exchange`, the threads that hold parts meet (bar.sync, PTX ISA 9.7.13.1), and each reads and combines the
    parts of all warps, in one order. `exchange` has a slot for each element and each warp that shares it; where the
    layout has no digits of warpgroups, each warpgroup of the role has slots of its own. In a loop the threads meet
    before they write, too. Fewer slots are refused, as are parts of one warp. On all threads of a role with warpgroups.

    Where the blocks of a cluster have tiles together, each then writes what its warps combined to slots of all of them
    (st.shared::cluster, PTX ISA 9.7.9.12), the cluster meets (barrier.cluster, PTX ISA 9.7.13.4), and each thread reads
    and combines the parts of all blocks in one order. There are so many more slots, and in a loop the cluster meets first.

    ```mlir
    hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>],
        schedule = #tile.schedule<>} {
    ^bb0(%m: index):
      %exchange = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 8>
      hop.role @consumer warpgroups(1) {
      ^bb0(%warpgroup: index):
        %parts = arith.constant dense<0.0> : tensor<2xf32, #hop.layout<lanes = [32:0], warps = [4:0], partial>>
        %sums = hop.combine sum %parts through %exchange
          : tensor<2xf32, #hop.layout<lanes = [32:0], warps = [4:0], partial>>, !hop.buffer<tensor<1xi32>, 8>
      }
    }
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Hop_Fragment:$source, Hop_BufferType:$exchange);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat =
    "$kind $source `through` $exchange attr-dict `:` type($source) `,` qualified(type($exchange))";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Slots for the parts of `source` in the role: of the warps of a block, and behind these of the blocks.
    static int64_t getSlots(::mlir::RankedTensorType source, ::tessera::hop::RoleOp role);
    /// How many warps of a block have parts of `source`.
    static int64_t getWarpParts(::mlir::RankedTensorType source, ::tessera::hop::RoleOp role);
    /// How many blocks have parts of `source`.
    static int64_t getBlockParts(::mlir::RankedTensorType source, ::tessera::hop::RoleOp role);
    /// Whether only the warps of a warpgroup share elements, of several warpgroups in the role.
    bool isWithinWarpgroups();
  }];
}

def Hop_CombineAllOp : Hop_Op<"combine_all", [Hop_OnWarpgroups]> {
  let summary = "Makes a number of all elements of a tile";
  let description = [{
    What `tile.reduce_all` becomes. Each thread combines its elements, and the lanes of a warp theirs by shuffles. One lane
    writes the result to the slot of `exchange` that its warp has in the role, the threads of the role meet (bar.sync,
    PTX ISA 9.7.13.1), and each reads and combines the slots, in one order. Elements that several threads hold count
    once. In a loop the threads meet before they write, too. Fewer slots than warps are refused, as are elements that
    are not f32, or partial. On all threads of a role with warpgroups.

    ```mlir
    hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>],
        schedule = #tile.schedule<>} {
    ^bb0(%m: index):
      %exchange = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 4>
      hop.role @consumer warpgroups(1) {
      ^bb0(%warpgroup: index):
        %tile = arith.constant dense<0.0> : tensor<64x32xf32, #hop.layout<accumulator>>
        %sum = hop.combine_all sum %tile through %exchange
          : tensor<64x32xf32, #hop.layout<accumulator>>, !hop.buffer<tensor<1xi32>, 4> -> f32
      }
    }
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Hop_Fragment:$source, Hop_BufferType:$exchange);
  let results = (outs F32:$result);
  let assemblyFormat = "$kind $source `through` $exchange attr-dict `:` type($source) `,` qualified(type($exchange)) "
                       "`->` type($result)";
  let hasVerifier = 1;
}

def Hop_ScanOp : Hop_Op<"scan", [Hop_OnWarpgroups, AllTypesMatch<["source", "result"]>]> {
  let summary = "Combines the elements of a tile along an axis that several warps share, up to each of them";
  let description = [{
    What `tile.scan` becomes where warps hold different places along its axis. Each warp combines what it holds of a
    neighbourhood, and writes the result to `exchange`; the threads that share the axis meet (bar.sync, PTX ISA 9.7.13.1),
    and each reads those of all warps. `exchange` has a slot for each of these results, and two where elements have 64
    bits; where the layout has no digits of warpgroups, each warpgroup of the role has slots of its own. In a loop the
    threads meet before they write, too. Fewer slots are refused, as are parts, and an axis of one warp. On all
    threads of a role with warpgroups.

    ```mlir
    hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>],
        schedule = #tile.schedule<>} {
    ^bb0(%m: index):
      %exchange = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 4>
      hop.role @consumer warpgroups(1) {
      ^bb0(%warpgroup: index):
        %gates = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
        %sums = hop.scan sum %gates axis 0 through %exchange
          : tensor<64xf32, #hop.layout<row>>, !hop.buffer<tensor<1xi32>, 4>
      }
    }
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Hop_Fragment:$source, I64Attr:$axis, UnitAttr:$exclusive,
                       UnitAttr:$reverse, Hop_BufferType:$exchange);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat = "$kind $source `axis` $axis (`exclusive` $exclusive^)? (`reverse` $reverse^)? `through` $exchange "
                       "attr-dict `:` type($source) `,` qualified(type($exchange))";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The places along `axis` that one warp of `source` holds side by side; 0 where warps do not share the axis.
    static int64_t getWarpSpan(::mlir::RankedTensorType source, int64_t axis);
    /// Slots for a scan of `source` in a role of `warpgroups`; 0 where warps do not share the axis.
    static int64_t getSlots(::mlir::RankedTensorType source, int64_t axis, int64_t warpgroups);
    /// Whether only the warps of a warpgroup share the axis, of several warpgroups in the role.
    bool isWithinWarpgroups();
  }];
}

def Hop_RowFactorOp : Hop_Op<"row_factor", [Pure]> {
  let summary = "A tile of rank 1 as the factor of partial sums";
  let description = [{
    The same elements: a sum over threads is scaled by scaling each part. The result is typed as partial so that it can
    be multiplied with partial sums. No instruction is made of it.

    ```mlir
    %factor = hop.row_factor %scale : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row_partial>>
    ```
  }];
  let arguments = (ins Hop_Fragment:$source);
  let results = (outs Hop_Fragment:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECTS_HOP_HOPPRODUCTS_TD
