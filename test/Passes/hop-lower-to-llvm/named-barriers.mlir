// The last number of named barriers that fits and the first that does not. Barrier 0 starts the block.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(hop-lower-to-llvm)'

// 16 that are in use; with the one that @a does not use there would be 17.
hop.kernel @fits attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%m: index):
  hop.role @a warpgroups(4) {
  ^bb0(%wg: index):
    hop.turn.start %wg
    hop.warpgroup_sync
  }
  hop.role @b warpgroups(3) {
  ^bb0(%wg: index):
    hop.turn.start %wg
    hop.warpgroup_sync
    hop.role_sync
  }
}

// -----

// expected-error@+17 {{uses 17 named barriers, and a thread block has 16; use fewer warpgroups, or pingpong = false, which takes no turns}}
// expected-note@+16 {{barrier 0: start}}
// expected-note@+15 {{barrier 1: turn of a 0}}
// expected-note@+14 {{barrier 2: turn of a 1}}
// expected-note@+13 {{barrier 3: turn of a 2}}
// expected-note@+12 {{barrier 4: turn of a 3}}
// expected-note@+11 {{barrier 5: warpgroup of a 0}}
// expected-note@+10 {{barrier 6: warpgroup of a 1}}
// expected-note@+9 {{barrier 7: warpgroup of a 2}}
// expected-note@+8 {{barrier 8: warpgroup of a 3}}
// expected-note@+7 {{barrier 9: all of a}}
// expected-note@+6 {{barrier 10: turn of b 0}}
// expected-note@+5 {{barrier 11: turn of b 1}}
// expected-note@+4 {{barrier 12: turn of b 2}}
// expected-note@+3 {{barrier 13: warpgroup of b 0}}
// expected-note@+2 {{barrier 14: warpgroup of b 1}}
// expected-note@+1 {{barrier 15: warpgroup of b 2}}
hop.kernel @one_more attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%m: index):
  hop.role @a warpgroups(4) {
  ^bb0(%wg: index):
    hop.turn.start %wg
    hop.warpgroup_sync
    hop.role_sync
  }
  hop.role @b warpgroups(3) {
  ^bb0(%wg: index):
    hop.turn.start %wg
    hop.warpgroup_sync
    hop.role_sync
  }
}
