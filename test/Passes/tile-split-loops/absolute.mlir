// Minima, maxima and absolute values are two comparisons: |q - k| <= 100 needs its mask at both ends.
//
// RUN: tessera-opt %s --tile-split-loops --canonicalize -verify-diagnostics | FileCheck %s

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>
!T = tensor<64x32xf32>

// CHECK-LABEL: tile.kernel @window
// CHECK:         scf.for
// CHECK:           arith.select
// CHECK:         scf.for
// CHECK-NOT:       arith.select
// CHECK:         scf.for
// CHECK:           arith.select
tile.kernel @window(%x: !tile.view<[M, 32], f32>, %y: !tile.view<[M, 32], f32>, %n: index) grid(%m = M ceildiv 64)
    schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %w = arith.constant dense<100> : !C
  // expected-remark @+1 {{loop split: iterations in which 1 mask is uniform run without it}}
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%old = %zero) -> (!T) {
    %col = arith.muli %j, %c32 : index
    %t = tile.load %x[%col, %c0] : !tile.view<[M, 32], f32> -> !T
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %away = arith.subi %k, %q : !C
    %distance = math.absi %away : !C
    %near = arith.cmpi sle, %distance, %w : !C
    %s = arith.select %near, %t, %zero : !M, !T
    %new = arith.addf %old, %s : !T
    scf.yield %new : !T
  }
  tile.store %sum, %y[%row, %c0] : !T, !tile.view<[M, 32], f32>
}
