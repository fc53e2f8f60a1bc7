// Passes that start loads iterations ahead.

#ifndef TESSERA_PASSES_HOP_AHEADPASSES_TD
#define TESSERA_PASSES_HOP_AHEADPASSES_TD

include "mlir/Pass/PassBase.td"

def Prefetch : Pass<"hop-prefetch", "::tessera::hop::KernelOp"> {
  let summary = "Start the loads of a loop iterations ahead, without a producer";
  let description = [{
    Only for `warp_specialize = false`. A load that one thread of the role starts in each iteration of a loop is
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

def JoinLoops : Pass<"hop-join-loops", "::tessera::hop::KernelOp"> {
  let summary = "Join loops that follow each other and do the same, where a thread waits for tickets";
  let description = [{
    `tile-split-loops` cuts a loop where its masks are needed. A role that has no masks has all pieces too, and they are
    alike. Two loops over [a, b) and [b, c) with the same body are one over [min(a, b), max(b, c)), also where one of them
    has no iterations. Of `max(b, c)` c is left where b is known to be at most c. And of `min(a, b)` a is left where b is at
    least a, or `min(d, c)` for a d that is: if b is less than a then, neither loop has an iteration.

    That is done in roles that wait for tickets (`sums = fixed`): a thread that stores has few registers, and the bounds
    of its neighbours' loops take some of them. Other roles keep their pieces.

    ```mlir
    scf.for %i = %a to %b step %c1 {
      hop.ticket.wait %DQ[%i] tile [64, 128] is %from : !tile.view<[SQ, 128], f32>
    }
    scf.for %i = %b to %c step %c1 {
      hop.ticket.wait %DQ[%i] tile [64, 128] is %from : !tile.view<[SQ, 128], f32>
    }
    // becomes
    %first = arith.minsi %a, %b : index
    %past = arith.maxsi %b, %c : index
    scf.for %i = %first to %past step %c1 {
      hop.ticket.wait %DQ[%i] tile [64, 128] is %from : !tile.view<[SQ, 128], f32>
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def FlattenLoops : Pass<"hop-flatten-loops", "::tessera::hop::KernelOp"> {
  let summary = "Make one loop of a loop over others, where a thread waits for tickets";
  let description = [{
    A loop that consists of another one, whose bounds are the same in each iteration, becomes one loop over all iterations of both.
    It carries both indices: the inner one goes up, and at its end the outer one does. So nothing begins and ends where the
    outer loop goes on, and what is asked for a step ahead can also be asked for there.

    That is done in kernels that wait for tickets (`sums = fixed`), in all roles, where each loop over others is of that form.
    `tile-split-loops` cuts the outer loop where the masks do not depend on the inner one.

    ```mlir
    scf.for %i = %a to %b step %c1 {
      %row = arith.muli %i, %c64 : index
      scf.for %g = %c0 to %heads step %c1 {
        hop.ticket.wait %S[%row] tile [64, 64] is %x : !tile.view<[M, 64], f32>
      }
    }
    // becomes
    %count = arith.muli %outer, %heads : index          // %outer = max(%b - %a, 0)
    %last:2 = scf.for %t = %c0 to %count step %c1 iter_args(%i = %a, %g = %c0) -> (index, index) {
      %row = arith.muli %i, %c64 : index
      hop.ticket.wait %S[%row] tile [64, 64] is %x : !tile.view<[M, 64], f32>
      %g_next = arith.addi %g, %c1 : index
      %ends = arith.cmpi eq, %g_next, %heads : index
      %i_next = arith.addi %i, %c1 : index
      %i_later = arith.select %ends, %i_next, %i : index
      %g_later = arith.select %ends, %c0, %g_next : index
      scf.yield %i_later, %g_later : index, index
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def PeekTickets : Pass<"hop-peek-tickets", "::tessera::hop::KernelOp"> {
  let summary = "Ask for the next ticket while the copies of this step are written";
  let description = [{
    A thread that waits for a ticket, copies, waits until that has been written and passes the ticket on does one after the
    other, and each takes as long as a way to the L2 cache and back. In a loop of a role of one thread with one such
    wait and pass, the ticket of the next step is asked for before the pass. Where it is there, which is so as long as grid points do not follow each other closely, the next step does not ask again.

    In the last step the thread asks for the ticket of that step once more.

    ```mlir
    scf.for %i = %first to %past step %c1 {
      hop.ticket.wait %S[%i] tile [64, 64] is %x : !tile.view<[M, 64], f32>
      hop.bulk_store %part, %S[%row, %c0] add : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
      hop.ticket.pass %S[%i] tile [64, 64] to %y : !tile.view<[M, 64], f32>
    }
    // becomes
    scf.for %i = %first to %past step %c1 iter_args(%ticket = %none) -> (index) {
      hop.ticket.wait %S[%i] tile [64, 64] is %x peeked %ticket : !tile.view<[M, 64], f32>
      hop.bulk_store %part, %S[%row, %c0] add : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
      %next = hop.ticket.peek %S[%later] tile [64, 64] : !tile.view<[M, 64], f32>
      hop.ticket.pass %S[%i] tile [64, 64] to %y : !tile.view<[M, 64], f32>
      scf.yield %next : index
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect"];
}

def WaitLate : Pass<"hop-wait-late", "::tessera::hop::KernelOp"> {
  let summary = "Wait for a single slot behind the products that do not need it";
  let description = [{
    A source loads tiles where it likes, and a role waits for them there. A tile in a single slot is loaded when the step before is
    done, and the products of the next step that do not need it could run meanwhile. So the wait for it goes behind the products
    that stand between it and the first use of its tile. Tiles of pipes with more slots are there in time, and a wait for them costs
    least before the first product.

    Waits for one pipe keep their order, and none leaves its block or passes a loop. A wait behind no product stays where it is, and
    so does one for what the kernel stores too: the wait orders the store behind the load.

    ```mlir
    !K = !hop.pipe<tensor<64x64xbf16>, 1>
    !T = !hop.shared<tensor<64x64xbf16>, rows = 64>
    %a = hop.pipe.wait %k : !K -> !T
    %b = hop.pipe.wait %v : !K -> !T
    %s = hop.mma %q, %a {transpose_b} : !T, !T -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
    %o = hop.mma %p, %b : tensor<64x64xbf16>, !T -> tensor<64x64xf32>
    // becomes
    %a = hop.pipe.wait %k : !K -> !T
    %s = hop.mma %q, %a {transpose_b} : !T, !T -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
    %b = hop.pipe.wait %v : !K -> !T
    %o = hop.mma %p, %b : tensor<64x64xbf16>, !T -> tensor<64x64xf32>
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def OrderLoads : Pass<"hop-order-loads", "::tessera::hop::KernelOp"> {
  let summary = "Load into single slots behind what has more slots";
  let description = [{
    A thread that loads waits until a slot is free, and all loads behind that one wait with it. A pipe of one slot is free when the
    step before is done with its tile. Pipes of two slots and more were free earlier, and what they bring may be all that the next
    step needs to begin. So in a loop of a role of one thread such loads go first, and those into a single slot behind them.

    Only loads with nothing but arithmetic between them change places. A pipe that a step fills more often than it has slots waits
    for its own step, and no load passes those into it. The loads of a pipe keep their order, so that its protocol stays what it was;
    whether the roles of a kernel all go on, the protocols of its pipes decide together.

    ```mlir
    !Two = !hop.pipe<tensor<64x64xbf16>, 2>
    !One = !hop.pipe<tensor<64x64xbf16>, 1>
    !Row = !hop.pipe<tensor<64xf32>, 2>
    scf.for %i = %c0 to %n step %c1 {
      hop.pipe.load %q, %Q[%i, %c0] : !Two, !tile.view<[M, 64], bf16>
      hop.pipe.load %do, %DO[%i, %c0] : !One, !tile.view<[M, 64], bf16>
      hop.pipe.load %l, %L[%h, %i] : !Row, !tile.view<[H, M], f32>
    }
    // becomes
    scf.for %i = %c0 to %n step %c1 {
      hop.pipe.load %q, %Q[%i, %c0] : !Two, !tile.view<[M, 64], bf16>
      hop.pipe.load %l, %L[%h, %i] : !Row, !tile.view<[H, M], f32>
      hop.pipe.load %do, %DO[%i, %c0] : !One, !tile.view<[M, 64], bf16>
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def ReleaseLate : Pass<"hop-release-late", "::tessera::hop::KernelOp"> {
  let summary = "Give the slot of a copy back behind the next copy";
  let description = [{
    A thread that copies several slots of one pipe out, one after the other, and gives each back waits for each copy to read
    shared memory before the next one begins. Where the pipe has three slots or more, the next copy begins first, and the thread then
    waits for all but that one. Behind the last of them it waits for all.

    Of two slots none would be left for who fills them, while one copy reads and the next one begins. Each slot is still given back
    once and in its turn; whether the roles of a kernel all go on, the protocols of its pipes decide together.

    ```mlir
    !Pipe = !hop.pipe<tensor<64x32xf32>, 3>
    !Shared = !hop.shared<tensor<64x32xf32>, rows = 64>
    %a = hop.pipe.wait %p : !Pipe -> !Shared
    hop.bulk_store %a, %S[%row, %c0] add : !Shared, !tile.view<[M, 64], f32>
    hop.pipe.release %p, %a : !Pipe, !Shared
    %b = hop.pipe.wait %p : !Pipe -> !Shared
    hop.bulk_store %b, %S[%row, %c32] add : !Shared, !tile.view<[M, 64], f32>
    hop.pipe.release %p, %b : !Pipe, !Shared
    // becomes
    %a = hop.pipe.wait %p : !Pipe -> !Shared
    hop.bulk_store %a, %S[%row, %c0] add in_flight 1 : !Shared, !tile.view<[M, 64], f32>
    %b = hop.pipe.wait %p : !Pipe -> !Shared
    hop.bulk_store %b, %S[%row, %c32] add in_flight 1 : !Shared, !tile.view<[M, 64], f32>
    hop.pipe.release %p, %a : !Pipe, !Shared
    hop.bulk_read_wait
    hop.pipe.release %p, %b : !Pipe, !Shared
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def PassApart : Pass<"hop-pass-apart", "::tessera::hop::KernelOp"> {
  let summary = "Pass tickets on by a thread of its own";
  let description = [{
    A thread that passes a ticket on waits until all that it wrote can be seen by the whole device, also for the copy that it has
    just begun and for the ticket that it asks for. Where one role of one thread adds in loops, beside a role that makes sums, and
    a warp of its warpgroup is free, another thread passes its tickets on, a *passer*. The writer waits until its copies have been
    written, hands the number and the value of the ticket over, and goes on.

    The pipe orders the copies before the pass: they have been written when the writer arrives at its barrier, and what the
    passer has seen by it, it passes on. The passer waits for the writer alone, and the writer for the passer until that has
    taken what lies in the pipe. So nobody waits for ever for them. A number below 0 ends it.

    All tickets are of the same tiles. Where two roles add, each passes its own on.

    ```mlir
    hop.role @writer elected {
    ^bb0(%w: index):
      scf.for %i = %first to %past step %c1 {
        hop.ticket.wait %S[%i] tile [64, 64] is %x : !tile.view<[M, 64], f32>
        hop.bulk_store %part, %S[%row, %c0] add : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
        hop.ticket.pass %S[%i] tile [64, 64] to %y : !tile.view<[M, 64], f32>
      }
    }
    // becomes
    hop.role @writer elected {
    ^bb0(%w: index):
      scf.for %i = %first to %past step %c1 {
        hop.ticket.wait %S[%i] tile [64, 64] is %x : !tile.view<[M, 64], f32>
        hop.bulk_store %part, %S[%row, %c0] add : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
        hop.bulk_store_wait
        hop.pipe.put %passes, %number : !hop.pipe<tensor<1xi32>, 4>
        hop.pipe.put %passes, %value : !hop.pipe<tensor<1xi32>, 4>
      }
      hop.pipe.put %passes, %none : !hop.pipe<tensor<1xi32>, 4>
    }
    hop.role @passer elected {
    ^bb0(%p: index):
      %first_number = hop.pipe.get %passes : !hop.pipe<tensor<1xi32>, 4>
      scf.while (%now = %first_number) : (i32) -> i32 {
        %is_ticket = arith.cmpi sge, %now, %zero : i32
        scf.condition(%is_ticket) %now : i32
      } do {
      ^bb0(%ticket: i32):
        %to = hop.pipe.get %passes : !hop.pipe<tensor<1xi32>, 4>
        %at = arith.index_cast %ticket : i32 to index
        %y = arith.index_cast %to : i32 to index
        hop.ticket.pass %S[%at] tile [64, 64] to %y : !tile.view<[M, 64], f32>
        %next = hop.pipe.get %passes : !hop.pipe<tensor<1xi32>, 4>
        scf.yield %next : i32
      }
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
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

#endif // TESSERA_PASSES_HOP_AHEADPASSES_TD
