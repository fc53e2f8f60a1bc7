// Passes that say when a role waits, loads and releases.

#ifndef TESSERA_PASSES_HOP_ORDERPASSES_TD
#define TESSERA_PASSES_HOP_ORDERPASSES_TD

include "mlir/Pass/PassBase.td"

def PinWork : Pass<"hop-pin-work", "::tessera::hop::KernelOp"> {
  let summary = "Keep work where it was placed, before a wait or a product";
  let description = [{
    Where the work on a tile stands before a product that does not depend on it, an assembler runs the two side by side, so
    that the tile and the accumulator of the product live at once. That is welcome as long as the role has the registers. The
    gradients of attention at d = 128 have not: dK, dV, S and dP take 192 of 208, and the assembler then serialises all
    products of the kernel (C7512) instead of changing its mind.

    So the pass counts what lives across each product that begins in new registers and has no other in flight: all
    tiles, the accumulator, what the work has still to read, and what a thread needs beside tiles. Where that is more than
    the role's `registers`, the tiles that the work yields are pinned before the product (`hop.pin`). With
    `overlap = lead`, where nothing crosses a step's end in flight, work on a tile of the step before counts too.
    Where a product of some of that work has to end before (`hop-async-mma`), all is pinned before that one.

    ```mlir
    !S = tensor<64x64xf32, #hop.layout<accumulator>>
    !P = tensor<64x64xbf16, #hop.layout<accumulator>>
    !V = !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
    %e = math.exp2 %s : !S
    %p = arith.truncf %e : !S to !P
    %g = hop.mma_issue %v, %o {transpose_b} : !V, !V -> !hop.flight<!S>
    %dp = hop.mma_wait %g pending 0 : !hop.flight<!S> -> !S
    // becomes
    %s = hop.mma_wait %f pending 0 : !hop.flight<!S> -> !S
    %e = math.exp2 %s : !S
    %p = arith.truncf %e : !S to !P
    hop.pin %p : !P
    %g = hop.mma_issue %v, %o {transpose_b} : !V, !V -> !hop.flight<!S>
    %dp = hop.mma_wait %g pending 0 : !hop.flight<!S> -> !S
    ```

    With `work = pinned` waits are pinned: the work between two waits of a block depends on the first one's tiles and not on the
    second one's product, which runs meanwhile (FlashAttention-3, section 3.2, Figure 2). An assembler that sees no
    dependence from the work to the second wait moves that wait up, to before the work, and the tensor cores are idle
    during it. So the pass names at each wait the tiles that the work before it yields; lowered, the wait is in a block of
    its own behind them. Of those tiles the ones that others are computed from are left out.

    ```mlir
    !S = tensor<64x64xf32, #hop.layout<accumulator>>
    !Row = tensor<64xf32, #hop.layout<row_partial>>
    %s = hop.mma_wait %f pending 1 : !hop.flight<!S> -> !S
    %p = math.exp2 %s : !S
    %sum = tile.reduce sum %p axis 1 : !S -> !Row
    %o = hop.mma_wait %g pending 0 : !hop.flight<!S> -> !S
    // becomes
    %s = hop.mma_wait %f pending 1 : !hop.flight<!S> -> !S
    %p = math.exp2 %s : !S
    %sum = tile.reduce sum %p axis 1 : !S -> !Row
    %o = hop.mma_wait %g behind %sum pending 0 : !hop.flight<!S> behind !Row -> !S
    ```
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

def OrderSlots : Pass<"hop-order-slots", "::tessera::hop::KernelOp"> {
  let summary = "Order what a role waits for, loads and gives back";
  let description = [{
    A role waits for the slots of its pipes, and all that stands behind a wait waits with it. So what need not wait goes first: products
    before waits for single slots, loads into slots that are free before others, and the next copy from a slot before the last one
    is given back. Remarks say what was moved, and for what. Waits for products are `hop-async-mma`'s.

    A source loads tiles where it likes, and a role waits for them there. A tile in a single slot is loaded when the step before is
    done, and the products of the next step that do not need it could run meanwhile. So the wait for it goes behind the products
    that stand between it and the first use of its tile. Tiles of pipes with more slots are there in time, and a wait for them costs
    least before the first product. But with `placement = divided` others wait for a role that hands several tiles on in a step: there each
    tile that is loaded by copies is waited for behind the products that do not need it, so that the first product begins sooner.

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

    A thread that loads waits until its slot is free, and all loads behind that one wait with it. A pipe of one slot is free when the
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

#endif // TESSERA_PASSES_HOP_ORDERPASSES_TD
