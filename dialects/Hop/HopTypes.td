// Types and attributes of the hop dialect.

#ifndef TESSERA_DIALECTS_HOP_HOPTYPES_TD
#define TESSERA_DIALECTS_HOP_HOPTYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "dialects/Hop/HopDialect.td"
include "dialects/Hop/HopEnums.td"

def Hop_LayoutAttr : EnumAttr<Hop_Dialect, Hop_LayoutKind, "layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "The layout of a tile in registers";
  let description = [{
    Warp `w` and lane `l` of the warpgroup; `b` counts blocks of 64 rows.

    | layout | of | elements of a thread |
    |---|---|---|
    | `accumulator` | RxC, 64 \| R, 8 \| C | rows 64b + 16w + l/4 (+ 8), columns 8j + 2(l%4) (+ 1) |
    | `row` | R, 64 \| R | rows 64b + 16w + l/4 (+ 8); the four lanes of a quad hold the same value |
    | `row_partial` | R, 64 \| R | as `row`, but the value is the sum over the quad's lanes |
    | `column` | C, 8 \| C | columns 8j + 2(l%4) (+ 1) |

    `accumulator` is the D fragment of wgmma (PTX ISA 9.7.15.5.1, Figure "WGMMA .m64nNk16 register fragment layout for
    accumulator matrix D"), which for 16-bit types is the A fragment too. R is a multiple of 64 in all of them; a tensor
    of another shape or of other elements than integers and floats is refused.

    ```mlir
    %s = arith.constant dense<0.0> : tensor<64x128xf32, #hop.layout<accumulator>>
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
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

    `line` and `column` are those of the source, 0 when unknown.

    ```mlir
    #hop.stage<finish, "s", line = 61, column = 8, products = [3, 4]>
    ```
  }];
  let parameters = (ins "::tessera::hop::StageKind":$kind, StringRefParameter<>:$label,
    DefaultValuedParameter<"int64_t", "0">:$line, DefaultValuedParameter<"int64_t", "0">:$column,
    OptionalArrayRefParameter<"int64_t">:$products);
  let assemblyFormat =
    "`<` $kind `,` $label (`,` `line` `=` $line^)? (`,` `column` `=` $column^)? "
    "(`,` `products` `=` `[` $products^ `]`)? `>`";
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
    is R0: a slice of rows keeps the buffer's chunk stride. Elements have 2 or 4 bytes, a row a multiple of 32 bytes,
    and R0 is a multiple of 8; other tiles are refused.

    ```mlir
    !hop.shared<tensor<64x64xbf16>, rows = 128>
    ```
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile, "int64_t":$storedRows);
  let assemblyFormat = "`<` $tile `,` `rows` `=` $storedRows `>`";
  let genVerifyDecl = 1;
}

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
