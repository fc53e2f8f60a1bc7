// Loads into single slots go behind those of pipes with more, in loops of roles of one thread.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-order-slots))' -split-input-file -verify-diagnostics | FileCheck %s

!X = !tile.view<[M, 64], bf16>
!L = !tile.view<[H, M], f32>
!One = !hop.pipe<tensor<64x64xbf16>, 1>
!Two = !hop.pipe<tensor<64x64xbf16>, 2>
!Row = !hop.pipe<tensor<64xf32>, 2>

// CHECK-LABEL: hop.kernel @ordered
// CHECK-DAG: %[[Q:.*]] = hop.pipe.create "q"
// CHECK-DAG: %[[DO:.*]] = hop.pipe.create "do"
// CHECK-DAG: %[[V:.*]] = hop.pipe.create "v"
// CHECK-DAG: %[[L:.*]] = hop.pipe.create "l"
// CHECK: hop.pipe.load %[[DO]]
// CHECK-NEXT: hop.pipe.load %[[Q]]
// CHECK-NEXT: scf.for
// CHECK-NEXT: hop.pipe.load %[[Q]]
// CHECK-NEXT: %[[ROW:.*]] = arith.muli
// CHECK-NEXT: hop.pipe.load %[[L]], %{{.*}}[%{{.*}}, %[[ROW]]]
// CHECK-NEXT: hop.pipe.load %[[DO]]
// CHECK-NEXT: hop.pipe.load %[[V]]
// CHECK-NEXT: }
hop.kernel @ordered attributes {argument_names = ["x", "l"], argument_types = [!X, !L], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !X, %lse: !L, %m: index):
  %q = hop.pipe.create "q" : !Two
  %do = hop.pipe.create "do" : !One
  %v = hop.pipe.create "v" : !One
  %l = hop.pipe.create "l" : !Row
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    // Outside of loops no slot is given back.
    hop.pipe.load %do, %x[%c0, %c0] : !One, !X
    hop.pipe.load %q, %x[%c0, %c0] : !Two, !X
    scf.for %i = %c0 to %m step %c1 {
      hop.pipe.load %q, %x[%i, %c0] : !Two, !X
      // expected-remark @below {{has one slot, which the step before gives back: loads that need not wait for that go first}}
      hop.pipe.load %do, %x[%i, %c0] : !One, !X
      // expected-remark @below {{has one slot, which the step before gives back: loads that need not wait for that go first}}
      hop.pipe.load %v, %x[%i, %c0] : !One, !X
      %row = arith.muli %i, %c64 : index
      // expected-note @below {{the last of them}}
      hop.pipe.load %l, %lse[%c0, %row] : !Row, !L
    }
  }
}

// -----

!X = !tile.view<[M, 64], bf16>
!One = !hop.pipe<tensor<64x64xbf16>, 1>
!Two = !hop.pipe<tensor<64x64xbf16>, 2>
!Number = !hop.pipe<tensor<1xi32>, 2>

// What a step fills more often than it has slots waits for the step itself, and what waits for more than slots, as a number
// from elsewhere, is not passed.
// CHECK-LABEL: hop.kernel @kept
// CHECK-DAG: %[[Q:.*]] = hop.pipe.create "q"
// CHECK-DAG: %[[DO:.*]] = hop.pipe.create "do"
// CHECK-DAG: %[[R:.*]] = hop.pipe.create "r"
// CHECK: scf.for
// CHECK-NEXT: hop.pipe.load %[[DO]]
// CHECK-NEXT: hop.pipe.load %[[Q]]
// CHECK-NEXT: hop.pipe.load %[[Q]]
// CHECK-NEXT: hop.pipe.load %[[Q]]
// CHECK-NEXT: hop.pipe.load %[[R]]
// CHECK: scf.for
// CHECK-NEXT: hop.pipe.load %[[DO]]
// CHECK-NEXT: hop.pipe.get
// CHECK-NEXT: arith.index_cast
// CHECK-NEXT: hop.pipe.load %[[Q]]
// CHECK: scf.for
// CHECK: scf.for
// CHECK: hop.pipe.load %[[Q]]
// CHECK: hop.pipe.load %[[DO]]
// CHECK-NEXT: hop.pipe.load %[[Q]]
hop.kernel @kept attributes {argument_names = ["x"], argument_types = [!X], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !X, %m: index):
  %q = hop.pipe.create "q" : !Two
  %do = hop.pipe.create "do" : !One
  %r = hop.pipe.create "r" : !Two
  %n = hop.pipe.create "n" : !Number
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %m step %c1 {
      hop.pipe.load %do, %x[%i, %c0] : !One, !X
      hop.pipe.load %q, %x[%i, %c0] : !Two, !X
      hop.pipe.load %q, %x[%i, %c0] : !Two, !X
      hop.pipe.load %q, %x[%i, %c0] : !Two, !X
      hop.pipe.load %r, %x[%i, %c0] : !Two, !X
    }
    scf.for %i = %c0 to %m step %c1 {
      hop.pipe.load %do, %x[%i, %c0] : !One, !X
      %number = hop.pipe.get %n : !Number
      %row = arith.index_cast %number : i32 to index
      hop.pipe.load %q, %x[%row, %c0] : !Two, !X
    }
    // A loop of the step fills the pipe before.
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %c0 to %i step %c1 {
        hop.pipe.load %q, %x[%j, %c0] : !Two, !X
      }
      hop.pipe.load %do, %x[%i, %c0] : !One, !X
      hop.pipe.load %q, %x[%i, %c0] : !Two, !X
    }
  }
}
