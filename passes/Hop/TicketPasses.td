// The pass of threads that wait for tickets.

#ifndef TESSERA_PASSES_TICKETPASSES_TD
#define TESSERA_PASSES_TICKETPASSES_TD

include "mlir/Pass/PassBase.td"

def ScheduleTickets : Pass<"hop-schedule-tickets", "::tessera::hop::KernelOp"> {
  let summary = "Let a thread that waits for tickets ask early, and another one pass them on";
  let description = [{
    With `fixed_sums` a thread waits for the ticket of a tile, copies its sums out and passes the ticket on. Each of that takes as
    long as a way to the L2 cache and back, and few registers are left to the thread. Four steps, of which `steps` names those to
    take, make it wait less:

    * `join`: `tile-split-loops` cuts a loop where its masks are needed. A role of one thread has no masks, and its pieces are
      alike. Two loops over [a, b) and [b, c) with the same body are one over [min(a, b), max(b, c)), also where one of them has
      no iterations. Of `max(b, c)` c is left where b is known to be at most c. And of `min(a, b)` a is left where b is at least a, or
      `min(d, c)` for a d that is: if b is less than a then, neither loop has an iteration.
    * `flatten`: a loop that consists of another one, whose bounds are the same in each iteration, becomes one loop over all
      iterations of both, which carries both indices. So what is asked for a step ahead can also be asked for where the outer loop
      goes on. It is done in all roles, where each loop over others is of that form.
    * `peek`: in a loop with one wait and one pass the ticket of the next step is asked for before the pass, while the copies of this
      one are written. Where it is there, the next step does not ask again. In the last step the thread asks for the ticket of that
      step once more.
    * `pass`: whoever passes a ticket on waits until all that it wrote can be seen by the whole device, also for the copy that it has
      just begun. Where one role of one thread adds in loops, beside a role that makes sums, and a warp of its warpgroup is free,
      another thread passes its tickets on, a *passer*. The writer waits until its copies have been written, hands the number and
      the value of the ticket over, and goes on. The pipe orders the copies before the pass. A number below 0 ends the passer.
      All tickets are of the same tiles. Where two roles add, each passes its own on.

    ```mlir
    hop.role @writer elected {
    ^bb0(%w: index):
      scf.for %i = %a to %b step %c1 {
        hop.ticket.wait %S[%i] tile [64, 64] is %x : !tile.view<[M, 64], f32>
        hop.bulk_store %part, %S[%row, %c0] add : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
        hop.ticket.pass %S[%i] tile [64, 64] to %y : !tile.view<[M, 64], f32>
      }
      // And the same loop from %b to %c.
    }
    // becomes
    hop.role @writer elected {
    ^bb0(%w: index):
      %first = arith.minsi %a, %b : index
      %past = arith.maxsi %b, %c : index
      scf.for %i = %first to %past step %c1 iter_args(%ticket = %none) -> (index) {
        hop.ticket.wait %S[%i] tile [64, 64] is %x peeked %ticket : !tile.view<[M, 64], f32>
        hop.bulk_store %part, %S[%row, %c0] add : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
        %next = hop.ticket.peek %S[%later] tile [64, 64] : !tile.view<[M, 64], f32>
        hop.bulk_store_wait
        hop.pipe.put %passes, %number : !hop.pipe<tensor<1xi32>, 4>
        hop.pipe.put %passes, %value : !hop.pipe<tensor<1xi32>, 4>
        scf.yield %next : index
      }
      hop.pipe.put %passes, %over : !hop.pipe<tensor<1xi32>, 4>
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
        %again = hop.pipe.get %passes : !hop.pipe<tensor<1xi32>, 4>
        scf.yield %again : i32
      }
    }
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let options = [ListOption<"steps", "steps", "std::string", "The steps to take, of join, flatten, peek and pass; all if none">];
}

#endif // TESSERA_PASSES_TICKETPASSES_TD
