// Where one thread adds in loops and a warp is free beside it, another thread passes its tickets on.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-schedule-tickets{steps=pass}))' -split-input-file | FileCheck %s

!S = !tile.view<[M, 64], f32>
!Part = !hop.shared<tensor<64x64xf32>, rows = 64>
#s = #tile.schedule<placement = apart>

// CHECK-LABEL: hop.kernel @sums
// CHECK: %[[PASSES:.*]] = hop.pipe.create "passes" : !hop.pipe<tensor<1xi32>, 4>
// CHECK: hop.role @writer elected registers(32)
// CHECK: scf.for
// CHECK: scf.for %[[J:.*]] =
// CHECK: hop.ticket.wait
// CHECK-NEXT: hop.bulk_store
// CHECK-NEXT: hop.bulk_store_wait
// CHECK-NEXT: %[[NUMBER:.*]] = arith.index_cast %[[J]] : index to i32
// CHECK-NEXT: hop.pipe.put %[[PASSES]], %[[NUMBER]]
// CHECK-NEXT: %[[VALUE:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK-NEXT: hop.pipe.put %[[PASSES]], %[[VALUE]]
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: %[[NONE:.*]] = arith.constant -1 : i32
// CHECK-NEXT: hop.pipe.put %[[PASSES]], %[[NONE]]
// CHECK: hop.role @passer elected registers(32)
// CHECK: %[[FIRST:.*]] = hop.pipe.get %[[PASSES]]
// CHECK: scf.while (%[[NOW:.*]] = %[[FIRST]])
// CHECK: %[[GOES:.*]] = arith.cmpi sge, %[[NOW]], %{{.*}} : i32
// CHECK: scf.condition(%[[GOES]]) %[[NOW]]
// CHECK: ^bb0(%[[GOT:.*]]: i32):
// CHECK: %[[TO_BITS:.*]] = hop.pipe.get %[[PASSES]]
// CHECK: %[[TO:.*]] = arith.index_cast %[[TO_BITS]] : i32 to index
// CHECK: %[[TICKET:.*]] = arith.index_cast %[[GOT]] : i32 to index
// CHECK: hop.ticket.pass %{{.*}}[%[[TICKET]]] tile [64, 64] to %[[TO]] : !tile.view<[M, 64], f32>
// CHECK: %[[NEXT:.*]] = hop.pipe.get %[[PASSES]]
// CHECK: scf.yield %[[NEXT]]
hop.kernel @sums attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #s} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = hop.staging "s" : !Part
  hop.role @producer elected registers(32) {
  ^bb0(%wg: index):
  }
  hop.role @writer elected registers(32) {
  ^bb0(%wg: index):
    %n = tile.dim "M"
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %i to %n step %c1 {
        hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
        hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
        hop.ticket.pass %s[%j] tile [64, 64] to %m : !S
      }
    }
  }
}

// Two writers pass their own tickets on.
// CHECK-LABEL: hop.kernel @two
// CHECK-NOT: passer
// CHECK-COUNT-2: hop.ticket.pass
hop.kernel @two attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #s} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %part = hop.staging "s" : !Part
  hop.role @writer0 elected {
  ^bb0(%wg: index):
    scf.for %j = %c0 to %m step %c2 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.ticket.pass %s[%j] tile [64, 64] to %m : !S
    }
  }
  hop.role @writer1 elected {
  ^bb0(%wg: index):
    scf.for %j = %c1 to %m step %c2 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.ticket.pass %s[%j] tile [64, 64] to %m : !S
    }
  }
}

// No warp is free.
// CHECK-LABEL: hop.kernel @full
// CHECK-NOT: passer
// CHECK: hop.ticket.pass
hop.kernel @full attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #s} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = hop.staging "s" : !Part
  hop.role @producer elected registers(32) {
  ^bb0(%wg: index):
  }
  hop.role @moves warps(2) registers(32) {
  ^bb0(%wg: index):
  }
  hop.role @writer elected registers(32) {
  ^bb0(%wg: index):
    scf.for %j = %c0 to %m step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.ticket.pass %s[%j] tile [64, 64] to %m : !S
    }
  }
}

// Nor of one tile for each grid point, of several views, or beside consumers that make the sums themselves.
// CHECK-LABEL: hop.kernel @once
// CHECK-NOT: passer
hop.kernel @once attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<placement = apart>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %part = hop.staging "s" : !Part
  hop.role @writer elected {
  ^bb0(%wg: index):
    hop.ticket.wait %s[%m] tile [64, 64] is %c0 : !S
    hop.bulk_store %part, %s[%m, %c0] add : !Part, !S
    hop.ticket.pass %s[%m] tile [64, 64] to %c0 : !S
  }
}

// CHECK-LABEL: hop.kernel @views
// CHECK-NOT: passer
hop.kernel @views attributes {argument_names = ["s", "r"], argument_types = [!S, !S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<placement = apart>} {
^bb0(%s: !S, %r: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = hop.staging "s" : !Part
  hop.role @writer elected {
  ^bb0(%wg: index):
    scf.for %j = %c0 to %m step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.ticket.pass %s[%j] tile [64, 64] to %m : !S
    }
    scf.for %j = %c0 to %m step %c1 {
      hop.ticket.wait %r[%j] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %r[%j, %c0] add : !Part, !S
      hop.ticket.pass %r[%j] tile [64, 64] to %m : !S
    }
  }
}

// CHECK-LABEL: hop.kernel @rows
// CHECK-NOT: passer
hop.kernel @rows attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<placement = rows>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = hop.staging "s" : !Part
  hop.role @writer elected {
  ^bb0(%wg: index):
    scf.for %j = %c0 to %m step %c1 {
      hop.ticket.wait %s[%j] tile [64, 64] is %c0 : !S
      hop.bulk_store %part, %s[%j, %c0] add : !Part, !S
      hop.ticket.pass %s[%j] tile [64, 64] to %m : !S
    }
  }
}
