// Passes that keep the assembler from moving work across waits and products.

#ifndef TESSERA_PASSES_HOP_PINPASSES_TD
#define TESSERA_PASSES_HOP_PINPASSES_TD

include "mlir/Pass/PassBase.td"

def PinWaits : Pass<"hop-pin-waits", "::tessera::hop::KernelOp"> {
  let summary = "Keep work under the product that it was placed under";
  let description = [{
    Only with `pin_waits = true`. The work between two waits of a block depends on the first one's tiles and not on the
    second one's product, which runs meanwhile (FlashAttention-3, section 3.2, Figure 2). An assembler that sees no
    dependence from the work to the second wait moves that wait up, to before the work, and the tensor cores are idle
    during it. This pass names at each wait the tiles that the work before it yields; lowered, the wait is in a block of
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

def PinWork : Pass<"hop-pin-work", "::tessera::hop::KernelOp"> {
  let summary = "Keep work before a product that would need more registers beside it";
  let description = [{
    Where the work on a tile stands before a product that does not depend on it, an assembler runs the two side by side, so
    that the tile and the accumulator of the product live at once. That is welcome as long as the role has the registers. The
    gradients of attention at d = 128 have not: dK, dV, S and dP take 192 of 208, and the assembler then serialises all
    products of the kernel (C7512) instead of changing its mind.

    So the pass counts what lives across each product that begins in new registers and has no other in flight: all
    tiles, the accumulator, what the work has still to read, and what a thread needs beside tiles. Where that is more than
    the role's `registers`, the tiles that the work yields are pinned before the product (`hop.pin`). With
    `overlap = 1, lead = 1`, where nothing crosses a step's end in flight, work on a tile of the step before counts too.
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
  }];
  let dependentDialects = ["::tessera::hop::HopDialect"];
}

#endif // TESSERA_PASSES_HOP_PINPASSES_TD
