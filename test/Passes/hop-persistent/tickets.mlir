// A block that waits for blocks with smaller numbers draws its first number too.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-persistent))' | FileCheck %s

!Y = !tile.view<[M, 64], f32>
hop.kernel @k attributes {argument_names = ["y"], argument_types = [!Y], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<persistent = dynamic, order = linear, section = 2>} {
^bb0(%y: !Y, %m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @writer elected {
  ^bb0(%wg: index):
    hop.ticket.wait %y[%m] tile [64, 64] is %m : !Y
    hop.ticket.pass %y[%m] tile [64, 64] to %m : !Y
  }
}

// CHECK: hop.role @producer
// CHECK-NOT: hop.block_index
// CHECK: %[[FIRST:.*]] = hop.next_tile all
// CHECK: hop.pipe.put %{{.*}}, %{{.*}}
// CHECK: scf.while (%{{.*}} = %[[FIRST]])
// CHECK: hop.next_tile all
// CHECK: hop.role @writer
// CHECK: %[[GOT:.*]] = hop.pipe.get
// CHECK: %[[NUMBER:.*]] = arith.index_cast %[[GOT]]
// CHECK: scf.while (%{{.*}} = %[[NUMBER]])
// CHECK: hop.ticket.wait
