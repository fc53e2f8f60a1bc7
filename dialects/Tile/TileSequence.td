// Sequences: kernels that one call launches in order.

#ifndef TESSERA_DIALECTS_TILE_TILESEQUENCE_TD
#define TESSERA_DIALECTS_TILE_TILESEQUENCE_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "dialects/Tile/TileDialect.td"
include "dialects/Tile/TileInterfaces.td"
include "dialects/Tile/TileTypes.td"

def Tile_DerivedDimAttr : AttrDef<Tile_Dialect, "DerivedDim"> {
  let mnemonic = "derived_dim";
  let summary = "An extent that follows from others: ceil(product / divisor)";
  let description = [{
    `name` is a dimension of a sequence's workspaces. Each of `factors` is a StringAttr that names an earlier dimension
    or an i64 IntegerAttr of at least 1, and so is `divisor`. The extent is 1 to 2^31 - 1, checked at launch.

    ```mlir
    #tile.derived_dim<"BLOCKS", ["H", "SQ", 2], 128>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::ArrayAttr":$factors,
                        DefaultValuedParameter<"int64_t", "1">:$divisor);
  let assemblyFormat = "`<` $name `,` $factors (`,` $divisor^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The extent, of dimensions that have extents of at least 0; nothing where it is above 2^31 - 1.
    ::std::optional<int64_t> evaluate(::llvm::function_ref<int64_t(::llvm::StringRef)> getExtent) const;
  }];
}

def Tile_SequenceOp : Op<Tile_Dialect, "sequence", [
    IsolatedFromAbove, Symbol, SingleBlock, NoTerminator, HasParent<"::mlir::ModuleOp">, Tile_EntryOpInterface,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "Kernels that one call launches in order, with memory between them";
  let description = [{
    Arguments are those of a kernel: a caller passes them in one call. The body declares workspaces (`tile.workspace`)
    and launches kernels of the module (`tile.launch`), each of which sees what those before it have stored. `dims`
    names extents that workspaces have and no argument does: products of earlier dimensions and integers, divided by
    an integer and rounded up.

    A view that a kernel takes and the view that it is given agree in rank, elements and integer extents. The names
    of their dimensions need not be the same, but each name of the kernel has one extent in a launch.

    ```mlir
    tile.kernel @partial(%x: !tile.view<[M, 64], f32>, %parts: !tile.view<[N, 64], f32>) grid(%n = N) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %row = arith.muli %n, %c64 : index
      %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
      %sum = tile.reduce sum %t axis 0 : tensor<64x64xf32> -> tensor<64xf32>
      tile.store %sum, %parts[%n, %c0] : tensor<64xf32>, !tile.view<[N, 64], f32>
    }
    tile.kernel @total(%parts: !tile.view<[N, 64], f32>, %y: !tile.view<[64], f32>) grid(%one = 1) {
      %c0 = arith.constant 0 : index
      %t = tile.load %parts[%c0, %c0] : !tile.view<[N, 64], f32> -> tensor<64x64xf32>
      %sum = tile.reduce sum %t axis 0 : tensor<64x64xf32> -> tensor<64xf32>
      tile.store %sum, %y[%c0] : tensor<64xf32>, !tile.view<[64], f32>
    }
    // Sums of up to 4096 rows.
    tile.sequence @column_sums(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[64], f32>) dims(PARTS = M ceildiv 64) {
      %parts = tile.workspace : !tile.view<[PARTS, 64], f32>
      tile.launch @partial(%x, %parts) : !tile.view<[M, 64], f32>, !tile.view<[PARTS, 64], f32>
      tile.launch @total(%parts, %y) : !tile.view<[PARTS, 64], f32>, !tile.view<[64], f32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeArrayAttr:$argument_types, StrArrayAttr:$argument_names,
                       OptionalAttr<ArrayAttr>:$derived_dims);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumArguments() { return getArgumentTypes().size(); }
    ::mlir::BlockArgument getArgument(unsigned i) { return getBody().getArgument(i); }
    ::llvm::StringRef getArgumentName(unsigned i) {
      return ::llvm::cast<::mlir::StringAttr>(getArgumentNames()[i]).getValue();
    }
    ::llvm::SmallVector<::llvm::StringRef> getDimNames();
    /// The extents that `dims` names, in its order.
    ::llvm::SmallVector<DerivedDimAttr> getDerivedDimAttrs();
  }];
}

def Tile_WorkspaceOp : Op<Tile_Dialect, "workspace", [
    HasParent<"SequenceOp">, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Global memory of a sequence that no caller passes";
  let description = [{
    A view of memory that each call of the sequence has for itself. What it holds before a kernel stores to it is not
    specified; with `zeroed` it is 0 when the call begins. Its strides are those of the C order, with rows that start at
    multiples of 16 bytes. `name` is the name of the value, for messages and for kernels that ask for it by
    `tile.argument`.

    ```mlir
    tile.kernel @copy(%x: !tile.view<[M], f32>, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
      %c64 = arith.constant 64 : index
      %at = arith.muli %m, %c64 : index
      %t = tile.load %x[%at] : !tile.view<[M], f32> -> tensor<64xf32>
      tile.store %t, %y[%at] : tensor<64xf32>, !tile.view<[M], f32>
    }
    tile.sequence @copies(%x: !tile.view<[N], f32>, %y: !tile.view<[N], f32>, %z: !tile.view<[N], f32>) {
      %between = tile.workspace : !tile.view<[N], f32>
      %zeros = tile.workspace zeroed : !tile.view<[N], f32>
      tile.launch @copy(%x, %between) : !tile.view<[N], f32>, !tile.view<[N], f32>
      tile.launch @copy(%between, %y) : !tile.view<[N], f32>, !tile.view<[N], f32>
      tile.launch @copy(%zeros, %z) : !tile.view<[N], f32>, !tile.view<[N], f32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$zeroed);
  let results = (outs Tile_ViewType:$view);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_LaunchOp : Op<Tile_Dialect, "launch", [
    HasParent<"SequenceOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Launches a kernel";
  let description = [{
    Operands are arguments and workspaces of the sequence, one for each argument of the kernel, in its order. What the
    kernel stores may not be given to it twice. It loads only what the caller passes, what is zeroed and what an
    earlier launch stores.

    ```mlir
    tile.kernel @clear(%x: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
      %c64 = arith.constant 64 : index
      %at = arith.muli %m, %c64 : index
      %zero = arith.constant dense<0.0> : tensor<64xf32>
      tile.store %zero, %x[%at] : tensor<64xf32>, !tile.view<[M], f32>
    }
    tile.sequence @clear_both(%x: !tile.view<[M], f32>, %y: !tile.view<[N], f32>) {
      tile.launch @clear(%x) : !tile.view<[M], f32>
      tile.launch @clear(%y) : !tile.view<[N], f32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$operands);
  let assemblyFormat = "$kernel `(` $operands `)` attr-dict (`:` type($operands)^)?";
  let extraClassDeclaration = [{
    /// The kernel that is launched.
    KernelOp getKernelOp();
  }];
}

#endif // TESSERA_DIALECTS_TILE_TILESEQUENCE_TD
