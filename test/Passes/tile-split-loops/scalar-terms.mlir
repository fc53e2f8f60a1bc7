// A comparison of scalars is a part of a mask as one of tiles is: from %masked on every element is true, whatever the
// data says.
//
// RUN: tessera-opt %s --tile-split-loops --canonicalize -verify-diagnostics | FileCheck %s

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>
!T = tensor<64x32xf32>

// CHECK-LABEL: tile.kernel @listed
// CHECK:         scf.for
// CHECK-NOT:       arith.select
// CHECK:         scf.for
// CHECK:           arith.select
// CHECK-LABEL: tile.kernel @product
tile.kernel @listed(%x: !tile.view<[M, 32], f32>, %of: !tile.view<[M], i32>, %y: !tile.view<[M, 32], f32>, %n: index, %whole: index)
    grid(%m = M ceildiv 64) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %mine = tile.load %of[%row] : !tile.view<[M], i32> -> tensor<64xi32>
  %mines = tile.broadcast %mine axis 1 : tensor<64xi32> -> !C
  // expected-remark @+1 {{loop split: iterations in which 1 mask is uniform run without it}}
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%old = %zero) -> (!T) {
    %col = arith.muli %j, %c32 : index
    %t = tile.load %x[%col, %c0] : !tile.view<[M, 32], f32> -> !T
    %k = tile.iota %col axis 1 : !C
    %same = arith.cmpi eq, %k, %mines : !C
    %is_whole = arith.cmpi slt, %j, %whole : index
    %all = tile.splat %is_whole : i1 -> !M
    %seen = arith.ori %all, %same : !M
    %s = arith.select %seen, %t, %zero : !M, !T
    %new = arith.addf %old, %s : !T
    scf.yield %new : !T
  }
  tile.store %sum, %y[%row, %c0] : !T, !tile.view<[M, 32], f32>
}

// What is not affine in the iteration stays.
tile.kernel @product(%x: !tile.view<[M, 32], f32>, %y: !tile.view<[M, 32], f32>, %n: index) grid(%m = M ceildiv 64)
    schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%old = %zero) -> (!T) {
    %col = arith.muli %j, %c32 : index
    %t = tile.load %x[%col, %c0] : !tile.view<[M, 32], f32> -> !T
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %before = arith.cmpi sle, %k, %q : !C
    %square = arith.muli %j, %j : index
    %is_whole = arith.cmpi slt, %square, %n : index
    %all = tile.splat %is_whole : i1 -> !M
    %seen = arith.andi %all, %before : !M
    // expected-remark @+1 {{mask kept in every iteration: it multiplies two values that are not constant}}
    %s = arith.select %seen, %t, %zero : !M, !T
    %new = arith.addf %old, %s : !T
    scf.yield %new : !T
  }
  tile.store %sum, %y[%row, %c0] : !T, !tile.view<[M, 32], f32>
}
