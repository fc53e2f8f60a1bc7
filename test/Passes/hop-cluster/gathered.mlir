// Rows that threads gather are shared by two blocks where neither the place nor the numbers of any row depend on the index. What
// waits for the copies stands behind the gathers that follow, up to one into a pipe of before.
// RUN: tessera-opt %s -split-input-file --pass-pipeline="builtin.module(hop.kernel(hop-cluster))" -verify-diagnostics | FileCheck %s

!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @shared attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // CHECK: %[[K:.*]] = hop.pipe.create "k" multicast : !hop.pipe
  // expected-remark@+1 {{'k' is loaded once for the 2 blocks of a cluster}}
  %k = hop.pipe.create "k" : !R
  // CHECK: %[[V:.*]] = hop.pipe.create "v" multicast : !hop.pipe
  // expected-remark@+1 {{'v' is loaded once for the 2 blocks of a cluster}}
  %v = hop.pipe.create "v" : !R
  // CHECK: %[[OWN:.*]] = hop.pipe.create "own" : !hop.pipe
  // expected-remark@+1 {{'own' is loaded by each block of a cluster: its place depends on the first grid index}}
  %own = hop.pipe.create "own" : !R
  hop.role @producer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %n = tile.iota %c0 axis 0 : tensor<64xi32>
    %mine = tile.iota %m axis 0 : tensor<64xi32>
    // CHECK: %[[K0:.*]] = hop.pipe.acquire %[[K]]
    // CHECK-NEXT: hop.gather %[[K0]]
    // CHECK-NEXT: %[[V0:.*]] = hop.pipe.acquire %[[V]]
    // CHECK-NEXT: hop.gather %[[V0]]
    // CHECK-NEXT: %[[OWN0:.*]] = hop.pipe.acquire %[[OWN]]
    // CHECK-NEXT: hop.gather %[[OWN0]]
    // CHECK-NEXT: hop.pipe.commit %[[OWN]], %[[OWN0]]
    // CHECK-NEXT: hop.pipe.commit %[[K]], %[[K0]]
    // CHECK-NEXT: hop.pipe.commit %[[V]], %[[V0]]
    // CHECK-NEXT: %[[K1:.*]] = hop.pipe.acquire %[[K]]
    // CHECK-NEXT: hop.gather %[[K1]]
    // CHECK-NEXT: hop.pipe.commit %[[K]], %[[K1]]
    %k0 = hop.pipe.acquire %k : !R -> !T
    hop.gather %k0, %x[%c0, %c0] rows %n : !T, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %k, %k0 : !R, !T
    %v0 = hop.pipe.acquire %v : !R -> !T
    hop.gather %v0, %x[%c0, %c0] rows %n : !T, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %v, %v0 : !R, !T
    %own0 = hop.pipe.acquire %own : !R -> !T
    hop.gather %own0, %x[%c0, %c0] rows %mine : !T, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %own, %own0 : !R, !T
    %k1 = hop.pipe.acquire %k : !R -> !T
    hop.gather %k1, %x[%c0, %c0] rows %n : !T, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %k, %k1 : !R, !T
  }
}

// -----

// Halves of rows are what two blocks send each other.
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
// expected-error@+1 {{has no load that the blocks of a cluster share; use cluster = 1}}
hop.kernel @four attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 4>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-note@+1 {{'k': its rows are gathered, in halves that two blocks send each other; use cluster = 2}}
  %k = hop.pipe.create "k" : !R
  hop.role @producer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %n = tile.iota %c0 axis 0 : tensor<64xi32>
    %k0 = hop.pipe.acquire %k : !R -> !T
    hop.gather %k0, %x[%c0, %c0] rows %n : !T, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %k, %k0 : !R, !T
  }
}

// -----

!T = !hop.shared<tensor<48x64xbf16>, rows = 48>
!R = !hop.pipe<tensor<48x64xbf16>, 2>
// expected-error@+1 {{has no load that the blocks of a cluster share; use cluster = 1}}
hop.kernel @odd attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-note@+1 {{'k': its 48 rows are gathered 16 at a time, and are not divisible into halves of these; multiples of 32 rows would be}}
  %k = hop.pipe.create "k" : !R
  hop.role @producer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %n = tile.iota %c0 axis 0 : tensor<48xi32>
    %k0 = hop.pipe.acquire %k : !R -> !T
    hop.gather %k0, %x[%c0, %c0] rows %n : !T, !tile.view<[M, 64], bf16>, tensor<48xi32>
    hop.pipe.commit %k, %k0 : !R, !T
  }
}
