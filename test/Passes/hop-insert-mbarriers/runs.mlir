// Before the wait for the slot of a load of runs the lanes of the thread find where they lie: each is copied whole, or from before the view
// where none of it is there. Where one ends early, a loop finds each and copies that one row by row. One lane waits and copies.
// RUN: tessera-opt %s -split-input-file --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers))' | FileCheck %s

!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @k attributes {argument_names = ["x", "t"], argument_types = [!tile.view<[P, 16, 64], bf16>, !tile.view<[N], i32>],
    grid = [#tile.grid_dim<"N", 4>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %t: !tile.view<[N], i32>, %m: index):
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %p = hop.pipe.create "p" : !R
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: %[[FOUND:.*]]:2 = hop.in_lanes {
    // CHECK: ^bb0(%[[NUMBER:.*]]: index):
    // CHECK:   tile.load %{{.*}}[%{{.*}}] : !tile.view<[N], i32> -> i32
    // CHECK:   %[[WHOLE:.*]] = arith.cmpi sge, %c9, %c16{{.*}} : index
    // CHECK:   %[[ROW:.*]] = arith.select %[[WHOLE]], %{{.*}}, %c-16{{.*}} : index
    // CHECK:   hop.yield %{{.*}}, %[[ROW]] : index, index
    // CHECK: } : vector<4xindex>, vector<4xindex>
    // CHECK: %[[EARLY:.*]] = tile.reduce_range max %{{.*}} to 4 -> i32 {
    // CHECK:   tile.load
    // CHECK:   %[[SOME:.*]] = arith.andi
    // CHECK:   arith.extui %[[SOME]] : i1 to i32
    // CHECK: %[[NONE_EARLY:.*]] = arith.cmpi eq, %[[EARLY]], %c0_i32
    // CHECK: %[[PAGE0:.*]] = hop.of_lane %[[FOUND]]#0[%c0{{.*}}] : vector<4xindex>
    // CHECK: %[[ROW0:.*]] = hop.of_lane %[[FOUND]]#1[%c0{{.*}}] : vector<4xindex>
    // CHECK: %[[PAGE3:.*]] = hop.of_lane %[[FOUND]]#0[%c3{{.*}}] : vector<4xindex>
    // CHECK: %[[ROW3:.*]] = hop.of_lane %[[FOUND]]#1[%c3{{.*}}] : vector<4xindex>
    // CHECK: hop.one_lane {
    // CHECK-NEXT: hop.barrier.wait
    // CHECK-NEXT: hop.barrier.expect %{{.*}} bytes 8192
    // CHECK: scf.if %[[NONE_EARLY]] {
    // CHECK: hop.bulk_load %{{.*}}[%[[PAGE0]], %[[ROW0]], %{{.*}}], {{.*}} rows 16 row %{{.*}} :
    // CHECK:      hop.bulk_load %{{.*}}[%[[PAGE3]], %[[ROW3]], %{{.*}}], {{.*}} rows 16 row %{{.*}} :
    // CHECK-NEXT: } else {
    // CHECK:   scf.for %[[I:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
    // CHECK:     tile.load
    // CHECK:     scf.if
    // CHECK:       hop.bulk_load %{{.*}} rows 16 row %{{.*}} :
    // CHECK:     } else {
    // CHECK:       scf.for %[[R:.*]] =
    // CHECK:         %[[THERE:.*]] = arith.cmpi slt, %[[R]], %c9 : index
    // CHECK:         arith.select %[[THERE]], %{{.*}}, %c-1{{.*}} : index
    // CHECK:         hop.bulk_load %{{.*}} rows 1 row %{{.*}} :
    hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%m : index) {
    ^bb0(%i: index, %own: index):
      %first = arith.muli %own, %c4 : index
      %number = arith.addi %first, %i : index
      %entry = tile.load %t[%number] : !tile.view<[N], i32> -> i32
      %page = arith.index_cast %entry : i32 to index
      hop.yield %page, %own, %c9 : index, index, index
    } : !R, !tile.view<[P, 16, 64], bf16>
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %p : !R -> !T
    hop.pipe.release %p, %s : !R, !T
  }
}

// A tile of one run is one copy, whose place the thread finds by itself.
// CHECK-LABEL: hop.kernel @one
hop.kernel @one attributes {argument_names = ["x", "t"], argument_types = [!tile.view<[P, 64, 64], bf16>, !tile.view<[N], i32>],
    grid = [#tile.grid_dim<"N", 1>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[P, 64, 64], bf16>, %t: !tile.view<[N], i32>, %m: index):
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %p = hop.pipe.create "p" : !R
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK-NOT: hop.{{in_lanes|one_lane}}
    // CHECK: %[[ENTRY:.*]] = tile.load %{{.*}}[%{{.*}}] : !tile.view<[N], i32> -> i32
    // CHECK: %[[PAGE:.*]] = arith.index_cast %[[ENTRY]] : i32 to index
    // CHECK: hop.barrier.wait
    // CHECK: hop.barrier.expect %{{.*}} bytes 8192
    // CHECK-NOT: tile.load
    // CHECK: hop.bulk_load %{{.*}} rows 64 row %{{.*}} :
    hop.pipe.load %p, %x[%c0, %c0, %c0] run 64 with (%m : index) {
    ^bb0(%i: index, %own: index):
      %number = arith.addi %own, %i : index
      %entry = tile.load %t[%number] : !tile.view<[N], i32> -> i32
      %page = arith.index_cast %entry : i32 to index
      hop.yield %page, %c0, %c9 : index, index, index
    } : !R, !tile.view<[P, 64, 64], bf16>
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %p : !R -> !T
    hop.pipe.release %p, %s : !R, !T
  }
}

// A thread that is chosen of a warpgroup has no lanes to find places, and finds one before the copies of each run.
// CHECK-LABEL: hop.kernel @chosen
hop.kernel @chosen attributes {argument_names = ["x", "t"], argument_types = [!tile.view<[P, 16, 64], bf16>, !tile.view<[N], i32>],
    grid = [#tile.grid_dim<"N", 4>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %t: !tile.view<[N], i32>, %m: index):
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %p = hop.pipe.create "p" : !R
  // CHECK: hop.role @producer
  hop.role @producer warpgroups(1) {
  ^bb0(%wg: index):
    %elected = hop.elected %wg
    scf.if %elected {
      // CHECK-NOT: hop.{{in_lanes|one_lane}}
      // CHECK: hop.barrier.expect %{{.*}} bytes 8192
      // CHECK: scf.for
      // CHECK:   tile.load %{{.*}}[%{{.*}}] : !tile.view<[N], i32> -> i32
      // CHECK:   hop.bulk_load %{{.*}} rows 16 row %{{.*}} :
      hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 {
      ^bb0(%i: index):
        %entry = tile.load %t[%i] : !tile.view<[N], i32> -> i32
        %page = arith.index_cast %entry : i32 to index
        hop.yield %page, %c0, %c9 : index, index, index
      } : !R, !tile.view<[P, 16, 64], bf16>
    }
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %p : !R -> !T
    hop.pipe.release %p, %s : !R, !T
  }
}

// A plain load of a role whose lanes find runs, and one that goes into the slot of another: one lane waits for it once more.
// CHECK-LABEL: hop.kernel @beside
hop.kernel @beside attributes {argument_names = ["x", "y", "t"],
    argument_types = [!tile.view<[P, 16, 64], bf16>, !tile.view<[M, 64], bf16>, !tile.view<[N], i32>],
    grid = [#tile.grid_dim<"N", 4>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %y: !tile.view<[M, 64], bf16>, %t: !tile.view<[N], i32>, %m: index):
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %p = hop.pipe.create "p" : !R
  %q = hop.pipe.create "q" : !R
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: hop.one_lane {
    // CHECK-NEXT: hop.barrier.wait
    // CHECK-NEXT: hop.barrier.expect
    // CHECK-NEXT: hop.slot
    // CHECK-NEXT: hop.bulk_load %{{.*}}[%{{.*}}, %c0]
    // CHECK-NEXT: }
    hop.pipe.load %q, %y[%m, %c0] : !R, !tile.view<[M, 64], bf16>
    // All runs begin at row 0 of a page, so that lanes find its number alone: where no rows are there, one before the view.
    // CHECK: %[[FOUND:.*]] = hop.in_lanes {
    // CHECK:   %[[PAGE:.*]] = arith.select %{{.*}}, %{{.*}}, %c-1{{.*}} : index
    // CHECK:   hop.yield %[[PAGE]] : index
    // CHECK: } : vector<4xindex>
    // CHECK: %[[PAGE0:.*]] = hop.of_lane %[[FOUND]][
    // CHECK: hop.one_lane {
    // CHECK-NEXT: hop.barrier.wait
    // CHECK: hop.bulk_load %{{.*}}[%[[PAGE0]], %c0{{.*}}, %{{.*}}], {{.*}} rows 16
    hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 {
    ^bb0(%i: index):
      %entry = tile.load %t[%i] : !tile.view<[N], i32> -> i32
      %page = arith.index_cast %entry : i32 to index
      hop.yield %page, %c0, %c9 : index, index, index
    } : !R, !tile.view<[P, 16, 64], bf16>
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %q : !R -> !T
    hop.pipe.release %q, %s : !R, !T
    %u = hop.pipe.wait %p : !R -> !T
    hop.pipe.release %p, %u : !R, !T
  }
}
