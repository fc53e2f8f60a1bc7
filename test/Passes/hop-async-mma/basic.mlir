// Products in flight, and where they are waited for.
//
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=2,pingpong=false},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-async-mma))' | FileCheck %s --check-prefix=OVERLAP
// RUN: tessera-opt %S/../Inputs/gemm.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,stages=2},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-async-mma))' | FileCheck %s --check-prefix=GEMM
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-async-mma))' | FileCheck %s

// FRAME
hop.kernel @NAME attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 8], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N, 8], bf16>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // HERE
  }
}

// CASE chain
// Algorithm 2: the scores of the next block are waited for while the weighted sum of this one stays in flight, and the
// weights are packed after both.
// OVERLAP: hop.role @consumer
// OVERLAP: scf.for
// OVERLAP: %[[S:.*]] = hop.mma_issue %{{.*}}, %[[K:.*]] {transpose_b}
// OVERLAP: %[[O:.*]] = hop.mma_issue %[[P:.*]], %[[V:.*]] acc(
// OVERLAP: hop.mma_wait %[[S]] pending 1
// OVERLAP: hop.pipe.release %{{.*}}, %[[K]]
// OVERLAP: math.exp2
// OVERLAP: hop.mma_wait %[[O]] keep %[[P]] pending 0
// OVERLAP: hop.pipe.release %{{.*}}, %[[V]]
// OVERLAP: arith.truncf
// OVERLAP: scf.yield
// GEMM: hop.role @consumer
// GEMM: %[[F:.*]] = hop.mma_issue
// GEMM-NEXT: %[[D:.*]] = hop.mma_wait %[[F]] pending 0
// GEMM-NEXT: hop.pipe.release
// GEMM-NEXT: hop.pipe.release
// GEMM-NEXT: scf.yield %[[D]]
// An accumulator is handed on in flight: one wait for both, and the slot is released after it.
// CHECK-LABEL: hop.kernel @chain
// CHECK: %[[F:.*]] = hop.mma_issue
// CHECK-NEXT: %[[G:.*]] = hop.mma_issue {{.*}} acc(%[[F]] : !hop.flight
// CHECK-NEXT: %[[D:.*]] = hop.mma_wait %[[G]] pending 0
// CHECK-NEXT: hop.pipe.release
// CHECK-NOT: hop.mma %
// CHECK: arith.truncf %[[D]]
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %a = hop.mma %s, %k : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d = hop.mma %s, %s acc(%a : tensor<64x64xf32, #hop.layout<accumulator>>) : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %dh = arith.truncf %d : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %dh, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>

// CASE twice
// An accumulator that is used twice is waited for first.
// CHECK-LABEL: hop.kernel @twice
// CHECK: %[[F:.*]] = hop.mma_issue
// CHECK-NEXT: %[[A:.*]] = hop.mma_wait %[[F]] pending 0
// CHECK: hop.mma_issue {{.*}} acc(%[[A]] : tensor
    %a = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d = hop.mma %s, %s acc(%a : tensor<64x64xf32, #hop.layout<accumulator>>) : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %b = arith.addf %a, %d : tensor<64x64xf32, #hop.layout<accumulator>>
    %bh = arith.truncf %b : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %bh, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>

// CASE branch
// Nothing stays in flight over a branch or at the end of a role.
// CHECK-LABEL: hop.kernel @branch
// CHECK: %[[F:.*]] = hop.mma_issue
// CHECK-NEXT: hop.mma_wait %[[F]] pending 0
// CHECK-NEXT: scf.for
// CHECK: %[[G:.*]] = hop.mma_issue
// CHECK-NEXT: hop.mma_wait %[[G]] pending 0
// CHECK-NEXT: }
// CHECK: %[[H:.*]] = hop.mma_issue
// CHECK-NEXT: hop.mma_wait %[[H]] pending 0
// CHECK-NEXT: }
    %a = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    scf.for %i = %c0 to %m step %m {
      %b = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    }
    %d = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>

// CASE pack
// A register operand is packed after the products that read registers.
// CHECK-LABEL: hop.kernel @pack
// CHECK: %[[P:.*]] = arith.truncf
// CHECK: %[[F:.*]] = hop.mma_issue %[[P]]
// CHECK-NEXT: hop.mma_wait %[[F]] keep %[[P]] pending 0
// CHECK-NEXT: %[[Q:.*]] = arith.truncf
// CHECK: hop.mma_issue %[[Q]]
    %t = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    %p = arith.truncf %t : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    %t2 = math.exp2 %t : tensor<64x64xf32, #hop.layout<accumulator>>
    %q = arith.truncf %t2 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    %a = hop.mma %p, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %b = hop.mma %q, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>

// END
// Not behind a product of tiles in shared memory alone: packing holds up nothing there, and across that product the packed
// tile takes half the registers.
// CHECK-LABEL: hop.kernel @pack_before
// CHECK: math.exp2
// CHECK-NEXT: %[[P:.*]] = arith.truncf
// CHECK-NEXT: hop.mma_issue
// CHECK: hop.mma_issue %[[P]]
hop.kernel @pack_before attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    %e = math.exp2 %t : tensor<64x64xf32, #hop.layout<accumulator>>
    %p = arith.truncf %e : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    %a = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %b = hop.mma %p, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// A wait leaves at most seven groups in flight: wgmma.wait_group takes no more.
// CHECK-LABEL: hop.kernel @many
// CHECK-COUNT-10: hop.mma_issue
// CHECK-NEXT: hop.mma_wait %{{.*}} pending 7
// CHECK: hop.mma_wait %{{.*}} pending 7
// CHECK: hop.mma_wait %{{.*}} pending 7
// CHECK: hop.mma_wait %{{.*}} pending 6
hop.kernel @many attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 8], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N, 8], bf16>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %d0 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d1 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d2 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d3 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d4 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d5 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d6 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d7 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d8 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d9 = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %e0 = math.exp2 %d0 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e0h = arith.truncf %e0 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e0h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %e1 = math.exp2 %d1 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e1h = arith.truncf %e1 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e1h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %e2 = math.exp2 %d2 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e2h = arith.truncf %e2 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e2h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %e3 = math.exp2 %d3 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e3h = arith.truncf %e3 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e3h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %e4 = math.exp2 %d4 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e4h = arith.truncf %e4 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e4h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %e5 = math.exp2 %d5 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e5h = arith.truncf %e5 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e5h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %e6 = math.exp2 %d6 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e6h = arith.truncf %e6 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e6h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %e7 = math.exp2 %d7 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e7h = arith.truncf %e7 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e7h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %e8 = math.exp2 %d8 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e8h = arith.truncf %e8 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e8h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %e9 = math.exp2 %d9 : tensor<64x64xf32, #hop.layout<accumulator>>
    %e9h = arith.truncf %e9 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %e9h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
  }
}

// FRAME
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    // HERE
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %a = hop.mma %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %p = arith.truncf %a : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    %d = hop.mma %p, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    tile.store %p, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    %dh = arith.truncf %d : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %dh, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
  }
}

// CASE operand_is_stored
// Registers that a product reads are not read by anything else before its end.
// CHECK-LABEL: hop.kernel @operand_is_stored
// CHECK: %[[P:.*]] = arith.truncf
// CHECK-NEXT: %[[F:.*]] = hop.mma_issue %[[P]],
// CHECK-NEXT: hop.mma_wait %[[F]] keep %[[P]] pending 0
// CHECK-NEXT: tile.store %[[P]]
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {

// CASE operand_is_copied
// Where the first dot of the next step is in flight too, they are: the product has a copy.
// CHECK-LABEL: hop.kernel @operand_is_copied
// CHECK: %[[P:.*]] = arith.truncf
// CHECK-NEXT: %[[F:.*]] = hop.mma_issue %[[P]], {{.*}} {copies_a}
// CHECK-NEXT: tile.store %[[P]]
// CHECK-NEXT: hop.mma_wait %[[F]] keep %[[P]] pending 0
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<overlap = lead>} {

// CASE operand_goes_to_a_reducer
// So it is beside a reducer, which gets operands of that product.
// CHECK-LABEL: hop.kernel @operand_goes_to_a_reducer
// CHECK: %[[P:.*]] = arith.truncf
// CHECK-NEXT: %[[F:.*]] = hop.mma_issue %[[P]], {{.*}} {copies_a}
// CHECK-NEXT: tile.store %[[P]]
// CHECK-NEXT: hop.mma_wait %[[F]] keep %[[P]] pending 0
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<overlap = 1, placement = apart>} {
