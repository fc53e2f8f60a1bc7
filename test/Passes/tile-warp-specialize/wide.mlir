// The pipe of a wide load says so in the type of its tiles, and so does what is taken of them.
//
// RUN: tessera-opt %s --tile-warp-specialize -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: hop.pipe.create "a" : !hop.pipe<tensor<128x96xbf16, #tile.wide>, 2>
// CHECK: hop.pipe.create "b" : !hop.pipe<tensor<64x96xbf16, #tile.wide>, 1>
// CHECK: hop.slice %{{.*}} : !hop.shared<tensor<128x96xbf16, #tile.wide>, rows = 128> -> !hop.shared<tensor<64x96xbf16, #tile.wide>, rows = 128>
tile.kernel @product(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[N, K], bf16>, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 128) requires(K <= 96) schedule #tile.schedule<producer = operands, consumers = 2, stages = 1, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = static, order = linear, section = 2, cluster = 1, producer_registers = 24, consumer_registers = 104, placement = rows, transpose = 0, work = tiles> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %0 = arith.muli %m, %c128 : index
  %1 = tile.load %a[%0, %c0] pipe 0 wide : !tile.view<[M, K], bf16> -> tensor<128x96xbf16>
  %2 = tile.load %b[%c0, %c0] pipe 1 wide : !tile.view<[N, K], bf16> -> tensor<64x96xbf16>
  %3 = tile.transpose %2 : tensor<64x96xbf16> -> tensor<96x64xbf16>
  %4 = tile.dot %1, %3 : tensor<128x96xbf16>, tensor<96x64xbf16> -> tensor<128x64xf32>
  tile.store %4, %c[%0, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @mixed(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[N, K], bf16>, %c: !tile.view<[M, 128], f32>) grid(%m = M ceildiv 128) requires(K <= 96) schedule #tile.schedule<producer = operands, consumers = 2, stages = 1, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = static, order = linear, section = 2, cluster = 1, producer_registers = 24, consumer_registers = 104, placement = rows, transpose = 0, work = tiles> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %0 = arith.muli %m, %c128 : index
  %1 = tile.load %a[%0, %c0] pipe 0 wide : !tile.view<[M, K], bf16> -> tensor<128x96xbf16>
  // expected-error@+1 {{shares a pipe with loads of 'tensor<128x96xbf16, #tile.wide>', but loads 'tensor<128x96xbf16>'}}
  %2 = tile.load %b[%c0, %c0] pipe 0 : !tile.view<[N, K], bf16> -> tensor<128x96xbf16>
  %3 = tile.transpose %2 : tensor<128x96xbf16> -> tensor<96x128xbf16>
  %4 = tile.dot %1, %3 : tensor<128x96xbf16>, tensor<96x128xbf16> -> tensor<128x128xf32>
  tile.store %4, %c[%0, %c0] : tensor<128x128xf32>, !tile.view<[M, 128], f32>
}
