// Two blocks that gather rows for each other: each copies its half of the rows, waits for these copies, passes a fence and sends the
// half to the same place in the other block. Who reads the slot passes no fence, and gives it back to both.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers,hop-insert-proxy-fences))' | FileCheck %s

!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK: %[[GATHERED:.*]] = hop.barriers "p.gathered" count 128 : !hop.barriers<2>
// CHECK: %[[FULL:.*]] = hop.barriers "p.full" count 1 : !hop.barriers<2>
// CHECK: %[[EMPTY:.*]] = hop.barriers "p.empty" count 2 : !hop.barriers<2>
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" multicast : !R
  // CHECK: hop.role @rows
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    // CHECK: hop.barrier.wait %[[EMPTY]][%[[SLOT:.*]]], %[[PARITY:.*]] :
    // CHECK: %[[TILE:.*]] = hop.slot
    // CHECK: %[[RANK:.*]] = hop.cluster_rank
    // CHECK: %[[HALF:.*]] = hop.slice %[[TILE]][%[[RANK]]] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<32x64xbf16>, rows = 64>
    // CHECK: %[[COME:.*]] = arith.xori %[[PARITY]], %c1
    // CHECK: hop.gather %[[HALF]], {{.*}} : !hop.shared<tensor<32x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32>
    // CHECK-NEXT: hop.barrier.arrive %[[GATHERED]][%[[SLOT]]] copies
    // CHECK-NEXT: hop.barrier.wait %[[GATHERED]][%[[SLOT]]], %[[COME]] :
    // CHECK-NEXT: hop.proxy_fence
    // CHECK-NEXT: hop.exchange %[[HALF]], %[[HALF]], %[[FULL]][%[[SLOT]]]
    %s = hop.pipe.acquire %p : !R -> !T
    hop.gather %s, %x[%c0, %c0] rows %n : !T, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %p, %s : !R, !T
    // The role ends when all slots are empty.
    // CHECK: hop.elected
    // CHECK-COUNT-2: hop.barrier.wait %[[EMPTY]]
  }
  // CHECK: hop.role @reads
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    // CHECK: hop.barrier.wait %[[FULL]]
    // CHECK-NOT: hop.proxy_fence
    // CHECK: hop.barrier.arrive %[[EMPTY]][%{{.*}}] blocks 2
    %t = hop.pipe.wait %p : !R -> !T
    hop.warpgroup_sync
    hop.pipe.release %p, %t : !R, !T
  }
}
