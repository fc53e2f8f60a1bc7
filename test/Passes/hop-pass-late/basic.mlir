// A ticket that may be late is passed on under the copy of the next step, in roles of one thread, and the last one behind the loop.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-pass-late))' -split-input-file | FileCheck %s

!S = !tile.view<[M, 64], f32>
!Pipe = !hop.pipe<tensor<64x64xf32>, 1>
!Part = !hop.shared<tensor<64x64xf32>, rows = 64>

// CHECK-LABEL: hop.kernel @sums
// CHECK: hop.role @writer
// CHECK: %[[NO:.*]] = arith.constant false
// CHECK: %[[LEFT:.*]]:3 = scf.for %[[J:.*]] = {{.*}} iter_args(%[[OLD:.*]] = %{{.*}}, %[[OLD_TO:.*]] = %{{.*}}, %[[ANY:.*]] = %[[NO]])
// CHECK: %[[NUMBER:.*]] = arith.muli %[[J]]
// CHECK: %[[TO:.*]] = arith.select
// CHECK: hop.ticket.wait %{{.*}}[%[[NUMBER]]] tile [64, 64] is
// CHECK-NEXT: hop.bulk_store %[[PART:[0-9]+]], %{{.*}} add in_flight 1
// CHECK-NEXT: hop.ticket.pass %{{.*}}[%[[OLD]]] tile [64, 64] to %[[OLD_TO]] if %[[ANY]] in_flight 1
// CHECK-NEXT: hop.bulk_read_wait
// CHECK-NEXT: hop.pipe.release %{{.*}}, %[[PART]]
// CHECK-NEXT: %[[YES:.*]] = arith.constant true
// CHECK-NEXT: scf.yield %[[NUMBER]], %[[TO]], %[[YES]]
// CHECK-NEXT: }
// CHECK-NEXT: hop.ticket.pass %{{.*}}[%[[LEFT]]#0] tile [64, 64] to %[[LEFT]]#1 if %[[LEFT]]#2 :
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

// Behind the first of two copies, and through all loops of a nest, in each of which a step may be the first.
// CHECK-LABEL: hop.kernel @twice
// CHECK: %[[NO:.*]] = arith.constant false
// CHECK: %[[LEFT:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[ANY:.*]] = %[[NO]])
// CHECK: %[[INNER:.*]]:3 = scf.for {{.*}} iter_args(%[[OLD:.*]] = %{{.*}}, %{{.*}}, %[[ANY_IN:.*]] = %[[ANY]])
// CHECK: hop.bulk_store {{.*}} in_flight 1
// CHECK-NEXT: hop.ticket.pass %{{.*}}[%[[OLD]]] tile [64, 64] to %{{.*}} if %[[ANY_IN]] in_flight 1
// CHECK-NEXT: hop.bulk_read_wait
// CHECK-NEXT: hop.bulk_store
// CHECK-NOT: in_flight
// CHECK: }
// CHECK: %[[NEXT:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %{{.*}} = %[[INNER]]#2)
// CHECK: hop.ticket.pass {{.*}} in_flight 1
// CHECK: }
// CHECK-NEXT: scf.yield %[[NEXT]]#0, %[[NEXT]]#1, %[[NEXT]]#2
// CHECK-NEXT: }
// CHECK-NEXT: hop.ticket.pass %{{.*}}[%[[LEFT]]#0] tile [64, 64] to %[[LEFT]]#1 if %[[LEFT]]#2 :
hop.kernel @twice attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %part = hop.staging "s" : !Part
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %i = %c0 to %m step %c64 {
      scf.for %j = %i to %n step %c64 {
        hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
        hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
        hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
        hop.ticket.pass %s[%j] tile [64, 64] to %m late : !S
      }
      scf.for %j = %n to %m step %c64 {
        hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
        hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
        hop.ticket.pass %s[%j] tile [64, 64] to %m late : !S
      }
    }
  }
}

// -----

!S = !tile.view<[M, 64], f32>
!Part = !hop.shared<tensor<64x64xf32>, rows = 64>

// Not where it may not be late, in a warpgroup, or where steps of a nest add to several views or to other tiles of one.
// CHECK-LABEL: hop.kernel @at_once
// CHECK-NOT: in_flight
hop.kernel @at_once attributes {argument_names = ["s", "r"], argument_types = [!S, !S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%s: !S, %r: !S, %m: index):
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
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %c0 to %n step %c1 {
        hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
        hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
        hop.ticket.pass %s[%j] tile [64, 64] to %m late : !S
      }
      scf.for %j = %c0 to %n step %c1 {
        hop.ticket.wait %r[%j] tile [64, 64] is %c0 : !S
        hop.bulk_store %part, %r[%j, %c0] add : !Part, !S
        hop.ticket.pass %r[%j] tile [64, 64] to %m late : !S
      }
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
