// Of a pipe that the blocks of a cluster fill together each block copies its part of the runs to all of them, and looks up no
// other places. The slot's barrier waits for the bytes of all runs.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers))' | FileCheck %s

!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @k attributes {argument_names = ["x", "t"], argument_types = [!tile.view<[P, 16, 64], bf16>, !tile.view<[N], i32>],
    grid = [#tile.grid_dim<"N", 4>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %t: !tile.view<[N], i32>, %m: index):
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  // CHECK: hop.barriers "p.full" count 1
  // CHECK: hop.barriers "p.empty" count 2
  %p = hop.pipe.create "p" multicast : !R
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: %[[RANK:.*]] = hop.cluster_rank
    // CHECK: %[[FIRST:.*]] = arith.muli %[[RANK]], %c2{{.*}} : index
    // CHECK: %[[FOUND:.*]]:2 = hop.in_lanes {
    // CHECK: ^bb0(%[[LANE:.*]]: index):
    // CHECK:   %[[NUMBER:.*]] = arith.addi %[[LANE]], %[[FIRST]] : index
    // CHECK:   tile.load %{{.*}}[%[[NUMBER]]] : !tile.view<[N], i32> -> i32
    // CHECK: } : vector<2xindex>, vector<2xindex>
    // CHECK: %[[OWN:.*]] = arith.addi %[[FIRST]], %c1{{.*}} : index
    // CHECK: %[[ROW:.*]] = arith.muli %[[OWN]], %c16{{.*}} : index
    // CHECK: hop.of_lane %[[FOUND]]#0[%c1{{.*}}] : vector<2xindex>
    // CHECK: hop.one_lane {
    // CHECK: hop.barrier.wait
    // CHECK: hop.barrier.expect %{{.*}} bytes 8192
    // CHECK: hop.bulk_load %{{.*}} multicast rows 16 row %[[ROW]] :
    // CHECK: hop.bulk_load %{{.*}} multicast rows 1 row %{{.*}} :
    hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 {
    ^bb0(%i: index):
      %entry = tile.load %t[%i] : !tile.view<[N], i32> -> i32
      %page = arith.index_cast %entry : i32 to index
      hop.yield %page, %i, %c9 : index, index, index
    } : !R, !tile.view<[P, 16, 64], bf16>
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    // CHECK: hop.barrier.arrive %{{.*}} blocks 2
    %s = hop.pipe.wait %p : !R -> !T
    hop.warpgroup_sync
    hop.pipe.release %p, %s : !R, !T
  }
}
