// A pipe whose tiles go to a converter in one loop, and into the registers of the consumers in another: each role that reads it
// waits for all of its tiles, and lets those pass that it does not need.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = all, consumers = 1, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = rows, transpose = 0, work = tiles>
!A = !tile.view<[M, 512], f16>
!B = !tile.view<[512, N], f16>
!C = !tile.view<[M, N], f32>
!S = tensor<64x64xf32>
!H = tensor<64x64xf16>
tile.kernel @k(%a: !A, %b: !B, %c: !C, %end: index) grid(%m = M ceildiv 64, %n = N ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : !S
  %sum = scf.for %k = %c0 to %end step %c64 iter_args(%acc = %zero) -> (!S) {
    %x = tile.load %a[%m, %k] pipe 0 : !A -> !H
    %y = tile.load %b[%k, %c0] pipe 1 : !B -> !H
    %wide = arith.extf %y : !H to !S
    %twice = arith.addf %wide, %wide : !S
    %h = arith.truncf %twice : !S to !H
    %new = tile.dot %x, %h, %acc : !H, !H -> !S
    scf.yield %new : !S
  }
  %all = scf.for %k = %end to %c512 step %c64 iter_args(%acc = %sum) -> (!S) {
    %x = tile.load %a[%m, %k] pipe 0 : !A -> !H
    %y = tile.load %b[%k, %c0] pipe 1 : !B -> !H
    %wide = arith.extf %y : !H to !S
    %places = tile.iota %k axis 0 : tensor<64x64xi32>
    %numbers = arith.sitofp %places : tensor<64x64xi32> to !S
    %less = arith.addf %wide, %numbers : !S
    %h = arith.truncf %less : !S to !H
    %new = tile.dot %x, %h, %acc : !H, !H -> !S
    scf.yield %new : !S
  }
  tile.store %all, %c[%m, %n] : !S, !C
}

// CHECK-DAG: %[[B:.*]] = hop.pipe.create "b" : !hop.pipe<tensor<64x64xf16>, 2>
// CHECK-DAG: %[[CONVERTED:.*]] = hop.pipe.create "b.converted"
// CHECK: hop.role @converter
// CHECK: scf.for
// CHECK: %[[T:.*]] = hop.pipe.wait %[[B]]
// CHECK: hop.fetch %[[T]]
// CHECK: hop.warpgroup_sync
// CHECK-NEXT: hop.pipe.release %[[B]], %[[T]]
// CHECK: scf.for
// CHECK-NEXT: %[[PASSED:.*]] = hop.pipe.wait %[[B]]
// CHECK-NEXT: hop.pipe.release %[[B]], %[[PASSED]]
// CHECK-NEXT: }
// CHECK: hop.role @consumer
// CHECK: scf.for
// CHECK: %[[PASSED:.*]] = hop.pipe.wait %[[B]]
// CHECK-NEXT: hop.pipe.release %[[B]], %[[PASSED]]
// CHECK: hop.pipe.wait %[[CONVERTED]]
// CHECK: scf.for
// CHECK: %[[OWN:.*]] = hop.pipe.wait %[[B]]
// CHECK-NEXT: hop.fetch %[[OWN]]
// CHECK-NEXT: hop.pipe.release %[[B]], %[[OWN]]
