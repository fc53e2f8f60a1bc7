// Each thread that copies arrives for itself, when its copies have come; those who wait pass a fence before products read the
// slot.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers,hop-insert-proxy-fences))' | FileCheck %s

!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK: %[[FULL:.*]] = hop.barriers "p.full" count 128
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !R
  // CHECK: hop.role @rows
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    // CHECK: hop.barrier.wait
    // CHECK-NOT: hop.proxy_fence
    // CHECK: hop.gather
    // CHECK-NEXT: hop.barrier.arrive %[[FULL]][%{{.*}}] copies
    %s = hop.pipe.acquire %p : !R -> !T
    hop.gather %s, %x[%c0, %c0] rows %n : !T, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %p, %s : !R, !T
  }
  // CHECK: hop.role @reads
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    // CHECK: hop.barrier.wait %[[FULL]]
    // CHECK-NEXT: hop.proxy_fence
    %t = hop.pipe.wait %p : !R -> !T
    hop.pipe.release %p, %t : !R, !T
  }
}
