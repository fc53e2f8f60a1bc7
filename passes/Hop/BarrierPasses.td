// Passes from pipes to mbarriers, and from there to LLVM.

#ifndef TESSERA_PASSES_HOP_BARRIERPASSES_TD
#define TESSERA_PASSES_HOP_BARRIERPASSES_TD

include "mlir/Pass/PassBase.td"

def JoinPipes : Pass<"hop-join-pipes", "::tessera::hop::KernelOp"> {
  let summary = "Let small tiles go with the larger tile that is loaded beside them";
  let description = [{
    A wait for an mbarrier takes some 60 cycles of a warp even where the phase is complete, and six to eight instructions
    with its release. Where a pipe of small tiles, rows of values as a rule, is filled and read in step with a pipe of
    larger ones, it goes `with` that: one barrier is told of both copies, one wait is for both tiles, and one release
    gives back both slots.

    Who waits for the large tile then waits for the bytes of the small one too. A tile is small that has at most as many as the
    kernel's `tessera.small_tile` says, and large otherwise. `tile-choose-schedule` writes it: bytes that come in less time than
    the wait takes that is saved, some 1400. The slot of the small tile is held for longer, which costs nothing as the next load
    of the large one waits for its own slot.

    In step are two pipes that have as many slots, one role that loads both in bulk, and the same readers, where

    - each block that loads one loads the other, once, and between them, where the small one comes first, uses no third
      pipe;
    - each block that waits for one waits for the other, once, and releases both, the small one first. Where the small
      one is waited for first, no third pipe is used up to the other wait.

    The load of the small tile goes right behind that of the large one. A producer then waits for slots in the order that
    it had, less those of the small pipe, so that no two roles wait for each other that did not before. Multicast pipes,
    and those whose next slot is read ahead (`hop.pipe.peek`) stay as they are. The remark of a pipe says what it goes with.

    ```mlir
    %q = hop.pipe.create "q" : !hop.pipe<tensor<64x128xbf16>, 2>
    %lse = hop.pipe.create "lse" : !hop.pipe<tensor<64xf32>, 2>
    // becomes, with loads side by side and waits and releases in one order
    %q = hop.pipe.create "q" : !hop.pipe<tensor<64x128xbf16>, 2>
    %lse = hop.pipe.create "lse" with %q : !hop.pipe<tensor<64x128xbf16>, 2> : !hop.pipe<tensor<64xf32>, 2>
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def InsertMbarriers : Pass<"hop-insert-mbarriers", "::tessera::hop::KernelOp"> {
  let summary = "Turn pipes into buffers with full and empty mbarriers";
  let description = [{
    A pipe becomes a buffer and two arrays of mbarriers. How often they complete follows from the roles that use the
    pipe. `full` is completed by the arrival of the one thread that starts a copy and the bytes of the copy, or by those
    of the role that writes the slot (`hop.pipe.commit`). `empty` is completed by each role that waits on the pipe: by
    the thread of an elected role, and by one arrival of each warpgroup of another, or of each of its threads where
    neither a product nor a barrier joins the warps of a warpgroup between the wait for a slot and its release (a tile
    without iterations): a warp that comes late would find `full` two phases on. A pipe that nobody fills or nobody
    reads is refused, and so is one that two roles fill.

    Each role counts its position in each ring as a slot index and a parity, both derived from one count of fills or
    reads and carried through loops and conditionals. Readers start at parity 0, a role that fills at 1, so that the
    first wait on an empty slot passes.

    A multicast pipe has the same ring in every block of a cluster. Each block's `full` expects the whole tile,
    of which each block copies its part to all; `empty` counts the releases of the consumers of all blocks, who
    arrive at the barriers of all. Where two blocks gather rows, the threads of each wait for the copies of its half at
    a barrier of their own (`gathered`), and one of them sends it (`hop.exchange`). Before its end a role that fills one
    waits until all its slots are empty: by then no other block reaches for its shared memory any more.

    A load of runs finds where they lie before the wait, and starts a copy for each behind it. Runs of an elected role are found by the
    lanes of its warp (`hop.in_lanes`), one each, so that look-ups in tables take their time once. All lanes get all places before the wait;
    one of them waits and copies (`hop.one_lane`). A thread that is chosen of a warpgroup has no such lanes, and finds a run and copies it
    before the next. So it goes where a run of the tile ends early, which is copied row by row.

    A tile has fewer runs than a warp has lanes. So a loop is cut into groups of as many iterations as these find at once, where what the
    search takes from an iteration follows from its number by arithmetic. Loops that go on where the one before ends are one here, as where
    `tile-split-loops` has cut one for the masks of consumers:

    ```text
    scf.for %j = %c0 to %end step %c1 {
      %row = arith.muli %j, %c64 : index
      hop.pipe.load %k, %K[%c0, %c0] run 16 with (%row : index) { ... } : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[N, 64], bf16>
    }
    // becomes
    scf.for %begin = %c0 to %end step %c8 {
      %places = hop.in_lanes { ... } : vector<32xindex>          // lane l: run l % 4 of iteration %begin + l / 4
      scf.for %j = %begin to %end_of_group step %c1 {
        %first = arith.muli %distance, %c4 : index               // 4 runs an iteration
        %place = hop.of_lane %places[%first] : vector<32xindex>
        hop.one_lane { ... }
      }
    }
    ```

    ```mlir
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    %t = hop.pipe.wait %k : !hop.pipe<tensor<64x64xbf16>, 2> -> !Shared
    hop.pipe.release %k, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !Shared
    // becomes
    hop.barrier.wait %full[%i], %parity : !hop.barriers<2>
    %t = hop.slot %buffer[%i] : !hop.buffer<tensor<64x64xbf16>, 2> -> !Shared
    hop.barrier.arrive %empty[%i] : !hop.barriers<2>
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect"];
}

def InsertProxyFences : Pass<"hop-insert-proxy-fences", "::tessera::hop::KernelOp"> {
  let summary = "Order generic accesses of shared memory before async ones";
  let description = [{
    Shared memory that a thread wrote (`hop.stage`) and that the async proxy reads next (`hop.bulk_store`,
    products from shared memory) needs `fence.proxy.async` in every writing thread before the barrier that
    joins them (PTX ISA 8.6, "Proxies"). The fence goes right after the last write of a run of writes. Copies of threads
    (`hop.gather`) write later than any fence of theirs: there the fence goes behind each wait for the slot.

    A slot that threads read (`hop.fetch`) and give back to a bulk copy needs a fence too: an arrival does not keep the copy from writing
    while reads are under way. On an H200 it overwrote rows that a warp, which stores kept waiting, had not read yet. The read and the
    arrival may be in different loops and branches. There is no fence where a product or a write to shared memory takes what was read
    before the arrival. Where one takes it behind the arrival and nothing waits in between, the arrival goes behind it. So it goes
    behind a sum along the axis of the numbers that were read, past waits for own products, and is made to wait for the sum (`after`).
    Then numbers are read as they are used, which takes fewer registers. The simulator names a copy that may come first
    (`overtaken-read`).

    ```mlir
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.stage %o, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !Shared
    hop.warpgroup_sync
    // becomes
    hop.stage %o, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !Shared
    hop.proxy_fence
    hop.warpgroup_sync
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def AllocateSharedMemory : Pass<"hop-allocate-shared-memory", "::tessera::hop::KernelOp"> {
  let summary = "Place buffers and mbarriers in shared memory";
  let description = [{
    Buffers start at multiples of their swizzle's repeat (1024 bytes for 128-byte swizzles), mbarriers follow.
    Staging of results reuses the slots of a buffer that only the same warpgroup's earlier products read.
    More than 232448 bytes (the opt-in limit of sm_90) is an error with the map of what takes them.

    ```mlir
    %k = hop.buffer "K" : !hop.buffer<tensor<128x64xbf16>, 2>
    // becomes
    %k = hop.buffer "K" at 16384 : !hop.buffer<tensor<128x64xbf16>, 2>
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def FlattenGrid : Pass<"hop-flatten-grid", "::tessera::hop::KernelOp"> {
  let summary = "Find the place of a thread block in a grid that the launch has in one dimension";
  let description = [{
    A launch takes 65535 blocks in y and z, and 2^31 - 1 in x (CUDA C++ Programming Guide, "Technical Specifications per
    Compute Capability"). So one that would have more in y or z has all blocks in x, of which the first index of the grid
    varies fastest. A block finds this out from the number of blocks in x, and divides its own number only then. Kernels
    that walk over the grid by themselves, and those whose grid is never so large, stay as they are.

    ```mlir
    hop.role @rows warpgroups(1) {
    ^bb0(%wg: index):
      %row = arith.muli %m, %bm : index
      tile.store %t, %y[%b, %row, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[B, M, 64], f32>
    }
    // becomes
    hop.role @rows warpgroups(1) {
    ^bb0(%wg: index):
      %blocks = hop.block_count
      %flat = arith.cmpi ne, %blocks, %tiles : index
      %place:2 = scf.if %flat -> (index, index) {
        %first = arith.remui %m, %tiles : index
        %second = arith.divui %m, %tiles : index
        scf.yield %first, %second : index, index
      } else {
        scf.yield %m, %b : index, index
      }
      %row = arith.muli %place#0, %bm : index
      tile.store %t, %y[%place#1, %row, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[B, M, 64], f32>
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def InstrumentTimeline : Pass<"hop-instrument-timeline", "::tessera::hop::KernelOp"> {
  let summary = "Record when each warpgroup enters each stage of its program";
  let description = [{
    Only with `--instrument=timeline`. A stage is what lies between two points of synchronisation: a wait for an
    mbarrier, for a turn, for the warps of the warpgroup or for products in flight, the issue of a product or a
    copy, a store, or a stretch of arithmetic on tiles. Each begins with a `hop.mark`, which ends the one before
    it; a stretch that only computes addresses belongs to the stage before it. A product runs from its issue to
    the end of the wait that names it, beside what the warpgroup does in between.

    The labels come from the program: of a wait the mbarrier, of a product the buffers of its operands, of
    arithmetic the operations that cost most. `hop.timeline` holds them with their lines of the source.

    ```mlir
    !S = tensor<64x64xf32, #hop.layout<accumulator>>
    !Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.role @consumer warpgroups(1) {
    ^bb0(%wg: index):
      scf.for %j = %c0 to %n step %c1 {
        hop.barrier.wait %full[%i], %parity : !hop.barriers<2>
        %f = hop.mma_issue %q, %t : !Shared, !Shared -> !hop.flight<!S>
        %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
        %e = math.exp2 %s : !S
      }
    }
    // becomes
    hop.timeline blocks 4 from 0 events 1024 stages [
      #hop.stage<wait, "k.full", line = 8, column = 5>, #hop.stage<issue, "q x k", line = 9, column = 5>,
      #hop.stage<finish, "q x k", line = 9, column = 5, products = 1>,
      #hop.stage<compute, "exp2", line = 10, column = 5>]
    hop.role @consumer warpgroups(1) {
    ^bb0(%wg: index):
      scf.for %j = %c0 to %n step %c1 {
        hop.mark 0 at %j : index
        hop.barrier.wait %full[%i], %parity : !hop.barriers<2>
        hop.mark 1 at %j : index
        %f = hop.mma_issue %q, %t : !Shared, !Shared -> !hop.flight<!S>
        hop.mark 2 at %j : index
        %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
        hop.mark 3 at %j : index
        %e = math.exp2 %s : !S
      }
    }
    ```
  }];
  let options = [
    Option<"blocks", "blocks", "int64_t", "4", "Thread blocks that are recorded">,
    Option<"first", "first", "int64_t", "0", "Number of the first of them, x varies fastest">,
    Option<"events", "events", "int64_t", "1024",
           "Stages that are kept of each warpgroup, the last ones; a power of two">];
}

def LowerToLLVM : Pass<"hop-lower-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Write each kernel as the program of one thread, in the LLVM and NVVM dialects";
  let description = [{
    A tile in registers becomes the thread's elements, 16-bit ones packed in pairs; roles become branches on
    the warpgroup index; views become tensor maps, pointers and strides. wgmma instructions are inline
    assembly with their accumulators tied in and out, and so is every wait, so that no pass between here and
    the machine can move a use across it. The launch description is left on the function as
    `tessera.kernel`.

    Index tiles stay one value and a constant for each element, so that a comparison of two takes immediates. The condition of
    an `arith.select` that combines several comparisons, or has one with values from memory, becomes words of bits. Along the
    elements that a thread has of a row each comparison changes once, at a place that is computed for the row. The bits cost
    little more than the selects then, whatever the number of comparisons.

    The lanes of a warp have few different ones of an index that is a number plus or less those of row and column, as the
    distance of query and key, and these lie one behind the other. So each lane loads one of 32 neighbours of such elements of
    a view, a window, and shuffles hand them to the lanes that want them. In loops without another loop in them the same is done
    with what special functions make of such an index alone: of `log(1 + |q - k|)` a thread with 32 elements has 18 and computes
    3. A remark says so. A function that takes no special function is made where it is used, as is one of numbers that differ
    between rows or columns, one that several operations take, and one in a loop that stages tiles in shared memory,
    which shuffles pass through too.

    ```mlir
    hop.kernel @k attributes {argument_names = ["x"], argument_types = [i32], grid = [#tile.grid_dim<4, 1>],
        schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
    ^bb0(%x: i32, %m: index):
      hop.role @consumer warpgroups(1) {
      ^bb0(%wg: index):
        hop.warpgroup_sync
      }
    }
    // becomes, with the launch description besides,
    llvm.func @k(%x: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
      %one = llvm.mlir.constant(1 : i32) : i32
      %two = llvm.mlir.constant(2 : i32) : i32
      %seven = llvm.mlir.constant(7 : i32) : i32
      %thread = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
      %warpgroup = llvm.lshr %thread, %seven : i32
      %is_consumer = llvm.icmp "ult" %warpgroup, %one : i32
      llvm.cond_br %is_consumer, ^consumer, ^exit
    ^consumer:
      %barrier = llvm.add %warpgroup, %two : i32
      llvm.inline_asm has_side_effects asm_dialect = att "bar.sync $0, 128;", "r" %barrier : (i32) -> ()
      llvm.br ^exit
    ^exit:
      llvm.return
    }
    ```
  }];
  let options = [
    Option<"pdl", "pdl", "bool", "false",
           "Kernels wait for the launch before them by themselves, so that they may begin while it ends">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif // TESSERA_PASSES_HOP_BARRIERPASSES_TD
