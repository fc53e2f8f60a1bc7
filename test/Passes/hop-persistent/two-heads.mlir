// Where blocks wait for tickets of neighbours along the first index, a section has two of the other indices at least.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-persistent))' | FileCheck %s

!Y = !tile.view<[M, 64], f32>
hop.kernel @k attributes {argument_names = ["y"], argument_types = [!Y],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"H", 1>],
    schedule = #tile.schedule<persistent = dynamic, order = ascending, section = 1>} {
^bb0(%y: !Y, %m: index, %h: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @writer elected {
  ^bb0(%wg: index):
    hop.ticket.wait %y[%m] tile [64, 64] is %h : !Y
    hop.ticket.pass %y[%m] tile [64, 64] to %h : !Y
  }
}

// CHECK: hop.role @writer
// CHECK: scf.while
// CHECK: ^bb0(%[[NUMBER:.*]]: index):
// CHECK: %[[BLOCKS:.*]] = hop.block_count
// CHECK: %[[FITTING:.*]] = arith.divui
// CHECK: %[[LEAST:.*]] = arith.maxui %c2{{.*}}, %[[FITTING]] : index
// CHECK: arith.minui %{{.*}}, %[[LEAST]] : index
