// Passes from the tile dialect to itself. Those on the functions of a source are in FunctionPasses.td, those on sums
// in memory in SumPasses.td.

#ifndef TESSERA_PASSES_TILEPASSES_TD
#define TESSERA_PASSES_TILEPASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/Tile/FunctionPasses.td"
include "passes/Tile/SumPasses.td"

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
    %reach = arith.addi %row, %c127 : index
    %end = arith.floordivsi %reach, %c64 : index
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
    2. overlap 2 before 1, where `tile-overlap` can overlap a loop of the kernel; 3, and `lead = 1` with 2, are
       taken when asked for, as they need the registers of a second result of the leading dots and gain nothing
       where another warpgroup fills the tensor cores meanwhile;
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

    * Ping-pong: two consumers or more have work between the dots of a loop, and `lead = 0`.
    * Results are stored directly, because staging them takes shared memory that the pipes can use. With
      `staging = shared` the pipes lend it, and `store` is `tma`.
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

    The numbers by which the search prefers and rejects are in `passes/Schedule/CostModel.h`, each with its measurement.

    What fits is decided by `passes/Schedule/ResourceModel.h`, shared memory (at most 232448 bytes: the tiles that dots
    read, `stages` copies of those loaded in loops, computed operands with `operands = shared`, staging of stores with
    `staging = own`, mbarriers), and by `RegisterModel.h`, registers of a consumer thread, by liveness of the kernel as
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
          outer_stages = 1, overlap = 1, lead = 0, rescale = before, pack = before, operands = registers,
          polynomial_exp = 0, pin_waits = false, pingpong = false, split = true, speculate = false, store = direct,
          staging = own, persistent = none, order = linear, section = 2, cluster = 1, pdl = false,
          producer_registers = 24, consumer_registers = 240, placement = rows, reducer_registers = 24, loads = direct,
          transpose = own> {
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

def TileEvenLoops : Pass<"tile-even-loops", "::tessera::tile::KernelOp"> {
  let summary = "Lets all thread blocks of a cluster load as many tiles as the one that needs most";
  let description = [{
    For kernels whose schedule has `cluster = n` and a producer. The blocks of a cluster, neighbours in the first grid
    dimension, can load a tile together when they load the same tiles in the same order. A load that does not depend on
    the first grid index does so, but for one in a loop whose upper bound depends on it (a causal mask): there the
    blocks load the same tiles, and some of them more. Such a loop is made to load as many in all of them:

    * its upper bound becomes a `tile.common_bound`, whose `loads` is the bound in the tile of the cluster where it
      is largest, and which all blocks compute alike: the last tile if the bound grows with the index, the first if it
      falls. The program that loads, which `tile-warp-specialize` cuts out, runs that many iterations in each block,
      whatever passes in between have made of the loop;
    * behind the loop a `tile.skip_loads` lets the tiles pass that the block itself does not read.

    All loads of a pipe that is filled alike are marked `alike`. The passes that follow copy, rotate and split
    loops, at places that may differ from block to block, but keep the order of the loads of each pipe.

    The loop starts at the same iteration in all blocks, the places of its loads do not depend on the index, and its
    bound follows from the index by arithmetic and only grows or only falls with it. A loop that walks back
    from the diagonal comes to other places in each block; walked from its start it would do. So does a start that
    depends only on the index divided by a constant multiple of `n`, which is the same within a cluster. Tiles that cannot be made
    alike stay each block's own. As the program that loads is ahead of a block that has left its loop by up to
    `overlap` iterations, each ring of such a loop has at least `overlap` slots; `tile-choose-schedule` sees to that.

    ```mlir
    %n = arith.ceildivsi %columns, %bn : index        // %columns grows with the first grid index, %m
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%s = %s0) -> tensor<64x64xf32> {
      %k = tile.load %K[%j, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
      %d = tile.dot %q, %k, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    // becomes, with cluster = 2 and %last, the last tile of the cluster, in place of %m
    %n = arith.ceildivsi %columns, %bn : index
    %most = arith.ceildivsi %columns_of_last, %bn : index
    %bound = tile.common_bound %n loads %most
    %r = scf.for %j = %c0 to %bound step %c1 iter_args(%s = %s0) -> tensor<64x64xf32> {
      %k = tile.load %K[%j, %c0] pipe 1 alike : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
      %d = tile.dot %q, %k, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %rest = arith.subi %most, %n : index
    tile.skip_loads [1] times %rest
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileOverlap : Pass<"tile-overlap", "::tessera::tile::KernelOp"> {
  let summary = "Runs the dots of some iterations under the elementwise work of another";
  let description = [{
    Intra-warpgroup software pipelining (FlashAttention-3, Algorithms 2 and 4), for kernels whose schedule has
    `overlap = 2` or `3`; with `overlap = 1, lead = 1` see below. Every loop in which a dot reads what was computed from
    another dot of the same iteration is rotated. The *later* dots are those that depend on another dot in this way,
    with what depends on them and the loads and index arithmetic that only they use; the *leading* dots are the others,
    with what they need. Step j of the new loop runs each part for an iteration of its own:

    | schedule | leading dots | elementwise work | later dots | order of a step |
    |---|---|---|---|---|
    | `overlap = 2, lead = 0` (Algorithm 2) | j | j | j-1 | leading, later, work |
    | `overlap = 2, lead = 1` | j | j-1 | j-1 | leading, work, later |
    | `overlap = 3, lead = 1` (Algorithm 4) | j | j-1 | j-2 | later, leading, work |

    Dots are in the order in which their results are needed. With `lead = 1` two results of the leading dots
    live at once. Where the later dots have a step of their own, work that needs their result (the rescaling of
    an accumulator) and the rounding of their next operands come at the end of the step, when the dots are done
    and their registers are free; `rescale = before` and `pack = before` move them to the next step, before the
    dot that reads them.

    Values that cross from one step to the next become iter_args; index arithmetic on the induction variable is
    made anew for each iteration of a step. The steps that have no iteration for some part come before and after
    the loop, all under `scf.if` unless the loop provably runs long enough; a shorter one runs its iterations
    one after another. The result is the same bit for bit.

    ```mlir
    !S = tensor<64x64xf32>
    !P = tensor<64x64xf16>
    %r = scf.for %j = %lb to %ub step %c1 iter_args(%o = %o0) -> !S {
      %k = tile.load %K[%j, %c0] : !tile.view<[N, 64], f16> -> !P
      %s = tile.dot %q, %k : !P, !P -> !S
      %p = arith.truncf %s : !S to !P
      %v = tile.load %V[%j, %c0] : !tile.view<[N, 64], f16> -> !P
      %o1 = tile.dot %p, %v, %o : !P, !P -> !S
      scf.yield %o1 : !S
    }
    // becomes, in a loop that runs once or more
    %k0 = tile.load %K[%lb, %c0] : !tile.view<[N, 64], f16> -> !P
    %s0 = tile.dot %q, %k0 : !P, !P -> !S
    %p0 = arith.truncf %s0 : !S to !P
    %j1 = arith.addi %lb, %c1 : index
    %r:2 = scf.for %j = %j1 to %ub step %c1 iter_args(%o = %o0, %p = %p0) -> (!S, !P) {
      %k = tile.load %K[%j, %c0] : !tile.view<[N, 64], f16> -> !P
      %s = tile.dot %q, %k : !P, !P -> !S
      %i = arith.subi %j, %c1 : index
      %v = tile.load %V[%i, %c0] : !tile.view<[N, 64], f16> -> !P
      %o1 = tile.dot %p, %v, %o : !P, !P -> !S
      %pn = arith.truncf %s : !S to !P
      scf.yield %o1, %pn : !S, !P
    }
    %last = arith.subi %ub, %c1 : index
    %v = tile.load %V[%last, %c0] : !tile.view<[N, 64], f16> -> !P
    %o1 = tile.dot %r#1, %v, %r#0 : !P, !P -> !S
    ```

    **The first dot alone** (`overlap = 1, lead = 1`) runs a step ahead where dots depend on each other in a chain, as in the
    gradients of attention: S, then dP and dV, then dK. All else stays in the step of its iteration. The first dot of the
    next iteration stands behind the last dot of the step, and what it begins with before that one. So both are in flight
    when the step ends, and the result takes registers that have been free since: none lives twice. Dots that another role
    makes (`placement = apart`) stand behind both.

    Behind the last iteration the first dot is made of one more tile, which is not used: along the dimensions of a tile what
    lies outside of a view is 0. So there is no copy of the step beside the loop, which would cost registers. A tile that
    dots of two steps read is loaded with `ahead` for the first of them and taken by the load for the others. The one that
    is left over passes behind the loop (`tile.skip_loads`).

    ```mlir
    !T = tensor<64x64xf16>
    !S = tensor<64x64xf32>
    %r = scf.for %j = %lb to %ub step %c1 iter_args(%o = %o0) -> !S {
      %k = tile.load %K[%j, %c0] pipe 1 : !tile.view<[N, 64], f16> -> !T
      %s = tile.dot %q, %k : !T, !T -> !S
      %p = arith.truncf %s : !S to !T
      %o1 = tile.dot %p, %k, %o : !T, !T -> !S
      scf.yield %o1 : !S
    }
    // becomes with overlap = 1, lead = 1
    %k0 = tile.load %K[%lb, %c0] pipe 1 ahead : !tile.view<[N, 64], f16> -> !T
    %s0 = tile.dot %q, %k0 : !T, !T -> !S
    %r:2 = scf.for %j = %lb to %ub step %c1 iter_args(%o = %o0, %s = %s0) -> (!S, !S) {
      %p = arith.truncf %s : !S to !T
      %k = tile.load %K[%j, %c0] pipe 1 : !tile.view<[N, 64], f16> -> !T
      %j1 = arith.addi %j, %c1 : index
      %kn = tile.load %K[%j1, %c0] pipe 1 ahead : !tile.view<[N, 64], f16> -> !T
      %o1 = tile.dot %p, %k, %o : !T, !T -> !S
      %sn = tile.dot %q, %kn : !T, !T -> !S
      scf.yield %o1, %sn : !S, !S
    }
    tile.skip_loads [1] times %c1
    ```

    Masks stay affine in the induction variable, and the iter_args hold all the state of the pipeline. So
    `tile-split-loops` comes after this pass: it cuts the range of the rotated loop where a mask changes, and
    the parts need neither a prologue nor an epilogue of their own.

    A loop is refused when the dependences leave nothing to overlap. It is an error when no loop of the kernel
    can be overlapped, a remark when another one can.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileCutDots : Pass<"tile-cut-dots", "::tessera::tile::KernelOp"> {
  let summary = "Cuts dots of more than 256 columns into dots on some of the columns";
  let description = [{
    wgmma has 256 columns at most, and the registers of a warpgroup hold no more of 64 rows. A dot of more columns becomes as few as
    possible, each on as many columns of the second operand and of the accumulator. What is on the way is cut alike: operations element
    by element, what loops and conditionals hand on, stores, and loads, each of whose parts arrives, serves and is given back by
    itself. A loaded tile is loaded in parts for all of its readers: a dot that sums over what is cut becomes a dot for each part, which
    adds to the one before. So does a reduction along it, whose results are combined. Vectors of the other axis stay whole.

    With `placement = divided` each consumer may then have some of the accumulators.

    Refused where a tile would be cut along both of its axes, does not divide, or is read by an operation that makes no parts.

    ```mlir
    %q = tile.load %Q[%row, %c0] : !tile.view<[M, 512], bf16> -> tensor<64x512xbf16>
    %c = tile.load %C[%j, %c0] : !tile.view<[N, 512], bf16> -> tensor<64x512xbf16>
    %ct = tile.transpose %c : tensor<64x512xbf16> -> tensor<512x64xbf16>
    %s = tile.dot %q, %ct : tensor<64x512xbf16>, tensor<512x64xbf16> -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
    %o = tile.dot %p, %c, %acc : tensor<64x64xbf16>, tensor<64x512xbf16> -> tensor<64x512xf32>
    // becomes
    %q0 = tile.load %Q[%row, %c0] : !tile.view<[M, 512], bf16> -> tensor<64x256xbf16>
    %q1 = tile.load %Q[%row, %c256] : !tile.view<[M, 512], bf16> -> tensor<64x256xbf16>
    // ... and %c0, %c1, and their transposed forms likewise
    %s0 = tile.dot %q0, %ct0 : tensor<64x256xbf16>, tensor<256x64xbf16> -> tensor<64x64xf32>
    %s1 = tile.dot %q1, %ct1, %s0 : tensor<64x256xbf16>, tensor<256x64xbf16> -> tensor<64x64xf32>
    %p = arith.truncf %s1 : tensor<64x64xf32> to tensor<64x64xbf16>
    %o0 = tile.dot %p, %c0, %acc0 : tensor<64x64xbf16>, tensor<64x256xbf16> -> tensor<64x256xf32>
    %o1 = tile.dot %p, %c1, %acc1 : tensor<64x64xbf16>, tensor<64x256xbf16> -> tensor<64x256xf32>
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

def TileSplitLoops : Pass<"tile-split-loops", "::tessera::tile::KernelOp"> {
  let summary = "Gives the iterations that need no mask a loop without one";
  let description = [{
    For kernels whose schedule has `split = true`. A mask is an `arith.select` of tiles whose condition
    compares positions: `arith.cmpi` (signed, eq or ne) of integer tiles that are affine in `tile.iota`, the
    induction variable and loop-invariant scalars, combined by `andi`, `ori` and `xori` with true. The
    largest and the smallest value of the affine form over the tile give the values of the induction variable
    for which the whole condition is true, and those for which it is false. The range in which the select
    yields the arm that is computed (rather than a constant or a splat) becomes a loop of its own, with the
    select folded to that arm and dead code removed; the iterations before and after it run in copies of the
    loop that keep the mask. The loops are chained through their iter_args.

    Where there are iterations before it and after it (a window), one of these copies keeps only what its own end needs
    of a condition that `andi` combines, or `ori` when the fill is the true arm: that of the end does not look whether a
    column is before the window. It is the one that has more to leave out. The other one keeps the whole condition and
    also runs the iterations that need both, when the window is narrower than a block.

    The loops that keep their masks are marked `tile.boundary`: they run few iterations.

    Values that are loaded for each row are bounded as in `tile-find-visits`. So are those of masks outside of loops, as of
    the block that a tile begins with. A comparison with such values there becomes `arith.ori` of a scalar and itself: the
    scalar says, by the least or the largest of the rows, where every element is true. `hop-guard-masks` jumps by it.

    ```mlir
    %seen = arith.cmpi sge, %cols, %starts_of_rows : tensor<64x128xi32>
    // becomes
    %holds = arith.cmpi sle, %largest_start, %col : index
    %all = tile.splat %holds : i1 -> tensor<64x128xi1>
    %seen_here = arith.ori %all, %seen : tensor<64x128xi1>
    ```

    A loop that may go from its end (`tile.walk`) has its masked iterations at the other end then: all in front of the
    middle, or all behind it. Both copies keep the masks of both ends, and `tile.walk` becomes arithmetic.

    Of a loop that consists of another one it is the outer loop that is cut, where no mask depends on the iteration of the inner
    one, and some mask on that of the outer one. So each part is still a loop over one loop (`hop-schedule-tickets`).

    Several masks of a loop are folded together, in the iterations in which all are uniform. A mask that
    cannot be analysed stays in every iteration, and a remark says why. Coordinates are taken to fit i32, as
    extents of views do.

    ```mlir
    !S = tensor<64x128xf32>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%a = %a0) -> !S {
      %col = arith.muli %j, %c128 : index
      %cols = tile.iota %col axis 1 : tensor<64x128xi32>
      %in = arith.cmpi slt, %cols, %sk_splat : tensor<64x128xi32>
      %s = arith.select %in, %x, %minus_inf : tensor<64x128xi1>, !S
      %b = arith.addf %a, %s : !S
      scf.yield %b : !S
    }
    // becomes, for the columns below %sk end in a tail of the last block,
    %blocks = arith.floordivsi %sk, %c128 : index
    %some = arith.maxsi %blocks, %c0 : index
    %full = arith.minsi %some, %n : index
    %r0 = scf.for %j = %c0 to %full step %c1 iter_args(%a = %a0) -> !S {
      %b = arith.addf %a, %x : !S
      scf.yield %b : !S
    }
    %r = scf.for %j = %full to %n step %c1 iter_args(%a = %r0) -> !S {
      %col = arith.muli %j, %c128 : index
      %cols = tile.iota %col axis 1 : tensor<64x128xi32>
      %in = arith.cmpi slt, %cols, %sk_splat : tensor<64x128xi32>
      %s = arith.select %in, %x, %minus_inf : tensor<64x128xi1>, !S
      %b = arith.addf %a, %s : !S
      scf.yield %b : !S
    } {tile.boundary}
    ```

    The pass comes after `tile-overlap`. A rotated loop carries all state of the pipeline in its iter_args and
    its masks are affine in its induction variable, so its parts need neither a prologue nor
    an epilogue. The prologue of the rotation keeps its mask: it is one iteration.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
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

def TileUnrollLoops : Pass<"tile-unroll-loops", "::tessera::tile::KernelOp"> {
  let summary = "Runs two iterations a step where a tile and its successor live at once";
  let description = [{
    A loop that makes the next value of a tile of rank 2 while it still reads the present one needs registers for both,
    and at its end the next value would have to be copied to where the present one was (Algorithm 4 of FlashAttention-3,
    line 15). So it would where two tiles of the loop take each other's place. Such a loop runs two iterations a step,
    after which each value is back in its place (modulo variable expansion: Lam, "Software Pipelining", PLDI 1988). An
    iteration that is left over runs after the loop. Loops that `tile-split-loops` marks as the boundary of a mask
    (`tile.boundary`) run too few iterations to gain anything, and stay as they are.

    ```mlir
    !S = tensor<64x64xf32>
    %r:2 = scf.for %j = %lb to %ub step %c1 iter_args(%s = %s0, %o = %o0) -> (!S, !S) {
      %k = tile.load %K[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
      %next = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> !S
      %o1 = arith.addf %o, %s : !S
      scf.yield %next, %o1 : !S, !S
    }
    // becomes
    %even:2 = scf.for %j = %lb to %middle step %c2 iter_args(%s = %s0, %o = %o0) -> (!S, !S) {
      %k = tile.load %K[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
      %a = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> !S
      %o1 = arith.addf %o, %s : !S
      %j1 = arith.addi %j, %c1 : index
      %k1 = tile.load %K[%j1, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
      %b = tile.dot %q, %k1 : tensor<64x64xf16>, tensor<64x64xf16> -> !S
      %o2 = arith.addf %o1, %a : !S
      scf.yield %b, %o2 : !S, !S
    }
    %odd = arith.cmpi slt, %middle, %ub : index
    %r:2 = scf.if %odd -> (!S, !S) {
      %k = tile.load %K[%middle, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
      %next = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> !S
      %o1 = arith.addf %even#1, %even#0 : !S
      scf.yield %next, %o1 : !S, !S
    } else {
      scf.yield %even#0, %even#1 : !S, !S
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // TESSERA_PASSES_TILEPASSES_TD
