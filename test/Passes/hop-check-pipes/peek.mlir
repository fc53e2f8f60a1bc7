// A tile that is read before it is taken.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-check-pipes))' -split-input-file -verify-diagnostics
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers),cse)' -split-input-file | FileCheck %s

!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>

// The wait of the next step is for the slot that this one has read; only waits move on.
// CHECK-LABEL: hop.kernel @ahead
// CHECK: hop.role @consumer
// CHECK: hop.barrier.wait %{{.*}}[%c0_i32], %c0_i32
// CHECK: scf.for {{.*}} iter_args(%[[P:.*]] = %c0_i32, %[[I:.*]] = %c0_i32)
// CHECK-NEXT: hop.barrier.wait %{{.*}}[%[[I]]], %[[P]]
// CHECK: %[[P1:.*]] = arith.xori %[[P]], %[[I]]
// CHECK: %[[I1:.*]] = arith.xori %[[I]], %c1_i32
// CHECK-NEXT: hop.barrier.wait %{{.*}}[%[[I1]]], %[[P1]]
// CHECK: hop.barrier.arrive %{{.*}}[%[[I]]]
// CHECK-NEXT: scf.yield %[[P1]], %[[I1]]
hop.kernel @ahead attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = hop.pipe.create "a" : !R
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R, !V
    scf.for %i1 = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %first = hop.pipe.peek %a : !R -> !T
    scf.for %i2 = %c0 to %m step %c1 {
      %t = hop.pipe.wait %a : !R -> !T
      %u = hop.pipe.peek %a : !R -> !T
      hop.pipe.release %a, %t : !R, !T
    }
    %last = hop.pipe.wait %a : !R -> !T
    hop.pipe.release %a, %last : !R, !T
  }
}

// -----

!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>

// One slot is kept while the next tile is to come.
hop.kernel @one_slot attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %a = hop.pipe.create "a" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    // expected-error@+1 {{needs 2 slots of 'a' at once, and it has 1; use outer_stages = 2}}
    hop.pipe.load %a, %x[%m, %c0] : !R1, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{this tile keeps its slot}}
    %t = hop.pipe.wait %a : !R1 -> !T
    // expected-note@+1 {{and @consumer waits here for what comes after it}}
    %u = hop.pipe.peek %a : !R1 -> !T
    hop.pipe.release %a, %t : !R1, !T
    %v = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %v : !R1, !T
  }
}

// -----

!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>

// What is read ahead has to be loaded.
hop.kernel @missing attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %a = hop.pipe.create "a" : !R
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R -> !T
    // expected-error@+1 {{waits for a tile that @producer does not load}}
    %u = hop.pipe.peek %a : !R -> !T
    hop.pipe.release %a, %t : !R, !T
  }
}
