// Passes on the functions of a source, which the reader of sources runs.

#ifndef TESSERA_PASSES_TILE_FUNCTIONPASSES_TD
#define TESSERA_PASSES_TILE_FUNCTIONPASSES_TD

include "mlir/Pass/PassBase.td"

def TileDropDebug : Pass<"tile-drop-debug", "::mlir::ModuleOp"> {
  let summary = "Removes tile.print and tile.assert, which the machine does not run";
  let description = [{
    The interpreter shows values and checks conditions; machine code has neither. What is computed for them alone goes too, so
    that a kernel is compiled as if they were not there. A warning names the place of each `tile.print`, a remark that of each
    `tile.assert`. The reader runs it, unless it reads for the interpreter, before functions are differentiated and inlined.

    ```mlir
    %low = arith.constant dense<0.0> : tensor<64x64xf32>
    %small = arith.cmpf olt, %s, %low : tensor<64x64xf32>
    %some = tile.any %small : tensor<64x64xi1>
    tile.print "scores" %s if %some : tensor<64x64xf32>
    // all of these are removed
    ```
  }];
}

def TileDifferentiate : Pass<"tile-differentiate", "::mlir::ModuleOp"> {
  let summary = "Writes the gradients of functions of scalars";
  let description = [{
    A function without a body that says `tile.gradient_of = @f` gets one: the gradient of `@f`. It takes the arguments of
    `@f` and the cotangents of its results, that is the derivative of a loss with respect to each, and returns the
    cotangents of its arguments. Results and arguments that are no floating-point numbers have none. The gradient holds
    the operations of `@f`, and after them the adjoint of each in the opposite order; what neither needs is left out.
    Numbers that are loaded or asked for by `tile.argument` are constants to it, and so is what comes from an integer. A
    gradient that nothing uses is erased.

    With `tile.with_respect_to = ["x", ...]` it is the gradient of what the function asks for by these names, as slopes or
    biases, and returns nothing. The gradient of `x` is added to the argument `dx`, of f32, whose elements the caller has
    set to zero: the adjoint of a load of an element is an addition to the element of the same indices. That of a number is
    added to the one element of a view. What functions that are called ask for counts too.

    With `tile.zero_sum_over = n` the cotangents sum to 0 over the values of argument n, as those of the scores of one query do
    over its keys in a softmax. What would be added to one element for all of these is then left out, where it is the cotangent
    times what does not depend on them: a number that is added to all scores of a query has no gradient.

    ```mlir
    func.func @capped(%s: f32, %k: i32) -> f32 {
      %cap = tile.argument "cap" : f32
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %y = arith.mulf %t, %cap : f32
      func.return %y : f32
    }
    func.func private @capped_gradient(f32, i32, f32) -> f32 attributes {tile.gradient_of = @capped}
    func.func @twice(%s: f32, %k: i32, %dy: f32) -> f32 {
      %ds = func.call @capped_gradient(%s, %k, %dy) : (f32, i32, f32) -> f32
      %sum = arith.addf %ds, %ds : f32
      func.return %sum : f32
    }
    // @capped_gradient becomes
    func.func private @capped_gradient(%s: f32, %k: i32, %dy: f32) -> f32 attributes {tile.gradient_of = @capped} {
      %cap = tile.argument "cap" : f32
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %dt = arith.mulf %dy, %cap : f32
      %one = arith.constant 1.0 : f32
      %square = arith.mulf %t, %t : f32
      %slope = arith.subf %one, %square : f32
      %dx = arith.mulf %dt, %slope : f32
      %ds = arith.divf %dx, %cap : f32
      func.return %ds : f32
    }
    // and the gradient of the cap
    func.func private @cap_gradient(f32, i32, f32) attributes {tile.gradient_of = @capped, tile.with_respect_to = ["cap"]}
    // ends with
    tile.store %dcap, %sums[%c0] add : f32, !tile.view<[1], f32>   // %sums = tile.argument "dcap"
    ```

    | operation | derivative |
    |---|---|
    | `addf`, `subf`, `mulf`, `divf`, `negf`, `math.fma` | by their formulas |
    | `extf`, `truncf` | the cotangent in the other type; rounding counts as exact |
    | `arith.select` | to the operand that is chosen; 0 to the other |
    | `maximumf`, `maxnumf`, `minimumf`, `minnumf` | to the operand that is the result; to the first where both are equal |
    | `math.absf` | 1 from 0 on, -1 below |
    | `math.exp`, `exp2`, `log`, `log1p`, `log2`, `sqrt`, `rsqrt`, `sin`, `cos`, `tanh`, `tile.sigmoid` | by their formulas, `exp`, `exp2`, `sqrt`, `rsqrt`, `tanh` and `sigmoid` from the result |
    | `math.floor`, `math.ceil` | 0 |
    | `func.call` | the gradient of the function: one that says `tile.gradient_of` of it, else one that is written |
    | `tile.load` of an element, `tile.argument` of a number | `tile.store ... add` to the gradient of an argument `with_respect_to`; else none |

    Where the choice of a select keeps away from a pole, as `x > 0 ? log(x) : 0`, the product of 0 and infinity is NaN, as
    with other systems: choose the operand, `log(x > 0 ? x : 1)`. Where the cotangents of all results are 0, as those of scores
    that a mask hides, all cotangents are 0 whatever the poles of a quotient, a logarithm or a root. An operation without a rule is refused if a
    floating-point argument goes into it, and so is `arith.bitcast`, of whose integer nothing would have a derivative. A
    source that knows better defines the gradient with a body.
  }];
}

def TileInlineFunctions : Pass<"tile-inline-functions", "::mlir::ModuleOp"> {
  let summary = "Puts the functions of a source in the places of their calls";
  let description = [{
    A source may name a computation as a `func.func` and use it with `func.call`. Every call in a kernel, at any
    depth of regions, becomes a copy of the function's body, and the functions are erased: what is called nowhere
    is gone. Functions may call functions. The copies keep their locations, so that diagnostics and line tables
    name the line of the function.

    Equal loads are one load, unless the source writes them twice: then an author wants the tile in two places, as an
    operand of two stages or in registers too. Where a kernel loads tiles of a type from a view at several places of
    the source, all but those of the first place carry the number of theirs (`site`).

    A `tile.map` becomes operations on tiles: scalars that meet tiles are splat, comparisons give tiles of i1, and loads
    of elements scalars, vectors or tiles, as their indices say; a remark names which. An argument of the kernel that
    `tile.argument` asks for and that is not there is added, to the sequences that launch the kernel too. An addition of
    elements to memory (`tile.store ... add`) is one of their sums: of all, of those of a row or of a column, or of single
    ones, as its indices say.

    Sums of f32 in it are reordered. Scalars are combined before they meet a tile, and so is what each row has one of: it is
    multiplied and summed as a vector. Other numbers of f32 of a row or a column alone are made as vectors too, and scalars of a
    product meet those. Those of a product that is added to memory meet its sum. A choice between sums leaves outside what they
    have in common, so that `select(c, x + b, x)` is x and a choice between b and 0. Factors go into the numbers that
    are chosen, and so does what each row has one of: where `c` does not change in a loop, nor does the choice.

    The reader of sources runs this pass, so that nothing after it meets a function.

    ```mlir
    func.func @exp(%x: tensor<64x64xf32>, %factor: f32) -> tensor<64x64xf32> {
      %f = tile.splat %factor : f32 -> tensor<64x64xf32>
      %y = arith.mulf %x, %f : tensor<64x64xf32>
      %e = math.exp2 %y : tensor<64x64xf32>
      func.return %e : tensor<64x64xf32>
    }
    tile.kernel @k(%x: !tile.view<[M, 64], f32>, %scale: f32) grid(%m = M) {
      %s = tile.load %x[%m, %m] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
      %p = func.call @exp(%s, %scale) : (tensor<64x64xf32>, f32) -> tensor<64x64xf32>
      tile.store %p, %x[%m, %m] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
    }
    // becomes
    tile.kernel @k(%x: !tile.view<[M, 64], f32>, %scale: f32) grid(%m = M) {
      %s = tile.load %x[%m, %m] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
      %f = tile.splat %scale : f32 -> tensor<64x64xf32>
      %y = arith.mulf %s, %f : tensor<64x64xf32>
      %p = math.exp2 %y : tensor<64x64xf32>
      tile.store %p, %x[%m, %m] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
    }
    ```

    A function has one block and no call leads back to it. What a kernel holds after inlining is bounded: at
    most 65536 operations, regions nested at most 256 levels deep, calls at most 64.
  }];
}

def TileWidenComparisons : Pass<"tile-widen-comparisons", "::tessera::tile::KernelOp"> {
  let summary = "Compares sums of integers as whole numbers";
  let description = [{
    Integers of 32 bits wrap, and so do indices on the machine. Sums, differences and products that wrap are still right modulo
    2^32; what asks how large they are is not: a comparison, a minimum or maximum, an absolute value, a quotient or
    remainder, and the bounds of a loop or a `tile.visits`. Such an operation gets its operands in 64 bits where they may
    be more than 32 bits have. Its own result is one of its type again: the nearest index, or the low bits of another integer.

    Arguments and numbers that are loaded may be any of their type; indices, extents and what is computed of these alone
    are taken to be at most 10^9 in size (`passes/Analysis/IntegerRanges.h`). So causal masks and distances stay in 32 bits.
    Integers of fewer than 32 bits wrap, as do comparisons without sign.

    The reader of sources runs this pass, so that all that reads a kernel compares the same numbers.

    ```mlir
    %rows = tile.iota %row axis 0 : tensor<64x64xi32>
    %ahead = tile.splat %w : i32 -> tensor<64x64xi32>
    %last = arith.addi %rows, %ahead : tensor<64x64xi32>
    %seen = arith.cmpi sle, %cols, %last : tensor<64x64xi32>
    // becomes
    %rows64 = arith.extsi %rows : tensor<64x64xi32> to tensor<64x64xi64>
    %w64 = arith.extsi %w : i32 to i64
    %ahead = tile.splat %w64 : i64 -> tensor<64x64xi64>
    %last = arith.addi %rows64, %ahead : tensor<64x64xi64>
    %cols64 = arith.extsi %cols : tensor<64x64xi32> to tensor<64x64xi64>
    %seen = arith.cmpi sle, %cols64, %last : tensor<64x64xi64>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileCheckPadding : Pass<"tile-check-padding", "::tessera::tile::KernelOp"> {
  let summary = "Warn where zeros that fill a tile count";
  let description = [{
    A load gives 0 where its tile reaches past the end of the view. The pass follows these elements along each axis
    (`passes/Analysis/Padding.h`) and warns where they change a result:

    | operation | unless they are |
    |---|---|
    | `tile.reduce sum` along the axis | 0 |
    | `max`, `min` | infinity of the other end, or 0 in a maximum of what is never negative |
    | `tile.dot` that contracts the axis | 0 in one of the operands |
    | `tile.store` | 0, or past the end of that view too |

    A product with 0 is 0, and so is a function of 0 that is 0 there, as `math.tanh` and `arith.negf`; `math.exp` makes 1 of it, and a
    difference from a maximum anything. What an `arith.select` on the places of elements along the axis chooses, or a
    product with such a comparison, is the author's: nothing is said of it.

    A tile of 1024 columns reaches past the end of 1000. Where the extent is known at launch only, a remark says what happens
    where it is no multiple, unless a requirement says that it is one: `requires(128 * P divides N)`.

    ```mlir
    %t = tile.load %x[%row, %c0] : !tile.view<[M, 1000], f32> -> tensor<4x1024xf32>
    %e = math.exp %t : tensor<4x1024xf32>
    %l = tile.reduce sum %e axis 1 : tensor<4x1024xf32> -> tensor<4xf32> // warning: elements of 'x' past its 1000 count in this sum
    ```

    The reader of sources runs this pass behind `tile-inline-functions`, so that every tool says it.
  }];
}

def TileSplitReductions : Pass<"tile-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Computes the parts of a range in grid points of their own, and merges their states";
  let description = [{
    A `tile.split_reduce` whose range stays whole is its first region. The kernel of one with `part n` or `fill` becomes three
    operations:

    * the kernel `NAME_parts` computes the states of the parts. Its grid has those indices on which the states depend, and the
      part. It has the schedule of the kernel;
    * the kernel `NAME_merge` has the grid of the kernel, merges the states of a grid point in the order of their parts and runs
      what follows;
    * the sequence `NAME` launches both. Its workspaces have a number, a vector or a tile of a state for each part of each
      grid point.

    What stands before the operation is in each kernel that needs it. A part has `n` iterations, the last one what is left. How
    many there are at most follows from the end of the range: an extent, its quotients and products, and the least of it and
    anything else. With `fill` as many grid points compute parts as there are multiprocessors, in equal shares, and the range may
    end with a number that is loaded.

    With `balanced n` the ranges of all grid points, one behind the other, are cut into shares of as many iterations, `n` for each
    multiprocessor. So grid points may have ranges of any lengths, also such as only the device knows. Four kernels are made:

    * `NAME_counts` counts the iterations of each grid point. Grid indices on which no range depends are left out of it, and each
      of them has shares of its own;
    * `NAME_list`, a single thread block, sums these up (`tile.scan`). It stores the first grid point of each share and the last one,
      how much of these other shares have, and how many shares go on with the last one;
    * `NAME_shares` has a loop over the grid points of a share, and takes the exact region of a speculation in it. A state of a whole
      range goes on to what follows. Of others a share has two at most, of its first and of its last grid point. These are the
      workspace, whatever the number of grid points is;
    * `NAME_merge` has a grid point for each share, which merges the states of a range that begins in it and goes on behind it.

    With `cluster n` the kernel stays, with the exact region of a speculation. Each block of the cluster that runs a grid point
    (`tile.cluster_rank`) has a part of the range, all of as many iterations but for the last ones, which may have none.
    `tile.from_block` brings the states together, of neighbours first.

    Bounds of ranges are taken as they are in each kernel, and the last part of a range goes up to its end. So a list of other
    ranges gives the same results, at another speed. With `part` a share has so many iterations at least.

    A merging kernel has more grid points where the rows of its tiles do not depend on each other: what merges
    128 x 128 elements in each of few grid points would leave most of the machine idle. A remark says how many rows each has.

    ```mlir
    func.func private @sum_of(%x: !tile.view<[M, K], f32>, %m: index, %first: index, %past: index) -> tensor<64xf32>
    tile.kernel @sums(%x: !tile.view<[M, K], f32>, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %c128 = arith.constant 128 : index
      %k = tile.dim "K"
      %steps = arith.ceildivsi %k, %c128 : index
      %sum = tile.split_reduce %first, %past = %c0 to %steps part 8 -> tensor<64xf32> {
        %part = func.call @sum_of(%x, %m, %first, %past) : (!tile.view<[M, K], f32>, index, index, index) -> tensor<64xf32>
        tile.yield %part : tensor<64xf32>
      } merge %a with %b {
        %both = arith.addf %a, %b : tensor<64xf32>
        tile.yield %both : tensor<64xf32>
      }
      %row = arith.muli %m, %c64 : index
      tile.store %sum, %y[%row] : tensor<64xf32>, !tile.view<[M], f32>
    }
    ```

    becomes two kernels, whose bodies are left out here, and

    ```mlir
    !Parts = !tile.view<[PARTS, POINTS, 64], f32>
    tile.kernel @sums_parts(%x: !tile.view<[M, K], f32>, %state0: !Parts) grid(%m = M ceildiv 64, %part = PARTS) {}
    tile.kernel @sums_merge(%y: !tile.view<[M], f32>, %state0: !Parts) grid(%m = M ceildiv 64) {}
    tile.sequence @sums(%x: !tile.view<[M, K], f32>, %y: !tile.view<[M], f32>) dims(PARTS = K ceildiv 1024, POINTS = M ceildiv 64) {
      %state0 = tile.workspace : !Parts
      tile.launch @sums_parts(%x, %state0) : !tile.view<[M, K], f32>, !Parts
      tile.launch @sums_merge(%y, %state0) : !tile.view<[M], f32>, !Parts
    }
    ```

    Refused, at its line: a kernel that a sequence launches already, a range whose end no extent bounds, and `cluster` without dots.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // TESSERA_PASSES_TILE_FUNCTIONPASSES_TD
