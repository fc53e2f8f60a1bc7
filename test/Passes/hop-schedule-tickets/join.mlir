// Pieces of a loop that do the same are one loop again where a thread waits for tickets, in roles of one thread.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-schedule-tickets{steps=join}))' -split-input-file | FileCheck %s

!S = !tile.view<[M, 64], f32>
!Pipe = !hop.pipe<tensor<64x64xf32>, 2>
!Shared = !hop.shared<tensor<64x64xf32>, rows = 64>

// The second piece begins at the end of the first one or later, and so does not move the beginning.
// CHECK-LABEL: hop.kernel @sums
// CHECK: hop.role @writer
// CHECK: %[[A:.*]] = arith.minsi
// CHECK: %[[B:.*]] = arith.maxsi %[[A]], %{{.*}} : index
// CHECK: %[[LAST:.*]] = arith.maxsi %[[B]], %[[M:.*]] : index
// CHECK: %[[FIRST:.*]] = arith.minsi %c0{{.*}}, %[[A]] : index
// CHECK: %[[PAST:.*]] = arith.maxsi %[[A]], %[[LAST]] : index
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[PAST]]
// CHECK: hop.ticket.wait
// CHECK-NOT: hop.ticket.wait
// Another body and another step keep loops apart.
// CHECK: hop.role @others
// CHECK: scf.for
// CHECK: hop.ticket.pass
// CHECK: scf.for
// CHECK: hop.ticket.pass
// CHECK: scf.for
// CHECK: hop.ticket.pass
// A warpgroup keeps its pieces.
// CHECK: hop.role @reducer
// CHECK: scf.for
// CHECK: scf.for
hop.kernel @sums attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %pipe = hop.pipe.create "s" : !Pipe
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    %a = arith.minsi %m, %n : index
    %b = arith.maxsi %a, %c64 : index
    scf.for %j = %c0 to %a step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
    }
    scf.for %j = %a to %b step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
    }
    scf.for %j = %b to %n step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
    }
  }
  hop.role @others elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %j = %c0 to %m step %c1 {
      hop.ticket.pass %s[%j] tile [64, 64] to %c0 : !S
    }
    scf.for %j = %m to %n step %c1 {
      hop.ticket.pass %s[%j] tile [64, 64] to %c1 : !S
    }
    scf.for %j = %n to %c64 step %c2 {
      hop.ticket.pass %s[%j] tile [64, 64] to %c1 : !S
    }
  }
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %j = %c0 to %m step %c1 {
      hop.ticket.pass %s[%j] tile [64, 64] to %c0 : !S
    }
    scf.for %j = %m to %n step %c1 {
      hop.ticket.pass %s[%j] tile [64, 64] to %c0 : !S
    }
  }
}

// The pieces of a loop that masks have cut are the whole loop, though nobody knows whether it begins before its end: where not,
// all are empty.
// CHECK-LABEL: hop.kernel @pieces
// CHECK: hop.role @writer
// CHECK: %[[TO:.*]] = tile.dim "M"
// CHECK: %[[FROM:.*]] = arith.muli
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]] step
// CHECK-NOT: scf.for
hop.kernel @pieces attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  hop.role @writer elected {
  ^bb0(%wg: index):
    %to = tile.dim "M"
    %from = arith.muli %m, %c64 : index
    %mask = arith.addi %m, %c64 : index
    %all = arith.cmpi slt, %m, %c64 : index
    %none = arith.minsi %from, %to : index
    %most = arith.select %all, %to, %none : index
    %masked = arith.maxsi %from, %mask : index
    %first = arith.minsi %masked, %to : index
    %past = arith.maxsi %most, %first : index
    scf.for %j = %from to %first step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
    }
    scf.for %j = %first to %past step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
    }
    scf.for %j = %past to %to step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
    }
  }
}

// Nobody waits for a ticket.

// CHECK-LABEL: hop.kernel @any
// CHECK: scf.for
// CHECK: scf.for
hop.kernel @any attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pipe = hop.pipe.create "s" : !Pipe
  hop.role @producer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %j = %c0 to %m step %c1 {
      hop.pipe.load %pipe, %s[%j, %c0] : !Pipe, !S
    }
    scf.for %j = %m to %n step %c1 {
      hop.pipe.load %pipe, %s[%j, %c0] : !Pipe, !S
    }
  }
}
