// The passes that choose schedules, and what the choice rests on.

#ifndef TESSERA_PASSES_SCHEDULEPASSES_TD
#define TESSERA_PASSES_SCHEDULEPASSES_TD

include "mlir/Pass/PassBase.td"

def TileCheckMemory : Pass<"tile-check-memory", "::tessera::tile::KernelOp"> {
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
    induction variables and extents (`passes/Analysis/MemoryDependenceAnalysis.h`). Views of different arguments are different
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
    * Results are stored directly, because staging them takes shared memory that the pipes can use.
    * Registers per role are those known to work for the number of consumers, less for consumers where
      `producer_registers` asks for more. `setmaxnreg` divides what the launch gives the block, and no more: with two
      consumers 168 registers for each of 384 threads (PTX ISA 9.7.20.5). A dot whose columns have no room in what a thread
      starts with is cut where `consumer_registers` is given, and refused elsewhere. Without warp specialization the threads share
      the SM's registers evenly, and where registers of a role are asked for it is not considered.
    * Tiles whose loops run longer come first: from the last index of the first grid dimension on when trip counts grow
      with it, and also of a sliding window, whose first tiles are short; from the first index on where they shrink, and of a window that
      reaches further past a tile than before it, whose last tiles are. Its loops are short. So where there is no second slot for all
      that is loaded before them, the first tile alone has one with `placement = apart`: the role that makes sums gives it back last.
    * Tiles are handed out one by one where they differ in work, or where dots depend on each other. With `tile.few_tiles`,
      which `tessera compile` sets for the classes of shapes that say so, tiles of equal work are not: asking for another one
      takes longer than it gains.
    * With `placement = divided` the columns of a single accumulator that loops carry are cut into as many parts as there are
      consumers, as `tile-cut-dots` cuts wide ones. All of them then read the first operand.
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

    The numbers by which the search prefers and rejects are in `kernels/cards.json`, each with its measurement.

    What fits is decided by `passes/Schedule/ResourceModel.h`, shared memory (at most 232448 bytes: the tiles that dots
    read, `stages` copies of those loaded in loops, computed operands that are transposed or second ones, staging of stores with
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
        grid(%m = M ceildiv 128) schedule #tile.schedule<producer = operands, consumers = 2, stages = 1,
          outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false,
          store = direct, persistent = none, order = linear, section = 2, cluster = 1, producer_registers = 24,
          consumer_registers = 240, placement = rows, transpose = 0> {
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

#endif // TESSERA_PASSES_SCHEDULEPASSES_TD
