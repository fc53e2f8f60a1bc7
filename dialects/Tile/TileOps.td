// Operations of the tile dialect.

#ifndef TESSERA_DIALECTS_TILE_TILEOPS_TD
#define TESSERA_DIALECTS_TILE_TILEOPS_TD

include "dialects/Tile/TileOpBase.td"
include "dialects/Tile/TileSequence.td"

def Tile_KernelOp : Tile_Op<"kernel", [
    IsolatedFromAbove, Symbol, SingleBlockImplicitTerminator<"ReturnOp">, HasParent<"::mlir::ModuleOp">,
    Tile_EntryOpInterface,
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A kernel: arguments, grid, requirements, schedule and the program of one grid point";
  let description = [{
    Arguments are views of global tensors and [scalars](../kernels.md#a-kernel) (index is passed as i64). The grid
    names one index per dimension, 1 to 3 of them; its extents are run-time dimensions of the views, divided
    by a tile size and rounded up. `requires` lists what is checked of run-time dimensions at launch: divisibilities,
    as `requires(HK divides H)` or with a factor `requires(8 * HK divides H)`, and bounds, as `requires(DQ <= 128)`; and
    of scalars, that they are finite and above a number, as `requires(scale > 1.0e-30)`.
    With `fixed_sums` grid points add to one element of a view in the order of a grid index on which its place does not
    depend, so that sums have the same bits in each run. Each tile of the view has a turn in memory then, which the role that
    adds waits for and hands on (`tile-ticket-sums`); that takes stores that add tiles in bulk, from a reducer or a `writer`,
    `persistent = dynamic`, and `cluster = 1` or `exchange`.
    `schedule` may be partial or absent. Launches pass arguments by name, so that names survive in `argument_names` (and
    those of the grid indices in `grid_names`).

    The program runs once per grid point. Two grid points must not store to the same element; they may add to one
    (`tile.store ... add`).

    ```mlir
    tile.kernel @scale(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[M, 64], f16>, %a: f32)
        grid(%m = M ceildiv 64) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %row = arith.muli %m, %c64 : index
      %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
      %f = arith.extf %t : tensor<64x64xf16> to tensor<64x64xf32>
      %s = tile.splat %a : f32 -> tensor<64x64xf32>
      %g = arith.mulf %f, %s : tensor<64x64xf32>
      %r = arith.truncf %g : tensor<64x64xf32> to tensor<64x64xf16>
      tile.store %r, %y[%row, %c0] : tensor<64x64xf16>, !tile.view<[M, 64], f16>
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeArrayAttr:$argument_types,
    StrArrayAttr:$argument_names,
    ArrayAttr:$grid,
    OptionalAttr<StrArrayAttr>:$grid_names,
    OptionalAttr<ArrayAttr>:$requirements,
    UnitAttr:$fixed_sums,
    OptionalAttr<Tile_ScheduleAttr>:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumArguments() { return getArgumentTypes().size(); }
    unsigned getGridRank() { return getGrid().size(); }
    /// Block arguments: first the kernel's arguments, then the grid indices.
    ::mlir::BlockArgument getArgument(unsigned i) { return getBody().getArgument(i); }
    ::mlir::BlockArgument getGridIndex(unsigned i) {
      return getBody().getArgument(getNumArguments() + i);
    }
    GridDimAttr getGridDim(unsigned i) { return ::llvm::cast<GridDimAttr>(getGrid()[i]); }
    ::llvm::StringRef getArgumentName(unsigned i) {
      return ::llvm::cast<::mlir::StringAttr>(getArgumentNames()[i]).getValue();
    }
    /// What the kernel's schedule sets.
    ScheduleAttr::Fields getScheduleFields() {
      return getScheduleAttr() ? getScheduleAttr().getFields() : ScheduleAttr::Fields();
    }
    /// Names of the run-time dimensions, in order of first appearance in the arguments.
    ::llvm::SmallVector<::llvm::StringRef> getDimNames();
  }];
}

def Tile_ReturnOp : Tile_Op<"return", [Terminator, Pure, HasParent<"KernelOp">]> {
  let summary = "Ends a kernel body (implicit in the assembly)";
  let description = [{
    ```mlir
    tile.return
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_DimOp : Tile_Op<"dim", [
    Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "The extent of a named run-time dimension";
  let description = [{
    The name must be a dimension of one of the enclosing kernel's views. Extents are 1 to 2^31 - 1, checked
    at launch.

    ```mlir
    %sk = tile.dim "SK"
    ```
  }];
  let arguments = (ins StrAttr:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim attr-dict";
  let hasVerifier = 1;
}

include "dialects/Tile/TileMemoryOps.td"
include "dialects/Tile/TileElementOps.td"
include "dialects/Tile/TileDebugOps.td"

def Tile_DotOp : Tile_Op<"dot", [Pure]> {
  let summary = "Matrix product with f32 accumulation: a * b (+ acc)";
  let description = [{
    `a` is MxK, `b` is KxN, of one type of 16 or 8 bits; `acc` and the result are MxN f32. Products are exact and summed in f32,
    in an order that is not specified. Without `acc` the sum starts at 0. On Hopper a dot becomes `wgmma` (PTX ISA 9.7.15): K is
    a multiple of 16, of 8 bits of 32, N one of 8, and M one of 64, or where N is one of 64 of 8 (`tile-exchange-axes`). Operands
    are loaded tiles or computed ones, transposed or not, with [exceptions](../kernels.md#operands-of-a-dot). A computed `b` goes
    through shared memory, and takes room there.

    With a `precision` `a` and `b` are f32: each is written as terms of that type, whose sum it is, and the products of terms
    that matter are summed. `x3` are those of two terms, `x6` of three. `tf32` takes f32 rounded to nearest even to 10 bits of
    the mantissa, which wgmma reads along K alone. docs/kernels.md has the errors.

    ```mlir
    %kt = tile.transpose %k : tensor<128x64xbf16> -> tensor<64x128xbf16>
    %s = tile.dot %q, %kt : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %o2 = tile.dot %p, %v, %o : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_FloatTile:$a, Tile_FloatTile:$b, Optional<Tile_FloatTile>:$acc,
                       OptionalAttr<Tile_DotPrecision>:$precision);
  let results = (outs Tile_FloatTile:$result);
  let extraClassDeclaration = [{
    /// What each operand is cut into, of a dot that has a precision; nothing where that is tf32.
    std::optional<DotTerms> getTerms();
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$acc), [{
    build($_builder, $_state, result, a, b, acc, DotPrecisionAttr());
  }]>];
  let assemblyFormat =
    "$a `,` $b (`,` $acc^)? (`precision` $precision^)? attr-dict `:` custom<DotTypes>(ref($acc), type($a), type($b), type($acc), type($result))";
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "Combines the elements of a tile along one axis";
  let description = [{
    `sum`, `max`, `min`, `maximum` or `minimum` of floating-point elements along `axis`, which the result lacks.
    `max` and `min` return the number when one side is NaN (IEEE 754-2019 maximumNumber, as `arith.maxnumf`),
    `maximum` and `minimum` the NaN (IEEE 754-2019 maximum, as `arith.maximumf`). The order of a sum is not
    specified.

    With `limit` a sum is infinite where that of some of its elements is larger. Which elements are looked at together is
    not specified; each of them is. So where none is negative, an element beyond the limit makes the sum infinite, and one
    that is not larger as a whole stays what it is. Threads that share a row need not meet for it, as they must where the
    sum itself is compared.

    ```mlir
    %m = tile.reduce max %s axis 1 : tensor<128x64xf32> -> tensor<128xf32>
    %l = tile.reduce sum %p axis 1 limit 448.0 : tensor<128x64xf32> -> tensor<128xf32>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_FloatTile:$source, I64Attr:$axis, OptionalAttr<F32Attr>:$limit);
  let results = (outs Tile_FloatTile:$result);
  let assemblyFormat = [{
    $kind $source `axis` $axis (`limit` $limit^)? attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ReduceIndexOp : Tile_Op<"reduce_index", [Pure]> {
  let summary = "The largest or smallest elements along one axis, and where they are";
  let description = [{
    The values are those of `tile.reduce`. Beside each is the place of the first element along `axis` that equals it, from 0 on.
    Zeros of either sign are equal. Beside a NaN is the place of the first NaN: with `maximum` and `minimum` where there is one,
    with `max` and `min` where there is nothing else. A sum is no element, so that it has no place.

    On Hopper it is two reductions (`tile-expand-ops`), across threads and warps as any.

    ```mlir
    %score, %expert = tile.reduce_index max %scores axis 1 : tensor<128x64xf32> -> tensor<128xf32>, tensor<128xi32>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, StaticShapeTensorOf<[F32]>:$source,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs StaticShapeTensorOf<[F32]>:$value, StaticShapeTensorOf<[I32]>:$index);
  let assemblyFormat = "$kind $source `axis` $axis attr-dict `:` type($source) `->` type($value) `,` type($index)";
  let hasVerifier = 1;
}

def Tile_ReduceAllOp : Tile_Op<"reduce_all", [Pure]> {
  let summary = "Combines all elements of a tile to a number";
  let description = [{
    The kinds are those of `tile.reduce`, as is what they make of NaN. The number is the same in the whole thread block,
    and goes on as other scalars do: it may be stored, decide about loops, or be repeated by `tile.splat`. On Hopper the
    elements are f32; each warp combines what it has, and the warps of the role meet once. A role without tiles in registers
    cannot have it, so that no load of a producer depends on it.

    ```mlir
    %largest = tile.reduce_all maximum %sizes : tensor<64x128xf32> -> f32
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_FloatTile:$source);
  let results = (outs AnyFloat:$result);
  let assemblyFormat = "$kind $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "Combines the elements of a tile along one axis up to each of them";
  let description = [{
    Element i along `axis` combines the elements 0 to i. With `exclusive` it combines those before i, beginning with 0 for a sum,
    with 1 for a product, with the least number (-inf) for `max` and `maximum`, and with the largest for `min` and `minimum`.
    With `reverse` the elements are taken from the end. The kinds are those of `tile.reduce`, and `product`; sums and products of
    integers wrap. The order of those of floating-point numbers is not specified. The gradient of a sum's elements is the sum of the
    results' in the other direction. Of a product it is that sum of the results times their gradients, divided by the elements, of
    which none may be 0.

    On Hopper a thread scans its own elements, lanes that share the axis exchange sums by shuffles, and warps through shared
    memory (`hop.scan`). Consumers that divide the rows cannot scan along them.

    ```mlir
    %starts = tile.scan sum %lengths axis 0 exclusive : tensor<128xi32>
    %decay = tile.scan sum %gates axis 1 reverse : tensor<64x128xf32>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, StaticShapeTensorOf<[F32, I32, I64]>:$source,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs StaticShapeTensorOf<[F32, I32, I64]>:$result);
  let assemblyFormat = "$kind $source `axis` $axis (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_AnyOp : Tile_Op<"any", [Pure]> {
  let summary = "Whether some element of a mask is true";
  let description = [{
    A number for the whole thread block, which decides about loops, conditions and places in memory. On Hopper the threads of
    a role meet at a named barrier that combines what each one has (`barrier.red`, PTX ISA 9.7.13.1). A role without tiles
    in registers cannot have it, so that no load of a producer depends on it.

    ```mlir
    %some = tile.any %seen : tensor<128x64xi1>
    %step = arith.extui %some : i1 to i32
    ```
  }];
  let arguments = (ins StaticShapeTensorOf<[I1]>:$source);
  let results = (outs I1:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def Tile_MaskedMaxOp : Tile_Op<"masked_max", [Pure, AllTypesMatch<["old", "result"]>]> {
  let summary = "The largest elements of rows, of tiles of which a mask leaves a part";
  let description = [{
    The larger one, for each row, of `old` and of the elements of `source`, which are not negative. Tiles none of whose
    elements is 0 may be left out. An exponential is 0 where a mask or what is loaded made its exponent -inf, and only there may a
    row have few elements that are not. `tile-split-loops` makes a `tile.reduce` of it in iterations in which a mask is needed, and
    nothing in others.

    ```mlir
    %largest = tile.masked_max %before, %p : tensor<128xf32>, tensor<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_FloatTile:$old, Tile_FloatTile:$source);
  let results = (outs Tile_FloatTile:$result);
  let assemblyFormat = "$old `,` $source attr-dict `:` type($old) `,` type($source)";
  let hasVerifier = 1;
}

def Tile_ReferenceOp : Tile_Op<"reference", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "Numbers that what follows refers to, whichever they are";
  let description = [{
    For each row a number that is not below its own, and not above the largest one of the tile. By this operation a program says that its
    results are the same, but for rounding and for what leaves the range of f32: it takes the number away from exponents, and takes it
    into account where it has what it made of them. The interpreter takes each row's own. `tile-share-references` keeps the operation where
    the rows that a thread of Hopper has side by side, r and r + 8, gain by one number: it is the larger one of theirs.

    ```mlir
    %shared = tile.reference %largest : tensor<128xf32>
    ```
  }];
  let arguments = (ins Tile_FloatTile:$source);
  let results = (outs Tile_FloatTile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "Repeats a rank-1 tile along a new axis";
  let description = [{
    The result has the source's elements along the other axis: `axis 1` makes every column a copy of the
    source, `axis 0` every row.

    ```mlir
    %w = tile.broadcast %m axis 1 : tensor<128xf32> -> tensor<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source, I64Attr:$axis);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "A tile of one scalar";
  let description = [{
    ```mlir
    %t = tile.splat %scale : f32 -> tensor<128x64xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyFloat, AnySignlessInteger, Index]>:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_TransposeOp : Tile_Op<"transpose", [Pure]> {
  let summary = "Exchanges the axes of a rank-2 tile";
  let description = [{
    Of a loaded tile of 16 bits that feeds a dot this costs nothing: it becomes the operand's major-ness.

    ```mlir
    %kt = tile.transpose %k : tensor<128x64xbf16> -> tensor<64x128xbf16>
    ```
  }];
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "Indices along an axis, from a start value";
  let description = [{
    Element `(i0, i1, ...)` is `start + i[axis]`, in i32 (rank 1 or 2). Comparisons of iotas make masks; the
    compiler derives from them which iterations of a loop need the mask at all.

    With `period p`, which divides the extent of the axis, it is `start + i[axis] mod p`: the index along the
    innermost of the dimensions that the rows of a `box` run over.

    ```mlir
    %cols = tile.iota %j axis 1 : tensor<128x64xi32>
    %rows = tile.iota %row axis 0 period 16 : tensor<128x64xi32>
    ```
  }];
  let arguments = (ins Index:$start, I64Attr:$axis, OptionalAttr<I64Attr>:$period);
  let results = (outs StaticShapeTensorOf<[I32]>:$result);
  let assemblyFormat = "$start `axis` $axis (`period` $period^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// After how many indices the values repeat: the extent of the axis when they never do.
    int64_t getPeriodOrExtent();
  }];
}

include "dialects/Tile/TileRowOps.td"

//===----------------------------------------------------------------------===//
// Loops of grid points that add to the same tiles
//===----------------------------------------------------------------------===//

def Tile_WalksDownOp : Tile_Op<"walks_down", [Pure]> {
  let summary = "Whether this grid point goes through its loops from their ends";
  let description = [{
    Made by `tile-ticket-sums` with `order = turns` or `last_turns`: it is true in the sections of the grid that turn. `hop-persistent`,
    which numbers the sections, replaces it. Elsewhere it is false: sums are made in some order.

    ```mlir
    %down = tile.walks_down
    ```
  }];
  let results = (outs I1:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_WalkOp : Tile_Op<"walk", [Pure]> {
  let summary = "What an iteration of a loop works on, from either end";
  let description = [{
    Made by `tile-ticket-sums` for a loop over [lower, upper) in steps of 1: `step`, or with `down` the one that is as far
    from the other end. In a loop of other steps that may be none of its iterations, and is refused. `tile-split-loops`, which knows what of the loop needs a mask, writes it as arithmetic.

    ```mlir
    %c1 = arith.constant 1 : index
    scf.for %i = %first to %blocks step %c1 {
      %j = tile.walk %i from %first to %blocks down %down
    }
    ```
  }];
  let arguments = (ins Index:$step, Index:$lower, Index:$upper, I1:$down);
  let results = (outs Index:$result);
  let assemblyFormat = "$step `from` $lower `to` $upper `down` $down attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Loops of thread blocks that load for each other
//===----------------------------------------------------------------------===//

def Tile_CommonBoundOp : Tile_Op<"common_bound", [
    Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "A bound of a loop that loads tiles for other grid points too";
  let description = [{
    Made by `tile-even-loops`. The result is `own`. `loads`, at least as large and the same for all grid points that
    load together, is the bound in the program that only loads: it runs every load, address and loop that follows from
    the result as if it were `loads`. The tiles that this grid point does not read are those of a `tile.skip_loads`.

    ```mlir
    %n = tile.common_bound %own loads %longest
    scf.for %j = %c0 to %n step %c1 {
      %k = tile.load %K[%b, %h, %j, %c0] : !tile.view<[B, H, SK, 64], bf16> -> tensor<128x64xbf16>
    }
    ```
  }];
  let arguments = (ins Index:$own, Index:$loads);
  let results = (outs Index:$result);
  let assemblyFormat = "$own `loads` $loads attr-dict";
}

def Tile_SkipLoadsOp : Tile_Op<"skip_loads"> {
  let summary = "Tiles that are loaded and not read by this grid point";
  let description = [{
    Made by `tile-even-loops`, and by `tile-overlap` where the last load of a pipe is `ahead`. The loads whose `pipe` is
    one of `pipes` have loaded `times` more tiles each than this grid point reads, in the order of `pipes` each time
    (`tile.common_bound`). It lets them pass: in a loop, but where `times` is the constant 1. Computes nothing.

    ```mlir
    tile.skip_loads [1, 2] times %rest
    ```
  }];
  let arguments = (ins ConfinedAttr<DenseI64ArrayAttr, [DenseArrayNonNegative<DenseI64ArrayAttr>]>:$pipes,
                       Index:$times);
  let assemblyFormat = "$pipes `times` $times attr-dict";
}

//===----------------------------------------------------------------------===//
// Speculation
//===----------------------------------------------------------------------===//

def Tile_SpeculateOp : Tile_Op<"speculate", [
    SingleBlock, RecursiveMemoryEffects, ParentOneOf<["KernelOp", "SplitReduceOp"]>]> {
  let summary = "A fast computation that may not hold, and the exact one that then replaces it";
  let description = [{
    The first region computes the results in a way that is only right when the predicate of its
    `tile.yield_if` holds in every element; the second region computes them in any case. The results are
    those of the first region when the predicate holds for the grid point, else those of the second. Which of
    the two it was shows in nothing but rounding.

    The compiler runs the first region for every grid point, with what stands before and after the operation,
    and comes back to the grid points whose predicate failed when the thread block is done with the others,
    so that those that hold pay for no more than the predicate. Stores of a failed grid point are made twice.
    So the kernel may not load what it stores. A kernel has at most one speculation, outside of loops and
    conditionals. With `speculate = false` in the schedule only the second region is compiled.

    ```mlir
    %max = tile.speculate -> tensor<128xf32> {
      %valid = arith.cmpf ole, %guess, %limit : tensor<128xf32>
      tile.yield_if %valid, %guess : tensor<128xi1>, tensor<128xf32>
    } exact {
      %m = tile.reduce max %s axis 1 : tensor<128x64xf32> -> tensor<128xf32>
      tile.yield %m : tensor<128xf32>
    }
    ```
  }];
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$fast, SizedRegion<1>:$exact);
  let assemblyFormat =
    "(`->` type($results)^)? attr-dict-with-keyword custom<SpeculationRegions>($fast, $exact)";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    YieldIfOp getFastYield();
    YieldOp getExactYield();
  }];
}

def Tile_YieldIfOp : Tile_Op<"yield_if", [Terminator, Pure, HasParent<"SpeculateOp">]> {
  let summary = "Ends the fast region of a speculation";
  let description = [{
    `condition` is an i1 or a tile of i1: the values are right when it is true in every element.

    ```mlir
    %guess = tile.speculate -> tensor<128xf32> {
      tile.yield_if %valid, %fast : tensor<128xi1>, tensor<128xf32>
    } exact {
      tile.yield %slow : tensor<128xf32>
    }
    ```
  }];
  let arguments = (ins AnyTypeOf<[I1, StaticShapeTensorOf<[I1]>]>:$condition, Variadic<AnyType>:$values);
  let assemblyFormat =
    "$condition (`,` $values^)? attr-dict `:` type($condition) (`,` type($values)^)?";
}

def Tile_SplitReduceOp : Tile_Op<"split_reduce", [
    SingleBlock, RecursiveMemoryEffects, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A reduction over a range that may be split into parts, whose states are merged";
  let description = [{
    The first region computes the state of the part of the range from its first argument up to its second, in any values:
    tiles, vectors and scalars. The second, `merge`, computes from the states of two neighbouring parts, those of the earlier
    one first, that of both. The results are the state of the whole range. Any partition gives them, up to rounding, an empty
    part among them; the interpreter runs random ones.

    `tile-split-reductions` puts the first region in the operation's place. With `part n`, where n is not 0, it makes a
    `tile.sequence` in place of the kernel: one kernel computes the state of each n iterations, and another one merges them
    in their order and runs what follows. With `fill` there are as many parts as thread blocks fill the GPU.

    With `balanced n` the iterations of all grid points are one range, which is cut into equal shares, `n` for each multiprocessor. So
    thread blocks end together, whatever the ranges of grid points are. `balanced 0` cuts nothing.

    With `cluster n`, of 2, 4 or 8, the kernel stays one: the blocks of a cluster run a grid point, each an equal part of its
    range, and their states meet by `tile.from_block`. The last block runs what follows. `cluster 0` leaves the range whole. States
    are tiles of f32 then.

    A kernel has at most one, outside of loops and conditionals, and stores nothing before it. The regions store nothing, and
    `merge` loads nothing.

    ```mlir
    %sum = tile.split_reduce %first, %past = %c0 to %steps part 32 -> tensor<128x128xf32> {
      %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
        %new = tile.dot %a, %b, %old : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
        scf.yield %new : tensor<128x128xf32>
      }
      tile.yield %part : tensor<128x128xf32>
    } merge %left with %right {
      %both = arith.addf %left, %right : tensor<128x128xf32>
      tile.yield %both : tensor<128x128xf32>
    }
    ```
  }];
  let arguments = (ins Index:$lower, Index:$upper, OptionalAttr<I64Attr>:$part, UnitAttr:$fill,
                       OptionalAttr<I64Attr>:$balanced, OptionalAttr<I64Attr>:$cluster);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$merge);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getFirst() { return getBody().getArgument(0); }
    ::mlir::BlockArgument getPast() { return getBody().getArgument(1); }
    /// The states that are merged, of the earlier part and of the later one.
    ::mlir::Block::BlockArgListType getLeft() { return getMerge().getArguments().take_front(getNumResults()); }
    ::mlir::Block::BlockArgListType getRight() { return getMerge().getArguments().take_back(getNumResults()); }
    YieldOp getBodyYield();
    YieldOp getMergeYield();
    /// Whether nothing asks for parts.
    bool isWhole() {
      return getPart().value_or(0) == 0 && !getFill() && getBalanced().value_or(0) == 0 && getCluster().value_or(0) == 0;
    }
  }];
}

def Tile_ClusterRankOp : Tile_Op<"cluster_rank", [Pure]> {
  let summary = "The number of a thread block in the cluster that runs a grid point";
  let description = [{
    `tile-split-reductions` makes it of a `tile.split_reduce` with `cluster n`, whose kernel has blocks 0 to n - 1 for each grid point.

    ```mlir
    %block = tile.cluster_rank
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_FromBlockOp : Tile_Op<"from_block", [
    MemoryEffects<[MemRead, MemWrite]>, SameOperandsAndResultType] # ElementwiseMappable.traits> {
  let summary = "The tile of an earlier block of the cluster that runs a grid point";
  let description = [{
    A step of a tree: blocks whose number and 1 are a multiple of 2 `distance` get the tile that the block `distance` before them
    has, and all others keep their own. So after distances of 1, 2 and 4 the last of 8 blocks has seen all. No block
    waits for those behind it. It stands outside of loops and conditionals, and stores are made by the last block.

    ```mlir
    %theirs = tile.from_block %acc before 1 : tensor<64x128xf32>
    ```
  }];
  let arguments = (ins F32Tensor:$source, ConfinedAttr<I64Attr, [IntPositive]>:$distance);
  let results = (outs F32Tensor:$result);
  let assemblyFormat = "$source `before` $distance attr-dict `:` type($source)";
}

def Tile_YieldOp : Tile_Op<"yield", [Terminator, Pure, ParentOneOf<["SpeculateOp", "SplitReduceOp", "ReduceRangeOp", "GatherRunsOp"]>]> {
  let summary = "Ends the exact region of a speculation, a region of a tile.split_reduce, or that of a tile.reduce_range or tile.gather_runs";
  let description = [{
    `values` are the results of the `tile.speculate`, whose exact region always holds, or a state of the `tile.split_reduce`. Of
    a `tile.reduce_range` the value is the integer of one number, and of a `tile.gather_runs` they are the place of a run and its rows.

    ```mlir
    %guess = tile.speculate -> tensor<128xf32> {
      tile.yield_if %valid, %fast : tensor<128xi1>, tensor<128xf32>
    } exact {
      tile.yield %slow : tensor<128xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // TESSERA_DIALECTS_TILE_TILEOPS_TD
