// The ticket of the next step is asked for before that of this one is passed on, in roles of one thread.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-peek-tickets))' -split-input-file | FileCheck %s
// RUN: sed 's/registers(24)/registers(32)/' %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-peek-tickets))' -split-input-file | FileCheck %s --check-prefix=MORE

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

// -----

!S = !tile.view<[M, 64], f32>

// Sixteen scalars leave too few of 24 registers, and enough of 32.
// CHECK-LABEL: hop.kernel @scarce
// CHECK-NOT: hop.ticket.peek
// MORE-LABEL: hop.kernel @scarce
// MORE: hop.ticket.peek
hop.kernel @scarce attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<order = ascending>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  hop.role @writer elected registers(24) {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    %v0 = arith.addi %wg, %m : index
    %v1 = arith.muli %v0, %m : index
    %v2 = arith.muli %v1, %m : index
    %v3 = arith.muli %v2, %m : index
    %v4 = arith.muli %v3, %m : index
    %v5 = arith.muli %v4, %m : index
    %v6 = arith.muli %v5, %m : index
    %v7 = arith.muli %v6, %m : index
    %v8 = arith.muli %v7, %m : index
    %v9 = arith.muli %v8, %m : index
    %v10 = arith.muli %v9, %m : index
    %v11 = arith.muli %v10, %m : index
    %v12 = arith.muli %v11, %m : index
    %v13 = arith.muli %v12, %m : index
    scf.for %j = %m to %n step %c1 {
      %s0 = arith.addi %j, %v0 : index
      %s1 = arith.addi %s0, %v1 : index
      %s2 = arith.addi %s1, %v2 : index
      %s3 = arith.addi %s2, %v3 : index
      %s4 = arith.addi %s3, %v4 : index
      %s5 = arith.addi %s4, %v5 : index
      %s6 = arith.addi %s5, %v6 : index
      %s7 = arith.addi %s6, %v7 : index
      %s8 = arith.addi %s7, %v8 : index
      %s9 = arith.addi %s8, %v9 : index
      %s10 = arith.addi %s9, %v10 : index
      %s11 = arith.addi %s10, %v11 : index
      %s12 = arith.addi %s11, %v12 : index
      %s13 = arith.addi %s12, %v13 : index
      hop.ticket.wait %s[%s13] tile [64, 64] is %c0 : !S
      hop.ticket.pass %s[%s13] tile [64, 64] to %m : !S
    }
  }
}
