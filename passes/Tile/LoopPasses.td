// Passes of the tile dialect on loops: what a schedule makes of them.

#ifndef TESSERA_PASSES_LOOPPASSES_TD
#define TESSERA_PASSES_LOOPPASSES_TD

include "mlir/Pass/PassBase.td"

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
    `overlap = 2`, `scaled` or `3`; `lead` see below. Every loop in which a dot reads what was computed from
    another dot of the same iteration is rotated. The *later* dots are those that depend on another dot in this way, with what depends on them and the loads and index arithmetic that only they use; the *leading* dots are the others,
    with what they need. Step j of the new loop runs each part for an iteration of its own:

    | schedule | leading dots | elementwise work | later dots | order of a step |
    |---|---|---|---|---|
    | `overlap = 2`, `scaled` (Algorithm 2) | j | j | j-1 | leading, later, work |
    | `overlap = 3` (Algorithm 4) | j | j-1 | j-2 | later, leading, work |

    Dots are in the order in which their results are needed. With `3` two results of the leading dots live at once. Work that needs
    the result of later dots (the rescaling of an accumulator) and the rounding of their next operands come at the end of the
    step, when the dots are done and their registers are free. With `scaled` the rescaling comes in the next step, before the dot
    that adds to the accumulator.

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

    **Loops within loops** of dots are rotated too where no dot is later: step j issues the dots of iteration j, whose results live
    beside those of j-1, and does the work of j-1 under them. The innermost loop that can be rotated is, as most dots are there, and
    no loop around it, whose steps would each hold a copy of it. A loop of dots alone, as one that accumulates, stands for one
    leading dot of the loop around it. Its dots are waited for in it.

    **The first dot alone** (`overlap = lead`) runs a step ahead where dots depend on each other in a chain, as in the
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
    // becomes with overlap = lead
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

def TileSplitLoops : Pass<"tile-split-loops", "::tessera::tile::KernelOp"> {
  let summary = "Gives the iterations that need no mask a loop without one";
  let description = [{
    A mask is an `arith.select` of tiles whose condition
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
    cannot be analysed stays in every iteration, and a remark says why. So does one without which an operand of a dot would come another
    way than the schedule was chosen for: from a converter, or by copies to shared memory where threads load it. Coordinates are taken
    to fit i32, as extents of views do.

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
  let options = [
    Option<"split", "split", "bool", "true", "False leaves masks in all iterations, for tests of masks">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
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

#endif // TESSERA_PASSES_LOOPPASSES_TD
