// Types and attributes of the hop dialect.

#ifndef TESSERA_DIALECTS_HOP_HOPTYPES_TD
#define TESSERA_DIALECTS_HOP_HOPTYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "dialects/Hop/HopDialect.td"
include "dialects/Hop/HopEnums.td"

def Hop_LayoutAttr : AttrDef<Hop_Dialect, "Layout", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "Which thread holds which elements of a tile, in which registers";
  let description = [{
    A place in a tile is a sum of digits times steps. The digits are those of the number of the register within a
    thread, of the lane within its warp, of the warp within its warpgroup and of the warpgroup within its role, each
    list with the fastest digit first: `4:(0, 2)` is a digit of 4 values, each of which moves by no row and two columns.
    The digits of a list make up all 32 lanes, 4 warps, or warpgroups. Without digits of warpgroups each warpgroup has a
    tile of its own. A tile that is larger than what the digits span repeats them in further registers, along the
    columns first.

    ```mlir
    // 8 neighbours in a thread; a row in a warp; a row for each of 4 warps.
    #hop.layout<registers = [8:(0, 1)], lanes = [32:(0, 8)], warps = [4:(1, 0)]>
    ```

    In the layout of a tile of rank 1 a lane, warp or warpgroup whose digit moves nothing holds the same elements as
    its neighbour; with `partial` it holds a part of each, of which the sum (or maximum, or minimum) is the element.

    Seven layouts have names. They are those of wgmma, for which `b` counts blocks of 64 rows, `w` warps and `l` lanes:

    | layout | elements of a thread | digits |
    |---|---|---|
    | `accumulator` | rows 64b + 16w + l/4 (+ 8), columns 8j + 2(l%4) (+ 1) | `registers = [2:(0, 1), 2:(8, 0)], lanes = [4:(0, 2), 8:(1, 0)], warps = [4:(16, 0)]` |
    | `row` | rows 64b + 16w + l/4 (+ 8) | `registers = [2:8], lanes = [4:0, 8:1], warps = [4:16]` |
    | `row_partial` | as `row` | the same, `partial` |
    | `column` | columns 8j + 2(l%4) (+ 1) | `registers = [2:1], lanes = [4:2, 8:0], warps = [4:0]` |
    | `operand8` | rows 64b + 16w + l/4 (+ 8), columns 16j + 4(l%4) (+ 1, 2, 3) | `registers = [4:(0, 1), 2:(8, 0), 2:(0, 16)], lanes = [4:(0, 4), 8:(1, 0)], warps = [4:(16, 0)]` |
    | `accumulator8` | those of `accumulator`, in the order of the registers of `operand8` | `registers = [2:(0, 1), 2:(0, 8), 2:(8, 0), 2:(0, 16)], lanes = [4:(0, 2), 8:(1, 0)], warps = [4:(16, 0)]` |
    | `row_pairs` | rows 64b + 16w + 2(l/4) (+ 1), columns as `accumulator` | `registers = [2:(0, 1), 2:(1, 0)], lanes = [4:(0, 2), 8:(2, 0)], warps = [4:(16, 0)]` |

    `accumulator` is the D fragment of wgmma (PTX ISA 9.7.15.5.1, Figure "WGMMA .m64nNk16 register fragment layout for
    accumulator matrix D"), which for 16-bit types is the A fragment too. `operand8` is the A fragment of 8-bit types
    (Figure "WGMMA .m64nNk32 register fragment layout for matrix A"), of which a register holds four neighbours. What a
    thread holds of an accumulator are two pairs of columns that are 8 apart: with `accumulator8` they are one register.
    `row_pairs` are the A and D fragments of a product whose rows are in another order.
    Refused are digits that reach a place twice or
    leave one out, those that move along two axes, and a tensor whose extents are no multiples of what the digits span
    or whose elements are other than integers and floats.

    ```mlir
    %s = arith.constant dense<0.0> : tensor<64x128xf32, #hop.layout<accumulator>>
    ```
  }];
  let parameters = (ins "int64_t":$rank, ArrayRefParameter<"::tessera::hop::LayoutDigit">:$registers,
    ArrayRefParameter<"::tessera::hop::LayoutDigit">:$lanes, ArrayRefParameter<"::tessera::hop::LayoutDigit">:$warps,
    ArrayRefParameter<"::tessera::hop::LayoutDigit">:$warpgroups, "bool":$partial);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The D fragment of wgmma, and those of rank 1 that go with it.
    static LayoutAttr getAccumulator(::mlir::MLIRContext *context);
    /// The A fragment of wgmma for elements of 8 bits.
    static LayoutAttr getByteOperand(::mlir::MLIRContext *context);
    /// The elements of an accumulator, four to a register where they have 8 bits.
    static LayoutAttr getByteAccumulator(::mlir::MLIRContext *context);
    /// The D and A fragments of wgmma where its rows g and g + 8 of 16 are neighbours, 2g and 2g + 1.
    static LayoutAttr getRowPairs(::mlir::MLIRContext *context);

    /// The layout of a tile of rank 1 with an element for each place along `axis` of a tile in this one.
    LayoutAttr getSlice(int64_t axis) const;
    LayoutAttr withPartial(bool partial) const;
    /// The places along `axis` that the digits reach before they repeat.
    int64_t getExtent(int64_t axis) const;
    /// Neighbours along the last axis that the first registers of a thread hold.
    int64_t getRun() const;
    /// The warps that hold an element of a tile of rank 1, or a part of it.
    int64_t getWarpParts() const;
    /// In how many blocks these warps are where several, each with so many warpgroups, have the tile together
    /// (hop.kernel, `spread`).
    int64_t getBlockParts(int64_t warpgroups) const;
    bool isAccumulator() const { return *this == getAccumulator(getContext()); }
    bool isByteAccumulator() const { return *this == getByteAccumulator(getContext()); }
  }];
}

def Hop_StageAttr : AttrDef<Hop_Dialect, "Stage"> {
  let mnemonic = "stage";
  let summary = "A stage that a timeline shows";
  let description = [{
    | kind | the warpgroup |
    |---|---|
    | `wait` | waits on an mbarrier, the label |
    | `turn` | waits for its turn |
    | `sync` | waits for its own warps |
    | `load` | starts a copy or loads from global memory |
    | `issue` | starts a product; its operands are the label |
    | `finish` | waits for the products of the stages `products` |
    | `compute` | computes; the label names the operations that cost most |
    | `store` | stores a result |

    `value` is what the source calls the result of the operation at its place there: a `file` without its directory, a
    `line` and a `column`. Each is left out when unknown.

    ```mlir
    #hop.stage<finish, "q x k", value = "s", file = "attention.tile", line = 61, column = 8, products = 3, 4>
    ```
  }];
  let parameters = (ins "::tessera::hop::StageKind":$kind, StringRefParameter<>:$label,
    StringRefParameter<"", "\"\"">:$value, StringRefParameter<"", "\"\"">:$file,
    DefaultValuedParameter<"int64_t", "0">:$line, DefaultValuedParameter<"int64_t", "0">:$column,
    OptionalArrayRefParameter<"int64_t">:$products);
  let assemblyFormat = "`<` $kind `,` $label (`,` struct($value, $file, $line, $column, $products)^)? `>`";
}

def Hop_PipeType : TypeDef<Hop_Dialect, "Pipe"> {
  let mnemonic = "pipe";
  let summary = "A ring of shared-memory slots between a role that loads and roles that read";
  let description = [{
    Of 1 to 65536 slots, each of a tile as `!hop.shared` has it, or of one `i32` (`tensor<1xi32>`). A value of this type
    comes straight from its `hop.pipe.create`.

    ```mlir
    !hop.pipe<tensor<128x64xbf16>, 2>
    ```
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile, "int64_t":$slots);
  let assemblyFormat = "`<` $tile `,` $slots `>`";
  let genVerifyDecl = 1;
}

def Hop_SharedType : TypeDef<Hop_Dialect, "Shared"> {
  let mnemonic = "shared";
  let summary = "A tile in shared memory";
  let description = [{
    Rows of RxC elements in chunks of columns: byte `chunk * R0 * s + row * s + ((unit ^ (row mod s/16)) * 16)`
    for a swizzle of `s` = 128, 64 or 32 bytes, where a chunk is `s` bytes of a row, `unit` counts its 16-byte
    units and R0 is the number of rows of the whole buffer (PTX ISA 5.5.7, "Swizzling modes"). `storedRows`
    is R0: a slice of rows keeps the buffer's chunk stride. Elements have 1, 2 or 4 bytes, a row a multiple of 32 bytes,
    and R0 is a multiple of 8. A tile with `#tile.wide` has chunks of 128 bytes in any case. Of a tile of rank 1 the
    elements lie side by side: up to 256 of 2, 4 or 8 bytes, a multiple of 128 bytes, which a bulk copy fills and `hop.fetch` reads.
    Other tiles are refused.

    ```mlir
    !hop.shared<tensor<64x64xbf16>, rows = 128>
    ```
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile, "int64_t":$storedRows);
  let assemblyFormat = "`<` $tile `,` `rows` `=` $storedRows `>`";
  let genVerifyDecl = 1;
}

/// A tile of rows and columns, as products and stores have it.
def Hop_SharedMatrix : Type<
    And<[Hop_SharedType.predicate, CPred<"::llvm::cast<::tessera::hop::SharedType>($_self).getTile().getRank() == 2">]>,
    "a tile of rank 2 in shared memory", "::tessera::hop::SharedType">;

def Hop_FlightType : TypeDef<Hop_Dialect, "Flight"> {
  let mnemonic = "flight";
  let summary = "The accumulator of a wgmma that has not been waited for";
  let description = [{
    Used exactly once: by the next product that accumulates into it, by `hop.mma_wait`, or by a loop that
    carries it. An f32 tile of rank 2; others are refused.

    ```mlir
    !hop.flight<tensor<64x128xf32, #hop.layout<accumulator>>>
    ```
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $tile `>`";
  let genVerifyDecl = 1;
}

def Hop_BufferType : TypeDef<Hop_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "Slots of shared memory, each one tile";
  let description = [{
    1 to 65536 slots, each of a tile as `!hop.shared` has it, or of one `i32` (`tensor<1xi32>`). A value of this type
    comes straight from its `hop.buffer`.

    ```mlir
    !hop.buffer<tensor<128x64xbf16>, 2>
    ```
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile, "int64_t":$slots);
  let assemblyFormat = "`<` $tile `,` $slots `>`";
  let genVerifyDecl = 1;
}

def Hop_BarriersType : TypeDef<Hop_Dialect, "Barriers"> {
  let mnemonic = "barriers";
  let summary = "An array of mbarrier objects, one per slot";
  let description = [{
    1 to 65536 of them (PTX ISA 9.7.13.15). A value of this type comes straight from its `hop.barriers`.

    ```mlir
    !hop.barriers<2>
    ```
  }];
  let parameters = (ins "int64_t":$slots);
  let assemblyFormat = "`<` $slots `>`";
  let genVerifyDecl = 1;
}

#endif // TESSERA_DIALECTS_HOP_HOPTYPES_TD
