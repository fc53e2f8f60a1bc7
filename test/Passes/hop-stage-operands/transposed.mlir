// A computed tile that a product reads transposed goes to shared memory, whatever the schedule says of others: each warpgroup
// writes its rows as columns of the whole, and multiplies those.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-operands))' | FileCheck %s

!X = !tile.view<[M, 64], bf16>
!P = tensor<64x128xbf16, #hop.layout<accumulator>>
!Z = !hop.shared<tensor<64x32xbf16>, rows = 128>
!Acc = tensor<128x32xf32, #hop.layout<accumulator>>
!Other = tensor<64x32xf32, #hop.layout<accumulator>>
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!X], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%x: !X, %m: index):
  %z = hop.staging "z" : !hop.shared<tensor<128x32xbf16>, rows = 128>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %mine = hop.slice %z[%wg] : !hop.shared<tensor<128x32xbf16>, rows = 128> -> !Z
    %c0 = arith.constant 0 : index
    %p = tile.load %x[%m, %c0] : !X -> !P
    %s = hop.mma %p, %mine {transpose_a} : !P, !Z -> !Acc
    %wide = hop.mma %p, %z : !P, !hop.shared<tensor<128x32xbf16>, rows = 128> -> !Other
  }
}

// CHECK: %[[WHOLE:.*]] = hop.staging "operand" : !hop.shared<tensor<128x128xbf16>, rows = 128>
// CHECK: %[[COLUMNS:.*]] = hop.slice %[[WHOLE]][%{{.*}}] : !hop.shared<tensor<128x128xbf16>, rows = 128> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
// CHECK: %[[P:.*]] = tile.load
// CHECK-NEXT: hop.stage %[[P]], %[[COLUMNS]] transposed
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.mma %[[COLUMNS]], %{{[a-z0-9]+}} : !hop.shared<tensor<128x64xbf16>, rows = 128>
// CHECK-NEXT: hop.mma %[[P]],
