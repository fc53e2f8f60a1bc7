// A ticket that may be late is passed on under the copy of the next step, in roles of one thread, and the last one behind the loop.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-pass-late))' -split-input-file | FileCheck %s

!S = !tile.view<[M, 64], f32>
!Pipe = !hop.pipe<tensor<64x64xf32>, 1>
!Part = !hop.shared<tensor<64x64xf32>, rows = 64>

// CHECK-LABEL: hop.kernel @sums
// CHECK: hop.role @writer
// CHECK: scf.for %[[J:.*]] = %[[FIRST:.*]] to %[[PAST:.*]] step %[[ONE:.*]] {
// CHECK: hop.ticket.wait %{{.*}}[%{{.*}}] tile [64, 64] is
// CHECK-NEXT: hop.bulk_store %[[PART:[0-9]+]], %{{.*}} add in_flight 1
// CHECK-NEXT: %[[BEFORE:.*]] = arith.subi %[[J]], %[[ONE]]
// CHECK-NEXT: %[[ANY:.*]] = arith.cmpi sgt, %[[J]], %[[FIRST]]
// CHECK-NEXT: %[[NUMBER:.*]] = arith.muli %[[BEFORE]], %[[TWO:.*]] : index
// CHECK-NEXT: %[[COMES:.*]] = arith.cmpi sle, %{{.*}}, %[[BEFORE]]
// CHECK-NEXT: %[[TO:.*]] = arith.select %[[COMES]]
// CHECK-NEXT: hop.ticket.pass %{{.*}}[%[[NUMBER]]] tile [64, 64] to %[[TO]] if %[[ANY]] in_flight 1
// CHECK-NEXT: hop.bulk_read_wait
// CHECK-NEXT: hop.pipe.release %{{.*}}, %[[PART]]
// CHECK-NEXT: }
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[FIRST]], %[[PAST]]
// CHECK-NEXT: %[[LAST:.*]] = arith.subi %[[PAST]], %[[ONE]]
// CHECK-NEXT: %[[LAST_NUMBER:.*]] = arith.muli %[[LAST]], %[[TWO]]
// CHECK: hop.ticket.pass %{{.*}}[%[[LAST_NUMBER]]] tile [64, 64] to %{{.*}} if %[[SOME]] :
hop.kernel @sums attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %parts = hop.pipe.create "s" : !Pipe
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %j = %m to %n step %c1 {
      %number = arith.muli %j, %c2 : index
      %comes = arith.cmpi sle, %m, %j : index
      %to = arith.select %comes, %m, %c0 : index
      %part = hop.pipe.wait %parts : !Pipe -> !Part
      hop.ticket.wait %s[%number] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.pipe.release %parts, %part : !Pipe, !Part
      hop.ticket.pass %s[%number] tile [64, 64] to %to late : !S
    }
  }
}

// -----

!S = !tile.view<[M, 64], f32>
!Part = !hop.shared<tensor<64x64xf32>, rows = 64>

// Behind the first of two copies, and in steps of more than one.
// CHECK-LABEL: hop.kernel @twice
// CHECK: scf.for %[[J:.*]] = %[[FIRST:.*]] to %[[PAST:.*]] step %[[STEP:.*]] {
// CHECK: hop.bulk_store {{.*}} in_flight 1
// CHECK: hop.ticket.pass %{{.*}}[%{{.*}}] tile [64, 64] to %{{.*}} if %{{.*}} in_flight 1
// CHECK-NEXT: hop.bulk_read_wait
// CHECK-NEXT: hop.bulk_store
// CHECK-NOT: in_flight
// CHECK: }
// CHECK: %[[END:.*]] = arith.subi %[[PAST]], %{{.*}}
// CHECK-NEXT: %[[WAY:.*]] = arith.subi %[[END]], %[[FIRST]]
// CHECK-NEXT: %[[BEYOND:.*]] = arith.remui %[[WAY]], %[[STEP]]
// CHECK-NEXT: %[[LAST:.*]] = arith.subi %[[END]], %[[BEYOND]]
// CHECK-NEXT: hop.ticket.pass %{{.*}}[%[[LAST]]]
hop.kernel @twice attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %part = hop.staging "s" : !Part
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %j = %c0 to %n step %c64 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.ticket.pass %s[%j] tile [64, 64] to %m late : !S
    }
  }
}

// -----

!S = !tile.view<[M, 64], f32>
!Part = !hop.shared<tensor<64x64xf32>, rows = 64>

// Not where it may not be late, where its number is loaded, or in a warpgroup.
// CHECK-LABEL: hop.kernel @at_once
// CHECK-NOT: in_flight
hop.kernel @at_once attributes {argument_names = ["s", "r"], argument_types = [!S, !tile.view<[M], i32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%s: !S, %r: !tile.view<[M], i32>, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = hop.staging "s" : !Part
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %j = %c0 to %n step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.ticket.pass %s[%j] tile [64, 64] to %m : !S
    }
    scf.for %j = %c0 to %n step %c1 {
      %loaded = tile.load %r[%j] : !tile.view<[M], i32> -> i32
      %number = arith.index_cast %loaded : i32 to index
      hop.ticket.wait %s[%number] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.ticket.pass %s[%number] tile [64, 64] to %m late : !S
    }
  }
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %j = %c0 to %n step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.ticket.pass %s[%j] tile [64, 64] to %m late : !S
    }
  }
}
