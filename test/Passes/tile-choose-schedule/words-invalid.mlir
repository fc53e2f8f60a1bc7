// Products of f32 as tf32 that the machine does not have, with what would work.
// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -verify-diagnostics

!X = !tile.view<[M, 64], f32>
tile.kernel @columns(%x: !X, %y: !tile.view<[64, 64], f32>, %z: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f32> -> tensor<64x64xf32>
  // expected-error@+1 {{a dot with precision tf32 reads loaded tiles along the contracted dimension, for wgmma transposes 16-bit elements alone; operand b is loaded with its columns innermost; store it the other way round and load it as the transpose of a tile that has its rows innermost, or use precision f16x3 or bf16x3}}
  %d = tile.dot %a, %b precision tf32 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !X
}

// -----

!X = !tile.view<[M, 64], f32>
tile.kernel @rows(%x: !tile.view<[64, M], f32>, %y: !tile.view<[64, 64], f32>, %z: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<[64, M], f32> -> tensor<64x64xf32>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f32> -> tensor<64x64xf32>
  %at = tile.transpose %a : tensor<64x64xf32> -> tensor<64x64xf32>
  %bt = tile.transpose %b : tensor<64x64xf32> -> tensor<64x64xf32>
  // expected-error@+1 {{operand a is loaded with its rows innermost; store it the other way round and load it as it is, or use precision f16x3 or bf16x3}}
  %d = tile.dot %at, %bt precision tf32 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !X
}

// -----

// What a converter writes has the order of what it reads.
!X = !tile.view<[M, 64], f32>
tile.kernel @converted(%x: !X, %y: !tile.view<[64, 64], bf16>, %z: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], bf16> -> tensor<64x64xbf16>
  %wide = arith.extf %b : tensor<64x64xbf16> to tensor<64x64xf32>
  // expected-error@+1 {{operand b is loaded with its columns innermost}}
  %d = tile.dot %a, %wide precision tf32 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !X
}

// -----

!X = !tile.view<[M, 64], f32>
tile.kernel @depth(%x: !X, %y: !tile.view<[64, 12], f32>, %z: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> tensor<64x12xf32>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 12], f32> -> tensor<64x12xf32>
  %bt = tile.transpose %b : tensor<64x12xf32> -> tensor<12x64xf32>
  // expected-error@+1 {{a dot of 32-bit elements contracts a multiple of 8 (wgmma k8); got 12; 16 would work}}
  %d = tile.dot %a, %bt precision tf32 : tensor<64x12xf32>, tensor<12x64xf32> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !X
}

// -----

// Copies of 16 bytes round nothing.
!X = !tile.view<[M, 64], f32>
tile.kernel @gathered(%x: !X, %y: !tile.view<[64, 64], f32>, %i: !tile.view<[N], i32>, %z: !tile.view<[N, 64], f32>) grid(%n = N ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %n, %c64 : index
  %numbers = tile.load %i[%row] : !tile.view<[N], i32> -> tensor<64xi32>
  // expected-error@+1 {{gathers an operand of a dot with precision tf32 by copies of 16 bytes, and bulk copies alone round on their way; use precision f16x3 or bf16x3, or rows in runs of 8 or more}}
  %a = tile.gather %x[%c0, %c0] rows %numbers : !X, tensor<64xi32> -> tensor<64x64xf32>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f32> -> tensor<64x64xf32>
  %bt = tile.transpose %b : tensor<64x64xf32> -> tensor<64x64xf32>
  %d = tile.dot %a, %bt precision tf32 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  tile.store %d, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[N, 64], f32>
}

// -----

// What a product has rounded no arithmetic may read.
!X = !tile.view<[M, 64], f32>
tile.kernel @other(%x: !X, %y: !tile.view<[64, 64], f32>, %z: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  // expected-error@+1 {{loads an operand of a dot with precision tf32, which is rounded on its way to shared memory; load it a second time for other uses}}
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f32> -> tensor<64x64xf32>
  %bt = tile.transpose %b : tensor<64x64xf32> -> tensor<64x64xf32>
  %d = tile.dot %a, %bt precision tf32 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  // expected-note@+1 {{is another use}}
  %e = arith.addf %d, %bt : tensor<64x64xf32>
  tile.store %e, %z[%m, %c0] : tensor<64x64xf32>, !X
}
