// Loops in which a tile and its successor live at once run two iterations a step; others stay as they are.
//
// RUN: tessera-opt %s --tile-unroll-loops -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline='builtin.module(tessera-schedule{schedule=overlap=3})' 2>&1 | FileCheck %s --check-prefix=AHEAD
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline='builtin.module(tessera-schedule{schedule=overlap=2})' 2>&1 | FileCheck %s --check-prefix=INSTEP

// The scores of the next block are made while those of this one are read: the loop without a mask is unrolled, the one
// for the boundary is not.
// AHEAD: remark: loop unrolled: two of its tiles change registers by turns
// AHEAD-NOT: remark: loop unrolled
// AHEAD: %[[R:.*]]:5 = scf.for {{.*}} step %c2
// AHEAD: tile.dot
// AHEAD: tile.dot
// AHEAD: math.exp2 {{.*}} : tensor<128x128xf32>
// AHEAD: tile.dot
// AHEAD: tile.dot
// AHEAD: math.exp2 {{.*}} : tensor<128x128xf32>
// AHEAD: scf.yield
// AHEAD: scf.if
// AHEAD: scf.for {{.*}} step %c1
// AHEAD: {tile.boundary}

// INSTEP-NOT: remark: loop unrolled
// INSTEP-NOT: step %c2

// CHECK-LABEL: tile.kernel @ahead
// CHECK:       %[[N:.*]] = tile.dim "N"
// CHECK:       %[[D:.*]] = arith.subi %[[N]], %c0
// CHECK:       %[[SOME:.*]] = arith.maxsi %[[D]],
// CHECK:       %[[TRIPS:.*]] = arith.ceildivsi %[[SOME]], %c64
// CHECK:       %[[PAIRS:.*]] = arith.divsi %[[TRIPS]],
// CHECK:       %[[TWO:.*]] = arith.muli %c64,
// CHECK:       %[[SPAN:.*]] = arith.muli %[[PAIRS]], %[[TWO]]
// CHECK:       %[[MIDDLE:.*]] = arith.addi %c0, %[[SPAN]]
// CHECK:       %[[R:.*]]:2 = scf.for %[[J:.*]] = %c0 to %[[MIDDLE]] step %[[TWO]] iter_args(%[[ACC:.*]] = %{{.*}}, %[[S0:.*]] = %{{.*}})
// CHECK:         tile.load %x[%[[J]],
// CHECK:         %[[S1:.*]] = tile.dot
// CHECK:         %[[A1:.*]] = arith.addf %[[ACC]], %[[S0]]
// CHECK:         %[[J1:.*]] = arith.addi %[[J]], %c64
// CHECK:         tile.load %x[%[[J1]],
// CHECK:         %[[S2:.*]] = tile.dot
// CHECK:         %[[A2:.*]] = arith.addf %[[A1]], %[[S1]]
// CHECK:         scf.yield %[[A2]], %[[S2]]
// CHECK:       %[[ODD:.*]] = arith.cmpi slt, %[[MIDDLE]], %[[N]]
// CHECK:       %[[ALL:.*]]:2 = scf.if %[[ODD]]
// CHECK:         tile.load %x[%[[MIDDLE]],
// CHECK:         arith.addf %[[R]]#0, %[[R]]#1
// CHECK:       } else {
// CHECK-NEXT:    scf.yield %[[R]]#0, %[[R]]#1
// CHECK:       tile.store %[[ALL]]#0
tile.kernel @ahead(%x: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // expected-remark@+1 {{loop unrolled: two of its tiles change registers by turns}}
  %sum, %last = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero, %s = %zero)
      -> (tensor<64x64xf32>, tensor<64x64xf32>) {
    %k = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %next = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %a = arith.addf %acc, %s : tensor<64x64xf32>
    scf.yield %a, %next : tensor<64x64xf32>, tensor<64x64xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// Read before it is replaced, the tile keeps its registers.
// CHECK-LABEL: tile.kernel @instep
// CHECK:       scf.for %{{.*}} step %c64
// CHECK-NOT:   scf.if
tile.kernel @instep(%x: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum, %last = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero, %s = %zero)
      -> (tensor<64x64xf32>, tensor<64x64xf32>) {
    %a = arith.addf %acc, %s : tensor<64x64xf32>
    %k = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %next = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %a, %next : tensor<64x64xf32>, tensor<64x64xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// Accumulators that take each other's place: after two iterations each is back in its own.
// CHECK-LABEL: tile.kernel @swap
// CHECK:       %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK:         %[[A1:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[A]]
// CHECK:         %[[B1:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[B]]
// CHECK:         scf.yield %[[A1]], %[[B1]]
tile.kernel @swap(%x: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // expected-remark@+1 {{loop unrolled: two of its tiles change registers by turns}}
  %even, %odd = scf.for %j = %c0 to %n step %c64 iter_args(%a = %zero, %b = %zero)
      -> (tensor<64x64xf32>, tensor<64x64xf32>) {
    %k = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %next = tile.dot %q, %k, %a : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %b, %next : tensor<64x64xf32>, tensor<64x64xf32>
  }
  tile.store %even, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
