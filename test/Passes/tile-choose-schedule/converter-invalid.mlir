// Schedules without a role that converts operands b on their way.
// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -verify-diagnostics

// 256 columns want more registers at entry than a thread of four warpgroups has.
!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 256], f8E4M3FN>
// expected-error@+5 {{no schedule of this kernel fits the machine}}
// expected-note@+4 {{the kernel has no loop with dots}}
// expected-note@+3 {{ptxas wants 154 registers for the widest dot, and with 4 warpgroups a thread starts with 128}}
// expected-note@+2 {{operand b of a dot is converted on its way, by a role that gets tiles from a producer; use producer = operands}}
// expected-note@+1 {{smaller tiles are needed}}
tile.kernel @registers(%x: !X, %y: !B, %z: !tile.view<[M, 256], f32>) grid(%m = M ceildiv 128)
    schedule #tile.schedule<consumers = 2> {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> tensor<128x64xf16>
  %b8 = tile.load %y[%c0, %c0] : !B -> tensor<64x256xf8E4M3FN>
  %b = arith.extf %b8 : tensor<64x256xf8E4M3FN> to tensor<64x256xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x256xf16> -> tensor<128x256xf32>
  tile.store %d, %z[%m, %c0] : tensor<128x256xf32>, !tile.view<[M, 256], f32>
}

// -----

// No producer.
!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 64], f8E4M3FN>
// expected-error@+4 {{no schedule of this kernel fits the machine}}
// expected-note@+3 {{the kernel has no loop with dots}}
// expected-note@+2 {{operand b of a dot is converted on its way, by a role that gets tiles from a producer; use producer = operands}}
// expected-note@+1 {{this would work}}
tile.kernel @no_producer(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64)
    schedule #tile.schedule<producer = none> {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> tensor<64x64xf16>
  %b8 = tile.load %y[%c0, %c0] : !B -> tensor<64x64xf8E4M3FN>
  %b = arith.extf %b8 : tensor<64x64xf8E4M3FN> to tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// 128 threads share no 40 rows, and those who multiply hold multiples of 64.
!X = !tile.view<[M, 64], f16>
!B = !tile.view<[40, 64], f32>
!T = tensor<64x64xf16>
tile.kernel @rows(%x: !X, %y: !B, %z: !tile.view<[M, 40], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b32 = tile.load %y[%c0, %c0] : !B -> tensor<40x64xf32>
  %e = math.exp %b32 : tensor<40x64xf32>
  // expected-note@+1 {{128 threads that take tiles from shared memory cannot share 40x64 ones; multiples of 32 rows and 32 columns would work}}
  %b = arith.truncf %e : tensor<40x64xf32> to tensor<40x64xf16>
  %bt = tile.transpose %b : tensor<40x64xf16> -> tensor<64x40xf16>
  // expected-remark@+2 {{operand b is computed by those who multiply it, and goes through shared memory}}
  // expected-error@+1 {{computes operand b in registers, which hold multiples of 64 rows of a tile; got 40x64; 64x64 would work}}
  %d = tile.dot %a, %bt : !T, tensor<64x40xf16> -> tensor<64x40xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x40xf32>, !tile.view<[M, 40], f32>
}
