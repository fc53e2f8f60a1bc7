// Passes from the tile dialect to itself. Those on the functions of a source are in FunctionPasses.td, those on loops in
// LoopPasses.td, those on sums in memory in SumPasses.td.

#ifndef TESSERA_PASSES_TILEPASSES_TD
#define TESSERA_PASSES_TILEPASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/Tile/FunctionPasses.td"
include "passes/Tile/LoopPasses.td"
include "passes/Tile/SumPasses.td"

def TileFindRuns : Pass<"tile-find-runs", "::tessera::tile::KernelOp"> {
  let summary = "Loads in runs what rows a gather names one behind the other";
  let description = [{
    The numbers of a `tile.gather` for a dot are followed back to iotas, splats, constants and tables that the kernel does not store.
    In each run of R rows a number is the same, follows the one before, or is replaced by a negative constant from some row on:
    where a `slt`, `sle`, `sgt` or `sge` of a following number and one that stays the same does not hold. Both may be widened, where
    their difference has no more than 64 bits. A quotient of following numbers is one number in a run that starts at a multiple of R,
    where R divides the divisor too, and their remainder follows.
    So key `k` is row `k mod P` of page `table[k / P]`: with R, a constant, as `k / R * R` and `k mod R`, where P is no constant.

    Where the numbers of rows follow, and all others are the same, the gather becomes a `tile.gather_runs` of the largest R
    that is a power of 2, at least `leastRun` of `kernels/cards.json`, and divides the tile's rows. Its producer is one thread, so that all goes beside it that
    goes beside a `tile.load`. A remark says R, or why the rows are copied 16 bytes at a time. Rows whose bytes are no multiple of
    128 are, as one of a run that ends early starts at a multiple of them.

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

def TileOrderMemory : Pass<"tile-order-memory", "::tessera::tile::KernelOp"> {
  let summary = "Refuses loads that would have to wait for stores of the same grid point";
  let description = [{
    A grid point runs from top to bottom, also where it loads what it has stored. Tiles that dots read are loaded ahead
    of the rest of the program, by other threads or by the tensor memory accelerator on behalf of one, and so are the
    scalars on which their places and numbers depend. Nothing holds such a load back until a store has been made. So a
    kernel is refused in which one may touch an element that the same grid point stores before, in program order or in
    an earlier iteration of a loop; or, for a scalar, stores later. A store after the load of a tile for a dot needs no
    care, as the consumers have waited for the tile by then. All other accesses are the consumers' own, which run in the
    order of the program.

    Whether two accesses may touch one element is decided from their boxes, by linear arithmetic on grid indices,
    induction variables and extents (`passes/Analysis/MemoryOrder.h`). Views of different arguments are different
    memory.

    ```mlir
    tile.store %y, %a[%row, %c0] : tensor<64x64xbf16>, !tile.view<[M, 64], bf16>
    // refused, as it may load what was stored; at %row + 64 instead of %row it is not
    %a2 = tile.load %a[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
    %r = tile.dot %a2, %b : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    ```
  }];
}

def TileOverrideSchedule : Pass<"tile-override-schedule", "::mlir::ModuleOp"> {
  let summary = "Sets fields in the schedule of every kernel, in place of what it writes";
  let description = [{
    What `tessera compile --schedule` asks for, said to `tessera-opt`: the text is read once, and all passes behind it
    find the fields on the kernels. With `schedule=stages=2`:

    ```mlir
    tile.kernel @none(%x: !tile.view<[M], f32>) grid(%m = M) schedule #tile.schedule<stages = 3, overlap = 1> {
    }
    // becomes
    tile.kernel @none(%x: !tile.view<[M], f32>) grid(%m = M) schedule #tile.schedule<stages = 2, overlap = 1> {
    }
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", /*default=*/"\"\"", "The fields, as \"consumers=2,overlap=1\"">];
  let dependentDialects = ["::tessera::tile::TileDialect"];
}

def TileChooseSchedule : Pass<"tile-choose-schedule", "::tessera::tile::KernelOp"> {
  let summary = "Completes the schedule of every kernel from a model of the machine";
  let description = [{
    Fills in the fields that a kernel's `#tile.schedule` leaves open. Candidates are tried from the most to the least
    preferred, and the first that fits is taken:

    1. warp specialization before none;
    2. overlap `2` before `1`, where `tile-overlap` can overlap a loop of the kernel; `3` is taken when asked for, as it
       needs the registers of a second result of the leading dots and gains nothing where another warpgroup fills the
       tensor cores meanwhile;
    3. more consumers before fewer: each gets rows of every dot in multiples of 64 (wgmma is m64);
    4. more stages before fewer, up to 4 when every loop has a single dot, otherwise up to 2, or 3 beside a
       second slot of what is loaded before the loop (there the work between the dots hides the latency of
       the loads); 1 when no loop loads a tile for a dot.

    `polynomial_exp` follows from what an iteration of the loops with dots takes, in cycles: dots (4096 floating-point
    operations a cycle), special functions (16 results) and instructions (128). Where the special functions are what it
    waits for, a quarter, a half or all of the exponentials that may be polynomials are (`tile-polynomial-exp`),
    whichever should take the least, and a remark tells the numbers; else it is 0: at the card's power limit the
    instructions of a polynomial cost more than its special function. Of a kernel that speculates the loops of the fast
    region count.

    What each other field becomes is in the table of [`#tile.schedule`](tile.md#scheduleattr). The reasons:

    * Ping-pong: two consumers or more have work between the dots of a loop, and no dot runs ahead.
    * Results are stored directly, because staging them takes shared memory that the pipes can use. With
      `store = lent` the pipes lend it.
    * Registers per role are those known to work for the number of consumers, less for consumers where
      `producer_registers` asks for more. `setmaxnreg` divides what the launch gives the block, and no more: with two
      consumers 168 registers for each of 384 threads (PTX ISA 9.7.20.5). Without warp specialization the threads share
      the SM's registers evenly, and where registers of a role are asked for it is not considered.
    * Tiles whose loops run longer come first: from the last index of the first grid dimension on when trip counts grow
      with it, and also of a sliding window, whose first tiles are short.
    * Tiles are handed out one by one where they differ in work, or where dots depend on each other. With `tile.few_tiles`,
      which `tessera compile` sets for the classes of shapes that say so, tiles of equal work are not: asking for another one
      takes longer than it gains.
    * A cluster takes a tile that neighbours in the first grid dimension load alike, or that `tile-even-loops` makes them
      load alike. That takes a producer and, for what is loaded in the loops that it changes, at least `overlap` stages.

    A kernel without a dot has no pipes: its tiles come from global memory straight into registers. Only `consumers` and
    `consumer_registers` are chosen there. Of the numbers of warpgroups whose threads can share the tiles
    (`hop-assign-layouts`) and hold them in registers, the one is taken with which a multiprocessor has the most bytes on
    their way from memory, up to what keeps memory busy, and then the one with the fewest threads, of which fewer wait for
    each other in a row. Registers are as many as let so many thread blocks be resident that they bring these bytes.
    Tiles that all blocks load do not count.
    Fields that are about dots, their loads and their turns are refused unless they have the value that means
    nothing.

    The numbers by which the search prefers and rejects are in `kernels/cards.json` and `passes/Schedule/CostModel.h`, each with its measurement.

    What fits is decided by `passes/Schedule/ResourceModel.h`, shared memory (at most 232448 bytes: the tiles that dots
    read, `stages` copies of those loaded in loops, computed operands with `operands = shared`, staging of stores with
    `store = tma`, mbarriers), and by `RegisterModel.h`, registers of a consumer thread, by liveness of the kernel as
    `tile-overlap` would leave it. A remark tells why each preferred candidate was rejected, in numbers. When nothing fits, or a field that
    is written or overridden cannot hold, the error says what would work. Rejected is also what later passes refuse:
    turns where the loop with the dots holds another loop, and consumers that cannot divide a tile, such as a transposed
    first operand of a dot.

    Where nothing fits, the search runs once more with dots in another order. One that adds a product of a computed tile to
    what its loop carries then runs before those that it does not wait for: the tile is dead when their results take
    registers. If that fits the kernel gets this order, and a remark says so.

    ```mlir
    %dp = tile.dot %v, %do_t, %start : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
    %dv = tile.dot %p, %do, %dv_old : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    // becomes
    %dv = tile.dot %p, %do, %dv_old : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %dp = tile.dot %v, %do_t, %start : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
    ```

    The pass takes the first schedule. Where that does not compile, because a later pass refuses it or ptxas spills,
    `tessera compile` and all other interfaces try the next ones, up to 8 in all: without turns, without polynomials,
    without both, then other overlaps and consumers. Fields that are set stay; what was given up is a remark.

    Each load that feeds a dot gets the number of its pipe (`pipe`). The copies that later
    passes make of the load keep it: they share the slots. So do loads of one view and tile type in
    different blocks, such as the two regions of a `tile.speculate` or a loop and what stands before it,
    when no tile of one is in use while the other's is.

    A load is `wide` where its tile has whole rows of the view and launches say how long these are, up to the columns of the
    tile. Such rows may begin and end amid sectors of memory, where bulk copies take several times as long for each chunk: wide
    tiles have the fewest. Tiles of 8 bits stay as they are, and those that a reducer multiplies or a converter takes. So do
    all where there would be no room for two slots, or where nothing fits that way.

    ```mlir
    // In a kernel that requires K <= 96.
    %q = tile.load %Q[%row, %c0] : !tile.view<[M, K], bf16> -> tensor<128x96xbf16>
    // becomes
    %q = tile.load %Q[%row, %c0] pipe 0 wide : !tile.view<[M, K], bf16> -> tensor<128x96xbf16>
    ```

    A `tile.speculate` is kept, unless `speculate = false` asks for its exact region alone or no schedule
    fits both.

    ```mlir
    tile.kernel @product(%a: !tile.view<[M, 64], f16>, %b: !tile.view<[64, 128], f16>, %c: !tile.view<[M, 128], f32>)
        grid(%m = M ceildiv 128) schedule #tile.schedule<persistent = none> {
      %c0 = arith.constant 0 : index
      %c128 = arith.constant 128 : index
      %row = arith.muli %m, %c128 : index
      %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
      %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 128], f16> -> tensor<64x128xf16>
      %ct = tile.dot %at, %bt : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
      tile.store %ct, %c[%row, %c0] : tensor<128x128xf32>, !tile.view<[M, 128], f32>
    }
    // becomes
    tile.kernel @product(%a: !tile.view<[M, 64], f16>, %b: !tile.view<[64, 128], f16>, %c: !tile.view<[M, 128], f32>)
        grid(%m = M ceildiv 128) schedule #tile.schedule<warp_specialize = true, consumers = 2, stages = 1,
          outer_stages = 1, overlap = 1, operands = registers, polynomial_exp = 0, pin_waits = false, pingpong = false,
          split = true, speculate = false, store = direct, persistent = none, order = linear, section = 2, cluster = 1,
          pdl = false, producer_registers = 24, consumer_registers = 240, placement = rows, helper_registers = 24,
          loads = direct, transpose = 0> {
      %c0 = arith.constant 0 : index
      %c128 = arith.constant 128 : index
      %row = arith.muli %m, %c128 : index
      %at = tile.load %a[%row, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
      %bt = tile.load %b[%c0, %c0] pipe 1 : !tile.view<[64, 128], f16> -> tensor<64x128xf16>
      %ct = tile.dot %at, %bt : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
      tile.store %ct, %c[%row, %c0] : tensor<128x128xf32>, !tile.view<[M, 128], f32>
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::tessera::tile::TileDialect"];
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

def TileCutDots : Pass<"tile-cut-dots", "::tessera::tile::KernelOp"> {
  let summary = "Cuts dots of which no warpgroup holds 64 rows into dots on some of the columns";
  let description = [{
    A thread has 255 registers, so that a warpgroup holds 64 rows of 510 columns at most. A dot of more columns becomes as few of 256
    columns, the most of a wgmma, as possible, each on as many columns of the second operand and of the accumulator. What is on the way is cut alike: operations element
    by element, what loops, conditionals and speculations hand on, stores, loads and gathers, each of whose parts arrives, serves and is given
    back by itself. A loaded tile is loaded in parts for all of its readers: a dot that sums over what is cut becomes a dot for each part, which
    adds to the one before. So does a reduction along it, whose results are combined. Vectors of the other axis stay whole.

    With `placement = divided` each consumer may then have some of the accumulators.

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
    nor NaN. So the mask goes before these. The largest element of a product with one positive number is that number times the
    largest element, rounding included. An exponent of a base 2, `x * scale - reference`, is then one multiply-add of the masked
    product, which the maximum is taken of too: where both are computed of one block the mask is applied once.

    A product with a positive number plus another product, as a score with a bias that falls with the distance, is the number
    times a sum, where a mask or a maximum is taken of it: the factor of the other product is divided by the number.

    A number is known to be positive as a constant, or as an argument of the kernel of which `requires` says it. A reference
    is known to be no -inf and no NaN where it is the larger one (`arith.maxnumf`) of two of which one is neither, what a loop
    carries included, or is chosen only where it is larger than something (`arith.cmpf ogt`).

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
