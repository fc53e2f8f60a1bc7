// The ticket of the next step is asked for before that of this one is passed on, in roles of one thread.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-schedule-tickets{steps=peek}))' -split-input-file | FileCheck %s

!S = !tile.view<[M, 64], f32>

// CHECK-LABEL: hop.kernel @sums
// CHECK: hop.role @writer
// CHECK: %[[NONE:.*]] = arith.constant -1 : index
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %[[N:.*]] step %[[STEP:.*]] iter_args(%[[TICKET:.*]] = %[[NONE]])
// CHECK: %[[NUMBER:.*]] = arith.muli %[[J]], %[[TWO:.*]] : index
// CHECK: hop.ticket.wait %{{.*}}[%[[NUMBER]]] tile [64, 64] is %{{.*}} peeked %[[TICKET]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %[[STEP]]
// CHECK: %[[COMES:.*]] = arith.cmpi slt, %[[NEXT]], %[[N]]
// CHECK: %[[LATER:.*]] = arith.select %[[COMES]], %[[NEXT]], %[[J]]
// CHECK: %[[OF_LATER:.*]] = arith.muli %[[LATER]], %[[TWO]]
// CHECK: %[[PEEKED:.*]] = hop.ticket.peek %{{.*}}[%[[OF_LATER]]] tile [64, 64]
// CHECK: hop.ticket.pass %{{.*}}[%[[NUMBER]]]
// CHECK: scf.yield %[[PEEKED]]
// A warpgroup's first thread alone would know it.
// CHECK: hop.role @reducer
// CHECK-NOT: hop.ticket.peek
hop.kernel @sums attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<order = ascending>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %j = %m to %n step %c1 {
      %number = arith.muli %j, %c2 : index
      hop.ticket.wait %s[%number] tile [64, 64] is %c0 : !S
      hop.ticket.pass %s[%number] tile [64, 64] to %m : !S
    }
  }
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %j = %m to %n step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
      hop.ticket.pass %s[%j] tile [64, 64] to %m : !S
    }
  }
}
