// What the verifiers of the dialect refuse of what single lanes do.
// RUN: %cases %s | tessera-opt -allow-unregistered-dialect -split-input-file -verify-diagnostics

// FRAME
hop.kernel @NAME attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  // HERE
}

// CASE lanes_of_two_warps
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error @+1 {{gives at least one place for each of as many numbers as the lanes of a warp, 32, or fewer}}
    %a = hop.in_lanes {
    ^bb0(%i: index):
      hop.yield %i : index
    } : vector<64xindex>
  }

// CASE lanes_of_other_numbers
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error @+1 {{has a region of an index, which ends with a hop.yield of as many places as there are results}}
    %a, %b = hop.in_lanes {
    ^bb0(%i: index):
      hop.yield %i : index
    } : vector<8xindex>, vector<8xindex>
  }

// CASE lanes_of_threads_that_multiply
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error @+1 {{takes the lanes of a warp that has nothing else to do, and @rows has threads that do; move it to an elected role}}
    %a = hop.in_lanes {
    ^bb0(%i: index):
      hop.yield %i : index
    } : vector<8xindex>
  }

// CASE lanes_that_wait
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    %a = hop.in_lanes {
    ^bb0(%i: index):
      // expected-error @+1 {{stands in a hop.in_lanes, which has scalar arithmetic and loads of elements}}
      hop.barrier.wait %full[%zero], %zero : !hop.barriers<1>
      hop.yield %i : index
    } : vector<8xindex>
  }

// -----
hop.kernel @of_no_lane attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
    %steps = arith.constant dense<[0, 1]> : vector<2xindex>
    // expected-error @+1 {{takes what a hop.in_lanes gives}}
    %a = hop.of_lane %steps[%m] : vector<2xindex>
  }
}

// FRAME
hop.kernel @NAME attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  // HERE
}

// CASE one_lane_that_does_not_wait
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    // expected-error @+1 {{begins with a hop.barrier.wait, which keeps ptxas from starting its copies in all parts of a warp whose lanes have parted}}
    hop.one_lane {
      hop.barrier.expect %full[%zero] bytes 16 : !hop.barriers<1>
    }
  }

// CASE one_lane_of_a_warpgroup
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    // expected-error @+1 {{takes one lane of a warp that stays together, and @rows has threads of its own; use an scf.if of hop.elected}}
    hop.one_lane {
      hop.barrier.wait %full[%zero], %zero : !hop.barriers<1>
    }
  }

// CASE one_lane_that_asks_others
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    %found = hop.in_lanes {
    ^bb0(%i: index):
      hop.yield %i : index
    } : vector<8xindex>
    hop.one_lane {
      hop.barrier.wait %full[%zero], %zero : !hop.barriers<1>
      // expected-error @+1 {{needs all lanes, and one alone comes here; move it before the hop.one_lane}}
      %own = hop.of_lane %found[%m] : vector<8xindex>
    }
  }

// CASE one_lane_of_one_thread
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    // expected-error @+1 {{stands in a role without a hop.in_lanes, where one thread does all; write its operations without it}}
    hop.one_lane {
      hop.barrier.wait %full[%zero], %zero : !hop.barriers<1>
    }
  }
