// Sums that go to one place in all iterations are added behind the loop, and behind those around it.
//
// RUN: tessera-opt %s --tile-carry-sums | FileCheck %s

!X = !tile.view<[M, 64], f32>
!Y = !tile.view<[M], f32>

// One place for the loops, one for the inner one, one that changes, and a tile of rank 2.
// CHECK-LABEL: tile.kernel @places
// CHECK:       %[[OUTER:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[ALL:.*]] = %{{.*}}) -> (tensor<64xf32>)
// CHECK:         %[[INNER:.*]]:2 = scf.for %{{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (tensor<64xf32>, tensor<64xf32>)
// CHECK:           %[[SUM:.*]] = tile.reduce sum
// CHECK:           tile.store %[[SUM]], %y[%{{.*}}] add
// CHECK:           tile.store %{{.*}}, %x[%{{.*}}] add : tensor<64x64xf32>
// CHECK:           %[[A_NEW:.*]] = arith.addf %[[A]], %[[SUM]]
// CHECK:           %[[B_NEW:.*]] = arith.addf %[[B]], %[[SUM]]
// CHECK:           scf.yield %[[A_NEW]], %[[B_NEW]]
// CHECK:         tile.store %[[INNER]]#1, %z[%[[I]]] add
// CHECK:         %[[ALL_NEW:.*]] = arith.addf %[[ALL]], %[[INNER]]#0
// CHECK:         scf.yield %[[ALL_NEW]]
// CHECK:       tile.scatter_add %[[OUTER]], %w[%{{.*}}]
tile.kernel @places(%t: !X, %x: !X, %y: !Y, %z: !Y, %w: !Y) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = tile.dim "M"
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %a = tile.load %t[%j, %c0] : !X -> tensor<64x64xf32>
      %sum = tile.reduce sum %a axis 1 : tensor<64x64xf32> -> tensor<64xf32>
      tile.scatter_add %sum, %w[%m] : tensor<64xf32>, !Y, index
      tile.store %sum, %z[%i] add : tensor<64xf32>, !Y
      tile.store %sum, %y[%j] add : tensor<64xf32>, !Y
      tile.store %a, %x[%m, %c0] add : tensor<64x64xf32>, !X
    }
  }
}

// A plain store, and an addition that some iterations leave out.
// CHECK-LABEL: tile.kernel @stays
// CHECK:       scf.for
// CHECK-NOT:   iter_args
// CHECK:         tile.store %{{.*}}, %y[%c0]
// CHECK:         scf.if
// CHECK:           tile.store %{{.*}}, %z[%c0] add
tile.kernel @stays(%t: !X, %y: !Y, %z: !Y) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = tile.dim "M"
  scf.for %j = %c0 to %end step %c1 {
    %a = tile.load %t[%j, %c0] : !X -> tensor<64xf32>
    tile.store %a, %y[%c0] : tensor<64xf32>, !Y
    %some = arith.cmpi eq, %j, %c1 : index
    scf.if %some {
      tile.store %a, %z[%c0] add : tensor<64xf32>, !Y
    }
  }
}
