// A remark says whether a kernel speculates, and why not.
//
// RUN: tessera-opt %S/../Inputs/speculation.mlir --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: tessera-opt %S/../Inputs/speculation.mlir --tile-override-schedule=schedule=speculate=false --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=ASKED
// RUN: tessera-opt %s --tile-choose-schedule -verify-diagnostics | FileCheck %s

// BOTH: speculation.mlir:17:10: remark: speculates: the first region runs for each grid point, and the exact one again where the condition does not hold
// BOTH: remark: schedule chosen: {{.*}}speculate = true

// ASKED: speculation.mlir:17:10: remark: exact region alone: speculate = false
// ASKED: remark: schedule chosen: {{.*}}speculate = false
// ASKED-NOT: tile.speculate

!A = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 256], f16>
!C = !tile.view<[M, 256], f32>
!T = tensor<64x256xf32>

// Two sums of 128 registers live in the first region, and one in the exact one.
// CHECK-LABEL: tile.kernel @wide
// CHECK-SAME:    speculate = false
// CHECK-NOT:     tile.speculate
// expected-remark @+2 {{schedule rejected: overlap = 2: the kernel has no loop with dots}}
// expected-remark @+1 {{schedule chosen: }}
tile.kernel @wide(%a: !A, %b: !B, %c: !C) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %limit = arith.constant dense<1024.0> : tensor<64xf32>
  %row = arith.muli %m, %c64 : index
  %x = tile.load %a[%row, %c0] : !A -> tensor<64x64xf16>
  %y = tile.load %b[%c0, %c0] : !B -> tensor<64x256xf16>
  // expected-remark @+1 {{exact region alone: no schedule fits both regions; producer = operands, overlap = 1, consumers = 1: a consumer thread needs }}
  %sum = tile.speculate -> !T {
    %s = tile.dot %x, %y : tensor<64x64xf16>, tensor<64x256xf16> -> !T
    %t = tile.dot %x, %y, %s : tensor<64x64xf16>, tensor<64x256xf16> -> !T
    %most = tile.reduce max %t axis 1 : !T -> tensor<64xf32>
    %valid = arith.cmpf ole, %most, %limit : tensor<64xf32>
    %u = arith.mulf %s, %t : !T
    tile.yield_if %valid, %u : tensor<64xi1>, !T
  } exact {
    %s = tile.dot %x, %y : tensor<64x64xf16>, tensor<64x256xf16> -> !T
    tile.yield %s : !T
  }
  tile.store %sum, %c[%row, %c0] : !T, !C
}
