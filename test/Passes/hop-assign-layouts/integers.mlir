// Integers that become elements of 8 bits, or are made of such, are f32 in between, where layouts change.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-assign-layouts))' | FileCheck %s

// CHECK-LABEL: hop.kernel @k
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], f8E4M3FN>, !tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f8E4M3FN>, %y: !tile.view<[M, 64], bf16>, %m: index):
  %pipe = hop.pipe.create "b" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %ab = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %product = hop.mma %ab, %ab : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
    hop.pipe.release %pipe, %ab : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %c0 = arith.constant 0 : index
    %i = tile.iota %m axis 1 : tensor<64x64xi32>
    // CHECK: %[[F:.*]] = arith.sitofp {{.*}} to tensor<64x64xf32, #hop.layout<accumulator>>
    // CHECK-NEXT: %[[R:.*]] = hop.rearrange %[[F]] {{.*}} -> tensor<64x64xf32, #hop.layout<accumulator8>>
    // CHECK-NEXT: arith.truncf %[[R]] {{.*}} to tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>
    %bytes = arith.sitofp %i : tensor<64x64xi32> to tensor<64x64xf8E4M3FN>
    tile.store %bytes, %x[%m, %c0] : tensor<64x64xf8E4M3FN>, !tile.view<[M, 64], f8E4M3FN>
    // CHECK: %[[W:.*]] = arith.extf {{.*}} to tensor<64x64xf32, #hop.layout<accumulator8>>
    // CHECK-NEXT: %[[I:.*]] = hop.rearrange %[[W]] {{.*}} -> tensor<64x64xf32, #hop.layout<accumulator>>
    // CHECK-NEXT: arith.fptosi %[[I]] {{.*}} to tensor<64x64xi32, #hop.layout<accumulator>>
    %loaded = tile.load %x[%m, %c0] : !tile.view<[M, 64], f8E4M3FN> -> tensor<64x64xf8E4M3FN>
    %j = arith.fptosi %loaded : tensor<64x64xf8E4M3FN> to tensor<64x64xi32>
    // CHECK: arith.uitofp {{.*}} to tensor<64x64xbf16, #hop.layout<accumulator>>
    %halves = arith.uitofp %j : tensor<64x64xi32> to tensor<64x64xbf16>
    tile.store %halves, %y[%m, %c0] : tensor<64x64xbf16>, !tile.view<[M, 64], bf16>
  }
}
