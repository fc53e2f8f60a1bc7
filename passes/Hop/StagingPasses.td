// Passes that say where tiles lie, when loads that no role is for begin, and what blocks share.

#ifndef TESSERA_PASSES_HOP_STAGINGPASSES_TD
#define TESSERA_PASSES_HOP_STAGINGPASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertFp8Layouts : Pass<"hop-convert-fp8-layouts", "::tessera::hop::KernelOp"> {
  let summary = "Give products of 8-bit elements the operands that wgmma reads";
  let description = [{
    wgmma reads elements of 8 bits along the contracted dimension alone, in shared memory and in registers, where four
    neighbours are one register.

    A second operand that does not have that dimension innermost is transposed: each warpgroup writes it to shared
    memory of its own (`hop.transpose`), which it reads in the product. The transposition puts the contracted elements
    in the order in which the lanes of an accumulator's row hold them, so that a fragment is multiplied as it is. What a
    transposer has made (`tile-warp-specialize`) is in this order, and stays.

    Where the second operand is read as it was loaded, the lanes of a row exchange the columns of a fragment
    (`hop.rearrange`). A first operand that does not have the contracted dimension innermost is an error, as is a second
    one beside a first one in shared memory: its elements have the order of memory.

    ```mlir
    %v = hop.pipe.wait %values : !hop.pipe<tensor<64x128xf8E4M3FN>, 2> -> !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
    %o = hop.mma %p, %v : tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>,
      !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64> -> tensor<64x128xf32, #hop.layout<accumulator>>
    hop.pipe.release %values, %v : !hop.pipe<tensor<64x128xf8E4M3FN>, 2>, !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
    // becomes, with the staging buffer %all of the kernel
    %v = hop.pipe.wait %values : !hop.pipe<tensor<64x128xf8E4M3FN>, 2> -> !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
    %vt = hop.slice %all[%wg] : !hop.shared<tensor<128x64xf8E4M3FN>, rows = 128>
      -> !hop.shared<tensor<128x64xf8E4M3FN>, rows = 128>
    hop.transpose %v, %vt : !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>,
      !hop.shared<tensor<128x64xf8E4M3FN>, rows = 128>
    hop.warpgroup_sync
    %o = hop.mma %p, %vt {transpose_b, in_accumulator_order} : tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>,
      !hop.shared<tensor<128x64xf8E4M3FN>, rows = 128> -> tensor<64x128xf32, #hop.layout<accumulator>>
    hop.pipe.release %values, %v : !hop.pipe<tensor<64x128xf8E4M3FN>, 2>, !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
    ```
  }];
}

def StageOperands : Pass<"hop-stage-operands", "::tessera::hop::KernelOp"> {
  let summary = "Keep computed operands of products in shared memory";
  let description = [{
    A computed tile that a product reads transposed goes to shared memory in any case: its columns are written as rows
    (`hop.stage ... transposed`), and each warpgroup has columns of the whole, as many as it has rows of the tile.

    So does a computed second operand, which wgmma reads from shared memory alone, transposed or not: each warpgroup
    writes its rows of the whole, which all of them multiply. Where the role has several, all of its threads meet before
    they write, when their products have read the tile that was there, and behind. Of a whole that is multiplied by a
    computed and transposed first operand each warpgroup reads the part that goes with its rows of that.

    f32 is multiplied from shared memory alone, along the contraction: a first operand goes there as well, and a second one with its columns
    as rows unless a product reads it transposed.

    A warpgroup that writes its own rows alone waits for its own threads. Loops and conditionals no longer carry the tile: the memory
    holds it.

    A tile that a loop carries to a product has one buffer with all the values it takes on the way. Two tiles of
    one shape that are never needed at the same time share a buffer. It is an error when a tile is made while
    another value of it, in the same buffer, is still to be read.

    ```mlir
    !P = tensor<64x64xbf16, #hop.layout<accumulator>>
    !O = tensor<64x64xf32, #hop.layout<accumulator>>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    !Mine = !hop.shared<tensor<64x64xbf16>, rows = 64>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%p = %p0) -> !P {
      %o = hop.mma %p, %v {transpose_a} : !P, !Shared -> !O
      %next = arith.truncf %o : !O to !P
      scf.yield %next : !P
    }
    // becomes
    %staged = hop.staging "operand" : !hop.shared<tensor<64x128xbf16>, rows = 64>
    %mine = hop.slice %staged[%wg] : !hop.shared<tensor<64x128xbf16>, rows = 64> -> !Mine
    hop.stage %p0, %mine transposed : !P, !Mine
    hop.warpgroup_sync
    scf.for %j = %c0 to %n step %c1 {
      %o = hop.mma %mine, %v : !Mine, !Shared -> !O
      %next = arith.truncf %o : !O to !P
      hop.stage %next, %mine transposed : !P, !Mine
      hop.warpgroup_sync
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def StageStores : Pass<"hop-stage-stores", "::tessera::hop::KernelOp"> {
  let summary = "Send results through shared memory and bulk stores";
  let description = [{
    With `store = tma`, a store of a tile of rank 2, and one that adds, becomes a write into shared memory, a fence-ready
    sequence and a bulk tensor store by one thread (FlashAttention-3, section 3.1, epilogue). Other stores
    go from registers and are left alone.

    ```mlir
    tile.store %o, %O[%row, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    // becomes
    hop.stage %o, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.warpgroup_sync
    hop.bulk_store %s, %O[%row, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
    ```

    With `placement = apart` only stores that add go this way. Where a step of the loop makes an even number of them to a
    view, two places take turns: a copy reads one while the other is written (`in_flight 1`), and the role waits for all at
    its end. A ticket that such sums have (`fixed_sums`) is passed on in the next step, behind the start of its first
    product, when the copies have been written; the last one behind the loop.
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def Prefetch : Pass<"hop-prefetch", "::tessera::hop::KernelOp"> {
  let summary = "Start the loads of a loop iterations ahead, without a producer";
  let description = [{
    Only for `producer = none`. A load that one thread of the role starts in each iteration of a loop is
    started as many iterations before as its pipe has slots that the role does not hold, less one, if there are
    two or more: the slot that comes free last waits for the slowest warpgroup. The first loads come before the
    loop, and an iteration loads only for an iteration that the loop runs, so the fills keep their order.

    The address of a later iteration is written anew from the induction variable, from values outside the loop
    and from what iter_args will be. A load whose address takes anything else, or that shares its pipe with
    another load of the loop, stays where it is; a remark says why.

    ```mlir
    !Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    scf.for %j = %c0 to %n step %c1 {
      %elected = hop.elected %wg
      scf.if %elected {
        hop.pipe.load %k, %K[%j, %c0] : !Pipe, !tile.view<[N, 64], bf16>
      }
      %t = hop.pipe.wait %k : !Pipe -> !Shared
      hop.pipe.release %k, %t : !Pipe, !Shared
    }
    // becomes
    %elected = hop.elected %wg
    %runs = arith.cmpi slt, %c0, %n : index
    %first = arith.andi %elected, %runs : i1
    scf.if %first {
      hop.pipe.load %k, %K[%c0, %c0] : !Pipe, !tile.view<[N, 64], bf16>
    }
    scf.for %j = %c0 to %n step %c1 {
      %next = arith.addi %j, %c1 : index
      %again = arith.cmpi slt, %next, %n : index
      %ahead = arith.andi %elected, %again : i1
      scf.if %ahead {
        hop.pipe.load %k, %K[%next, %c0] : !Pipe, !tile.view<[N, 64], bf16>
      }
      %t = hop.pipe.wait %k : !Pipe -> !Shared
      hop.pipe.release %k, %t : !Pipe, !Shared
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def LoadOnce : Pass<"hop-load-once", "::tessera::hop::KernelOp"> {
  let summary = "Load what all tiles of the grid need once for each thread block";
  let description = [{
    A thread block that walks over tiles (`hop-persistent`) fills a pipe in each of its turns. Where the place of the load
    is the same in all of them, as that of a weight that many rows are multiplied with, the load and the waits for it come
    before the loops, and the releases behind them: the tile stays in its slot.

    That takes a pipe with this one load, whose view the kernel does not store to, and one wait in each role that reads it,
    both in the loop over tiles itself. Where a load is the same for all tiles and something else is missing, a remark
    says what.

    ```mlir
    scf.for %tile = %block to %tiles step %blocks {
      hop.pipe.load %pipe, %R[%c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[64, 64], bf16>
    }
    // becomes
    hop.pipe.load %pipe, %R[%c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[64, 64], bf16>
    scf.for %tile = %block to %tiles step %blocks {
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def LoadScalarsAhead : Pass<"hop-load-scalars-ahead", "::tessera::hop::KernelOp"> {
  let summary = "Load scalars of the next iteration beside the products of this one";
  let description = [{
    A loop with products that loads a scalar in each iteration, such as the scale of a block, hands it from one iteration
    to the next: the load comes before the products of the iteration before, and takes its time under them. The first
    scalar is loaded before the loop; the last iteration loads its own again, since an index has to lie inside the view.
    For views that the kernel does not store to. Where the loop's bounds come from memory, the first scalar is loaded
    whether there is one or not, as a branch would wait for them.

    Where what a loop carries and its widest product take more than four fifths of a thread's registers, as with an output
    of 256 columns, three things differ in the role. The load of the next scalar stands behind the first products of an
    iteration. A loop that begins where another one ends, as `tile-split-loops` leaves them, takes over what that one
    loaded last, which leaves two registers. And scalars behind a branch are loaded before it, under the first product
    there, where its condition holds: not where the condition or the index comes from memory.

    The address of the next iteration is written anew from the induction variable, from values outside the loop and from
    what iter_args will be. A load whose address takes anything else stays where it is; a remark says why.

    ```mlir
    !Acc = tensor<64x64xf32>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    %sum = scf.for %j = %c0 to %n step %c1 iter_args(%old = %acc) -> (!Acc) {
      %scale = tile.load %L[%j] : !tile.view<[M], f32> -> f32
      %s = hop.mma %q, %k : !Shared, !Shared -> !Acc
      %factor = tile.splat %scale : f32 -> !Acc
      %scaled = arith.mulf %s, %factor : !Acc
      %new = arith.addf %old, %scaled : !Acc
      scf.yield %new : !Acc
    }
    // becomes
    %any = arith.cmpi slt, %c0, %n : index
    %first = scf.if %any -> (f32) {
      %element = tile.load %L[%c0] : !tile.view<[M], f32> -> f32
      scf.yield %element : f32
    } else {
      %zero = arith.constant 0.0 : f32
      scf.yield %zero : f32
    }
    %sum:2 = scf.for %j = %c0 to %n step %c1 iter_args(%old = %acc, %scale = %first) -> (!Acc, f32) {
      %next = arith.addi %j, %c1 : index
      %again = arith.cmpi slt, %next, %n : index
      %place = arith.select %again, %next, %j : index
      %ahead = tile.load %L[%place] : !tile.view<[M], f32> -> f32
      %s = hop.mma %q, %k : !Shared, !Shared -> !Acc
      %factor = tile.splat %scale : f32 -> !Acc
      %scaled = arith.mulf %s, %factor : !Acc
      %new = arith.addf %old, %scaled : !Acc
      scf.yield %new, %ahead : !Acc, f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // TESSERA_PASSES_HOP_STAGINGPASSES_TD
