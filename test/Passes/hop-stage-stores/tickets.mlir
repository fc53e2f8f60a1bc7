// The ticket of a sum is passed on in the next step of the loop, before the wait for the next one; the last behind the loop.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-stores))' | FileCheck %s

!Y = !tile.view<[M, 64], f32>
!Tile = tensor<64x64xf32, #hop.layout<accumulator>>
hop.kernel @k attributes {argument_names = ["y"], argument_types = [!Y], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<store = tma, placement = apart>} {
^bb0(%y: !Y, %m: index):
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %t = arith.constant dense<1.0> : !Tile
    scf.for %i = %c0 to %c64 step %c1 {
      %row = arith.muli %i, %c64 : index
      hop.ticket.wait %y[%i] tile [64, 64] is %m : !Y
      tile.store %t, %y[%row, %c0] add : !Tile, !Y
      hop.ticket.pass %y[%i] tile [64, 64] to %c1 : !Y
    }
  }
}

// CHECK: hop.role @reducer
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[I:.*]] = {{.*}} iter_args(%[[NUMBER:.*]] = %{{.*}}, %[[VALUE:.*]] = %{{.*}}, %[[PENDING:.*]] = %false)
// CHECK: hop.ticket.pass %{{.*}}[%[[NUMBER]]] tile [64, 64] to %[[VALUE]] if %[[PENDING]]
// CHECK-NEXT: hop.ticket.wait %{{.*}}[%[[I]]] tile [64, 64]
// CHECK: hop.bulk_store {{.*}} add
// CHECK-NOT: hop.ticket
// CHECK: scf.yield %[[I]], %c1{{.*}}, %true
// CHECK: }
// CHECK: hop.ticket.pass %{{.*}}[%[[LOOP]]#0] tile [64, 64] to %[[LOOP]]#1 if %[[LOOP]]#2
// CHECK: hop.bulk_read_wait
