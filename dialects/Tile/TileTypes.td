// Types of the tile dialect.

#ifndef TESSERA_DIALECTS_TILE_TILETYPES_TD
#define TESSERA_DIALECTS_TILE_TILETYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "dialects/Tile/TileDialect.td"

def Tile_ViewType : TypeDef<Tile_Dialect, "View"> {
  let mnemonic = "view";
  let summary = "A strided tensor in global memory";
  let description = [{
    A tensor in global memory of which tiles are loaded and stored. Each dimension is either a name, whose
    extent is known at launch, or a positive integer. The same name in several arguments of a kernel is one
    extent, checked equal at launch. The element type is [one of several](../kernels.md#a-kernel). Rounding
    to 8 bits is to nearest even and saturates, and NaN stays NaN.

    Elements along the innermost dimension are contiguous. Every other dimension has a stride that is known
    at launch, so `[B, H, S, 128]` describes BHSD and BSHD storage alike. At launch the base address and
    every stride must be multiples of 16 bytes when a tile of the view goes through the tensor memory
    accelerator (PTX ISA 5.5.8, "Tensors": globalStrides), of the element size otherwise.

    ```mlir
    !tile.view<[B, H, SQ, 128], bf16>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::Attribute", "StringAttr for a named extent, IntegerAttr (i64) for a static one">:$dims,
    "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getDims().size(); }
    /// Whether a view may have elements of `type`.
    static bool isElementType(::mlir::Type type);
    /// The extent of dimension `i`, or ShapedType::kDynamic for a named one.
    int64_t getStaticDim(int64_t i) const;
    /// The name of dimension `i`, or an empty string for a static one.
    ::llvm::StringRef getDimName(int64_t i) const;
    unsigned getElementBytes() const { return getElementType().getIntOrFloatBitWidth() / 8; }
  }];
}

#endif // TESSERA_DIALECTS_TILE_TILETYPES_TD
