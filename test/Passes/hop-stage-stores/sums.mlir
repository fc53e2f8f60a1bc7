// With placement = apart only what is added goes through shared memory. Two sums of a step take turns at two places, so that
// the copy of one goes on while the other is written; the role ends when both have been read.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-stores))' | FileCheck %s

!Y = !tile.view<[M, 128], f32>
!Tile = tensor<64x64xf32, #hop.layout<accumulator>>
hop.kernel @k attributes {argument_names = ["y", "z"], argument_types = [!Y, !Y], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<store = tma, placement = apart>} {
^bb0(%y: !Y, %z: !Y, %m: index):
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %t = arith.constant dense<1.0> : !Tile
    scf.for %i = %c0 to %c64 step %c1 {
      %row = arith.muli %i, %c64 : index
      tile.store %t, %y[%row, %c0] add : !Tile, !Y
      tile.store %t, %y[%row, %c64] add : !Tile, !Y
    }
    tile.store %t, %z[%c0, %c0] : !Tile, !Y
  }
}

// CHECK: %[[FIRST:.*]] = hop.staging "y" : !hop.shared<tensor<64x64xf32>, rows = 64>
// CHECK: %[[SECOND:.*]] = hop.staging "y"
// CHECK-NOT: hop.staging
// CHECK: scf.for
// CHECK: %[[TO:.*]] = hop.slice %[[FIRST]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.stage %{{.*}}, %[[TO]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.bulk_store %[[TO]], %{{.*}} add in_flight 1
// CHECK: hop.slice %[[SECOND]]
// CHECK: hop.bulk_store %{{.*}} add in_flight 1
// CHECK: }
// CHECK-NEXT: tile.store
// CHECK-NEXT: hop.bulk_read_wait
