// In a loop the lanes find the runs of as many iterations at once as there are lanes for: 8 of 4 runs. A group of iterations has them found
// before its first one, and its last is that of the loop.
// RUN: tessera-opt %s -split-input-file --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers))' -verify-diagnostics | FileCheck %s

!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @k attributes {argument_names = ["x", "t"], argument_types = [!tile.view<[P, 16, 64], bf16>, !tile.view<[N], i32>],
    grid = [#tile.grid_dim<"N", 4>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %t: !tile.view<[N], i32>, %m: index):
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %end = tile.dim "N"
  %p = hop.pipe.create "p" : !R
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: %[[SIZE:.*]] = arith.muli %[[STEP:c3.*]], %c8{{.*}} : index
    // CHECK: scf.for %[[BEGIN:.*]] = %[[C0:.*]] to %[[END:.*]] step %[[SIZE]] iter_args
    // CHECK:   %[[BEHIND:.*]] = arith.addi %[[BEGIN]], %[[SIZE]] : index
    // CHECK:   %[[OF_GROUP:.*]] = arith.minsi %[[BEHIND]], %[[END]] : index
    // CHECK:   %[[FOUND:.*]]:2 = hop.in_lanes {
    // CHECK:   ^bb0(%[[LANE:.*]]: index):
    // CHECK:     %[[ITERATION:.*]] = arith.divui %[[LANE]], %c4{{.*}} : index
    // CHECK:     %[[AHEAD:.*]] = arith.muli %[[ITERATION]], %[[STEP]] : index
    // CHECK:     %[[J:.*]] = arith.addi %[[BEGIN]], %[[AHEAD]] : index
    // CHECK:     %[[OWN:.*]] = arith.muli %[[J]], %c4 : index
    // CHECK:     %[[PLACE:.*]] = arith.remui %[[LANE]], %c4{{.*}} : index
    // CHECK:     %[[NUMBER:.*]] = arith.addi %[[OWN]], %[[PLACE]] : index
    // CHECK:     tile.load %{{.*}}[%[[NUMBER]]] : !tile.view<[N], i32> -> i32
    // CHECK:   } : vector<32xindex>, vector<32xindex>
    // CHECK:   %[[LEAST:.*]] = tile.reduce_range min %{{.*}} to 32 -> i32 {
    // CHECK:     arith.select %{{.*}}, %{{.*}}, %c8_i32{{.*}} : i32
    // CHECK:   %[[MOST:.*]] = tile.reduce_range max %{{.*}} to 32 -> i32 {
    // CHECK:     arith.select %{{.*}}, %{{.*}}, %c-1_i32{{.*}} : i32
    // CHECK:   scf.for %[[I:.*]] = %[[BEGIN]] to %[[OF_GROUP]] step %[[STEP]] iter_args
    // CHECK:     %[[DISTANCE:.*]] = arith.subi %[[I]], %[[BEGIN]] : index
    // CHECK:     %[[ITS:.*]] = arith.divui %[[DISTANCE]], %[[STEP]] : index
    // CHECK:     %[[FIRST:.*]] = arith.muli %[[ITS]], %c4{{.*}} : index
    // CHECK:     %[[ITS32:.*]] = arith.index_cast %[[ITS]] : index to i32
    // CHECK:     %[[BEFORE:.*]] = arith.cmpi slt, %[[ITS32]], %[[LEAST]] : i32
    // CHECK:     %[[AFTER:.*]] = arith.cmpi sgt, %[[ITS32]], %[[MOST]] : i32
    // CHECK:     %[[NONE_EARLY:.*]] = arith.ori %[[BEFORE]], %[[AFTER]] : i1
    // CHECK-NOT: hop.in_lanes
    // CHECK:     hop.of_lane %[[FOUND]]#0[%[[FIRST]]]
    // CHECK:     %[[NEXT:.*]] = arith.addi %[[FIRST]], %c1{{.*}} : index
    // CHECK:     hop.of_lane %[[FOUND]]#0[%[[NEXT]]]
    // CHECK:     hop.one_lane {
    // CHECK:       scf.if %[[NONE_EARLY]] {
    scf.for %j = %c0 to %end step %c3 {
      %own = arith.muli %j, %c4 : index
      // expected-remark @+1 {{finds the runs of 8 iterations at once}}
      hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%own : index) {
      // expected-remark @-1 {{finds 4 runs at once, each in a lane of the thread's warp}}
      ^bb0(%i: index, %first: index):
        %number = arith.addi %first, %i : index
        %entry = tile.load %t[%number] : !tile.view<[N], i32> -> i32
        %page = arith.index_cast %entry : i32 to index
        hop.yield %page, %first, %c9 : index, index, index
      } : !R, !tile.view<[P, 16, 64], bf16>
    }
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %j = %c0 to %end step %c3 {
      %s = hop.pipe.wait %p : !R -> !T
      hop.pipe.release %p, %s : !R, !T
    }
  }
}

// What an iteration loads, or has from the one before, is not known ahead.
// CHECK-LABEL: hop.kernel @carried
hop.kernel @carried attributes {argument_names = ["x", "t"], argument_types = [!tile.view<[P, 16, 64], bf16>, !tile.view<[N], i32>],
    grid = [#tile.grid_dim<"N", 4>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %t: !tile.view<[N], i32>, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %end = tile.dim "N"
  %p = hop.pipe.create "p" : !R
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: scf.for
    // CHECK-NOT: scf.for
    // CHECK: hop.in_lanes
    // CHECK: } : vector<4xindex>, vector<4xindex>
    // CHECK: hop.one_lane
    %last = scf.for %j = %c0 to %end step %c1 iter_args(%before = %c0) -> (index) {
      %own = tile.load %t[%j] : !tile.view<[N], i32> -> i32
      // expected-remark @+1 {{finds 4 runs at once, each in a lane of the thread's warp}}
      hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%own, %before : i32, index) {
      ^bb0(%i: index, %start: i32, %first: index):
        %start_index = arith.index_cast %start : i32 to index
        %some = arith.addi %first, %start_index : index
        %page = arith.addi %some, %i : index
        hop.yield %page, %first, %c9 : index, index, index
      } : !R, !tile.view<[P, 16, 64], bf16>
      scf.yield %j : index
    }
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %j = %c0 to %end step %c1 {
      %s = hop.pipe.wait %p : !R -> !T
      hop.pipe.release %p, %s : !R, !T
    }
  }
}

// Loops that go on where the one before ends, and do the same, are one: what a role skips in some iterations this one does not.
// CHECK-LABEL: hop.kernel @cut
hop.kernel @cut attributes {argument_names = ["x", "t", "n"], argument_types = [!tile.view<[P, 16, 64], bf16>, !tile.view<[N], i32>, index],
    grid = [#tile.grid_dim<"N", 4>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %t: !tile.view<[N], i32>, %n: index, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %end = tile.dim "N"
  %p = hop.pipe.create "p" : !R
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: %[[SEAM:.*]] = arith.minsi
    // CHECK: %[[SECOND:.*]] = arith.maxsi %{{.*}}, %[[SEAM]] : index
    // CHECK: %[[BEGIN:.*]] = arith.minsi %[[SEAM]], %c1{{.*}} : index
    // CHECK: %[[BEHIND:.*]] = arith.maxsi %{{.*}}, %[[SECOND]] : index
    // CHECK: scf.for %[[GROUP:.*]] = %[[BEGIN]] to %[[BEHIND]] step
    // CHECK:   hop.in_lanes
    // CHECK:   scf.for %{{.*}} = %[[GROUP]] to
    // CHECK: hop.role @reads
    // CHECK-COUNT-3: scf.for
    %seam = arith.minsi %n, %c9 : index
    %second = arith.maxsi %m, %seam : index
    scf.for %j = %c1 to %seam step %c1 {
      %own = arith.muli %j, %c4 : index
      hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%own : index) {
      ^bb0(%i: index, %first: index):
        %page = arith.addi %first, %i : index
        hop.yield %page, %c0, %c9 : index, index, index
      } : !R, !tile.view<[P, 16, 64], bf16>
    }
    scf.for %j = %seam to %second step %c1 {
      %own = arith.muli %j, %c4 : index
      hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%own : index) {
      ^bb0(%i: index, %first: index):
        %page = arith.addi %first, %i : index
        hop.yield %page, %c0, %c9 : index, index, index
      } : !R, !tile.view<[P, 16, 64], bf16>
    }
    scf.for %j = %second to %end step %c1 {
      %own = arith.muli %j, %c4 : index
      // expected-remark @+1 {{finds the runs of 8 iterations at once}}
      hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%own : index) {
      // expected-remark @-1 {{finds 4 runs at once, each in a lane of the thread's warp}}
      ^bb0(%i: index, %first: index):
        %page = arith.addi %first, %i : index
        hop.yield %page, %c0, %c9 : index, index, index
      } : !R, !tile.view<[P, 16, 64], bf16>
    }
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    %seam = arith.minsi %n, %c9 : index
    %second = arith.maxsi %m, %seam : index
    scf.for %j = %c1 to %seam step %c1 {
      %s = hop.pipe.wait %p : !R -> !T
      hop.pipe.release %p, %s : !R, !T
    }
    scf.for %j = %seam to %second step %c1 {
      %s = hop.pipe.wait %p : !R -> !T
      hop.pipe.release %p, %s : !R, !T
    }
    scf.for %j = %second to %end step %c1 {
      %s = hop.pipe.wait %p : !R -> !T
      hop.pipe.release %p, %s : !R, !T
    }
  }
}

// Loops in those that are joined are gone with these.
// CHECK-LABEL: hop.kernel @nested
hop.kernel @nested attributes {argument_names = ["x", "n"], argument_types = [!tile.view<[P, 16, 64], bf16>, index],
    grid = [#tile.grid_dim<"P", 4>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %n: index, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %end = tile.dim "P"
  %p = hop.pipe.create "p" : !R
  %q = hop.pipe.create "q" : !R
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: %[[BEGIN:.*]] = arith.minsi
    // CHECK: scf.for %{{.*}} = %[[BEGIN]] to
    // CHECK: hop.in_lanes
    // CHECK: hop.role @reads
    scf.for %j = %c1 to %n step %c1 {
      hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%j : index) {
      ^bb0(%i: index, %first: index):
        %page = arith.addi %first, %i : index
        hop.yield %page, %c0, %c9 : index, index, index
      } : !R, !tile.view<[P, 16, 64], bf16>
      scf.for %k = %c0 to %c2 step %c1 {
        hop.pipe.load %q, %x[%c0, %c0, %c0] : !R, !tile.view<[P, 16, 64], bf16>
      }
    }
    scf.for %j = %n to %end step %c1 {
      // expected-remark @+1 {{finds the runs of 8 iterations at once}}
      hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%j : index) {
      // expected-remark @-1 {{finds 4 runs at once, each in a lane of the thread's warp}}
      ^bb0(%i: index, %first: index):
        %page = arith.addi %first, %i : index
        hop.yield %page, %c0, %c9 : index, index, index
      } : !R, !tile.view<[P, 16, 64], bf16>
      scf.for %k = %c0 to %c2 step %c1 {
        hop.pipe.load %q, %x[%c0, %c0, %c0] : !R, !tile.view<[P, 16, 64], bf16>
      }
    }
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %j = %c1 to %end step %c1 {
      %s = hop.pipe.wait %p : !R -> !T
      hop.pipe.release %p, %s : !R, !T
      scf.for %k = %c0 to %c2 step %c1 {
        %s2 = hop.pipe.wait %q : !R -> !T
        hop.pipe.release %q, %s2 : !R, !T
      }
    }
  }
}
