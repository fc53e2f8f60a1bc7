// Operands b that no role converts on their way, and schedules without such a role.
// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -verify-diagnostics

!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 64], f8E4M3FN>
!T = tensor<64x64xf16>
!T8 = tensor<64x64xf8E4M3FN>
!S = tensor<64x64xf32>
tile.kernel @of_a_dot(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b8 = tile.load %y[%c0, %c0] : !B -> !T8
  %b32 = arith.extf %b8 : !T8 to !S
  // Of several obstacles the dot is told.
  %i = tile.iota %c0 axis 0 : tensor<64x64xi32>
  %j = tile.iota %c0 axis 1 : tensor<64x64xi32>
  %below = arith.cmpi slt, %j, %i : tensor<64x64xi32>
  // expected-note@+1 {{is the result of a dot, for which no converter waits}}
  %s = tile.dot %a, %a : !T, !T -> !S
  %sum = arith.select %below, %b32, %s : tensor<64x64xi1>, !S
  %b = arith.truncf %sum : !S to !T
  // expected-error@+1 {{this one is computed, and not of one loaded tile and numbers, element by element}}
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}

// -----

!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 64], f8E4M3FN>
!T = tensor<64x64xf16>
!T8 = tensor<64x64xf8E4M3FN>
!S = tensor<64x64xf32>
tile.kernel @of_two(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b8 = tile.load %y[%c0, %c0] : !B -> !T8
  // expected-note@+1 {{is the second loaded tile}}
  %c8 = tile.load %y[%c64, %c0] : !B -> !T8
  %b32 = arith.extf %b8 : !T8 to !S
  %c32 = arith.extf %c8 : !T8 to !S
  %sum = arith.addf %b32, %c32 : !S
  %b = arith.truncf %sum : !S to !T
  // expected-error@+1 {{this one is computed, and not of one loaded tile and numbers, element by element}}
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}

// -----

!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 64], f8E4M3FN>
!T = tensor<64x64xf16>
!T8 = tensor<64x64xf8E4M3FN>
!S = tensor<64x64xf32>
tile.kernel @transposed_before(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b8 = tile.load %y[%c0, %c0] : !B -> !T8
  // expected-note@+1 {{is transposed before it is converted; transpose what is converted}}
  %t8 = tile.transpose %b8 : !T8 -> !T8
  %b = arith.extf %t8 : !T8 to !T
  // expected-error@+1 {{this one is computed, and not of one loaded tile and numbers, element by element}}
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}

// -----

!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 64], f8E4M3FN>
!T = tensor<64x64xf16>
!T8 = tensor<64x64xf8E4M3FN>
!S = tensor<64x64xf32>
tile.kernel @stored_too(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>, %w: !tile.view<[64, 64], f16>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b8 = tile.load %y[%c0, %c0] : !B -> !T8
  // expected-note@+1 {{is read by other operations than dots; load and compute it again for them}}
  %b = arith.extf %b8 : !T8 to !T
  // expected-error@+1 {{this one is computed, and not of one loaded tile and numbers, element by element}}
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
  tile.store %b, %w[%c0, %c0] : !T, !tile.view<[64, 64], f16>
}

// -----

// No swizzle has rows of 48 bytes.
!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 48], f8E4M3FN>
!T = tensor<64x64xf16>
tile.kernel @columns(%x: !X, %y: !B, %z: !tile.view<[M, 48], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  // expected-note@+1 {{goes through shared memory, where its rows are a multiple of 32 bytes and their number one of 8}}
  %b8 = tile.load %y[%c0, %c0] : !B -> tensor<64x48xf8E4M3FN>
  %b = arith.extf %b8 : tensor<64x48xf8E4M3FN> to tensor<64x48xf16>
  // expected-error@+1 {{this one is computed, and not of one loaded tile and numbers, element by element}}
  %d = tile.dot %a, %b : !T, tensor<64x48xf16> -> tensor<64x48xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x48xf32>, !tile.view<[M, 48], f32>
}

// -----

// 256 columns want more registers at entry than a thread of four warpgroups has.
!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 256], f8E4M3FN>
// expected-error@+5 {{no schedule of this kernel fits the machine}}
// expected-note@+4 {{the kernel has no loop with dots}}
// expected-note@+3 {{ptxas wants 154 registers for the widest dot, and with 4 warpgroups a thread starts with 128}}
// expected-note@+2 {{operand b of a dot is converted on its way, by a role that gets tiles from a producer; use warp_specialize = true}}
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
// expected-note@+2 {{operand b of a dot is converted on its way, by a role that gets tiles from a producer; use warp_specialize = true}}
// expected-note@+1 {{this would work}}
tile.kernel @no_producer(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64)
    schedule #tile.schedule<warp_specialize = false> {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> tensor<64x64xf16>
  %b8 = tile.load %y[%c0, %c0] : !B -> tensor<64x64xf8E4M3FN>
  %b = arith.extf %b8 : tensor<64x64xf8E4M3FN> to tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
