// Roles are chosen before loops are split, so that masks stay that decide how an operand of a dot comes. A tile of 16 bits under
// a mask of rows is computed by those who multiply it, and one without a converter's; bytes are a converter's in both.
// RUN: tessera-opt %s --tile-choose-schedule --tile-split-loops --canonicalize --cse | FileCheck %s
// RUN: tessera-opt %s --tile-choose-schedule --tile-split-loops 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-override-schedule{schedule=producer=operands},tile.kernel(tile-choose-schedule,tile-split-loops))' \
// RUN:   | FileCheck %s --check-prefix=OPERANDS

!A = !tile.view<[M, 512], f16>
!B = !tile.view<[512, N], f16>
!Bytes = !tile.view<[512, N], f8E4M3FN>
!C = !tile.view<[M, N], f32>
!S = tensor<64x64xf32>
!H = tensor<64x64xf16>
!Q = tensor<64x64xf8E4M3FN>

// REMARK: operands.mlir:[[@LINE+18]]:{{[0-9]+}}: remark: mask kept in every iteration: without it an operand of a dot comes another way than the schedule was chosen for
// CHECK-LABEL: tile.kernel @converted
// CHECK-COUNT-1: scf.for
// CHECK: arith.select
// CHECK-NOT: scf.for
tile.kernel @converted(%a: !A, %b: !B, %c: !C, %lim: i32) grid(%m = M ceildiv 64, %n = N ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : !S
  %r = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (!S) {
    %x = tile.load %a[%m, %k] : !A -> !H
    %y = tile.load %b[%k, %c0] : !B -> !H
    %wide = arith.extf %y : !H to !S
    %rows = tile.iota %k axis 0 : tensor<64x64xi32>
    %limit = tile.splat %lim : i32 -> tensor<64x64xi32>
    %in = arith.cmpi slt, %rows, %limit : tensor<64x64xi32>
    %twice = arith.addf %wide, %wide : !S
    %masked = arith.select %in, %twice, %zero : tensor<64x64xi1>, !S
    %h = arith.truncf %masked : !S to !H
    %new = tile.dot %x, %h, %acc : !H, !H -> !S
    scf.yield %new : !S
  }
  tile.store %r, %c[%m, %n] : !S, !C
}

// What has a pipe is multiplied as it was loaded where it needs no mask. It has one where a producer loads what arithmetic reads.
// CHECK-LABEL: tile.kernel @loaded
// CHECK: scf.for
// CHECK-NOT: arith.select
// CHECK: %[[Y:.*]] = tile.load %b
// CHECK-NEXT: tile.dot %{{.*}}, %[[Y]],
// CHECK: scf.for
// CHECK: arith.select
// OPERANDS-LABEL: tile.kernel @loaded
// OPERANDS-COUNT-1: scf.for
// OPERANDS: arith.select
// OPERANDS-NOT: scf.for
// OPERANDS-LABEL: tile.kernel @anywhere
tile.kernel @loaded(%a: !A, %b: !B, %c: !C, %lim: i32) grid(%m = M ceildiv 64, %n = N ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : !S
  %r = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (!S) {
    %x = tile.load %a[%m, %k] : !A -> !H
    %y = tile.load %b[%k, %c0] : !B -> !H
    %wide = arith.extf %y : !H to !S
    %rows = tile.iota %k axis 0 : tensor<64x64xi32>
    %limit = tile.splat %lim : i32 -> tensor<64x64xi32>
    %in = arith.cmpi slt, %rows, %limit : tensor<64x64xi32>
    %masked = arith.select %in, %wide, %zero : tensor<64x64xi1>, !S
    %h = arith.truncf %masked : !S to !H
    %new = tile.dot %x, %h, %acc : !H, !H -> !S
    scf.yield %new : !S
  }
  tile.store %r, %c[%m, %n] : !S, !C
}

// Of any column it has none: threads load it, and no copy starts there.
// CHECK-LABEL: tile.kernel @anywhere
// CHECK-COUNT-1: scf.for
// CHECK: arith.select
// CHECK-NOT: scf.for
tile.kernel @anywhere(%a: !A, %b: !B, %c: !C, %lim: i32, %column: index) grid(%m = M ceildiv 64, %n = N ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : !S
  %r = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (!S) {
    %column_of_a = arith.addi %k, %column : index
    %x = tile.load %a[%m, %column_of_a] : !A -> !H
    %wide = arith.extf %x : !H to !S
    %columns = tile.iota %k axis 1 : tensor<64x64xi32>
    %limit = tile.splat %lim : i32 -> tensor<64x64xi32>
    %in = arith.cmpi slt, %columns, %limit : tensor<64x64xi32>
    %masked = arith.select %in, %wide, %zero : tensor<64x64xi1>, !S
    %h = arith.truncf %masked : !S to !H
    %y = tile.load %b[%k, %c0] : !B -> !H
    %new = tile.dot %h, %y, %acc : !H, !H -> !S
    scf.yield %new : !S
  }
  tile.store %r, %c[%m, %n] : !S, !C
}

// CHECK-LABEL: tile.kernel @bytes
// CHECK: scf.for
// CHECK-NOT: arith.select
// CHECK: scf.for
// CHECK: arith.select
tile.kernel @bytes(%a: !A, %b: !Bytes, %c: !C, %lim: i32) grid(%m = M ceildiv 64, %n = N ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : !S
  %r = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (!S) {
    %x = tile.load %a[%m, %k] : !A -> !H
    %y = tile.load %b[%k, %c0] : !Bytes -> !Q
    %wide = arith.extf %y : !Q to !S
    %rows = tile.iota %k axis 0 : tensor<64x64xi32>
    %limit = tile.splat %lim : i32 -> tensor<64x64xi32>
    %in = arith.cmpi slt, %rows, %limit : tensor<64x64xi32>
    %masked = arith.select %in, %wide, %zero : tensor<64x64xi1>, !S
    %h = arith.truncf %masked : !S to !H
    %new = tile.dot %x, %h, %acc : !H, !H -> !S
    scf.yield %new : !S
  }
  tile.store %r, %c[%m, %n] : !S, !C
}

// Bytes that are multiplied from registers have others transposed for them, which two loaded tiles cannot.
// CHECK-LABEL: tile.kernel @transposed
// CHECK-COUNT-1: scf.for
// CHECK: arith.select
// CHECK-NOT: scf.for
tile.kernel @transposed(%a: !tile.view<[M, 512], f8E4M3FN>, %b: !Bytes, %c: !C, %lim: i32) grid(%m = M ceildiv 64, %n = N ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : !S
  %r = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (!S) {
    %x = tile.load %a[%m, %k] : !tile.view<[M, 512], f8E4M3FN> -> !Q
    %wide = arith.extf %x : !Q to !S
    %columns = tile.iota %k axis 1 : tensor<64x64xi32>
    %limit = tile.splat %lim : i32 -> tensor<64x64xi32>
    %in = arith.cmpi slt, %columns, %limit : tensor<64x64xi32>
    %masked = arith.select %in, %wide, %zero : tensor<64x64xi1>, !S
    %h = arith.truncf %masked : !S to !Q
    %y = tile.load %b[%k, %c0] : !Bytes -> !Q
    %new = tile.dot %h, %y, %acc : !Q, !Q -> !S
    scf.yield %new : !S
  }
  tile.store %r, %c[%m, %n] : !S, !C
}

// What is loaded before the loop would be converted in each of the loops that are made of it, and is made for one alone.
// CHECK-LABEL: tile.kernel @outside
// CHECK-COUNT-1: scf.for
// CHECK: arith.select
// CHECK-NOT: scf.for
tile.kernel @outside(%a: !A, %b: !Bytes, %c: !C, %lim: i32) grid(%m = M ceildiv 64, %n = N ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : !S
  %y = tile.load %b[%c0, %c0] : !Bytes -> !Q
  %r = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (!S) {
    %x = tile.load %a[%m, %k] : !A -> !H
    %wide = arith.extf %y : !Q to !S
    %rows = tile.iota %k axis 0 : tensor<64x64xi32>
    %limit = tile.splat %lim : i32 -> tensor<64x64xi32>
    %in = arith.cmpi slt, %rows, %limit : tensor<64x64xi32>
    %masked = arith.select %in, %wide, %zero : tensor<64x64xi1>, !S
    %h = arith.truncf %masked : !S to !H
    %new = tile.dot %x, %h, %acc : !H, !H -> !S
    scf.yield %new : !S
  }
  tile.store %r, %c[%m, %n] : !S, !C
}
