// RUN: tessera-opt %s --pass-pipeline="builtin.module(hop.kernel(hop-retry))" -split-input-file -verify-diagnostics

hop.kernel @nested attributes {
    argument_names = ["n"], argument_types = [index], grid = [#tile.grid_dim<4 : i64, 1>],
    schedule = #tile.schedule<persistent = none>} {
^bb0(%n: index, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      // expected-error@+1 {{stands in a role or in its loop over tiles, whose one value is the number of the tile}}
      hop.attempt {
        hop.warpgroup_sync
      } exact {
        hop.warpgroup_sync
      }
    }
  }
}

// -----

// expected-error@+1 {{has 'tessera.probes', which is five numbers above 0}}
hop.kernel @probes attributes {
    argument_names = ["n"], argument_types = [index], grid = [#tile.grid_dim<4 : i64, 1>],
    schedule = #tile.schedule<persistent = none>, tessera.probes = array<i64: 32, 8, 0, 400, 9>} {
^bb0(%n: index, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    hop.attempt {
      hop.warpgroup_sync
    } exact {
      hop.warpgroup_sync
    }
  }
}
