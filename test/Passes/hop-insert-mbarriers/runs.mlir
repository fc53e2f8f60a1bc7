// A load of runs is a loop over them: each is copied whole, or from before the view where none of it is there. Before the wait the lanes
// of the thread find where they lie, and whether one ends early, so that another loop copies it row by row.
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
    // CHECK: %[[FOUND:.*]]:3 = hop.in_lanes {
    // CHECK: ^bb0(%[[NUMBER:.*]]: index):
    // CHECK:   tile.load %{{.*}}[%{{.*}}] : !tile.view<[N], i32> -> i32
    // CHECK:   hop.yield %{{.*}}, %{{.*}}, %{{.*}} : index, index, index
    // CHECK: } : vector<4xindex>, vector<4xindex>, vector<4xindex>
    // CHECK: %[[EARLY:.*]] = tile.reduce_range max %{{.*}} to 4 -> i32 {
    // CHECK:   tile.load
    // CHECK:   %[[SOME:.*]] = arith.andi
    // CHECK:   arith.extui %[[SOME]] : i1 to i32
    // CHECK: hop.barrier.wait
    // CHECK: hop.barrier.expect %{{.*}} bytes 8192
    // CHECK: %[[NONE_EARLY:.*]] = arith.cmpi eq, %[[EARLY]], %c0_i32
    // CHECK: scf.if %[[NONE_EARLY]] {
    // CHECK:   scf.for %[[I:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
    // CHECK-NOT: tile.load
    // CHECK:     %[[PAGE:.*]] = hop.of_lane %[[FOUND]]#0[%[[I]]] : vector<4xindex>
    // CHECK:     %[[ROW:.*]] = hop.of_lane %[[FOUND]]#1[%[[I]]] : vector<4xindex>
    // CHECK:     %[[COUNT:.*]] = hop.of_lane %[[FOUND]]#2[%[[I]]] : vector<4xindex>
    // CHECK-NOT: scf.if
    // CHECK:     %[[WHOLE:.*]] = arith.cmpi sge, %[[COUNT]], %{{.*}} : index
    // CHECK:     arith.select %[[WHOLE]], %{{.*}}, %c-16{{.*}} : index
    // CHECK:     hop.bulk_load %{{.*}} rows 16 row %{{.*}} :
    // CHECK: } else {
    // CHECK:   scf.for %[[I:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
    // CHECK:     %[[COUNT:.*]] = hop.of_lane %[[FOUND]]#2[%[[I]]] : vector<4xindex>
    // CHECK:     scf.if
    // CHECK:       hop.bulk_load %{{.*}} rows 16 row %{{.*}} :
    // CHECK:     } else {
    // CHECK:       scf.for %[[R:.*]] =
    // CHECK:         %[[THERE:.*]] = arith.cmpi slt, %[[R]], %[[COUNT]] : index
    // CHECK:         arith.select %[[THERE]], %{{.*}}, %c-1{{.*}} : index
    // CHECK:         hop.bulk_load %{{.*}} rows 1 row %{{.*}} :
    hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%m : index) {
    ^bb0(%i: index, %own: index):
      %first = arith.muli %own, %c4 : index
      %number = arith.addi %first, %i : index
      %entry = tile.load %t[%number] : !tile.view<[N], i32> -> i32
      %page = arith.index_cast %entry : i32 to index
      hop.yield %page, %c0, %c9 : index, index, index
    } : !R, !tile.view<[P, 16, 64], bf16>
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %p : !R -> !T
    hop.pipe.release %p, %s : !R, !T
  }
}

// -----

// A tile of one run is one copy, whose place the thread finds by itself.
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
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
    // CHECK-NOT: hop.in_lanes
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

// -----

// A thread that is chosen of a warpgroup has no lanes to find places, and finds one before the copies of each run.
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
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
      // CHECK-NOT: hop.in_lanes
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
