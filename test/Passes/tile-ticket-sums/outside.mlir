// Tiles that may lie outside of their view wait for nobody: their ticket lies behind those of all views, and stays 0.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-ticket-sums),canonicalize,cse)' -split-input-file | FileCheck %s

// Of heads and of rows; in the other view all tiles are known to lie inside.
!S = !tile.view<[H, M, 64], f32>
!R = !tile.view<[M, 64], f32>
tile.kernel @outside(%s: !S, %r: !R, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64)
    fixed_sums schedule #tile.schedule<persistent = dynamic, order = ascending> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %blocks = arith.ceildivsi %m, %c64 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %h = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %row = arith.muli %j, %c64 : index
      tile.store %t, %s[%h, %row, %c0] add : tensor<64x64xf32>, !S
    }
  }
  scf.for %j = %c0 to %blocks step %c1 {
    %row = arith.muli %j, %c64 : index
    tile.store %t, %r[%row, %c0] add : tensor<64x64xf32>, !R
  }
}
// CHECK-LABEL: @outside
// CHECK-DAG: %[[M:.*]] = tile.dim "M"
// CHECK-DAG: %[[H:.*]] = tile.dim "H"
// CHECK-DAG: %[[TILES:.*]] = arith.ceildivui %[[M]], %c64
// CHECK-DAG: %[[OF_S:.*]] = arith.muli %[[H]], %[[TILES]]
// CHECK-DAG: %[[ALL:.*]] = arith.addi %[[OF_S]], %[[TILES]]
// CHECK: scf.for %[[HEAD:[^ ]*]] =
// CHECK: scf.for %[[J:[^ ]*]] =
// CHECK-DAG: %[[ROW:.*]] = arith.muli %[[J]], %c64
// CHECK-DAG: %[[IS_HEAD:.*]] = arith.cmpi ult, %[[HEAD]], %[[H]]
// CHECK-DAG: %[[IS_ROW:.*]] = arith.cmpi ult, %[[ROW]], %[[M]]
// CHECK: %[[IS_TILE:.*]] = arith.andi %[[IS_HEAD]], %[[IS_ROW]]
// CHECK: %[[NUMBER:.*]] = arith.select %[[IS_TILE]], %{{.*}}, %[[ALL]]
// CHECK: %[[FROM:.*]] = arith.select %[[IS_TILE]], %n, %c0
// CHECK: %[[TO:.*]] = arith.select %[[IS_TILE]], %{{.*}}, %c0
// CHECK: tile.store %{{.*}} add ticket %[[NUMBER]] from %[[FROM]] to %[[TO]]
// CHECK-NOT: arith.cmpi ult
// CHECK: tile.store %{{.*}} add ticket

// -----

// Known to lie inside: heads of a part of all, and steps from the last one on; rows of the grid.
!S = !tile.view<[B, H, M, 64], f32>
!T = !tile.view<[N, 64], f32>
tile.kernel @inside(%s: !S, %x: !tile.view<[K, P], f32>) grid(%k = K ceildiv 64, %p = P, %b = B)
    requires(P divides H) fixed_sums schedule #tile.schedule<persistent = dynamic, order = ascending> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %h = tile.dim "H"
  %parts = tile.dim "P"
  %group = arith.divui %h, %parts : index
  %first = arith.muli %p, %group : index
  %blocks = arith.ceildivsi %m, %c64 : index
  %last = arith.subi %c1, %blocks : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %i = %last to %c1 step %c1 {
    %j = arith.subi %c0, %i : index
    %row = arith.muli %j, %c64 : index
    scf.for %g = %c0 to %group step %c1 {
      %head = arith.addi %first, %g : index
      tile.store %t, %s[%b, %head, %row, %c0] add : tensor<64x64xf32>, !S
    }
  }
}
// CHECK-LABEL: @inside
// CHECK-NOT: arith.cmpi ult
// CHECK: add ticket
tile.kernel @rows(%s: !T, %x: !tile.view<[K], f32>) grid(%k = K ceildiv 64, %n = N ceildiv 128)
    fixed_sums schedule #tile.schedule<persistent = dynamic, order = ascending> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %n, %c128 : index
  %t = arith.constant dense<1.0> : tensor<128x64xf32>
  tile.store %t, %s[%row, %c0] add : tensor<128x64xf32>, !T
}
// CHECK-LABEL: @rows
// CHECK-NOT: arith.cmpi ult
// CHECK: add ticket
