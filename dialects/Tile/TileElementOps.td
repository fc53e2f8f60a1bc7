// Functions of elements, and what their masks leave.

#ifndef TESSERA_DIALECTS_TILE_TILEELEMENTOPS_TD
#define TESSERA_DIALECTS_TILE_TILEELEMENTOPS_TD

include "dialects/Tile/TileOpBase.td"

def Tile_SigmoidOp : Tile_Op<"sigmoid", [Pure, SameOperandsAndResultType] # ElementwiseMappable.traits> {
  let summary = "The logistic function 1 / (1 + exp(-x))";
  let description = [{
    Of f32: scalars and tiles. `math` has no such function. Written out it is the same, but not its derivative: that of the
    quotient is 0 or NaN where `exp(-x)` or its square is infinite.

    ```mlir
    %gate = tile.sigmoid %s : tensor<128x64xf32>
    ```
  }];
  let arguments = (ins FloatLike:$source);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def Tile_MapOp : Tile_Op<"map"> {
  let summary = "A function of scalars, applied to the elements of tiles";
  let description = [{
    The function takes and returns scalars. It is applied to each element of the tiles; a tile of rank 1 with `axis` is
    repeated along this axis as by `tile.broadcast`, and a scalar is the same for all elements. `tile-inline-functions`
    puts operations on tiles in its place. What depends on no tile stays scalar. A comparison of iotas is a mask as if
    it had been written on tiles.

    The function holds operations of `arith` and `math`, `tile.sigmoid`, `tile.argument`, `tile.dim` and loads of elements. The indices
    of a load are scalars or, plus or less a scalar, iotas along an axis. What is loaded is a scalar, a vector
    along this axis or, where the last two indices are those of the rows and of the columns, a tile.

    A `tile.store ... add` of an element mirrors a load: elements that go to one place are summed first, along the axes
    on which no index depends.

    ```mlir
    func.func @alibi(%s: f32, %h: i32, %q: i32, %k: i32) -> f32 {
      %slopes = tile.argument "slopes" : !tile.view<[H], f32>
      %head = arith.index_cast %h : i32 to index
      %slope = tile.load %slopes[%head] : !tile.view<[H], f32> -> f32
      %distance = arith.subi %k, %q : i32
      %d = arith.sitofp %distance : i32 to f32
      %bias = arith.mulf %slope, %d : f32
      %biased = arith.addf %s, %bias : f32
      func.return %biased : f32
    }
    tile.kernel @k(%x: !tile.view<[H, M, 64], f32>) grid(%m = M ceildiv 64, %h = H) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %row = arith.muli %m, %c64 : index
      %s = tile.load %x[%h, %row, %c0] : !tile.view<[H, M, 64], f32> -> tensor<64x64xf32>
      %q = tile.iota %row axis 0 : tensor<64xi32>
      %k = tile.iota %c0 axis 1 : tensor<64x64xi32>
      %head = arith.index_cast %h : index to i32
      %b = tile.map @alibi(%s, %head, %q axis 1, %k)
          : (tensor<64x64xf32>, i32, tensor<64xi32>, tensor<64x64xi32>) -> tensor<64x64xf32>
      tile.store %b, %x[%h, %row, %c0] : tensor<64x64xf32>, !tile.view<[H, M, 64], f32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$function, Variadic<AnyType>:$operands, DenseI64ArrayAttr:$axes);
  let results = (outs Variadic<Tile_Tile>:$results);
  let assemblyFormat =
    "$function `(` custom<MapOperands>($operands, $axes) `)` attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The axis along which an operand is repeated; none of a scalar or a whole tile.
    std::optional<int64_t> getAxis(unsigned operand) {
      int64_t axis = getAxes()[operand];
      return axis < 0 ? std::nullopt : std::optional(axis);
    }
    /// The shape of the tiles.
    ::llvm::ArrayRef<int64_t> getShape() {
      return ::llvm::cast<::mlir::ShapedType>(getResult(0).getType()).getShape();
    }
  }];
}

def Tile_ArgumentOp : Tile_Op<"argument", [Pure]> {
  let summary = "An argument of the kernel, by name, wherever it is needed";
  let description = [{
    The result is the kernel's argument of this name. A kernel that has none gets one of this type, after the
    others and in the order in which the program asks for them: a function brings the arguments that it needs
    (`tile-inline-functions`). A sequence that launches it passes its workspace of this name, where one stands before the
    launch, and else an argument of its own.

    ```mlir
    %cap = tile.argument "cap" : f32
    %slopes = tile.argument "slopes" : !tile.view<[H], f32>
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$name attr-dict `:` qualified(type($result))";
}

def Tile_UnavailableOp : Tile_Op<"unavailable", [Pure]> {
  let summary = "A value that nothing may take, and why";
  let description = [{
    Stands for what a function of the author would get elsewhere and cannot have here. `tile-inline-functions` refuses an
    operation that takes it, at its place, with the text, which says what would work. Where nothing takes it, it is
    removed.

    ```mlir
    %h = tile.unavailable "@mask takes the head, and there is one list for all of them" : i32
    ```
  }];
  let arguments = (ins StrAttr:$why);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$why attr-dict `:` type($result)";
}

def Tile_VisitsOp : Tile_Op<"visits", [
    RecursiveMemoryEffects, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    SingleBlock]> {
  let summary = "The iterations in which a mask leaves something";
  let description = [{
    The region gives the mask of the iteration of its argument. Every iteration from `lower` up to `upper` in which an
    element of the mask is true lies from `first` up to `past`. The compiler computes these bounds from the comparisons
    (`tile-find-visits`), and may take more iterations than the mask needs. With none, `past` is at most `first`.

    ```mlir
    %first, %past = tile.visits %j = %c0 to %blocks {
      %col = arith.muli %j, %c64 : index
      %cols = tile.iota %col axis 1 : tensor<64x64xi32>
      %rows = tile.iota %row axis 0 : tensor<64x64xi32>
      %seen = arith.cmpi sle, %cols, %rows : tensor<64x64xi32>
      tile.mask %seen : tensor<64x64xi1>
    }
    ```
  }];
  let arguments = (ins Index:$lower, Index:$upper);
  let results = (outs Index:$first, Index:$past);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getInductionVar() { return getBody().getArgument(0); }
    ::mlir::Value getMask();
  }];
}

def Tile_MaskOp : Tile_Op<"mask", [Terminator, Pure, HasParent<"VisitsOp">]> {
  let summary = "Ends the region of a tile.visits";
  let description = [{
    The mask of an iteration.

    ```mlir
    %first, %past = tile.visits %j = %c0 to %blocks {
      %cols = tile.iota %j axis 1 : tensor<64x64xi32>
      %seen = arith.cmpi slt, %cols, %ends : tensor<64x64xi32>
      tile.mask %seen : tensor<64x64xi1>
    }
    ```
  }];
  let arguments = (ins StaticShapeTensorOf<[I1]>:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // TESSERA_DIALECTS_TILE_TILEELEMENTOPS_TD
