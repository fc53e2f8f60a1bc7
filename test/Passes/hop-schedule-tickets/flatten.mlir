// A loop over others of the same iterations is one loop where a thread waits for tickets.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-schedule-tickets{steps=flatten}))' -split-input-file | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-schedule-tickets{steps=flatten,peek}))' -split-input-file | FileCheck %s --check-prefix=PEEK

!S = !tile.view<[H, M, 64], f32>

// CHECK-LABEL: hop.kernel @sums
// CHECK: hop.role @writer
// CHECK: %[[OUTER:.*]] = arith.subi %[[PAST:.*]], %[[FIRST:.*]] : index
// CHECK: %[[ROWS:.*]] = arith.maxsi %[[OUTER]], %
// CHECK: %[[INNER:.*]] = arith.subi %[[HEADS:.*]], %[[ZERO:.*]] : index
// CHECK: %[[COLUMNS:.*]] = arith.maxsi %[[INNER]], %
// CHECK: %[[COUNT:.*]] = arith.muli %[[ROWS]], %[[COLUMNS]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[I:.*]] = %[[FIRST]], %[[G:.*]] = %[[ZERO]]) -> (index, index)
// CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[I]], %[[HEADS]]
// CHECK-NEXT: %[[NUMBER:.*]] = arith.addi %[[ROW]], %[[G]]
// CHECK: hop.ticket.wait %{{.*}}[%[[NUMBER]]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[G]], %
// CHECK-NEXT: %[[ENDS:.*]] = arith.cmpi eq, %[[NEXT]], %[[HEADS]]
// CHECK-NEXT: %[[LATER:.*]] = arith.addi %[[I]], %
// CHECK-NEXT: %[[I_NEXT:.*]] = arith.select %[[ENDS]], %[[LATER]], %[[I]]
// CHECK-NEXT: %[[G_NEXT:.*]] = arith.select %[[ENDS]], %[[ZERO]], %[[NEXT]]
// CHECK-NEXT: scf.yield %[[I_NEXT]], %[[G_NEXT]]
// CHECK-NOT: scf.for
// What both hand on is handed on by the one.
// CHECK: hop.role @reducer
// CHECK: %[[SUM:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[OLD:.*]] = %{{.*}}) -> (index, index, f32)
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]],
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[NEW]]
// CHECK-NOT: scf.for
// CHECK: arith.mulf %[[SUM]]#2,

// The ticket of the next step is that of the next row behind the last head, and behind the last step that of this one.
// PEEK-LABEL: hop.kernel @sums
// PEEK: hop.role @writer
// PEEK: scf.for %[[T:.*]] = %{{.*}} to %[[COUNT:.*]] step %{{.*}} iter_args(%[[I:.*]] = %{{.*}}, %[[G:.*]] = %{{.*}}, %[[TICKET:.*]] = %
// PEEK: hop.ticket.wait {{.*}} peeked %[[TICKET]]
// PEEK: %[[RUNS:.*]] = arith.cmpi slt, %{{.*}}, %[[COUNT]]
// PEEK: %[[ENDS:.*]] = arith.cmpi eq
// PEEK: %[[I_NEXT:.*]] = arith.select %[[ENDS]], %{{.*}}, %[[I]]
// PEEK: %[[I_LATER:.*]] = arith.select %[[RUNS]], %[[I_NEXT]], %[[I]]
// PEEK: %[[G_NEXT:.*]] = arith.select %[[ENDS]],
// PEEK: %[[G_LATER:.*]] = arith.select %[[RUNS]], %[[G_NEXT]], %[[G]]
// PEEK: %[[ROW:.*]] = arith.muli %[[I_LATER]],
// PEEK: %[[NUMBER:.*]] = arith.addi %[[ROW]], %[[G_LATER]]
// PEEK: hop.ticket.peek %{{.*}}[%[[NUMBER]]]
hop.kernel @sums attributes {argument_names = ["s", "x"], argument_types = [!S, f32], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%s: !S, %x: f32, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    %heads = tile.dim "H"
    scf.for %i = %m to %n step %c1 {
      %row = arith.muli %i, %heads : index
      scf.for %g = %c0 to %heads step %c1 {
        %number = arith.addi %row, %g : index
        hop.ticket.wait %s[%number] tile [64, 64] is %c0 : !S
        hop.ticket.pass %s[%number] tile [64, 64] to %m : !S
      }
    }
  }
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    %heads = tile.dim "H"
    %sum = scf.for %i = %m to %n step %c1 iter_args(%a = %x) -> (f32) {
      %all = scf.for %g = %c0 to %heads step %c1 iter_args(%b = %a) -> (f32) {
        %new = arith.addf %b, %x : f32
        scf.yield %new : f32
      }
      scf.yield %all : f32
    }
    %twice = arith.mulf %sum, %sum : f32
  }
}

// One role has a loop whose bounds differ, another one two loops in one, and so all begin and end there anyway.
// CHECK-LABEL: hop.kernel @others
// CHECK-NOT: iter_args
hop.kernel @others attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    %heads = tile.dim "H"
    scf.for %i = %m to %n step %c1 {
      scf.for %g = %c0 to %heads step %c1 {
        hop.ticket.wait %s[%g] tile [64, 64] is %c0 : !S
      }
    }
  }
  hop.role @other elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %i = %m to %n step %c1 {
      scf.for %g = %c0 to %i step %c1 {
        hop.ticket.pass %s[%g] tile [64, 64] to %c0 : !S
      }
    }
  }
}

// CHECK-LABEL: hop.kernel @two
// CHECK-NOT: iter_args
hop.kernel @two attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %i = %m to %n step %c1 {
      scf.for %g = %c0 to %m step %c1 {
        hop.ticket.wait %s[%g] tile [64, 64] is %c0 : !S
      }
      scf.for %g = %c0 to %m step %c1 {
        hop.ticket.pass %s[%g] tile [64, 64] to %c0 : !S
      }
    }
  }
}

// Nobody waits for tickets.
// CHECK-LABEL: hop.kernel @unordered
// CHECK-NOT: iter_args
hop.kernel @unordered attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  hop.role @writer elected {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %i = %m to %n step %c1 {
      scf.for %g = %c0 to %m step %c1 {
        hop.ticket.pass %s[%g] tile [64, 64] to %c0 : !S
      }
    }
  }
}
