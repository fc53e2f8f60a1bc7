// Products of 8 bits that the machine does not have, with what would work.
// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -verify-diagnostics

tile.kernel @bytes_of_columns(%x: !tile.view<[M, 64], f8E4M3FN>, %y: !tile.view<[64, 64], f8E4M3FN>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  // expected-error@+1 {{a dot of two loaded tiles of 8-bit elements reads both along the contracted dimension, for wgmma transposes 16-bit ones alone; operand b is loaded with its columns innermost; store it the other way round and load it as the transpose of a tile that has its rows innermost}}
  %d = tile.dot %a, %b : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @bytes_of_rows(%x: !tile.view<[64, M], f8E5M2>, %y: !tile.view<[64, 64], f8E5M2>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<[64, M], f8E5M2> -> tensor<64x64xf8E5M2>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f8E5M2> -> tensor<64x64xf8E5M2>
  %at = tile.transpose %a : tensor<64x64xf8E5M2> -> tensor<64x64xf8E5M2>
  %bt = tile.transpose %b : tensor<64x64xf8E5M2> -> tensor<64x64xf8E5M2>
  // expected-error@+1 {{operand a is loaded with its rows innermost; store it the other way round and load it as it is}}
  %d = tile.dot %at, %bt : tensor<64x64xf8E5M2>, tensor<64x64xf8E5M2> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @bytes_depth(%x: !tile.view<[M, 48], f8E4M3FN>, %y: !tile.view<[64, 48], f8E4M3FN>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 48], f8E4M3FN> -> tensor<64x48xf8E4M3FN>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 48], f8E4M3FN> -> tensor<64x48xf8E4M3FN>
  %bt = tile.transpose %b : tensor<64x48xf8E4M3FN> -> tensor<48x64xf8E4M3FN>
  // expected-error@+1 {{a dot of 8-bit elements contracts a multiple of 32 (wgmma k32); got 48; 64 would work}}
  %d = tile.dot %a, %bt : tensor<64x48xf8E4M3FN>, tensor<48x64xf8E4M3FN> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @bytes_columns(%x: !tile.view<[M, 64], f8E4M3FN>, %y: !tile.view<[64, 48], f8E4M3FN>, %z: !tile.view<[M, 48], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = arith.constant dense<1.0> : tensor<64x64xf8E4M3FN>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 48], f8E4M3FN> -> tensor<64x48xf8E4M3FN>
  // expected-error@+1 {{transposes operand b of 8-bit elements 32 columns at a time; got 48; 64 would work}}
  %d = tile.dot %a, %b : tensor<64x64xf8E4M3FN>, tensor<64x48xf8E4M3FN> -> tensor<64x48xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x48xf32>, !tile.view<[M, 48], f32>
}

// -----

tile.kernel @bytes_computed(%x: !tile.view<[64, M], f32>, %y: !tile.view<[64, 64], f8E4M3FN>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<[64, M], f32> -> tensor<64x64xf32>
  %r = arith.truncf %a : tensor<64x64xf32> to tensor<64x64xf8E4M3FN>
  %t = tile.transpose %r : tensor<64x64xf8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  // expected-error@+1 {{transposes a computed tile of 8-bit elements, and computed operands go through shared memory with 16-bit ones alone; round to 16 bits, or compute the transposed tile}}
  %d = tile.dot %t, %b : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
