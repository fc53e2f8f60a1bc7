// A tile in a single slot is waited for behind the products that do not need it.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-order-slots))' -split-input-file -verify-diagnostics | FileCheck %s

!X = !tile.view<[M, 64], bf16>
!One = !hop.pipe<tensor<64x64xbf16>, 1>
!Two = !hop.pipe<tensor<64x64xbf16>, 2>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!S = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xbf16, #hop.layout<accumulator>>

// Those of one place keep their order; the tile of two slots is there in time.
// CHECK-LABEL: hop.kernel @late
// CHECK-DAG: %[[K:.*]] = hop.pipe.create "k"
// CHECK-DAG: %[[V:.*]] = hop.pipe.create "v"
// CHECK-DAG: %[[W:.*]] = hop.pipe.create "w"
// CHECK-DAG: %[[U:.*]] = hop.pipe.create "u"
// CHECK: scf.for
// CHECK-NEXT: %[[KT:.*]] = hop.pipe.wait %[[K]]
// CHECK-NEXT: %[[UT:.*]] = hop.pipe.wait %[[U]]
// CHECK-NEXT: hop.mma %{{.*}}, %[[KT]] {transpose_b}
// CHECK-NEXT: hop.pipe.release %[[K]]
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: %[[VT:.*]] = hop.pipe.wait %[[V]]
// CHECK-NEXT: %[[WT:.*]] = hop.pipe.wait %[[W]]
// CHECK-NEXT: hop.mma %[[VT]], %[[WT]]
// CHECK-NEXT: hop.mma %{{.*}}, %[[UT]] acc(
hop.kernel @late attributes {argument_names = ["x"], argument_types = [!X], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !X, %m: index):
  %q = hop.staging "q" : !T
  %k = hop.pipe.create "k" : !One
  %v = hop.pipe.create "v" : !One
  %w = hop.pipe.create "w" : !One
  %u = hop.pipe.create "u" : !Two
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : !S
    %sum = scf.for %i = %c0 to %m step %c1 iter_args(%acc = %zero) -> (!S) {
      %kt = hop.pipe.wait %k : !One -> !T
      // expected-remark @below {{its pipe has one slot, which is filled when the step before is done: products that do not need it go first}}
      %vt = hop.pipe.wait %v : !One -> !T
      // expected-remark @below {{its pipe has one slot, which is filled when the step before is done: products that do not need it go first}}
      %wt = hop.pipe.wait %w : !One -> !T
      %ut = hop.pipe.wait %u : !Two -> !T
      // expected-note @below {{the first of them}}
      %s = hop.mma %q, %kt {transpose_b} : !T, !T -> !S
      hop.pipe.release %k, %kt : !One, !T
      %p = arith.truncf %s : !S to !P
      %a = hop.mma %vt, %wt : !T, !T -> !S
      %d = hop.mma %p, %ut acc(%acc : !S) : !P, !T -> !S
      hop.pipe.release %v, %vt : !One, !T
      hop.pipe.release %w, %wt : !One, !T
      hop.pipe.release %u, %ut : !Two, !T
      scf.yield %d : !S
    }
  }
}

// -----

!X = !tile.view<[M, 64], bf16>
!One = !hop.pipe<tensor<64x64xbf16>, 1>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!S = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xbf16, #hop.layout<accumulator>>

// No wait passes a loop or the next wait for its pipe; and one that would pass no product stays.
// CHECK-LABEL: hop.kernel @kept
// CHECK: hop.role
// CHECK: %[[KT:.*]] = hop.pipe.wait
// CHECK-NEXT: hop.mma %{{.*}}, %[[KT]]
// CHECK-NEXT: %[[VT:.*]] = hop.pipe.wait
// CHECK-NEXT: scf.for
// CHECK: hop.mma %{{.*}}, %[[VT]]
// CHECK: hop.pipe.release
// CHECK-NEXT: hop.pipe.release
// CHECK-NEXT: %[[A:.*]] = hop.pipe.wait %[[V:.*]] :
// CHECK-NEXT: hop.mma
// CHECK-NEXT: hop.pipe.release
// CHECK-NEXT: %[[B:.*]] = hop.pipe.wait %[[V]]
// CHECK-NEXT: hop.mma %{{.*}}, %[[B]]
hop.kernel @kept attributes {argument_names = ["x"], argument_types = [!X], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !X, %m: index):
  %q = hop.staging "q" : !T
  %k = hop.pipe.create "k" : !One
  %v = hop.pipe.create "v" : !One
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-remark @below {{its pipe has one slot, which is filled when the step before is done: products that do not need it go first}}
    %vt = hop.pipe.wait %v : !One -> !T
    %kt = hop.pipe.wait %k : !One -> !T
    // expected-note @below {{the first of them}}
    %s = hop.mma %q, %kt {transpose_b} : !T, !T -> !S
    %p = scf.for %i = %c0 to %m step %c1 iter_args(%old = %s) -> (!S) {
      %w = arith.truncf %old : !S to !P
      %n = hop.mma %w, %vt : !P, !T -> !S
      scf.yield %n : !S
    }
    hop.pipe.release %k, %kt : !One, !T
    hop.pipe.release %v, %vt : !One, !T
    %a = hop.pipe.wait %v : !One -> !T
    %t = hop.mma %q, %a {transpose_b} : !T, !T -> !S
    hop.pipe.release %v, %a : !One, !T
    %b = hop.pipe.wait %v : !One -> !T
    %u = hop.mma %q, %b {transpose_b} : !T, !T -> !S
    hop.pipe.release %v, %b : !One, !T
  }
}

// -----

!X = !tile.view<[M, 64], bf16>
!One = !hop.pipe<tensor<64x64xbf16>, 1>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!S = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xbf16, #hop.layout<accumulator>>

// What the kernel stores is loaded before: the wait orders the store behind the load.
// CHECK-LABEL: hop.kernel @stored
// CHECK: hop.role @consumer
// CHECK: %[[X:.*]] = hop.pipe.wait
// CHECK-NEXT: hop.mma
// CHECK: tile.store
// CHECK: hop.mma %{{.*}}, %[[X]]
hop.kernel @stored attributes {argument_names = ["x"], argument_types = [!X], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !X, %m: index):
  %q = hop.staging "q" : !T
  %p = hop.pipe.create "p" : !One
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %p, %x[%m, %c0] : !One, !X
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %xt = hop.pipe.wait %p : !One -> !T
    %s = hop.mma %q, %q {transpose_b} : !T, !T -> !S
    %t = arith.truncf %s : !S to !P
    tile.store %t, %x[%m, %c0] : !P, !X
    %r = hop.mma %t, %xt : !P, !T -> !S
    hop.pipe.release %p, %xt : !One, !T
  }
}

// -----

!X = !tile.view<[M, 64], bf16>
!Two = !hop.pipe<tensor<64x64xbf16>, 2>
!Rows = !hop.pipe<tensor<64xf32>, 2>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!RowSlot = !hop.shared<tensor<64xf32>, rows = 64>
!S = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xbf16, #hop.layout<accumulator>>
!Row = tensor<64xf32, #hop.layout<row>>

// A role that hands several tiles on waits late for tiles that copies load, whatever slots they have; not for those that threads write, nor where it hands one on.
// CHECK-LABEL: hop.kernel @hands_on
// CHECK-DAG: %[[K:.*]] = hop.pipe.create "k"
// CHECK-DAG: %[[V:.*]] = hop.pipe.create "v"
// CHECK-DAG: %[[G:.*]] = hop.pipe.create "g"
// CHECK: hop.role @maker
// CHECK: scf.for
// CHECK-NEXT: %[[KT:.*]] = hop.pipe.wait %[[K]]
// CHECK-NEXT: %[[GT:.*]] = hop.pipe.wait %[[G]]
// CHECK-NEXT: %[[S0:.*]] = hop.mma %{{.*}}, %[[KT]]
// CHECK-NEXT: %[[VT:.*]] = hop.pipe.wait %[[V]]
// CHECK-NEXT: %[[S1:.*]] = hop.mma %{{.*}}, %[[VT]] acc(%[[S0]]
// CHECK-NEXT: hop.mma %{{.*}}, %[[GT]] acc(%[[S1]]
// CHECK: scf.for
// CHECK-NEXT: hop.pipe.wait %[[K]]
// CHECK-NEXT: hop.pipe.wait %[[V]]
// CHECK-NEXT: hop.mma
hop.kernel @hands_on attributes {argument_names = ["x"], argument_types = [!X], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<placement = divided>} {
^bb0(%x: !X, %m: index):
  %q = hop.staging "q" : !T
  %k = hop.pipe.create "k" : !Two
  %v = hop.pipe.create "v" : !Two
  %g = hop.pipe.create "g" : !Two
  %rows = hop.pipe.create "rows" : !Rows
  %tiles = hop.pipe.create "tiles" : !Two
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %m step %c1 {
      hop.pipe.load %k, %x[%i, %c0] : !Two, !X
      hop.pipe.load %v, %x[%i, %c0] : !Two, !X
    }
  }
  hop.role @maker warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %m step %c1 {
      %kt = hop.pipe.wait %k : !Two -> !T
      // expected-remark @below {{others wait for what this role hands on: products that do not need the tile go first}}
      %vt = hop.pipe.wait %v : !Two -> !T
      %gt = hop.pipe.wait %g : !Two -> !T
      // expected-note @below {{the first of them}}
      %s0 = hop.mma %q, %kt : !T, !T -> !S
      %s1 = hop.mma %q, %vt acc(%s0 : !S) : !T, !T -> !S
      %s = hop.mma %q, %gt acc(%s1 : !S) : !T, !T -> !S
      %factor = tile.reduce max %s axis 1 : !S -> !Row
      %row = hop.pipe.acquire %rows : !Rows -> !RowSlot
      hop.stage %factor, %row : !Row, !RowSlot
      hop.warpgroup_sync
      hop.pipe.commit %rows, %row : !Rows, !RowSlot
      %p = arith.truncf %s : !S to !P
      %own = hop.pipe.acquire %tiles : !Two -> !T
      hop.stage %p, %own : !P, !T
      hop.warpgroup_sync
      hop.pipe.commit %tiles, %own : !Two, !T
      hop.pipe.release %k, %kt : !Two, !T
      hop.pipe.release %v, %vt : !Two, !T
      hop.pipe.release %g, %gt : !Two, !T
    }
    scf.for %i = %c0 to %m step %c1 {
      %kt = hop.pipe.wait %k : !Two -> !T
      %vt = hop.pipe.wait %v : !Two -> !T
      %s0 = hop.mma %q, %kt : !T, !T -> !S
      %s = hop.mma %q, %vt acc(%s0 : !S) : !T, !T -> !S
      %p = arith.truncf %s : !S to !P
      %own = hop.pipe.acquire %tiles : !Two -> !T
      hop.stage %p, %own : !P, !T
      hop.warpgroup_sync
      hop.pipe.commit %tiles, %own : !Two, !T
      hop.pipe.release %k, %kt : !Two, !T
      hop.pipe.release %v, %vt : !Two, !T
    }
  }
}
