// Fragments of 8-bit elements in the layout of wgmma's A operand; everything else stays.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-convert-fp8-layouts))' | FileCheck %s

!Acc = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>
!Half = tensor<64x64xbf16, #hop.layout<accumulator>>

// CHECK-LABEL: hop.kernel @products
hop.kernel @products attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
  %w = hop.staging "w" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %x = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator8>>
    %p = arith.truncf %x : tensor<64x64xf32, #hop.layout<accumulator8>> to !P
    %h = arith.constant dense<1.0> : !Half
    // CHECK: %[[A:.*]] = hop.rearrange %{{.*}} : tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>> -> tensor<64x64xf8E4M3FN, #hop.layout<operand8>>
    // CHECK-NEXT: hop.mma %[[A]], %{{.*}} {transpose_b}
    %o = hop.mma %p, %v {transpose_b} : !P, !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> !Acc
    // CHECK-NOT: hop.rearrange
    %s = hop.mma %v, %v {transpose_b} : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>, !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> !Acc
    %t = hop.mma %h, %w : !Half, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !Acc
  }
}

// A second operand with the other dimension innermost, of two warpgroups: the slot is given back when it was transposed.
// CHECK-LABEL: hop.kernel @transposed
// CHECK: %[[ALL:.*]] = hop.staging "transposed" : !hop.shared<tensor<256x64xf8E4M3FN>, rows = 256>
// CHECK: ^bb0(%[[WG:.*]]: index):
// CHECK-NEXT: %[[OWN:.*]] = hop.slice %[[ALL]][%[[WG]]] : {{.*}} -> !hop.shared<tensor<128x64xf8E4M3FN>, rows = 256>
hop.kernel @transposed attributes {argument_names = ["v"], argument_types = [!tile.view<[N, 128], f8E4M3FN>],
    grid = [#tile.grid_dim<1, 1>], schedule = #tile.schedule<>} {
^bb0(%view: !tile.view<[N, 128], f8E4M3FN>, %m: index):
  %pipe = hop.pipe.create "v" : !hop.pipe<tensor<64x128xf8E4M3FN>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %pipe, %view[%m, %m] : !hop.pipe<tensor<64x128xf8E4M3FN>, 2>, !tile.view<[N, 128], f8E4M3FN>
  }
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %x = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator8>>
    %p = arith.truncf %x : tensor<64x64xf32, #hop.layout<accumulator8>> to !P
    // CHECK: %[[V:.*]] = hop.pipe.wait
    %v = hop.pipe.wait %pipe : !hop.pipe<tensor<64x128xf8E4M3FN>, 2> -> !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
    // CHECK-NEXT: hop.transpose %[[V]], %[[OWN]]
    // CHECK-NEXT: hop.warpgroup_sync
    // CHECK-NEXT: hop.pipe.release %{{.*}}, %[[V]]
    // CHECK-NEXT: hop.mma %{{.*}}, %[[OWN]] {in_accumulator_order, transpose_b} : tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>
    %o = hop.mma %p, %v : !P, !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64> -> tensor<64x128xf32, #hop.layout<accumulator>>
    hop.pipe.release %pipe, %v : !hop.pipe<tensor<64x128xf8E4M3FN>, 2>, !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
  }
}
