// Waits, and the tiles that are complete before them.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-pin-work))' --split-input-file | FileCheck %s

!acc = tensor<64x64xf32, #hop.layout<accumulator>>
!packed = tensor<64x64xbf16, #hop.layout<accumulator>>
!partial = tensor<64xf32, #hop.layout<row_partial>>

// The sum is computed from the weights, so that one stands for both; what nobody reads behind the wait does not count,
// nor does what is computed without the first product.
// CHECK-LABEL: hop.kernel @softmax
hop.kernel @softmax attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], f32>, !tile.view<[M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<work = pinned>} {
^bb0(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[M], f32>, %m: index):
  %pipe = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %zero = arith.constant dense<0.0> : !acc
    %weights = arith.constant dense<1.0> : !packed
    %none = arith.constant dense<0.0> : !partial
    %t = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %weights, %t : !packed, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<!acc>
    %g = hop.mma_issue %weights, %t acc(%zero : !acc) : !packed, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<!acc>
    // CHECK: hop.mma_wait %{{.*}} pending 1
    %s = hop.mma_wait %f pending 1 : !hop.flight<!acc> -> !acc
    %p = math.exp2 %s : !acc
    %sum = tile.reduce sum %p axis 1 : !acc -> !partial
    // CHECK: %[[TOTAL:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<64xf32
    %total = arith.addf %none, %sum : !partial
    %unread = arith.mulf %s, %s : !acc
    // CHECK: arith.mulf
    // CHECK: %[[ELSE:.*]] = arith.mulf
    %else = arith.mulf %s, %zero : !acc
    %apart = arith.addf %none, %none : !partial
    // CHECK: hop.mma_wait %{{.*}} behind %[[TOTAL]], %[[ELSE]] pending 0
    %o = hop.mma_wait %g pending 0 : !hop.flight<!acc> -> !acc
    %sum_o = arith.addf %o, %p : !acc
    %sum_p = arith.addf %sum_o, %else : !acc
    tile.store %sum_p, %x[%m, %m] : !acc, !tile.view<[M, 64], f32>
    %l = arith.addf %total, %apart : !partial
    %row = hop.convert_layout sum %l : !partial -> tensor<64xf32, #hop.layout<row>>
    tile.store %row, %y[%m] : tensor<64xf32, #hop.layout<row>>, !tile.view<[M], f32>
  }
}

// A product that is issued after the work does not run under it. Without the field nothing is pinned.
// CHECK-LABEL: hop.kernel @later
// CHECK-NOT: behind
hop.kernel @later attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], f32>, !tile.view<[M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<work = pinned>} {
^bb0(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[M], f32>, %m: index):
  %pipe = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %weights = arith.constant dense<1.0> : !packed
    %t = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %weights, %t : !packed, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<!acc>
    %s = hop.mma_wait %f pending 0 : !hop.flight<!acc> -> !acc
    %p = math.exp2 %s : !acc
    %g = hop.mma_issue %weights, %t : !packed, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<!acc>
    %o = hop.mma_wait %g pending 0 : !hop.flight<!acc> -> !acc
    %sum = arith.addf %o, %p : !acc
    tile.store %sum, %x[%m, %m] : !acc, !tile.view<[M, 64], f32>
  }
}

// CHECK-LABEL: hop.kernel @free
// CHECK-NOT: behind
hop.kernel @free attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], f32>, !tile.view<[M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<work = tiles>} {
^bb0(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[M], f32>, %m: index):
  %pipe = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %weights = arith.constant dense<1.0> : !packed
    %t = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %weights, %t : !packed, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<!acc>
    %g = hop.mma_issue %weights, %t : !packed, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<!acc>
    %s = hop.mma_wait %f pending 1 : !hop.flight<!acc> -> !acc
    %p = math.exp2 %s : !acc
    %o = hop.mma_wait %g pending 0 : !hop.flight<!acc> -> !acc
    %sum = arith.addf %o, %p : !acc
    tile.store %sum, %x[%m, %m] : !acc, !tile.view<[M, 64], f32>
  }
}
