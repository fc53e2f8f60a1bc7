// Roles that come to wait for each other for ever.
//
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-check-pipes))' -split-input-file -verify-diagnostics

// FRAME
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
!R3 = !hop.pipe<tensor<64x64xbf16>, 3>
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi slt, %c0, %m : index
  // HERE
}

// CASE round
// A tile keeps its slot while a loop goes round the ring.
  %b = hop.pipe.create "b" : !R2
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    scf.for %i1 = %c0 to %m step %c1 {
      // expected-error@+1 {{goes round the 2 slots of 'b' while a tile keeps one of them, and no number of slots is enough; load that tile again where it is used after the loop}}
      hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t = hop.pipe.wait %b : !R2 -> !T
    scf.for %i2 = %c0 to %m step %c1 {
      // expected-note@+1 {{and @consumer waits here for what comes after it}}
      %u = hop.pipe.wait %b : !R2 -> !T
      hop.pipe.release %b, %u : !R2, !T
    }
    hop.pipe.release %b, %t : !R2, !T
  }

// CASE three
// Three at once, whatever is given back behind the first.
  %b = hop.pipe.create "b" : !R2
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    // expected-error@+1 {{needs 3 slots of 'b' at once, and it has 2 (outer_stages is at most 2); use a smaller overlap, or tiles of it one after the other}}
    hop.pipe.load %b, %x[%m, %c0] : !R2, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t = hop.pipe.wait %b : !R2 -> !T
    %u = hop.pipe.wait %b : !R2 -> !T
    hop.pipe.release %b, %u : !R2, !T
    // expected-note@+1 {{and @consumer waits here for what comes after it}}
    %v = hop.pipe.wait %b : !R2 -> !T
    hop.pipe.release %b, %v : !R2, !T
    hop.pipe.release %b, %t : !R2, !T
  }

// CASE kept
// What is never given back.
  %b = hop.pipe.create "b" : !R2
  hop.role @producer elected {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i2 = %c0 to %m step %c1 {
      // expected-error@+1 {{keeps its slot to the end of @consumer; release it on every way from here}}
      %t = hop.pipe.wait %b : !R2 -> !T
    }
  }

// CASE rings
// Across rings: a stands full before the load of b, for which the consumers wait before they give back a.
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R2
  hop.role @producer elected {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
      // expected-error@+1 {{needs 2 slots of 'a' at once, and it has 1; use stages = 2}}
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
      hop.pipe.load %b, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i2 = %c0 to %m step %c1 {
      // expected-note@+1 {{this tile keeps its slot}}
      %t = hop.pipe.wait %a : !R1 -> !T
      // expected-note@+1 {{and @consumer waits here for what comes after it}}
      %u = hop.pipe.wait %b : !R2 -> !T
      hop.pipe.release %b, %u : !R2, !T
      hop.pipe.release %a, %t : !R1, !T
      %v = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.release %a, %v : !R1, !T
    }
  }

// CASE branch
// In one of the branches only.
  %b = hop.pipe.create "b" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %b, %x[%m, %c0] : !R1, !V
    scf.if %more {
      // expected-error@+1 {{needs 2 slots of 'b' at once, and it has 1; use outer_stages = 2}}
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t = hop.pipe.wait %b : !R1 -> !T
    scf.if %more {
      // expected-note@+1 {{and @consumer waits here for what comes after it}}
      %u = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.release %b, %u : !R1, !T
    }
    hop.pipe.release %b, %t : !R1, !T
  }

// CASE unloaded
// A tile that nobody loads.
  %a = hop.pipe.create "a" : !R2
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R2, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %t : !R2, !T
    // expected-error@+1 {{waits for a tile that @producer does not load}}
    %u = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %u : !R2, !T
  }

// CASE loops
// A loop of one role.
  %a = hop.pipe.create "a" : !R2
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R2, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %t : !R2, !T
    // expected-error@+1 {{stands around uses of 'a', and @producer has no such operation around its own; roles that are joined run the same loops and conditionals}}
    scf.for %i1 = %c0 to %m step %c1 {
      %u = hop.pipe.wait %a : !R2 -> !T
      hop.warpgroup_sync
      %part = hop.slice %u[%c0] : !T -> !T
      hop.pipe.release %a, %u : !R2, !T
    }
  }

// CASE loads
// The other role's.
  %a = hop.pipe.create "a" : !R2
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    // expected-error@+1 {{stands around uses of 'a', and @consumer has no such operation around its own; roles that are joined run the same loops and conditionals}}
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R2 -> !T
    hop.pipe.release %a, %t : !R2, !T
  }

// CASE alone
// Without a producer the thread that loads waits for itself.
  %a = hop.pipe.create "a" : !R1
  hop.role @consumer warpgroups(1) {
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

// FRAME
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R1
  // HERE
}

// CASE cycle
// Two roles that each want a tile of the other first.
  hop.role @first elected {
  ^bb0(%wg: index):
    scf.for %i1 = %c0 to %m step %c1 {
      // expected-error@+1 {{waits for a tile of 'b', for which @second needs something of this role first: they wait for each other for ever; let one of them give before it waits}}
      %t2 = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
      hop.pipe.release %b, %t2 : !R1, !T
    }
  }
  hop.role @second elected {
  ^bb0(%wg: index):
    scf.for %i3 = %c0 to %m step %c1 {
      // expected-note@+1 {{@second waits here for a tile of 'a'}}
      %t4 = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
      hop.pipe.release %a, %t4 : !R1, !T
    }
  }

// CASE round_of_three
// Three that do so in turn, beside one that is not to blame.
  %c = hop.pipe.create "c" : !R1
  %d = hop.pipe.create "d" : !R2
  hop.role @loads elected {
  ^bb0(%wg: index):
    hop.pipe.load %d, %x[%m, %c0] : !R2, !V
  }
  hop.role @first elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{waits for a tile of 'c', for which @third needs something of this role first}}
    %t1 = hop.pipe.wait %c : !R1 -> !T
    hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    hop.pipe.release %c, %t1 : !R1, !T
  }
  hop.role @second elected {
  ^bb0(%wg: index):
    // expected-note@+1 {{@second waits here for a tile of 'a'}}
    %t2 = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.load %b, %x[%m, %c0] : !R1, !V
    hop.pipe.release %a, %t2 : !R1, !T
  }
  hop.role @third elected {
  ^bb0(%wg: index):
    // expected-note@+1 {{@third waits here for a tile of 'b'}}
    %t3 = hop.pipe.wait %b : !R1 -> !T
    %t4 = hop.pipe.wait %d : !R2 -> !T
    hop.pipe.load %c, %x[%m, %c0] : !R1, !V
    hop.pipe.release %b, %t3 : !R1, !T
    hop.pipe.release %d, %t4 : !R2, !T
  }

// CASE order_of_two
// Two roles that load, in another order than their reader needs.
  hop.role @first elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    // expected-error@+1 {{needs 2 slots of 'a' at once, and it has 1; use outer_stages = 2}}
    hop.pipe.load %a, %x[%m, %c0] : !R1, !V
  }
  hop.role @second elected {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t1 = hop.pipe.wait %a : !R1 -> !T
    // expected-note@+1 {{and @second waits here for what comes after it}}
    %t2 = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %t1 : !R1, !T
    hop.pipe.release %a, %t2 : !R1, !T
    hop.pipe.load %b, %x[%m, %c0] : !R1, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t3 = hop.pipe.wait %a : !R1 -> !T
    // expected-note@+1 {{and @consumer waits here for what comes after it}}
    %t4 = hop.pipe.wait %b : !R1 -> !T
    hop.pipe.release %b, %t4 : !R1, !T
    hop.pipe.release %a, %t3 : !R1, !T
    %t5 = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %t5 : !R1, !T
  }

// CASE merged
// A loop of two roles that stands for two of another.
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-note@+1 {{the one before}}
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
    // expected-error@+1 {{goes with the same operation of another role as one before it does, so that the roles cannot decide alike; put what both hold into one}}
    scf.for %i2 = %c0 to %m step %c1 {
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i3 = %c0 to %m step %c1 {
      %t4 = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.release %a, %t4 : !R1, !T
      %t5 = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.release %b, %t5 : !R1, !T
    }
  }
