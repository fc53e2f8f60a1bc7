// What has no form with rows as columns leaves all as it is, and a remark says what that is.
// RUN: tessera-opt %s --tile-exchange-axes --verify-diagnostics | FileCheck %s

// CHECK: tile.dot %{{.*}} : tensor<16x64xf16>, tensor<64x64xf16> -> tensor<16x64xf32>
tile.kernel @k(%a: !tile.view<[M, 64], f16>, %b: !tile.view<[64, 64], f16>, %c: !tile.view<[M], f32>) grid(%m = M ceildiv 16) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %row = arith.muli %m, %c16 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<16x64xf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %x = tile.dot %at, %bt : tensor<16x64xf16>, tensor<64x64xf16> -> tensor<16x64xf32>
  // expected-remark@+1 {{has no form with rows as columns, in which dots of few rows could be computed}}
  %all = tile.reduce_all sum %x : tensor<16x64xf32> -> f32
  tile.store %all, %c[%row] : f32, !tile.view<[M], f32>
}
