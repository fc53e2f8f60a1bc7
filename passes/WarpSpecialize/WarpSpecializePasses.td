// The pass from the tile dialect to hop.

#ifndef TESSERA_PASSES_WARPSPECIALIZEPASSES_TD
#define TESSERA_PASSES_WARPSPECIALIZEPASSES_TD

include "mlir/Pass/PassBase.td"

def WarpSpecialize : Pass<"tile-warp-specialize", "::mlir::ModuleOp"> {
  let summary = "Turn each kernel into roles that load and roles that compute, joined by pipes";
  let description = [{
    Each role is a slice of the program (FlashAttention-3, section 3.1, Algorithm 1). A tile that is loaded
    and feeds a dot goes through a pipe: the producer keeps the loads, their addresses and the loops around
    them; the consumers keep everything else and wait for the pipe where the load was. A load and the copies that
    tile-overlap and tile-split-loops made of it (one `pipe` number) share a pipe, with `stages` slots
    when one of them is in a loop. As both roles keep
    the order of the program, a pipe's fills and reads match one to one, and a slot is released after its
    last reader. Whether the pipes have the slots that the roles then need is proved (`passes/Analysis/PipeProtocol.h`).

    Loads of one pipe that earlier passes found equal are one load, whose tile may now be in use across a loop that
    loads into the same pipe. There the tile is loaded again, as the program did before; a remark says so.

    A tile of rows that numbers name (`tile.gather`) feeds a dot in the same way. Then the producer is a warpgroup: all of
    its threads copy rows (`hop.gather`), and one of them starts the copies of what is loaded. The numbers, and what they are
    computed from, are the producer's, which loads them while it waits for a slot. A writer has a
    warpgroup of its own then. Refused beside it is a transposer of some of its warps.

    What the consumers load from memory themselves comes late where a loop with dots loads a scalar in each iteration, such as
    the scale of a block. There the producer of one thread brings it into the L2 cache in the same iteration, ahead of them
    (`hop.l2_prefetch`), and scalars and tiles of rank 1 that the kernel loads elsewhere: what it does not store, where it
    knows the place by arithmetic on grid indices, extents and induction variables.

    The rows of every tile that depends on a dot's rows are divided among the consumer warpgroups: of a tile whose
    rows run over several dimensions of a view (`box`) whole rows of an outer dimension, or equal parts of those of
    an inner one. What would be no box is refused. A product that contracts divided rows, of a computed tile that is
    transposed, is a partial sum: each warpgroup multiplies its rows, and only a store that adds (`tile.store ... add`)
    takes the result. With
    `producer = none` there is no producer: one thread of the first warpgroup loads each tile where it
    is needed, and `hop-prefetch` moves the loads ahead.

    ```mlir
    !Product = tensor<128x64xf32>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> !Product {
      %k = tile.load %K[%j, %c0] pipe 1 : !tile.view<[N, 64], bf16> -> tensor<64x64xbf16>
      %s = tile.dot %q, %k, %acc : tensor<128x64xbf16>, tensor<64x64xbf16> -> !Product
      scf.yield %s : !Product
    }
    // becomes, with %q in registers,
    %k = hop.pipe.create "K" : !hop.pipe<tensor<64x64xbf16>, 2>
    hop.role @producer elected registers(24) {
    ^bb0(%wg: index):
      scf.for %j = %c0 to %n step %c1 {
        hop.pipe.load %k, %K[%j, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[N, 64], bf16>
      }
    }
    hop.role @consumer warpgroups(2) registers(240) {
    ^bb0(%wg: index):
      %r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> {
        %t = hop.pipe.wait %k : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
        %s = hop.mma %q, %t acc(%acc : tensor<64x64xf32>)
          : tensor<64x64xbf16>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
        hop.pipe.release %k, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
        scf.yield %s : tensor<64x64xf32>
      }
    }
    ```

    With `store = writer` the tiles of rank 2 that the program stores leave through pipes: a role of one thread beside the
    producer keeps the stores, their addresses and the loops around them, and the consumers write each tile into a slot
    where the store was, and go on. Stores of one tile type to one view share a pipe, of `outer_stages` slots. Refused
    without a producer, with a `tile.speculate`, where no bulk copy can make a store, and where the program later touches
    what it has stored.

    ```mlir
    !Results = !hop.pipe<tensor<128x64xf32>, 1>
    !Slot = !hop.shared<tensor<128x64xf32>, rows = 128>
    !Mine = !hop.shared<tensor<64x64xf32>, rows = 128>
    tile.store %r, %Y[%row, %c0] add : tensor<128x64xf32>, !tile.view<[M, 64], f32>
    // becomes
    hop.role @writer elected registers(24) {
    ^bb0(%wg: index):
      %slot = hop.pipe.wait %y : !Results -> !Slot
      hop.bulk_store %slot, %Y[%row, %c0] add : !Slot, !tile.view<[M, 64], f32>
      hop.pipe.release %y, %slot : !Results, !Slot
    }
    hop.role @consumer warpgroups(2) registers(240) {
    ^bb0(%wg: index):
      %slot = hop.pipe.acquire %y : !Results -> !Slot
      %mine = hop.slice %slot[%wg] : !Slot -> !Mine
      hop.stage %r, %mine : tensor<64x64xf32>, !Mine
      hop.warpgroup_sync
      hop.pipe.commit %y, %slot : !Results, !Slot
    }
    ```

    Bounds by what rows load (`tile.reduce_range`) are found by a role of one warp beside the producer, the finder, which hands
    them to all other roles through a pipe of values, of 64 bits in halves. What a loop over rows takes, loads and registers, is
    then in no other role. A bound that only others are found from, as in a search by steps, it keeps. Each role finds its own where there is no producer, where that gathers, and where a transposer has the
    three warps beside it.

    ```mlir
    !Bounds = !hop.pipe<tensor<1xi32>, 2>
    %least = tile.reduce_range min %i to 128 -> i32 {
      %x = tile.load %starts[%i] : !tile.view<[S], i32> -> i32
      tile.yield %x : i32
    }
    // becomes
    hop.role @finder elected registers(32) {
    ^bb0(%wg: index):
      %least = tile.reduce_range min %i to 128 -> i32 {
        %x = tile.load %starts[%i] : !tile.view<[S], i32> -> i32
        tile.yield %x : i32
      }
      hop.pipe.put %bounds, %least : !Bounds
    }
    hop.role @consumer warpgroups(2) registers(232) {
    ^bb0(%wg: index):
      %least = hop.pipe.get %bounds : !Bounds
    }
    ```

    A tile of 8 bits that is extended to 16 and then is a first operand, as it is or transposed, the consumers take from its slot into
    registers, where wgmma reads it (`hop.fetch`), and extend it there. Nothing else reads such a tile. Where its columns are rows that another
    product has in order, or that warpgroups share in other blocks than 64, it is computed in registers and goes through shared memory.

    ```mlir
    %a = tile.load %A[%j, %c0] : !tile.view<[N, 128], f8E4M3FN> -> tensor<64x128xf8E4M3FN>
    %wide = arith.extf %a : tensor<64x128xf8E4M3FN> to tensor<64x128xf16>
    // becomes in the consumers
    %slot = hop.pipe.wait %pipe : !hop.pipe<tensor<64x128xf8E4M3FN>, 2> -> !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
    %a = hop.fetch %slot : !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64> -> tensor<64x128xf8E4M3FN>
    hop.pipe.release %pipe, %slot : !hop.pipe<tensor<64x128xf8E4M3FN>, 2>, !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
    %wide = arith.extf %a : tensor<64x128xf8E4M3FN> to tensor<64x128xf16>
    ```

    With `transpose = 4` a role of one warpgroup, the transposer, takes part in the loads of tiles of 8-bit elements that
    a dot reads along their columns, beside a computed operand. It transposes each tile once, into a pipe of two slots from
    which the consumers read it. Refused without such a tile, without a producer, and where something else reads the tile
    as it is loaded.

    ```mlir
    !V = !hop.pipe<tensor<64x128xf8E4M3FN>, 2>
    !T = !hop.pipe<tensor<128x64xf8E4M3FN>, 2>
    %v = tile.load %values[%j, %c0] : !tile.view<[N, 128], f8E4M3FN> -> tensor<64x128xf8E4M3FN>
    // becomes in this role, and a wait on %turned in the consumers
    hop.role @transposer warpgroups(1) registers(48) {
    ^bb0(%wg: index):
      %slot = hop.pipe.wait %loaded : !V -> !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
      %own = hop.pipe.acquire %turned : !T -> !hop.shared<tensor<128x64xf8E4M3FN>, rows = 128>
      hop.transpose %slot, %own : !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>,
        !hop.shared<tensor<128x64xf8E4M3FN>, rows = 128>
      hop.warpgroup_sync
      hop.pipe.commit %turned, %own : !T, !hop.shared<tensor<128x64xf8E4M3FN>, rows = 128>
      hop.pipe.release %loaded, %slot : !V, !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
    }
    ```

    A second operand of a dot that is computed element by element from one loaded or gathered tile and numbers is made by a
    role of one warpgroup, the converter. It waits for the loaded tile, takes it into registers in parts of 64 elements a
    thread or fewer, and writes what it makes into a pipe of two slots, or one where there is no room for two, which the
    consumers read. Tiles of 8 bits may be computed with iotas and with a number for each row too, which this role loads;
    then parts are of columns. Each conversion of the loads of a pipe has a pipe of its own. Refused without a producer.

    ```mlir
    !V = !hop.pipe<tensor<64x64xf8E4M3FN>, 2>
    !W = !hop.pipe<tensor<64x64xbf16>, 2>
    %v8 = tile.load %values[%j, %c0] : !tile.view<[N, 64], f8E4M3FN> -> tensor<64x64xf8E4M3FN>
    %v = arith.extf %v8 : tensor<64x64xf8E4M3FN> to tensor<64x64xbf16>
    // becomes in this role, and a wait on %wide in the consumers
    hop.role @converter warpgroups(1) registers(56) {
    ^bb0(%wg: index):
      %slot = hop.pipe.wait %loaded : !V -> !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
      %own = hop.pipe.acquire %wide : !W -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      %v8 = hop.fetch %slot : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
      %v = arith.extf %v8 : tensor<64x64xf8E4M3FN> to tensor<64x64xbf16>
      hop.stage %v, %own : tensor<64x64xbf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.warpgroup_sync
      hop.pipe.release %loaded, %slot : !V, !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
      hop.pipe.commit %wide, %own : !W, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
    ```

    With `placement = divided` each consumer is a role of one warpgroup, with a program of its own: all rows of some of the
    accumulators that loops carry, and the dots that lead to them. A dot that leads to accumulators of several consumers runs
    in the first. With one consumer more than there are accumulators such dots have the first one to themselves. A tile that one makes and another needs crosses through a pipe of two slots: dots multiply it from its slot,
    transposed or not, and where the other consumer computes with it, the same lanes take it into registers, right before
    its first use. A vector of f32 that each row has one of, as the factor of a row, crosses in the same way. The other consumer may compute a tile of others that cross: what crosses are the fewest bytes, so a product
    that is rounded to 16 bits in place of its factors. Sums are apart there too. Refused with fewer accumulators than other consumers, without a producer, with a writer
    where no sum is apart, with a `tile.speculate`, in rotated loops, where something else than these vectors and tiles of rank 2 and of 16 or 32 bits would cross, and
    where a role may touch what another one stores. Stores of disjoint columns of a view are taken.

    ```mlir
    !P = !hop.pipe<tensor<64x64xbf16>, 2>
    !Slot = !hop.shared<tensor<64x64xbf16>, rows = 64>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
    %u = tile.dot %p, %b, %u_old : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %all = arith.extf %p : tensor<64x64xbf16> to tensor<64x64xf32>
    // becomes
    hop.role @consumer0 warpgroups(1) registers(240) {
    ^bb0(%wg: index):
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %own = hop.pipe.acquire %crossing : !P -> !Slot
      hop.stage %p, %own : tensor<64x64xbf16>, !Slot
      hop.warpgroup_sync
      hop.pipe.commit %crossing, %own : !P, !Slot
      %u = hop.mma %p, %b acc(%u_old : tensor<64x64xf32>)
        : tensor<64x64xbf16>, !Slot -> tensor<64x64xf32>
    }
    hop.role @consumer1 warpgroups(1) registers(240) {
    ^bb0(%wg: index):
      %slot = hop.pipe.wait %crossing : !P -> !Slot
      %p = hop.fetch %slot : !Slot -> tensor<64x64xbf16>
      hop.pipe.release %crossing, %slot : !P, !Slot
      %all = arith.extf %p : tensor<64x64xbf16> to tensor<64x64xf32>
    }
    ```

    With `placement = apart` a role of one warpgroup, the reducer, makes the sums over grid points: a dot of a computed tile
    whose result only leaves by a store that adds it, that store, and the loops around them. The consumers write the
    computed operand into a slot where they make it, and the reducer multiplies it from there, transposed or not. It makes
    64 rows or columns of the result at a time, where the slots can be read in such parts. Sums that are added to one view
    share a pipe of two slots. Refused without such a sum, without a producer, with a `tile.speculate`, in
    rotated loops, and where each consumer has all of the operand.

    ```mlir
    !P = !hop.pipe<tensor<128x64xbf16>, 2>
    !Slot = !hop.shared<tensor<128x64xbf16>, rows = 128>
    %p_t = tile.transpose %p : tensor<128x64xbf16> -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xf32>
    tile.store %c, %Y[%j, %c0] add : tensor<64x64xf32>, !tile.view<[N, 64], f32>
    // becomes
    hop.role @reducer warpgroups(1) registers(72) {
    ^bb0(%wg: index):
      %slot = hop.pipe.wait %operand : !P -> !Slot
      %c = hop.mma %slot, %a {transpose_a} : !Slot, !Slot -> tensor<64x64xf32>
      hop.pipe.release %operand, %slot : !P, !Slot
      tile.store %c, %Y[%j, %c0] add : tensor<64x64xf32>, !tile.view<[N, 64], f32>
    }
    ```

    With `producer = all` tiles that loops with dots load for arithmetic come through pipes too: of rank 2, and of rank 1 for
    the columns of their tiles, with the copies of these that stand before such a loop. A consumer waits for the slot, takes its elements
    into registers (`hop.fetch`) and gives the slot back.

    ```mlir
    %bias = tile.load %Bias[%row, %j] : !tile.view<[M, N], bf16> -> tensor<128x64xbf16>
    // becomes, in each of two consumers
    %slot = hop.pipe.wait %p : !hop.pipe<tensor<128x64xbf16>, 2> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %mine = hop.slice %slot[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %bias = hop.fetch %mine : !hop.shared<tensor<64x64xbf16>, rows = 128> -> tensor<64x64xbf16>
    hop.pipe.release %p, %slot : !hop.pipe<tensor<128x64xbf16>, 2>, !hop.shared<tensor<128x64xbf16>, rows = 128>
    ```
  }];
  let options = [
    Option<"producers", "producers", "int64_t", "1", "Roles that load, where the schedule has any; 1 to 4">];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

#endif // TESSERA_PASSES_WARPSPECIALIZEPASSES_TD
