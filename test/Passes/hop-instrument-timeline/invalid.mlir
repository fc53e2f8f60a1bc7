// Timelines that do not hold.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics
// RUN: not tessera-opt %S/basic.mlir --pass-pipeline='builtin.module(hop.kernel(hop-instrument-timeline{events=3}))' 2>&1 | FileCheck %s
// CHECK: error: 'hop.timeline' op keeps a power of two of events, got 3

hop.kernel @none attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{is in a kernel without hop.timeline}}
    hop.mark 0
  }
}

// -----

hop.kernel @beyond attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  hop.timeline blocks 1 from 0 events 8 stages [#hop.stage<turn, "turn">]
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{enters stage 1 of 1}}
    hop.mark 1
  }
}

// -----

hop.kernel @blocks attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  // expected-error@+1 {{records one or more thread blocks with numbers below 2^31}}
  hop.timeline blocks 0 from 0 events 8 stages []
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
  }
}

// -----

hop.kernel @large attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  // expected-error@+1 {{takes more than 2^31 bytes for 1000000 thread blocks of 1 warpgroups with 1024 events each; record fewer}}
  hop.timeline blocks 1000000 from 0 events 1024 stages []
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
  }
}

// -----

hop.kernel @two attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  hop.timeline blocks 1 from 0 events 8 stages []
  // expected-error@+1 {{is the second of its kernel; a kernel records one timeline}}
  hop.timeline blocks 1 from 0 events 8 stages []
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
  }
}
