// Passes on the hop dialect, with those of the files below.

#ifndef TESSERA_PASSES_HOPPASSES_TD
#define TESSERA_PASSES_HOPPASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/Hop/BarrierPasses.td"
include "passes/Hop/OrderPasses.td"
include "passes/Hop/StagingPasses.td"
include "passes/Hop/TicketPasses.td"

def AssignLayouts : Pass<"hop-assign-layouts", "::tessera::hop::KernelOp"> {
  let summary = "Give every tile of a consumer a register layout";
  let description = [{
    All tiles of rank 2 of a role have one layout. In a role with products it is the accumulator of wgmma, which is also
    its 16-bit A operand; elements of 8 bits stay with the threads that have them there, four to a register
    (`hop.rearrange`). What a product makes with an operand of 8 bits that is read transposed (`hop.fetch`) has its rows in the order
    `row_pairs`, and so has all that is computed of it or with it, vectors of a number for each row too. Where something needs these rows in order, as
    a product with a first operand in shared memory, that is an error. What is loaded to be transposed, or
    transposed to be stored, has the axes exchanged. In others a thread has 16 bytes of neighbours, the lanes of a warp lie side by side along the
    columns, and warps and warpgroups have rows of their own as far as there are rows; the rest shares the columns. In a
    role that takes tiles from shared memory and writes them there a thread has 16 or 8 neighbours, and 8 lanes lie below each
    other: rows of one repeat of the swizzle, which keeps them in different banks. That takes multiples of 32 rows and columns.
    Tiles that the threads cannot share so are an error that says which extents would work.

    Tiles of rank 1 follow the rows or the columns, as their uses ask; one that would need both is an error. A reduction
    stays what each thread has combined of its own elements for as long as only operations of its kind, and of a sum
    products by whole values, follow. So an online softmax needs its sum across threads once, after the loop. Where
    several warps share a row, its parts meet in shared memory (`hop.combine`). So does what warps combined of a scan along
    an axis that they share (`hop.scan`); a scan within warps stays a `tile.scan`. Tiles of other blocks of the cluster have
    a buffer there (`hop.from_block`).

    ```mlir
    %r = tile.reduce sum %p axis 1 : tensor<64x128xf32> -> tensor<64xf32>
    %l2 = arith.addf %l, %r : tensor<64xf32>
    // becomes
    %r = tile.reduce sum %p axis 1
        : tensor<64x128xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<row_partial>>
    %l2 = arith.addf %l, %r : tensor<64xf32, #hop.layout<row_partial>>
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def GuardMasks : Pass<"hop-guard-masks", "::tessera::hop::KernelOp"> {
  let summary = "Jump over masks of straight-line code where no element needs them";
  let description = [{
    `tile-split-loops` gives iterations that need no mask a loop of their
    own; this pass does the same for what is outside of loops, as the first block of a tile, whose scores are needed
    before the loop. The conditions that a mask combines are taken one by one: where the largest and the smallest value
    of its affine form over the tile say that one leaves every element as it is, its comparisons are jumped over. All
    threads of a warpgroup jump alike, as scalars are the same for them. Loads that the comparisons take stay before, so that
    they run beside a product.

    A condition that is `arith.ori` of a scalar and another one is jumped over where the scalar is true, whatever the other
    one is (`tile-split-loops`); behind the branch the other one is all of it. One that is either of two, as a comparison of scalars
    says (`c and a or not c and b`), is a branch too, with one of them on each side.

    What cannot be analysed stays as it is, and a remark says why. So do masks in loops: a product that is in flight
    cannot stay so over a branch.

    ```mlir
    %cols = tile.iota %col axis 1 : tensor<64x128xi32>
    %in = arith.cmpi slt, %cols, %sk_splat : tensor<64x128xi32>
    %s = arith.select %in, %x, %minus_inf : tensor<64x128xi1>, tensor<64x128xf32>
    // becomes
    %end = arith.addi %col, %c128 : index
    %excess = arith.subi %end, %sk : index
    %holds = arith.cmpi sle, %excess, %c0 : index
    %s = scf.if %holds -> tensor<64x128xf32> {
      scf.yield %x : tensor<64x128xf32>
    } else {
      %cols = tile.iota %col axis 1 : tensor<64x128xi32>
      %in = arith.cmpi slt, %cols, %sk_splat : tensor<64x128xi32>
      %masked = arith.select %in, %x, %minus_inf : tensor<64x128xi1>, tensor<64x128xf32>
      scf.yield %masked : tensor<64x128xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def InsertMemoryBarriers : Pass<"hop-insert-memory-barriers", "::tessera::hop::KernelOp"> {
  let summary = "Barriers between the consumers' loads and stores of the same elements";
  let description = [{
    The loads and stores of a grid point that may touch one element happen in program order. Two of the consumers' own
    that do so are in order when both are the same thread's: stores of one tile type at one place, or a load and a
    store of 32-bit tiles of rank 2 there. Elsewhere the threads meet before the later one: those of the warpgroup where
    each touches rows of its own, else those of all consumers. A barrier that is there already counts.

    ```mlir
    tile.store %x, %c[%c1, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[M, 64], f32>
    tile.store %r, %c[%row, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[M, 64], f32>
    // becomes
    tile.store %x, %c[%c1, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[M, 64], f32>
    hop.warpgroup_sync
    tile.store %r, %c[%row, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[M, 64], f32>
    ```

    Refused are bulk stores that would have to be ordered with another access, but for loads that come before; and, in a
    loop, accesses that only a barrier of several consumer warpgroups orders, as these take turns there.
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def Persistent : Pass<"hop-persistent", "::tessera::hop::KernelOp"> {
  let summary = "Let each thread block walk over tiles of the grid";
  let description = [{
    The launch has one thread block for each multiprocessor, and each role runs its program for one tile after
    another, so that the loads of the next tile start while the results of this one are stored. With
    `persistent = static` block `i` of `n` takes tiles i, i + n, ...; with `dynamic` the producer takes the
    next number from a counter in global memory, after its last load of a tile, and hands it to the consumers
    through a pipe, from which all threads of a producer that gathers get it too; the last block sets the counter back, so that no second launch is needed. `order` says which
    tile a number means. With `ascending` and `descending` the first grid index changes slowest within a section of
    the other indices: as many of them as have `section` tiles for each thread block. Then blocks that load the same
    tensors run tiles of nearly the same length at the same time. What is less than half a section at the end belongs to
    the one before: by itself it would begin with its longest tiles when most blocks have nothing left to do. Where blocks
    wait for tickets of neighbours along the first index, a section has two of the other indices at least, but for `turns`: then
    neighbours do not start together. With `turns` sections are `descending` and `ascending` in turn, with `last_turns` all are
    `descending` but the last one, if it is not the first, and `tile.walks_down` is true in those that are `ascending`. Grid points
    that add to one tile are of one section, so that a ticket goes from the smaller number to the greater one in either direction. With `narrow`, of a grid of two dimensions, the one with
    the smaller extent is fastest, so that tiles that run at the same time are of few rows and few columns. In clusters a number stands for the tiles of a
    whole cluster, of which each block takes the one of its rank; with `dynamic` the first block of a cluster
    fetches for all. Where a role waits for tickets, which blocks with smaller numbers pass on, a block draws its first
    number too (`hop.next_tile all`): whoever has a smaller one has started then.

    ```mlir
    hop.role @consumer warpgroups(2) {
    ^bb0(%wg: index):
      %row = arith.muli %m, %c128 : index              // %m: the grid index of the block
    }
    // becomes
    hop.role @consumer warpgroups(2) {
    ^bb0(%wg: index):
      %block = hop.block_index
      %blocks = hop.block_count
      scf.for %tile = %block to %tiles step %blocks {
        %m = arith.remui %tile, %extent : index
        %row = arith.muli %m, %c128 : index
      }
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def Retry : Pass<"hop-retry", "::tessera::hop::KernelOp"> {
  let summary = "Run the exact program of the tiles whose fast one failed, after the others";
  let description = [{
    A thread block runs the fast program of its tiles, up to 512 of them, and keeps a list of those that a thread
    doubts. Then all roles meet at an mbarrier. When the list is empty, which is one word to read, they go
    on with the tiles that are left; otherwise they run the exact program of the tiles in the list first. So
    a tile that holds pays for its predicate only, and the roles need not agree on anything before.

    What was computed twice is stored twice, by the same threads; bulk stores are waited for in between.

    Where all tiles fail, that costs each of them twice. So with `persistent = dynamic` the first tiles of up to 32 thread blocks are
    *probes*. The first phase of a long launch has one tile. Behind it all blocks wait for what has become of the probes; if one in 8
    failed, they run the exact program of all tiles that are left. Which program a tile runs in follows from its number and the probes, so that
    results do not depend on time. Blocks begin with the numbers below that of blocks, the last one first: where long tiles come first, probes are
    the first to end. What the wait costs is that of some steps of a loop, so launches of fewer than 4 tiles or 400 steps for a thread block have no
    probes. Nor have kernels whose bounds of loops are loaded, and those that draw their first number. These numbers are of a card, and
    stand at the kernel as `tessera.probes`, which `tile-choose-schedule` writes; without it there are no probes.

    ```mlir
    // Behind each phase, the producer; other roles meet alone:
    %is_first = arith.cmpi eq, %start, %c511 : index
    scf.if %is_first {
      %doubts = hop.slot_load %doubted[%phase] : !hop.buffer<tensor<1xi32>, 3>
      %is_probe = arith.cmpi ult, %block, %c32 : index
      %fails = hop.probes.verdict %doubts if %is_probe count 32 share 8 looks 131072
      hop.slot_store %fails, %doubted[%two] : !hop.buffer<tensor<1xi32>, 3>
      hop.barrier.arrive %judged[%zero] all : !hop.barriers<1>
      hop.barrier.wait %judged[%zero], %zero : !hop.barriers<1>
    }
    %verdict = hop.slot_load %doubted[%two] : !hop.buffer<tensor<1xi32>, 3>
    ```

    Without probes:

    ```mlir
    !List = !hop.buffer<tensor<1xi32>, 512>
    !Doubted = !hop.buffer<tensor<1xi32>, 2>
    %next = scf.while (%tile = %block) : (index) -> index {
      %left = arith.cmpi ult, %tile, %tiles : index
      scf.condition(%left) %tile : index
    } do {
    ^bb0(%tile: index):
      hop.attempt {
        %valid = arith.cmpi ule, %tile, %limit : index                           // the fast program
        hop.doubt %valid : i1
      } exact {
        hop.warpgroup_sync                                                       // the exact one
      }
      %after = arith.addi %tile, %blocks : index
      scf.yield %after : index
    }
    // becomes, for up to 512 tiles,
    %next:2 = scf.while (%tile = %block, %i = %zero) : (index, i32) -> (index, i32) {
      %left = arith.cmpi ult, %tile, %tiles : index
      %room = arith.cmpi ult, %i, %c512 : i32
      %goes_on = arith.andi %left, %room : i1
      scf.condition(%goes_on) %tile, %i : index, i32
    } do {
    ^bb0(%tile: index, %i: i32):
      %valid = arith.cmpi ule, %tile, %limit : index
      hop.flag %valid, %number, %list[%i] : i1, !List                            // %tile + 2^31
      hop.flag %valid, %one, %doubted[%phase] : i1, !Doubted
      %after = arith.addi %tile, %blocks : index
      %place = arith.addi %i, %one : i32
      scf.yield %after, %place : index, i32
    }
    hop.barrier.arrive %meet[%zero] all : !hop.barriers<1>
    hop.barrier.wait %meet[%zero], %phase : !hop.barriers<1>
    %any = hop.slot_load %doubted[%phase] : !Doubted
    %again = arith.cmpi ne, %any, %zero : i32
    scf.if %again {
      scf.for %i = %zero to %next#1 step %one : i32 {
        %entry = hop.slot_load %list[%i] : !List
        %doubt = arith.cmpi ne, %entry, %zero : i32
        scf.if %doubt {
          hop.warpgroup_sync
        }
      }
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def Cluster : Pass<"hop-cluster", "::tessera::hop::KernelOp"> {
  let summary = "Let the thread blocks of a cluster load together what all of them read";
  let description = [{
    With `cluster = n` the blocks of a cluster run tiles that neighbour in the first grid dimension. A pipe
    whose loads do not depend on that index, in their place or in the control flow around them, or are marked
    (`alike`), has the same fills in all of them: it becomes a multicast pipe, of whose tiles each block loads one part
    for all: of rows in runs, whole runs. Of rows that threads gather two blocks take half each. They are handed on
    (`hop.pipe.commit`) behind the gathers that follow, so that these copies are on their way together. Tiles that a role
    of one warpgroup writes part by part, of shared tiles and of what does not depend on the index, are made once too:
    each of two blocks makes half of the parts. The other pipes stay each block's own. A kernel without such a pipe is
    refused. A quotient of the index by a constant multiple of `n` is the same in all of them.

    ```mlir
    %v = hop.pipe.create "v" : !hop.pipe<tensor<128x64xbf16>, 2>
    hop.role @producer elected {
    ^bb0(%wg: index):
      hop.pipe.load %v, %V[%j, %c0] : !hop.pipe<tensor<128x64xbf16>, 2>, !tile.view<[N, 64], bf16>
    }
    // becomes
    %v = hop.pipe.create "v" multicast : !hop.pipe<tensor<128x64xbf16>, 2>
    hop.role @producer elected {
    ^bb0(%wg: index):
      hop.pipe.load %v, %V[%j, %c0] : !hop.pipe<tensor<128x64xbf16>, 2>, !tile.view<[N, 64], bf16>
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GuardGridEnd : Pass<"hop-guard-grid-end", "::tessera::hop::KernelOp"> {
  let summary = "Let the thread blocks past the end of the grid run its last tile and not store";
  let description = [{
    With `cluster = n` the number of tiles along the first grid dimension need not be a multiple of `n`. The blocks past
    the end take part like the others, for their neighbours wait for their parts of the tiles: they run the last tile
    again and do not store. Nor do they load from views that the kernel stores, for the block that has the last tile may
    be storing there: they go on with zeros. Where the number is known to be a multiple nothing changes.

    Where the blocks of a cluster run one grid point (`parts`) all but the last one leave these out, whose states went to it.

    ```mlir
    !Tile = tensor<64x64xf32, #hop.layout<accumulator>>
    hop.role @consumer warpgroups(2) {
    ^bb0(%wg: index):
      %row = arith.muli %m, %bm : index
      tile.store %o, %O[%row, %c0] : !Tile, !tile.view<[M, 64], f32>
    }
    // becomes
    hop.role @consumer warpgroups(2) {
    ^bb0(%wg: index):
      %mine = arith.minui %m, %last : index
      %row = arith.muli %mine, %bm : index
      %inside = arith.cmpi ule, %m, %last : index
      scf.if %inside {
        tile.store %o, %O[%row, %c0] : !Tile, !tile.view<[M, 64], f32>
      }
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def AsyncMma : Pass<"hop-async-mma", "::tessera::hop::KernelOp"> {
  let summary = "Make matrix products asynchronous, with the fewest waits";
  let description = [{
    Each product is issued where it stands; a wait comes right before the first use of its result and leaves
    later products in flight. Nothing stays in flight over a branch, but for one that only starts loads into
    other pipes than those the products read (`hop-prefetch`). Slots are released after the wait of every product that
    reads them. A tile that becomes a register operand is packed after the products that read registers have been waited
    for, because ptxas would otherwise serialise every wgmma of the kernel (C7513). A tile is staged after the products
    that read the one before it in the same shared memory.

    With `placement = apart` or `overlap = lead` an operand in registers may be read, and not written, while its
    product is in flight: the product multiplies a copy (`copies_a`). So dV runs under the work that makes dS of P, and dK
    while dS is staged for another role. There the loop's plan has put the packs, and they stay there.

    A product in flight keeps the registers that it multiplies. One that begins in new registers waits for it where the role
    has not the registers for both, beside what lives across them: in gradients of a soft cap at d = 128, dP for dV.

    ```mlir
    !S = tensor<64x64xf32, #hop.layout<accumulator>>
    !P = tensor<64x64xbf16, #hop.layout<accumulator>>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s = hop.mma %q, %k : !Shared, !Shared -> !S
    %o2 = hop.mma %p, %v acc(%o : !S) : !P, !Shared -> !S
    %e = math.exp2 %s : !S
    %sum = arith.addf %o2, %e : !S
    // becomes
    %f = hop.mma_issue %q, %k : !Shared, !Shared -> !hop.flight<!S>
    %g = hop.mma_issue %p, %v acc(%o : !S) : !P, !Shared -> !hop.flight<!S>
    %s = hop.mma_wait %f pending 1 : !hop.flight<!S> -> !S
    %e = math.exp2 %s : !S
    %o2 = hop.mma_wait %g keep %p pending 0 : !hop.flight<!S> keep !P -> !S
    %sum = arith.addf %o2, %e : !S
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def FillProducts : Pass<"hop-fill-products", "::tessera::hop::KernelOp"> {
  let summary = "Do under a product what it does not need";
  let description = [{
    A scalar moves behind the last product that is issued before a wait when nothing up to that product needs it. Where
    a tile begins nothing is in flight. So the divisions that turn the number of a tile into its place in the grid then
    run under the first product and do not delay it. Nor does a `tile.reduce_range` of what no operation stores.

    With `placement = divided` a role that hands several tiles on, as factors of rows and a tile, does so behind the products that it issues
    next, where little stands between: its threads write the slots and meet, once for all, while these products run. So its own
    products come sooner, and what it hands on a little later. It takes the slots, which are free long before, right behind the issue of the
    products for which it waits before, ahead of other work under them: what that makes, as a mask, need not live across waits for
    slots. They are not taken ahead of what the role hands on before. A product of registers that are handed on multiplies a copy of them
    (`copies_a`) by halves, of which the second one is computed under the product of the first (`hop-lower-to-llvm`). A tile goes on where
    it is if the role first waits for products or for others, or works on another tile.

    ```mlir
    !S = tensor<64x64xf32, #hop.layout<accumulator>>
    !P = tensor<64x64xbf16, #hop.layout<accumulator>>
    !Row = tensor<64xf32, #hop.layout<row>>
    !Slot = !hop.shared<tensor<64x64xbf16>, rows = 64>
    !RowSlot = !hop.shared<tensor<64xf32>, rows = 64>
    !Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
    !Rows = !hop.pipe<tensor<64xf32>, 2>
    %g = hop.mma_issue %q, %k : !Slot, !Slot -> !hop.flight<!S>
    %s = hop.mma_wait %g pending 0 : !hop.flight<!S> -> !S
    // makes %factor and %p of %s
    %row = hop.pipe.acquire %rows : !Rows -> !RowSlot
    hop.stage %factor, %row : !Row, !RowSlot
    hop.warpgroup_sync
    hop.pipe.commit %rows, %row : !Rows, !RowSlot
    %own = hop.pipe.acquire %pipe : !Pipe -> !Slot
    hop.stage %p, %own : !P, !Slot
    hop.warpgroup_sync
    hop.pipe.commit %pipe, %own : !Pipe, !Slot
    %f = hop.mma_issue %p, %v acc(%o : !S) : !P, !Slot -> !hop.flight<!S>
    %o2 = hop.mma_wait %f keep %p pending 0 : !hop.flight<!S> keep !P -> !S
    // becomes
    %g = hop.mma_issue %q, %k : !Slot, !Slot -> !hop.flight<!S>
    %row = hop.pipe.acquire %rows : !Rows -> !RowSlot
    %own = hop.pipe.acquire %pipe : !Pipe -> !Slot
    %s = hop.mma_wait %g pending 0 : !hop.flight<!S> -> !S
    // makes %factor and %p of %s
    %f = hop.mma_issue %p, %v acc(%o : !S) {copies_a} : !P, !Slot -> !hop.flight<!S>
    hop.stage %factor, %row : !Row, !RowSlot
    hop.stage %p, %own : !P, !Slot
    hop.warpgroup_sync
    hop.pipe.commit %rows, %row : !Rows, !RowSlot
    hop.pipe.commit %pipe, %own : !Pipe, !Slot
    %o2 = hop.mma_wait %f keep %p pending 0 : !hop.flight<!S> keep !P -> !S
    ```

    The producer of a persistent kernel sends the number of the next tile behind the loads of this one. Once the
    consumers have waited for all of those loads, they take the number (`hop.pipe.get`) right behind the product that
    was issued last. A role that commits what another one needs before it reads the loads of this tile takes it behind that.

    ```mlir
    !S = tensor<64x64xf32, #hop.layout<accumulator>>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    %row = arith.remui %tile, %rows : index
    %f = hop.mma_issue %q, %k : !Shared, !Shared -> !hop.flight<!S>
    %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
    tile.store %s, %O[%row, %c0] : !S, !tile.view<[M, 64], f32>
    %next = hop.pipe.get %tiles : !hop.pipe<tensor<1xi32>, 2>
    // becomes
    %f = hop.mma_issue %q, %k : !Shared, !Shared -> !hop.flight<!S>
    %next = hop.pipe.get %tiles : !hop.pipe<tensor<1xi32>, 2>
    %row = arith.remui %tile, %rows : index
    %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
    tile.store %s, %O[%row, %c0] : !S, !tile.view<[M, 64], f32>
    ```

    Where the products of a tile stand behind a condition, as of a sequence that ends before the tile begins, they wait for
    what it takes: divisions, and loads of what nothing stores. That of the next tile is computed under the last product of this one
    then, as soon as its number is there, and the loop over tiles hands it on. What is cheap is computed again of that. Behind the last
    tile this one's is computed once more, as an index has to lie inside the view.

    ```mlir
    !S = tensor<64x64xf32, #hop.layout<accumulator>>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    %b = arith.remui %tile, %sequences : index
    %length = tile.load %lengths[%b] : !tile.view<[B], i32> -> i32
    %sees = arith.cmpi sgt, %length, %zero : i32
    %o = scf.if %sees -> !S {
      %f = hop.mma_issue %p, %v : !Shared, !Shared -> !hop.flight<!S>
      %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
      scf.yield %s : !S
    } else {
      scf.yield %none : !S
    }
    tile.store %o, %O[%b, %c0] : !S, !tile.view<[B, 64], f32>
    %next = hop.pipe.get %tiles : !hop.pipe<tensor<1xi32>, 2>
    // with %b and %sees of this tile handed on by the loop, becomes
    %o, %next, %b_next, %sees_next = scf.if %sees -> (!S, index, index, i1) {
      %f = hop.mma_issue %p, %v : !Shared, !Shared -> !hop.flight<!S>
      %taken = hop.pipe.get %tiles : !hop.pipe<tensor<1xi32>, 2>
      %number = arith.index_cast %taken : i32 to index
      %b_number = arith.remui %number, %sequences : index
      %length = tile.load %lengths[%b_number] : !tile.view<[B], i32> -> i32
      %sees_number = arith.cmpi sgt, %length, %zero : i32
      %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
      scf.yield %s, %number, %b_number, %sees_number : !S, index, index, i1
    } else {
      %taken = hop.pipe.get %tiles : !hop.pipe<tensor<1xi32>, 2>
      %number = arith.index_cast %taken : i32 to index
      %b_number = arith.remui %number, %sequences : index
      %length = tile.load %lengths[%b_number] : !tile.view<[B], i32> -> i32
      %sees_number = arith.cmpi sgt, %length, %zero : i32
      scf.yield %none, %number, %b_number, %sees_number : !S, index, index, i1
    }
    tile.store %o, %O[%b, %c0] : !S, !tile.view<[B, 64], f32>
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def Pingpong : Pass<"hop-pingpong", "::tessera::hop::KernelOp"> {
  let summary = "Let consumer warpgroups take turns at issuing products";
  let description = [{
    In each innermost loop of a consumer role that issues products and computes on their results, the
    warpgroup waits for its turn before the first product and passes the turn after the last one, so that the
    elementwise work of one warpgroup runs under the products of another (FlashAttention-3, section 3.1,
    Figure 1). Only when the schedule says `pingpong = true`; refused when the role has one warpgroup.

    Consumers of different programs (`placement = divided`) take turns by what they hand on. One that gets a vector of rows in each
    iteration, and once more behind the loop, reads that of the next iteration before it issues its products. So these wait until the
    maker's products of that iteration are done, and run under its elementwise work, not beside its products. Refused when no consumer
    gets such a vector.

    ```mlir
    !S = tensor<64x64xf32, #hop.layout<accumulator>>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    scf.for %j = %c0 to %n step %c1 {
      %f = hop.mma_issue %q, %k : !Shared, !Shared -> !hop.flight<!S>
      %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
      %e = math.exp2 %s : !S
    }
    // becomes
    hop.turn.start %wg
    scf.for %j = %c0 to %n step %c1 {
      hop.turn.wait %wg
      %f = hop.mma_issue %q, %k : !Shared, !Shared -> !hop.flight<!S>
      hop.turn.pass %wg
      %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
      %e = math.exp2 %s : !S
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def CheckPipes : Pass<"hop-check-pipes", "::tessera::hop::KernelOp"> {
  let summary = "Prove that the roles cannot wait for each other for ever";
  let description = [{
    The pipes are rings: the n-th fill of a ring of s slots waits until the tile of fill n - s is released, whatever is
    released after that one. So a tile that keeps its slot while a loop goes round the ring stops both roles, and so
    does a producer that stands before a full ring while the consumers wait for another one that it fills later. Two
    roles that each wait for a tile of the other first stop both, whatever slots there are.

    The pass runs all roles on every outcome of their loops and conditionals at once: it keeps the slots in use and
    what each role has still to do, and ends when no new state comes up. The loops and conditionals around the fills and
    the reads of a pipe go in pairs, which decide alike; those without a partner are refused, but for a conditional that
    does the same with the pipe on either way. So is a ring with too few
    slots; the error names the tiles that keep theirs and the number that would do. Of roles that wait for each other it
    names each place. It comes last, as passes before it move loads, waits and releases. `tile-warp-specialize` asks
    the same of the roles that it makes. Turns of warpgroups are the business of `hop-pingpong`.

    ```mlir
    // Refused: the first tile is held over a loop that goes round its ring.
    !Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.role @producer elected registers(24) {
    ^bb0(%wg: index):
      hop.pipe.load %b, %B[%c0, %c0] : !Pipe, !tile.view<[N, 64], bf16>
      scf.for %j = %c0 to %n step %c1 {
        hop.pipe.load %b, %B[%j, %c0] : !Pipe, !tile.view<[N, 64], bf16>
      }
    }
    hop.role @consumer warpgroups(1) registers(240) {
    ^bb0(%wg: index):
      %first = hop.pipe.wait %b : !Pipe -> !Shared
      scf.for %j = %c0 to %n step %c1 {
        %t = hop.pipe.wait %b : !Pipe -> !Shared
        hop.pipe.release %b, %t : !Pipe, !Shared
      }
      hop.pipe.release %b, %first : !Pipe, !Shared
    }
    ```
  }];
}

#endif // TESSERA_PASSES_HOPPASSES_TD
