// Roles that come to wait for each other for ever.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-check-pipes))' -split-input-file -verify-diagnostics

// A tile keeps its slot while a loop goes round the ring.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @round attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %b = hop.pipe.create "b" : !R2
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    scf.for %i1 = %c0 to %m step %c1 {
      // expected-error@+1 {{goes round the 2 slots of 'b' while a tile keeps one of them, and no number of slots is enough; load that tile again where it is used after the loop}}
      hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t = hop.pipe.wait %b : !R2 -> !T
    scf.for %i2 = %c0 to %m step %c1 {
      // expected-note@+1 {{and the consumers wait here for what comes after it}}
      %u = hop.pipe.wait %b : !R2 -> !T
      hop.pipe.release %b, %u : !R2, !T
    }
    hop.pipe.release %b, %t : !R2, !T
  }
}

// -----

// Three at once, whatever is given back behind the first.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @three attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %b = hop.pipe.create "b" : !R2
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    // expected-error@+1 {{needs 3 slots of 'b' at once, and it has 2 (outer_stages is at most 2); use a smaller overlap, or tiles of it one after the other}}
    hop.pipe.load %b, %x[%m, %c0] : !R2, !V
  }
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t = hop.pipe.wait %b : !R2 -> !T
    %u = hop.pipe.wait %b : !R2 -> !T
    hop.pipe.release %b, %u : !R2, !T
    // expected-note@+1 {{and the consumers wait here for what comes after it}}
    %v = hop.pipe.wait %b : !R2 -> !T
    hop.pipe.release %b, %v : !R2, !T
    hop.pipe.release %b, %t : !R2, !T
  }
}

// -----

// In a loop, over its back edge: the second iteration finds no slot.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @kept attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %b = hop.pipe.create "b" : !R2
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      // expected-error@+1 {{goes round the 2 slots of 'b' while a tile keeps one of them, and no number of slots is enough}}
      hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i2 = %c0 to %m step %c1 {
      // expected-note@+2 {{this tile keeps its slot}}
      // expected-note@+1 {{and the consumers wait here for what comes after it}}
      %t = hop.pipe.wait %b : !R2 -> !T
    }
  }
}

// -----

// Across rings: a stands full before the load of b, for which the consumers wait before they give back a.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @rings attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R2
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
      // expected-error@+1 {{needs 2 slots of 'a' at once, and it has 1; use stages = 2}}
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
      hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i2 = %c0 to %m step %c1 {
      // expected-note@+1 {{this tile keeps its slot}}
      %t = hop.pipe.wait %a : !R1 -> !T
      // expected-note@+1 {{and the consumers wait here for what comes after it}}
      %u = hop.pipe.wait %b : !R2 -> !T
      hop.pipe.release %b, %u : !R2, !T
      hop.pipe.release %a, %t : !R1, !T
      %v = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.release %a, %v : !R1, !T
    }
  }
}

// -----

// In one of the branches only.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @branch attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %b = hop.pipe.create "b" : !R1
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    hop.pipe.load %b, %x[%m, %c0] : !R1, !V
    scf.if %more {
      // expected-error@+1 {{needs 2 slots of 'b' at once, and it has 1; use outer_stages = 2}}
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
    }
  }
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t = hop.pipe.wait %b : !R1 -> !T
    scf.if %more {
      // expected-note@+1 {{and the consumers wait here for what comes after it}}
      %u = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.release %b, %u : !R1, !T
    }
    hop.pipe.release %b, %t : !R1, !T
  }
}

// -----

// A slot is lent before the tile that it keeps is read.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @lent attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R1
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    // expected-error@+1 {{needs 2 slots of 'a' at once, and it has 1; use outer_stages = 2}}
    hop.pipe.lend %a : !R1
    hop.pipe.load %b, %x[%m, %c0] : !R1, !V
  }
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t = hop.pipe.wait %a : !R1 -> !T
    // expected-note@+1 {{and the consumers wait here for what comes after it}}
    %u = hop.pipe.wait %b : !R1 -> !T
    hop.pipe.release %b, %u : !R1, !T
    hop.pipe.release %a, %t : !R1, !T
    %o = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %o : !R1, !T
  }
}

// -----

// A tile that nobody loads.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @unloaded attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R2
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R2, !V
  }
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %t : !R2, !T
    // expected-error@+1 {{waits for a tile that the producer does not load}}
    %u = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %u : !R2, !T
  }
}

// -----

// A loop of one role.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @loops attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R2
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R2, !V
  }
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %t : !R2, !T
    // expected-error@+1 {{reads tiles, and the producer has no such operation to load them}}
    scf.for %i1 = %c0 to %m step %c1 {
      %u = hop.pipe.wait %a : !R2 -> !T
      hop.warpgroup_sync
      %part = hop.slice %u[%c0] : !T -> !T
      hop.pipe.release %a, %u : !R2, !T
    }
  }
}

// -----

// The other role's.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @loads attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R2
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    // expected-error@+1 {{loads tiles, and the consumers have no such operation to read them}}
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %t : !R2, !T
  }
}

// -----

// Without a producer the thread that loads waits for itself.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @alone attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R1
  hop.role consumer warpgroups(1) {
  ^bb0(%wg: index):
    %first = hop.elected %wg
    scf.if %first {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
    // expected-note@+1 {{this tile keeps its slot}}
    %t = hop.pipe.wait %a : !R1 -> !T
    scf.if %first {
      // expected-error@+1 {{needs 2 slots of 'a' at once, and it has 1; use outer_stages = 2}}
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
    %u = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %u : !R1, !T
    hop.pipe.release %a, %t : !R1, !T
  }
}
