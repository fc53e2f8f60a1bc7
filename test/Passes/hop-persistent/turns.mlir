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
// CHECK: %[[INDEX:.*]] = arith.divui %[[NUMBER]]
// CHECK: %[[START:.*]] = arith.muli %[[INDEX]], %[[FULL:.*]] : index
// CHECK: %[[LEFT:.*]] = arith.subi %[[OUTER:.*]], %[[START]]
// CHECK: %[[TWICE:.*]] = arith.addi %[[LEFT]], %[[LEFT]]
// Less than half a section belongs to the one before.
// CHECK: %[[JOINS:.*]] = arith.cmpi ugt, %[[FULL]], %[[TWICE]]
// CHECK: %[[ONE:.*]] = arith.select %[[JOINS]], %c1{{.*}}, %c0
// CHECK: %[[SECTION:.*]] = arith.subi %[[INDEX]], %[[ONE]]
// CHECK: %[[BACK:.*]] = arith.select %[[JOINS]], %[[FULL]], %c0
// CHECK: %[[BEGIN:.*]] = arith.subi %[[START]], %[[BACK]]
// CHECK: %[[REST:.*]] = arith.subi %[[OUTER]], %[[BEGIN]]
// CHECK: %[[SIZE:.*]] = arith.select %{{.*}}, %[[REST]], %[[FULL]]
// CHECK: %[[BEFORE:.*]] = arith.muli %[[BEGIN]]
// CHECK: %[[IN_SECTION:.*]] = arith.subi %[[NUMBER]], %[[BEFORE]]
// CHECK: %[[UP:.*]] = arith.divui %[[IN_SECTION]], %[[SIZE]]
// CHECK: %[[FROM_LAST:.*]] = arith.subi %{{.*}}, %[[UP]]
// CHECK: %[[PARITY:.*]] = arith.remui %[[SECTION]], %c2
// CHECK: %[[IS_ODD:.*]] = arith.cmpi ugt, %[[PARITY]], %c0
// CHECK: %[[M:.*]] = arith.select %[[IS_ODD]], %[[UP]], %[[FROM_LAST]]
// CHECK-NOT: tile.walks_down
// CHECK: %[[OF_TILE:.*]] = arith.divui %[[NUMBER]]
// CHECK: %[[PARITY_OF_TILE:.*]] = arith.remui %{{.*}}, %c2
// CHECK: %[[DOWN:.*]] = arith.cmpi ugt, %[[PARITY_OF_TILE]], %c0
// CHECK: arith.select %[[DOWN]], %[[M]]

// Only the last section goes the other way, where there are others. Two other indices are in each, so that neighbours do not start together.
hop.kernel @last attributes {argument_names = ["y"], argument_types = [!Y], grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"H", 1>],
    schedule = #tile.schedule<persistent = dynamic, order = last_turns, section = 1>} {
^bb0(%y: !Y, %m: index, %h: index):
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

// CHECK-LABEL: hop.kernel @last
// CHECK: hop.role @writer
// CHECK: scf.while
// CHECK: ^bb0(%[[NUMBER:.*]]: index):
// CHECK: %[[LEAST:.*]] = arith.maxui %c2{{.*}}, %{{.*}} : index
// CHECK: %[[FULL:.*]] = arith.minui %{{.*}}, %[[LEAST]]
// CHECK: %[[JOINS:.*]] = arith.cmpi ugt, %[[FULL]], %{{.*}} : index
// CHECK: %[[ONE:.*]] = arith.select %[[JOINS]], %c1{{.*}}, %c0
// CHECK: %[[SECTION:.*]] = arith.subi %{{.*}}, %[[ONE]]
// CHECK: %[[REST:.*]] = arith.subi
// CHECK: %[[IS_LAST:.*]] = arith.cmpi ugt
// CHECK: %[[SIZE:.*]] = arith.select %[[IS_LAST]], %{{.*}}, %[[FULL]]
// CHECK: %[[UP:.*]] = arith.divui %{{.*}}, %[[SIZE]]
// CHECK: %[[FROM_LAST:.*]] = arith.subi %{{.*}}, %[[UP]]
// CHECK: %[[IS_BEHIND:.*]] = arith.cmpi ugt, %[[SECTION]], %c0
// CHECK: %[[TURNS:.*]] = arith.andi %[[IS_LAST]], %[[IS_BEHIND]]
// CHECK: %[[M:.*]] = arith.select %[[TURNS]], %[[UP]], %[[FROM_LAST]]
// CHECK-NOT: tile.walks_down
// CHECK: %[[IS_LAST_OF_TILE:.*]] = arith.cmpi ugt
// CHECK: %[[DOWN:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK: arith.select %[[DOWN]], %[[M]]
