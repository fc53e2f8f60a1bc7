// Loads that stay where they are, and why.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-prefetch))' -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: hop.kernel @one_slot
// CHECK: scf.for
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: hop.pipe.load
hop.kernel @one_slot attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<producer = none>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %e = hop.elected %wg
    scf.for %j = %c0 to %m step %c1 {
      scf.if %e {
        // expected-remark@+1 {{not prefetched: all slots of the pipe are in use; raise stages}}
        hop.pipe.load %p, %x[%j, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
      }
      %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
  }
}

// CHECK-LABEL: hop.kernel @condition
// CHECK: scf.for
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: hop.pipe.load
hop.kernel @condition attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<producer = none>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 4>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %e = hop.elected %wg
    scf.for %j = %c0 to %m step %c1 {
      %odd = arith.cmpi ne, %j, %c1 : index
      %loads = arith.andi %e, %odd : i1
      scf.if %loads {
        // expected-remark@+1 {{not prefetched: the elected thread loads under one more condition}}
        hop.pipe.load %p, %x[%j, %c0] : !hop.pipe<tensor<64x64xbf16>, 4>, !tile.view<[M, 64], bf16>
      }
      %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 4> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 4>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
  }
}

// CHECK-LABEL: hop.kernel @two_loads
hop.kernel @two_loads attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<producer = none>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 4>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %e = hop.elected %wg
    scf.for %j = %c0 to %m step %c1 {
      scf.if %e {
        // expected-remark@+1 {{not prefetched: the loop loads into this pipe more than once}}
        hop.pipe.load %p, %x[%j, %c0] : !hop.pipe<tensor<64x64xbf16>, 4>, !tile.view<[M, 64], bf16>
        // expected-remark@+1 {{not prefetched: the loop loads into this pipe more than once}}
        hop.pipe.load %p, %x[%c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 4>, !tile.view<[M, 64], bf16>
      }
      %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 4> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 4>, !hop.shared<tensor<64x64xbf16>, rows = 64>
      %u = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 4> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.pipe.release %p, %u : !hop.pipe<tensor<64x64xbf16>, 4>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
  }
}

// CHECK-LABEL: hop.kernel @address
// CHECK: scf.for
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: hop.pipe.load
hop.kernel @address attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<producer = none>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[M], f32>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %e = hop.elected %wg
    scf.for %j = %c0 to %m step %c1 {
      %f = tile.load %y[%j] : !tile.view<[M], f32> -> f32
      %i = arith.fptosi %f : f32 to i32
      %row = arith.index_cast %i : i32 to index
      scf.if %e {
        // expected-remark@+1 {{not prefetched: its address takes more than index arithmetic on the induction variable}}
        hop.pipe.load %p, %x[%row, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
      }
      %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
  }
}
