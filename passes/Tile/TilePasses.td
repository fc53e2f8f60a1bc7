// Passes from the tile dialect to itself. Those on the functions of a source are in FunctionPasses.td, those on loops in
// LoopPasses.td, those on sums in memory in SumPasses.td.

#ifndef TESSERA_PASSES_TILEPASSES_TD
#define TESSERA_PASSES_TILEPASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/Tile/FunctionPasses.td"
include "passes/Tile/LoopPasses.td"
include "passes/Tile/SumPasses.td"

def TileExpandOps : Pass<"tile-expand-ops", "::tessera::tile::KernelOp"> {
  let summary = "Writes operations out in those that the machine has";
  let description = [{
    A `tile.dot` with a precision becomes products of terms, which are rounded one after the other, the smallest products first. What is
    of 16 bits already, but for an `arith.extf` and transposes, is one term. Terms of a second operand stand before loops that keep it.
    With `tf32` it stays, as the machine has it.

    A `tile.reduce_index` is a reduction, and the least place of an element that equals its result. Places are compared as f32
    from 2^23 on, whose bits count as integers do. Where nothing is equal, as where all are NaN, the place is 0.

    ```mlir
    %x = tile.dot %a, %b precision f16x3 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    // becomes
    %a1 = arith.truncf %a : tensor<64x64xf32> to tensor<64x64xf16>
    %wide = arith.extf %a1 : tensor<64x64xf16> to tensor<64x64xf32>
    %rest = arith.subf %a, %wide : tensor<64x64xf32>
    %a2 = arith.truncf %rest : tensor<64x64xf32> to tensor<64x64xf16>
    // %b1 and %b2 likewise
    %p21 = tile.dot %a2, %b1 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p12 = tile.dot %a1, %b2, %p21 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %x = tile.dot %a1, %b1, %p12 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileFindRuns : Pass<"tile-find-runs", "::tessera::tile::KernelOp"> {
  let summary = "Moves at once, or in runs, what rows a gather or a scatter names one behind the other";
  let description = [{
    The numbers of a `tile.gather` are followed back to iotas, splats, constants and tables that the kernel does not store.
    In each run of R rows a number is the same, follows the one before, or is replaced by a negative constant from some row on:
    where a `slt`, `sle`, `sgt` or `sge` of a following number and one that stays the same does not hold. Both may be widened, where
    their difference has no more than 64 bits. A quotient of following numbers is one number in a run that starts at a multiple of R,
    where R divides the divisor too, and their remainder follows.
    So key `k` is row `k mod P` of page `table[k / P]`: with R, a constant, as `k / R * R` and `k mod R`, where P is no constant.

    Where all rows of a tile of rank 2 are one run, along one dimension, a gather becomes a `tile.load` and a `tile.scatter` a
    `tile.store`, for a dot or not. Where a comparison ends the run, and its first row is known to be 0 or more, their index is a
    `tile.row`, so that one bulk copy moves what is there. That is how kernels read and write sequences that lie one behind the other.

    Elsewhere, where the numbers of rows follow, and all others are the same, a gather for a dot becomes a `tile.gather_runs` of the
    largest R that is a power of 2, at least `leastRun` of `kernels/cards.json`, and divides the tile's rows in 32 parts at most, as many
    as a warp has lanes to find them. Its producer is one thread, so that all goes beside it that goes beside a `tile.load`. What the region
    takes of a view that nothing stores to, as the length of a sequence, is the first load of it: then a loop knows it in all iterations.
    A remark says R, or why the rows are copied 16 bytes at a time. Rows whose bytes are no multiple of 128 are, as one of a run that
    ends early starts at a multiple of them.

    ```mlir
    %keys = tile.iota %col axis 0 : tensor<64xi32>
    %entry = arith.divui %keys, %c16s : tensor<64xi32>
    %place = arith.remui %keys, %c16s : tensor<64xi32>
    %page = tile.gather %table[%c0] rows %entry : !tile.view<[N], i32>, tensor<64xi32> -> tensor<64xi32>
    %k = tile.gather %cache[%c0, %c0, %c0] rows %page, %place
      : !tile.view<[PAGES, 16, 64], bf16>, tensor<64xi32>, tensor<64xi32> -> tensor<64x64xbf16>
    // becomes
    %k = tile.gather_runs %cache[%c0, %c0, %c0] run 16 with (%col : index) {
    ^bb0(%i: index, %first: index):
      // the entry of key %first + 16 * %i, or 0 behind the end of the table
      tile.yield %page, %place, %c16 : index, index, index
    } : !tile.view<[PAGES, 16, 64], bf16> -> tensor<64x64xbf16>

    %tokens = tile.iota %t axis 0 : tensor<64xi32>
    %own = arith.cmpi slt, %tokens, %ends : tensor<64xi32>
    %rows = arith.select %own, %tokens, %none : tensor<64xi1>, tensor<64xi32>
    %x = tile.gather %values[%c0, %c0] rows %rows : !tile.view<[TOKENS, 64], bf16>, tensor<64xi32> -> tensor<64x64xbf16>
    // becomes, with %end at most TOKENS
    %first = tile.row %t below %end
    %x = tile.load %values[%first, %c0] : !tile.view<[TOKENS, 64], bf16> -> tensor<64x64xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileFindVisits : Pass<"tile-find-visits", "::tessera::tile::KernelOp"> {
  let summary = "Computes which iterations a mask leaves, in place of tile.visits";
  let description = [{
    The mask of a `tile.visits` is made of comparisons of integers that are affine in iotas, the iteration and scalars
    from outside, of their minima, maxima and absolute values, and of `arith.andi`, `arith.ori`, `arith.xori` with true
    and `arith.select`. A comparison holds somewhere in the tile up to some iteration, or from one on. Both sides
    of an `andi` give the iterations that both leave, those of an `ori` all from the first to the last that one of
    them leaves. Where a part of the mask is something else it is taken to be true, and a remark says why. An interval with
    two computed ends does not end before it begins. One that begins where a number says that may be any does not begin
    behind the last iteration.

    Quotients by constants, rounded down or up, grow with what they divide, also as shifts, and remainders and lower bits are what
    is left of them. So `k / C == q / C` is an interval of keys, from the first of a chunk up to the last one. Quotients towards
    zero count where nothing is negative. A side of a comparison may have one quotient that changes from iteration to iteration.

    Comparisons may also take integers that are loaded for each row, or gathered by what is, from views that the kernel does
    not store: the least or the largest of a tile's rows bounds them, which a `tile.reduce_range` finds at the start of the
    grid point. `tile-split-loops` does the same. Where a view ends with the rows of the grid, rows past its end count as its
    last one, so that the last tile visits no more than others. Such numbers, and arguments, may be any: what is computed of them has
    64 bits where 32 may not be enough, and a bound that is no index is the nearest one. Sums that may have wrapped say nothing
    (`tile-widen-comparisons` leaves none).

    A mask that is the same in all iterations leaves all of them or none. Where it compares what rows load with what columns
    load, the least and the largest of either say whether it holds anywhere, whatever the numbers are. So a kernel asks of a block
    whether its pairs have to be looked at. A loop of at most 16 iterations around such a `tile.visits` is written out, so that all
    its loads are made together.

    ```mlir
    %first, %past = tile.visits %j = %c0 to %blocks {
      %col = arith.muli %j, %c64 : index
      %cols = tile.iota %col axis 1 : tensor<64x64xi32>
      %rows = tile.iota %row axis 0 : tensor<64x64xi32>
      %seen = arith.cmpi sle, %cols, %rows : tensor<64x64xi32>
      tile.mask %seen : tensor<64x64xi1>
    }
    // becomes, as the smallest difference of column and row is 64 * %j - %row - 63
    %reach = arith.addi %row, %c64 : index
    %end = arith.ceildivsi %reach, %c64 : index
    %past = arith.minsi %blocks, %end : index
    ```

    Of a block, with a row and a column from outside:

    ```mlir
    %first, %past = tile.visits %i = %c0 to %c1 {
      %mine = tile.broadcast %of_rows axis 1 : tensor<64xi32> -> tensor<64x32xi32>
      %theirs = tile.broadcast %of_columns axis 0 : tensor<32xi32> -> tensor<64x32xi32>
      %same = arith.cmpi eq, %mine, %theirs : tensor<64x32xi32>
      tile.mask %same : tensor<64x32xi1>
    }
    // %past becomes 1 where these hold, else 0
    %begins = arith.cmpi sle, %least_of_rows, %largest_of_columns : i32
    %ends = arith.cmpi sge, %largest_of_rows, %least_of_columns : i32
    ```
  }];
}

def TileCheckDivisors : Pass<"tile-check-divisors", "::tessera::tile::KernelOp"> {
  let summary = "Refuses quotients and remainders by the constant 0";
  let description = [{
    No machine code has a result for them, and the interpreter stops at one. What parameters and constants make of a
    divisor has been folded, and what they leave out is gone. `hop-lower-to-llvm` looks again.

    ```mlir
    %group = arith.constant 0 : index
    %hk = arith.divui %h, %group : index   // refused
    ```
  }];
}

def TileCompleteSpeculation : Pass<"tile-complete-speculation", "::tessera::tile::KernelOp"> {
  let summary = "Makes each region of a speculation the whole program of a grid point";
  let description = [{
    What stands before and after a `tile.speculate` is copied into both of its regions, which then have no
    results: a grid point whose predicate fails is run again from its loads to its stores.

    ```mlir
    %q = tile.load %Q[%row] : !tile.view<[M], f32> -> tensor<64xf32>
    %o = tile.speculate -> tensor<64xf32> {
      %f = math.exp2 %q : tensor<64xf32>
      %valid = arith.cmpf ole, %q, %limit : tensor<64xf32>
      tile.yield_if %valid, %f : tensor<64xi1>, tensor<64xf32>
    } exact {
      %least = arith.minnumf %q, %limit : tensor<64xf32>
      %e = math.exp2 %least : tensor<64xf32>
      tile.yield %e : tensor<64xf32>
    }
    tile.store %o, %O[%row] : tensor<64xf32>, !tile.view<[M], f32>
    // becomes
    tile.speculate {
      %q = tile.load %Q[%row] : !tile.view<[M], f32> -> tensor<64xf32>
      %f = math.exp2 %q : tensor<64xf32>
      %valid = arith.cmpf ole, %q, %limit : tensor<64xf32>
      tile.store %f, %O[%row] : tensor<64xf32>, !tile.view<[M], f32>
      tile.yield_if %valid : tensor<64xi1>
    } exact {
      %q = tile.load %Q[%row] : !tile.view<[M], f32> -> tensor<64xf32>
      %least = arith.minnumf %q, %limit : tensor<64xf32>
      %e = math.exp2 %least : tensor<64xf32>
      tile.store %e, %O[%row] : tensor<64xf32>, !tile.view<[M], f32>
      tile.yield
    }
    ```
  }];
}

def TileExchangeAxes : Pass<"tile-exchange-axes", "::tessera::tile::KernelOp"> {
  let summary = "Computes dots of few rows transposed, with their rows as columns";
  let description = [{
    A wgmma has 64 rows, and columns in multiples of 8. Where the result of a dot has no multiple of 64 rows but one of columns, `A B` becomes
    `B^T A^T`, and all that is computed of it or with it exchanges its axes alike: operations element by element, what loops,
    conditionals and speculations hand on, reductions, scans and broadcasts, which go along the other axis. Vectors stay as they are. What is loaded or
    computed in its old form is transposed where it is read: an operand of a dot costs nothing, nor does what goes between registers and
    global memory. A `tile.masked_max` is taken of all elements, as a thread has few.

    Where something on the way has no such form nothing changes, a remark says so, and `tile-choose-schedule` refuses the dot.

    ```mlir
    %s = tile.dot %q, %kt : tensor<16x128xbf16>, tensor<128x64xbf16> -> tensor<16x64xf32>
    %m = tile.reduce max %s axis 1 : tensor<16x64xf32> -> tensor<16xf32>
    // becomes, where %kt is the transpose of %k
    %qt = tile.transpose %q : tensor<16x128xbf16> -> tensor<128x16xbf16>
    %s = tile.dot %k, %qt : tensor<64x128xbf16>, tensor<128x16xbf16> -> tensor<64x16xf32>
    %m = tile.reduce max %s axis 0 : tensor<64x16xf32> -> tensor<16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileCutDots : Pass<"tile-cut-dots", "::tessera::tile::KernelOp"> {
  let summary = "Cuts dots of which no warpgroup holds 64 rows into dots on some of the columns";
  let description = [{
    A thread has 255 registers, so that a warpgroup holds 64 rows of 510 columns at most. A dot of more columns becomes as few of 256
    columns, the most of a wgmma, as possible, each on as many columns of the second operand and of the accumulator. What is on the way is cut alike: operations element
    by element, what loops, conditionals and speculations hand on, stores, loads and gathers, each of whose parts arrives, serves and is given
    back by itself. A loaded tile is loaded in parts for all of its readers: a dot that sums over what is cut becomes a dot for each part, which
    adds to the one before. So does a reduction along it, whose results are combined. Vectors of the other axis stay whole.

    With `placement = divided` each consumer may then have some of the accumulators. Where loops carry a single one, `tile-choose-schedule` cuts
    it likewise.

    Refused where a tile would be cut along both of its axes, does not divide, or is read by an operation that makes no parts.

    ```mlir
    %q = tile.load %Q[%row, %c0] : !tile.view<[M, 512], bf16> -> tensor<64x512xbf16>
    %k = tile.load %C[%j, %c0] : !tile.view<[N, 512], bf16> -> tensor<64x512xbf16>
    %kt = tile.transpose %k : tensor<64x512xbf16> -> tensor<512x64xbf16>
    %s = tile.dot %q, %kt : tensor<64x512xbf16>, tensor<512x64xbf16> -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
    %o = tile.dot %p, %k, %acc : tensor<64x64xbf16>, tensor<64x512xbf16> -> tensor<64x512xf32>
    // becomes
    %q0 = tile.load %Q[%row, %c0] : !tile.view<[M, 512], bf16> -> tensor<64x256xbf16>
    %q1 = tile.load %Q[%row, %c256] : !tile.view<[M, 512], bf16> -> tensor<64x256xbf16>
    // ... and %k0, %k1, and their transposed forms likewise
    %s0 = tile.dot %q0, %kt0 : tensor<64x256xbf16>, tensor<256x64xbf16> -> tensor<64x64xf32>
    %s1 = tile.dot %q1, %kt1, %s0 : tensor<64x256xbf16>, tensor<256x64xbf16> -> tensor<64x64xf32>
    %p = arith.truncf %s1 : tensor<64x64xf32> to tensor<64x64xbf16>
    %o0 = tile.dot %p, %k0, %acc0 : tensor<64x64xbf16>, tensor<64x256xbf16> -> tensor<64x256xf32>
    %o1 = tile.dot %p, %k1, %acc1 : tensor<64x64xbf16>, tensor<64x256xbf16> -> tensor<64x256xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileMaskEarly : Pass<"tile-mask-early", "::tessera::tile::KernelOp"> {
  let summary = "Masks scores, and takes their maxima, before they are multiplied";
  let description = [{
    What a mask hides is -inf, and stays it when it is multiplied by a positive number or less a number that is neither -inf
    nor NaN. So the mask goes before these. The largest element of a product with one positive number, or of a row with a positive
    number of its own, is that number times the largest element, rounding included. An exponent of a base 2, `x * scale - reference`,
    is then one multiply-add of the masked product, which the maximum is taken of too: where both are computed of one block the mask
    is applied once.

    A product with a positive number plus another product, as a score with a bias that falls with the distance, is the number
    times a sum, where a mask or a maximum is taken of it: the factor of the other product is divided by the number.

    A number is known to be positive as a constant, as the larger one (`arith.maximumf`) of any and such a one, as a product of such, or
    as an argument of the kernel of which `requires` says it. Where it is NaN, what a mask hides may be NaN too. A reference is known to
    be no -inf and no NaN where it is the larger one (`arith.maxnumf`) of two of which one is neither, what a loop carries included, or
    is chosen only where it is larger than something (`arith.cmpf ogt`).

    ```mlir
    %e = arith.mulf %t, %scales : tensor<64x64xf32>
    %seen = arith.select %visible, %e, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
    %max = tile.reduce max %seen axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    // becomes
    %seen = arith.select %visible, %t, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
    %largest = tile.reduce max %seen axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    %max = arith.mulf %largest, %scales_of_rows : tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileMultiplyEarly : Pass<"tile-multiply-early", "::tessera::tile::KernelOp"> {
  let summary = "Multiplies what no step of a loop changes before the loop";
  let description = [{
    Of a product of several factors in a loop, those that are computed outside of it are multiplied before it, where that leaves fewer
    multiplications in a step: `(a * x) * c` becomes `(a * c) * x`. The product is rounded in another order, and an intermediate one may
    leave the range of f32 that another one did not. Scalars and tiles of rank 1, of which a thread has few numbers, go before the loop;
    a tile of rank 2 would take registers in all steps.

    ```mlir
    scf.for %j = %c0 to %end step %c1 {
      %x = tile.load %y[%j] : !tile.view<[N], f32> -> f32
      %xs = tile.splat %x : f32 -> tensor<64xf32>
      %ax = arith.mulf %a, %xs : tensor<64xf32>
      %axc = arith.mulf %ax, %c : tensor<64xf32>
      // ...
    }
    // becomes
    %ac = arith.mulf %a, %c : tensor<64xf32>
    scf.for %j = %c0 to %end step %c1 {
      %x = tile.load %y[%j] : !tile.view<[N], f32> -> f32
      %xs = tile.splat %x : f32 -> tensor<64xf32>
      %axc = arith.mulf %ac, %xs : tensor<64xf32>
      // ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TilePolynomialExp : Pass<"tile-polynomial-exp", "::tessera::tile::KernelOp"> {
  let summary = "Marks exponentials that are computed without special functions";
  let description = [{
    A multiprocessor of Hopper evaluates 16 special functions a cycle, and issues 128 instructions of threads. Where the
    special functions are what a loop waits for, a part of its exponentials is computed by polynomials of third degree
    on the pipes of multiply-adds, as FlashAttention-4 does on Blackwell. This pass gives the exponentials of loops with
    dots the attribute `tile.polynomial` with the schedule's `polynomial_exp`: of 16 neighbouring elements of a thread,
    how many. Nothing happens where that is 0.

    Such a polynomial is within 1.2e-4 of the exponential, which is 1/32 of the last bit of bf16 and 1/4 of that of f16.
    So only exponentials are marked whose results are rounded to 16 bits or summed; a remark says so of the others and
    where they are used. Where a sum reaches an output of f32 without having been rounded, as that of a softmax does in
    log(sum), the polynomials are of fifth degree and within 2^-21, at three more instructions each: a unit attribute,
    `tile.polynomial_precise`, says so. An exponent of -127 or less, as that of masked elements, gives exactly 0. One
    above 128 gives NaN where the special function gives infinity, and NaN gives NaN.

    ```mlir
    %p = math.exp2 %e : tensor<128x64xf32>
    %sum = tile.reduce sum %p axis 1 : tensor<128x64xf32> -> tensor<128xf32>
    %p16 = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
    // with polynomial_exp = 8 becomes, when the sum is rounded before it is stored,
    %p = math.exp2 %e {tile.polynomial = 8 : i64} : tensor<128x64xf32>
    %sum = tile.reduce sum %p axis 1 : tensor<128x64xf32> -> tensor<128xf32>
    %p16 = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
    ```
  }];
}

#endif // TESSERA_PASSES_TILEPASSES_TD
