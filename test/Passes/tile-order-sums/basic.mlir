// Tickets of tiles that grid points add to, along the one grid index on which the place does not depend.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-order-sums),canonicalize,cse)' -split-input-file | FileCheck %s

// All grid points come to all tiles: with the lowest first, ticket X is that of the grid point before, or 0.
!S = !tile.view<[B, M, 64], f32>
tile.kernel @all(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64, %b = B)
    schedule #tile.schedule<persistent = dynamic, order = ascending, sums = fixed> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %j = %c0 to %m step %c64 {
    tile.store %t, %s[%b, %j, %c0] add : tensor<64x64xf32>, !S
  }
}
// CHECK-LABEL: @all
// CHECK-DAG: %[[NEXT:.*]] = arith.addi %n, %c1
// CHECK-DAG: %[[COUNT:.*]] = arith.ceildivui %{{.*}}, %c64
// CHECK-DAG: %[[COMES:.*]] = arith.cmpi slt, %[[NEXT]], %[[COUNT]]
// CHECK-DAG: %[[FIRST:.*]] = arith.cmpi sgt, %n, %c0
// CHECK: scf.for %[[J:.*]] =
// CHECK-DAG: %[[FROM:.*]] = arith.select %[[FIRST]], %n, %c0
// CHECK-DAG: %[[TO:.*]] = arith.select %[[COMES]], %[[NEXT]], %c0
// CHECK-DAG: %[[PLACE:.*]] = arith.divui %[[J]], %c64
// CHECK-DAG: %[[OF_B:.*]] = arith.muli %b, %{{.*}}
// CHECK-DAG: %[[TICKET:.*]] = arith.addi %[[OF_B]], %[[PLACE]]
// CHECK: tile.store %{{.*}} add ticket %[[TICKET]] from %[[FROM]] to %[[TO]] : tensor<64x64xf32>

// -----

// Loops begin later for higher indices, and the highest goes first: the one before comes where its loop has begun, and
// the one behind has begun before this one.
!S = !tile.view<[H, M, 64], f32>
tile.kernel @triangle(%s: !S, %x: !tile.view<[HK], f32>) grid(%n = M ceildiv 64, %hk = HK) requires(HK divides H)
    schedule #tile.schedule<persistent = dynamic, order = descending, sums = fixed> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %h = tile.dim "H"
  %hks = tile.dim "HK"
  %group = arith.divui %h, %hks : index
  %first_head = arith.muli %hk, %group : index
  %blocks = arith.ceildivui %m, %c64 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %g = %c0 to %group step %c1 {
    %head = arith.addi %first_head, %g : index
    scf.for %j = %n to %blocks step %c1 {
      %row = arith.muli %j, %c64 : index
      tile.store %t, %s[%head, %row, %c0] add : tensor<64x64xf32>, !S
    }
  }
}
// CHECK-LABEL: @triangle
// CHECK: %[[NEXT:.*]] = arith.addi %n, %c1
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[NEXT]]
// CHECK: %[[IS_BEHIND:.*]] = arith.cmpi sgt, %n, %c0
// CHECK: scf.for
// CHECK: scf.for %[[J:.*]] = %n
// CHECK-DAG: %[[REACHED:.*]] = arith.cmpi sle, %[[NEXT]], %[[J]]
// CHECK-DAG: %[[BEFORE:.*]] = arith.andi %[[EXISTS]], %[[REACHED]]
// CHECK-DAG: %[[PLUS_2:.*]] = arith.addi %n, %c2
// CHECK-DAG: %[[FROM:.*]] = arith.select %[[BEFORE]], %[[PLUS_2]], %c0
// CHECK-DAG: %[[TO:.*]] = arith.select %[[IS_BEHIND]], %[[NEXT]], %c0
// CHECK-NOT: arith.cmpi
// CHECK: tile.store %{{.*}} add ticket %{{.*}} from %[[FROM]] to %[[TO]]

// -----

// One grid point adds to each tile: nobody waits.
!S = !tile.view<[M, 64], f32>
tile.kernel @own(%s: !S) grid(%n = M ceildiv 64) schedule #tile.schedule<persistent = none, order = linear, sums = fixed> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %n, %c64 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
}
// CHECK-LABEL: @own
// CHECK: tile.store %{{.*}} add : tensor<64x64xf32>
