// Passes that write tiles to shared memory, for products and for stores in bulk.

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

    With `operands = shared`, a tile that is computed and then multiplied (P of attention) is written to shared
    memory where it is made, in the layout that wgmma reads, and the products read it there: it takes no
    registers while they run. Each warpgroup writes and reads its own rows, so that only its own threads
    wait for each other. Loops and conditionals no longer carry the tile: the memory holds it.

    A tile that a loop carries to a product has one buffer with all the values it takes on the way. Two tiles of
    one shape that are never needed at the same time share a buffer. It is an error when a tile is made while
    another value of it, in the same buffer, is still to be read.

    ```mlir
    !P = tensor<64x64xbf16, #hop.layout<accumulator>>
    !O = tensor<64x64xf32, #hop.layout<accumulator>>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    !Mine = !hop.shared<tensor<64x64xbf16>, rows = 128>
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%p = %p0) -> !P {
      %o = hop.mma %p, %v : !P, !Shared -> !O
      %next = arith.truncf %o : !O to !P
      scf.yield %next : !P
    }
    // becomes
    %staged = hop.staging "operand" : !hop.shared<tensor<128x64xbf16>, rows = 128>
    %mine = hop.slice %staged[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !Mine
    hop.stage %p0, %mine : !P, !Mine
    hop.warpgroup_sync
    scf.for %j = %c0 to %n step %c1 {
      %o = hop.mma %mine, %v : !Mine, !Shared -> !O
      %next = arith.truncf %o : !O to !P
      hop.stage %next, %mine : !P, !Mine
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
    its end. A ticket that such sums have (`sums = fixed`) is passed on in the next step, behind the start of its first
    product, when the copies have been written; the last one behind the loop.

    With `staging = own` the shared memory is the store's own. With `shared` it is that of slots of the pipe that the
    program reads last, of those that have room: as many as hold the rows of every warpgroup, of which none lies in
    two slots. The producer lends them after its last load, when their readers are done, and the next load into
    them waits until all warpgroups have stored; loads into other slots and pipes go on. Refused where there is no
    producer, where tiles are read after the store, and where no pipe has room; a remark says which pipe lends.

    ```mlir
    !Pipe = !hop.pipe<tensor<128x64xbf16>, 2>
    !Slot = !hop.shared<tensor<128x64xbf16>, rows = 128>
    !Mine = !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.role @producer elected {
    ^bb0(%wg: index):
      hop.pipe.load %v, %V[%row, %c0] : !Pipe, !tile.view<[N, 64], bf16>
    }
    hop.role @consumer warpgroups(2) {
    ^bb0(%wg: index):
      tile.store %o, %O[%row, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    }
    // becomes
    hop.role @producer elected {
    ^bb0(%wg: index):
      hop.pipe.load %v, %V[%row, %c0] : !Pipe, !tile.view<[N, 64], bf16>
      hop.pipe.lend %v : !Pipe
    }
    hop.role @consumer warpgroups(2) {
    ^bb0(%wg: index):
      %slot = hop.pipe.wait %v : !Pipe -> !Slot
      %mine = hop.overlay %slot[%wg] : !Slot -> !Mine
      hop.stage %o, %mine : tensor<64x64xbf16, #hop.layout<accumulator>>, !Mine
      hop.warpgroup_sync
      hop.bulk_store %mine, %O[%row, %c0] : !Mine, !tile.view<[M, 64], bf16>
      hop.pipe.release %v, %slot : !Pipe, !Slot
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // TESSERA_PASSES_HOP_STAGINGPASSES_TD
