// Of a producer that is a warpgroup, one thread fetches the next number, and all threads get it from the pipe.
// RUN: tessera-opt %s --pass-pipeline="builtin.module(hop.kernel(hop-persistent))" | FileCheck %s

// CHECK: %[[NUMBERS:.*]] = hop.pipe.create "tiles"
// CHECK: hop.role @producer warpgroups(1)
// CHECK-NEXT: ^bb0(%[[WG:.*]]: index):
// CHECK: scf.while
// CHECK: %[[ONE:.*]] = hop.elected %[[WG]]
// CHECK-NEXT: scf.if %[[ONE]] {
// CHECK-NEXT: %[[NEXT:.*]] = hop.next_tile
// CHECK-NEXT: %[[NUMBER:.*]] = arith.index_cast %[[NEXT]]
// CHECK-NEXT: hop.pipe.put %[[NUMBERS]], %[[NUMBER]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[GOT:.*]] = hop.pipe.get %[[NUMBERS]]
// CHECK-NEXT: %[[TILE:.*]] = arith.index_cast %[[GOT]]
// CHECK-NEXT: scf.yield %[[TILE]]
// CHECK: %[[LAST:.*]] = hop.elected %[[WG]]
// CHECK-NEXT: scf.if %[[LAST]] {
// CHECK-NEXT: hop.reset_tiles
// CHECK: hop.role @consumer
// CHECK: hop.pipe.get %[[NUMBERS]]
hop.kernel @k attributes {
    argument_names = ["x"], argument_types = [!tile.view<[M, 64], f16>], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<persistent = dynamic, order = linear, section = 2>} {
^bb0(%x: !tile.view<[M, 64], f16>, %m: index):
  hop.role @producer warpgroups(1) {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
  }
}
