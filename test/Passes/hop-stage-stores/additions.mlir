// Tiles of f32 that are added in a loop, through shared memory of their own: each time the threads wait for the copy before.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-stores,hop-insert-proxy-fences))' | FileCheck %s

!Y = !tile.view<[M, 64], f32>
!Tile = tensor<64x64xf32, #hop.layout<accumulator>>
hop.kernel @k attributes {argument_names = ["y"], argument_types = [!Y], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<store = tma, placement = rows>} {
^bb0(%y: !Y, %m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %t = arith.constant dense<1.0> : !Tile
    scf.for %i = %c0 to %c64 step %c1 {
      %row = arith.muli %i, %c64 : index
      tile.store %t, %y[%row, %c0] add : !Tile, !Y
    }
  }
}

// CHECK: %[[MEMORY:.*]] = hop.staging "y" : !hop.shared<tensor<128x64xf32>, rows = 128>
// CHECK: hop.role @consumer warpgroups(2)
// CHECK: scf.for
// CHECK: %[[PART:.*]] = hop.slice %[[MEMORY]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.stage %{{.*}}, %[[PART]] : tensor<64x64xf32
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.bulk_store %[[PART]], %{{.*}} add
