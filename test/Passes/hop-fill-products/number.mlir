// The number of the next tile is taken under the last product of this one.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-async-mma,hop-fill-products))' | FileCheck %s

!acc = tensor<64x64xf32, #hop.layout<accumulator>>
!slot = !hop.shared<tensor<64x64xbf16>, rows = 64>

// CHECK-LABEL: hop.kernel @number
// CHECK: hop.mma_issue
// CHECK-NEXT: hop.pipe.get
// CHECK-NEXT: hop.mma_wait
// CHECK-NOT: hop.pipe.get
hop.kernel @number attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %numbers = hop.pipe.create "tiles" : !hop.pipe<tensor<1xi32>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %s = hop.mma %k, %k {transpose_b} : !slot, !slot -> !acc
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    tile.store %s, %y[%m, %c0] : !acc, !tile.view<[M, 64], f32>
    %next = hop.pipe.get %numbers : !hop.pipe<tensor<1xi32>, 2>
  }
}

// The producer sends the number after the load of what the epilogue adds, for which it may wait: the number is not taken
// before that tile is.
// CHECK-LABEL: hop.kernel @later
// CHECK: hop.mma_issue
// CHECK-NOT: hop.pipe.get
// CHECK: tile.store
// CHECK-NEXT: hop.pipe.get
hop.kernel @later attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %cp = hop.pipe.create "c" : !hop.pipe<tensor<64x64xbf16>, 2>
  %numbers = hop.pipe.create "tiles" : !hop.pipe<tensor<1xi32>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %s = hop.mma %k, %k {transpose_b} : !slot, !slot -> !acc
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    %c = hop.pipe.wait %cp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    hop.pipe.release %cp, %c : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    tile.store %s, %y[%m, %c0] : !acc, !tile.view<[M, 64], f32>
    %next = hop.pipe.get %numbers : !hop.pipe<tensor<1xi32>, 2>
  }
}
