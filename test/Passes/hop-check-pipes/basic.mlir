// Roles that always go on.
//
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-check-pipes))' | FileCheck %s
// CHECK-COUNT-12: hop.kernel @

!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>

// A tile of one slot is given back before the next one.
hop.kernel @one_slot attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %t : !R1, !T
    scf.for %i2 = %c0 to %m step %c1 {
      %u = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.release %a, %u : !R1, !T
    }
  }
}

// FRAME
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // HERE
}

// CASE held
// One that is held beside two others; the last of them comes behind it.
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R3
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R3, !V
    hop.pipe.load %a, %x[%m, %c0] : !R3, !V
    hop.pipe.load %a, %x[%m, %c0] : !R3, !V
    hop.pipe.load %a, %x[%m, %c0] : !R3, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R3 -> !T
    %u = hop.pipe.wait %a : !R3 -> !T
    %v = hop.pipe.wait %a : !R3 -> !T
    hop.pipe.release %a, %t : !R3, !T
    %w = hop.pipe.wait %a : !R3 -> !T
    hop.pipe.release %a, %u : !R3, !T
    hop.pipe.release %a, %v : !R3, !T
    hop.pipe.release %a, %w : !R3, !T
  }

// CASE ahead
// Two tiles of a loop in turns, loaded an iteration ahead: the one of the step before is still in use.
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R2
  %b = hop.pipe.create "b" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R2, !V
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
    }
    hop.pipe.load %b, %x[%m, %c0] : !R1, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %t : !R2, !T
    scf.for %i2 = %c0 to %m step %c1 {
      %u = hop.pipe.wait %a : !R2 -> !T
      %v = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.release %a, %u : !R2, !T
      hop.pipe.release %b, %v : !R1, !T
    }
    %w = hop.pipe.wait %b : !R1 -> !T
    hop.pipe.release %b, %w : !R1, !T
  }

// CASE branches
// Both roles decide alike.
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      scf.if %more {
        hop.pipe.load %a, %x[%m, %c0] : !R1, !V
      } else {
        hop.pipe.load %b, %x[%m, %c0] : !R1, !V
      }
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i2 = %c0 to %m step %c1 {
      scf.if %more {
        %t = hop.pipe.wait %a : !R1 -> !T
        hop.pipe.release %a, %t : !R1, !T
      } else {
        %u = hop.pipe.wait %b : !R1 -> !T
        hop.pipe.release %b, %u : !R1, !T
      }
    }
  }

// CASE order
// The order of two rings differs, and both have room.
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i2 = %c0 to %m step %c1 {
      %t = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.release %a, %t : !R1, !T
      %o = hop.pipe.wait %a : !R1 -> !T
      %u = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.release %a, %o : !R1, !T
      hop.pipe.release %b, %u : !R1, !T
    }
  }

// CASE skipped
// Tiles that are loaded for other blocks pass behind the loop.
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R2
  %b = hop.pipe.create "b" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R2, !V
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
    }
    hop.pipe.load %b, %x[%m, %c0] : !R1, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %t : !R2, !T
    scf.for %i2 = %c0 to %m step %c1 {
      %u = hop.pipe.wait %a : !R2 -> !T
      %v = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.release %a, %u : !R2, !T
      hop.pipe.release %b, %v : !R1, !T
    }
    %w = hop.pipe.wait %b : !R1 -> !T
    hop.pipe.release %b, %w : !R1, !T
    scf.for %i3 = %c0 to %m step %c1 {
      %s = hop.pipe.wait %a : !R2 -> !T
      hop.warpgroup_sync
      hop.pipe.release %a, %s : !R2, !T
      %p = hop.pipe.wait %b : !R1 -> !T
      hop.warpgroup_sync
      hop.pipe.release %b, %p : !R1, !T
    }
  }

// CASE alone
// Without a producer the loads are those of one consumer, here an iteration ahead.
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R2
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %first = hop.elected %wg
    scf.if %first {
      hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    }
    scf.for %i1 = %c0 to %m step %c1 {
      scf.if %first {
        hop.pipe.load %a, %x[%m, %c0] : !R2, !V
      }
      %t = hop.pipe.wait %a : !R2 -> !T
      hop.pipe.release %a, %t : !R2, !T
    }
    scf.if %first {
      hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    }
    %u = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %u : !R2, !T
  }

// CASE two_producers
// Two roles that load, each a pipe of its own, and one that reads both.
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R2
  hop.role @first elected {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
  }
  hop.role @second elected {
  ^bb0(%wg: index):
    hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    scf.for %i2 = %c0 to %m step %c1 {
      hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %t3 = hop.pipe.wait %b : !R2 -> !T
    hop.pipe.release %b, %t3 : !R2, !T
    scf.for %i4 = %c0 to %m step %c1 {
      %t5 = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.release %a, %t5 : !R1, !T
      %t6 = hop.pipe.wait %b : !R2 -> !T
      hop.pipe.release %b, %t6 : !R2, !T
    }
  }

// CASE two_readers
// A tile that two roles read: its slot comes free when both have given it back.
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
    }
  }
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i2 = %c0 to %m step %c1 {
      %t3 = hop.pipe.wait %a : !R1 -> !T
      %t4 = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.release %a, %t3 : !R1, !T
      hop.pipe.release %b, %t4 : !R1, !T
    }
  }
  hop.role @columns warpgroups(2) {
  ^bb0(%wg: index):
    scf.for %i5 = %c0 to %m step %c1 {
      %t6 = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.release %a, %t6 : !R1, !T
    }
  }

// CASE chain
// A chain of roles: the one in the middle reads a tile before it loads another.
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R1
  hop.role @first elected {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
  }
  hop.role @second elected {
  ^bb0(%wg: index):
    scf.for %i2 = %c0 to %m step %c1 {
      %t3 = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
      hop.pipe.release %a, %t3 : !R1, !T
    }
  }
  hop.role @last warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i4 = %c0 to %m step %c1 {
      %t5 = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.release %b, %t5 : !R1, !T
    }
  }

// CASE writer
// A role that writes slots, and one that stores them.
  %a = hop.pipe.create "a" : !R1
  hop.role @rows warpgroups(2) {
  ^bb0(%wg: index):
    scf.for %i = %c0 to %m step %c1 {
      %t = hop.pipe.acquire %a : !R1 -> !T
      hop.pipe.commit %a, %t : !R1, !T
    }
  }
  hop.role @writer elected {
  ^bb0(%wg: index):
    scf.for %i = %c0 to %m step %c1 {
      %t = hop.pipe.wait %a : !R1 -> !T
      hop.bulk_store %t, %x[%i, %c0] : !T, !V
      hop.pipe.release %a, %t : !R1, !T
    }
  }

// CASE pieces
// One role has in one loop what the other has in pieces, and a third one ends by what it gets.
  %zero = arith.constant 0 : i32
  %a = hop.pipe.create "a" : !R2
  %numbers = hop.pipe.create "numbers" : !hop.pipe<tensor<1xi32>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    scf.for %i = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i = %c0 to %c1 step %c1 {
      %t = hop.pipe.wait %a : !R2 -> !T
      hop.pipe.release %a, %t : !R2, !T
    }
    scf.for %i = %c1 to %m step %c1 {
      %t = hop.pipe.wait %a : !R2 -> !T
      hop.pipe.release %a, %t : !R2, !T
    }
  }
  hop.role @teller elected {
  ^bb0(%wg: index):
    scf.for %i = %c0 to %m step %c1 {
      hop.pipe.put %numbers, %zero : !hop.pipe<tensor<1xi32>, 1>
    }
    %none = arith.constant -1 : i32
    hop.pipe.put %numbers, %none : !hop.pipe<tensor<1xi32>, 1>
  }
  hop.role @listener elected {
  ^bb0(%wg: index):
    %first = hop.pipe.get %numbers : !hop.pipe<tensor<1xi32>, 1>
    scf.while (%now = %first) : (i32) -> i32 {
      %more = arith.cmpi sge, %now, %zero : i32
      scf.condition(%more) %now : i32
    } do {
    ^bb0(%got: i32):
      %next = hop.pipe.get %numbers : !hop.pipe<tensor<1xi32>, 1>
      scf.yield %next : i32
    }
  }
