// Sections that go through their loops from the beginning, the last grid index first, and from the end, the first one first.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-persistent))' | FileCheck %s

!Y = !tile.view<[M, 64], f32>
hop.kernel @k attributes {argument_names = ["y"], argument_types = [!Y], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<persistent = dynamic, order = turns, section = 1>} {
^bb0(%y: !Y, %m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @writer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %down = tile.walks_down
    %value = arith.select %down, %m, %c0 : index
    hop.ticket.wait %y[%m] tile [64, 64] is %value : !Y
    hop.ticket.pass %y[%m] tile [64, 64] to %value : !Y
  }
}

// CHECK: hop.role @writer
// CHECK: scf.while
// CHECK: ^bb0(%[[NUMBER:.*]]: index):
// CHECK: %[[IN_SECTION:.*]] = arith.remui %[[NUMBER]]
// CHECK: %[[UP:.*]] = arith.divui %[[IN_SECTION]]
// CHECK: %[[FROM_LAST:.*]] = arith.subi %{{.*}}, %[[UP]]
// CHECK: %[[SECTION:.*]] = arith.divui %[[NUMBER]]
// CHECK: %[[PARITY:.*]] = arith.remui %[[SECTION]], %c2
// CHECK: %[[IS_ODD:.*]] = arith.cmpi ugt, %[[PARITY]], %c0
// CHECK: %[[M:.*]] = arith.select %[[IS_ODD]], %[[UP]], %[[FROM_LAST]]
// CHECK-NOT: tile.walks_down
// CHECK: %[[OF_TILE:.*]] = arith.divui %[[NUMBER]]
// CHECK: %[[REST:.*]] = arith.remui %[[OF_TILE]], %c2
// CHECK: %[[DOWN:.*]] = arith.cmpi ugt, %[[REST]], %c0
// CHECK: arith.select %[[DOWN]], %[[M]]
