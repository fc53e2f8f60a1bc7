// What has no form with rows as columns leaves all as it is, and a remark says what that is.
// RUN: tessera-opt %s --tile-exchange-axes -split-input-file --verify-diagnostics | FileCheck %s

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

// -----

// A product of other columns reads the tile as it is.
// CHECK: tile.dot %{{.*}} : tensor<16x64xf16>, tensor<64x64xf16> -> tensor<16x64xf32>
// CHECK: tile.dot %{{.*}} : tensor<16x64xf16>, tensor<64x32xf16> -> tensor<16x32xf32>
tile.kernel @two(%a: !tile.view<[M, 64], f16>, %b: !tile.view<[64, 64], f16>, %c: !tile.view<[M, 32], f32>) grid(%m = M ceildiv 16) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %row = arith.muli %m, %c16 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<16x64xf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %x = tile.dot %at, %bt : tensor<16x64xf16>, tensor<64x64xf16> -> tensor<16x64xf32>
  %h = arith.truncf %x : tensor<16x64xf32> to tensor<16x64xf16>
  %half = tile.load %b[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x32xf16>
  // expected-remark@+1 {{has no form with rows as columns, in which dots of few rows could be computed}}
  %y = tile.dot %h, %half : tensor<16x64xf16>, tensor<64x32xf16> -> tensor<16x32xf32>
  tile.store %y, %c[%row, %c0] : tensor<16x32xf32>, !tile.view<[M, 32], f32>
}

// -----

// So does what is transposed for a product of more rows.
// CHECK: tile.dot %{{.*}} : tensor<16x64xf16>, tensor<64x64xf16> -> tensor<16x64xf32>
tile.kernel @turned(%a: !tile.view<[M, 64], f16>, %b: !tile.view<[64, 64], f16>, %c: !tile.view<[64, 64], f32>) grid(%m = M ceildiv 16) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %row = arith.muli %m, %c16 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<16x64xf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %x = tile.dot %at, %bt : tensor<16x64xf16>, tensor<64x64xf16> -> tensor<16x64xf32>
  %h = arith.truncf %x : tensor<16x64xf32> to tensor<16x64xf16>
  // expected-remark@+1 {{has no form with rows as columns, in which dots of few rows could be computed}}
  %t = tile.transpose %h : tensor<16x64xf16> -> tensor<64x16xf16>
  %y = tile.dot %t, %at : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>
  tile.store %y, %c[%c0, %c0] add : tensor<64x64xf32>, !tile.view<[64, 64], f32>
}
