// Operands b that no role converts on their way: consumers compute them, and a remark says why.
// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -o /dev/null 2>&1 | FileCheck %s

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
  %s = tile.dot %a, %a : !T, !T -> !S
  %sum = arith.select %below, %b32, %s : tensor<64x64xi1>, !S
  %b = arith.truncf %sum : !S to !T
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}
// CHECK: remark: operand b is computed by those who multiply it, and goes through shared memory
// CHECK: note: is the result of a dot, for which no converter waits

tile.kernel @of_two(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b8 = tile.load %y[%c0, %c0] : !B -> !T8
  %c8 = tile.load %y[%c64, %c0] : !B -> !T8
  %b32 = arith.extf %b8 : !T8 to !S
  %c32 = arith.extf %c8 : !T8 to !S
  %sum = arith.addf %b32, %c32 : !S
  %b = arith.truncf %sum : !S to !T
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}
// CHECK: remark: operand b is computed by those who multiply it, and goes through shared memory
// CHECK: note: is the second loaded tile

tile.kernel @transposed_before(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b8 = tile.load %y[%c0, %c0] : !B -> !T8
  %t8 = tile.transpose %b8 : !T8 -> !T8
  %b = arith.extf %t8 : !T8 to !T
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}
// CHECK: remark: operand b is computed by those who multiply it, and goes through shared memory
// CHECK: note: is transposed before it is converted; transpose what is converted

tile.kernel @stored_too(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>, %w: !tile.view<[64, 64], f16>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b8 = tile.load %y[%c0, %c0] : !B -> !T8
  %b = arith.extf %b8 : !T8 to !T
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
  tile.store %b, %w[%c0, %c0] : !T, !tile.view<[64, 64], f16>
}
// CHECK: remark: operand b is computed by those who multiply it, and goes through shared memory
// CHECK: note: is read by other operations than dots; load and compute it again for them

// -----

// No swizzle has rows of 48 bytes.
!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 48], f8E4M3FN>
!T = tensor<64x64xf16>
tile.kernel @columns(%x: !X, %y: !B, %z: !tile.view<[M, 48], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b8 = tile.load %y[%c0, %c0] : !B -> tensor<64x48xf8E4M3FN>
  %b = arith.extf %b8 : tensor<64x48xf8E4M3FN> to tensor<64x48xf16>
  %d = tile.dot %a, %b : !T, tensor<64x48xf16> -> tensor<64x48xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x48xf32>, !tile.view<[M, 48], f32>
}
// CHECK: remark: operand b is computed by those who multiply it, and goes through shared memory
// CHECK: note: goes through shared memory, where its rows are a multiple of 32 bytes and their number one of 8

// -----

// Numbers of columns, and of rows that a dot gives.
!X = !tile.view<[M, 64], f16>
!B = !tile.view<[64, 64], f8E4M3FN>
!U = !tile.view<[64], f32>
!T = tensor<64x64xf16>
!T8 = tensor<64x64xf8E4M3FN>
!S = tensor<64x64xf32>
tile.kernel @of_columns(%x: !X, %y: !B, %units: !U, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %b8 = tile.load %y[%c0, %c0] : !B -> !T8
  %b32 = arith.extf %b8 : !T8 to !S
  %unit = tile.load %units[%c0] : !U -> tensor<64xf32>
  %all = tile.broadcast %unit axis 0 : tensor<64xf32> -> !S
  %scaled = arith.mulf %b32, %all : !S
  %b = arith.truncf %scaled : !S to !T
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}
// CHECK: remark: operand b is computed by those who multiply it, and goes through shared memory
// CHECK: note: is not a number for each row that a role can load by itself

tile.kernel @of_sums(%x: !X, %y: !B, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !X -> !T
  %s = tile.dot %a, %a : !T, !T -> !S
  %unit = tile.reduce sum %s axis 1 : !S -> tensor<64xf32>
  %b8 = tile.load %y[%c0, %c0] : !B -> !T8
  %b32 = arith.extf %b8 : !T8 to !S
  %all = tile.broadcast %unit axis 1 : tensor<64xf32> -> !S
  %scaled = arith.mulf %b32, %all : !S
  %b = arith.truncf %scaled : !S to !T
  %d = tile.dot %a, %b : !T, !T -> !S
  tile.store %d, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}
// CHECK: remark: operand b is computed by those who multiply it, and goes through shared memory
// CHECK: note: is not a number for each row that a role can load by itself
