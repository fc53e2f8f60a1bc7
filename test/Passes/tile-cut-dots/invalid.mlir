// RUN: tessera-opt %s --tile-cut-dots -split-input-file -verify-diagnostics

// What is multiplied along its columns is needed along its rows too.
tile.kernel @both(%a: !tile.view<[M, 512], bf16>, %o: !tile.view<[M, 512], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %at = tile.load %a[%m, %c0] : !tile.view<[M, 512], bf16> -> tensor<512x512xbf16>
  %t = tile.transpose %at : tensor<512x512xbf16> -> tensor<512x512xbf16>
  // expected-error@+1 {{reads a tile along its rows that other dots need in 2 parts along its columns, as dots have accumulators of more than 256 columns; load it a second time, or write the dots with accumulators of up to 256 columns}}
  %d = tile.dot %at, %t : tensor<512x512xbf16>, tensor<512x512xbf16> -> tensor<512x512xf32>
  tile.store %d, %o[%m, %c0] : tensor<512x512xf32>, !tile.view<[M, 512], f32>
}

// -----

tile.kernel @odd(%a: !tile.view<[M, 64], bf16>, %b: !tile.view<[64, 520], bf16>, %o: !tile.view<[M, 520], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %at = tile.load %a[%m, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 520], bf16> -> tensor<64x520xbf16>
  // expected-error@+1 {{is cut into 3 parts of a multiple of 8 along its columns, and has 520 of them, as dots have accumulators of more than 256 columns; write the dots}}
  %d = tile.dot %at, %bt : tensor<64x64xbf16>, tensor<64x520xbf16> -> tensor<64x520xf32>
  tile.store %d, %o[%m, %c0] : tensor<64x520xf32>, !tile.view<[M, 520], f32>
}

// -----

tile.kernel @scan(%a: !tile.view<[M, 64], bf16>, %b: !tile.view<[64, 512], bf16>, %o: !tile.view<[1], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %at = tile.load %a[%m, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 512], bf16> -> tensor<64x512xbf16>
  %d = tile.dot %at, %bt : tensor<64x64xbf16>, tensor<64x512xbf16> -> tensor<64x512xf32>
  // expected-error@+1 {{has a tile that is needed in 2 parts, as dots have accumulators of more than 256 columns, and makes no parts of it; write the dots with accumulators of up to 256 columns}}
  %s = tile.reduce_all sum %d : tensor<64x512xf32> -> f32
  tile.store %s, %o[%c0] : f32, !tile.view<[1], f32>
}

// -----

tile.kernel @named(%a: !tile.view<[M, 64], bf16>, %list: !tile.view<[512], i32>, %b: !tile.view<[N, 64], bf16>,
    %o: !tile.view<[M, 512], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %rows = tile.load %list[%c0] : !tile.view<[512], i32> -> tensor<512xi32>
  %at = tile.load %a[%m, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  // expected-error@+1 {{has a tile that is needed in 2 parts, as dots have accumulators of more than 256 columns, and makes no parts of it}}
  %bt = tile.gather %b[%c0, %c0] rows %rows : !tile.view<[N, 64], bf16>, tensor<512xi32> -> tensor<512x64xbf16>
  %t = tile.transpose %bt : tensor<512x64xbf16> -> tensor<64x512xbf16>
  %d = tile.dot %at, %t : tensor<64x64xbf16>, tensor<64x512xbf16> -> tensor<64x512xf32>
  tile.store %d, %o[%m, %c0] : tensor<64x512xf32>, !tile.view<[M, 512], f32>
}
