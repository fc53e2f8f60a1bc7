// Masks that do not depend on the iteration of an inner loop are those of the outer one.
//
// RUN: tessera-opt %s --tile-split-loops --canonicalize -split-input-file -verify-diagnostics | FileCheck %s

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>
!T = tensor<64x32xf32>

// CHECK-LABEL: tile.kernel @rows
// CHECK:         scf.for
// CHECK-NEXT:      arith.muli
// CHECK-NEXT:      scf.for
// CHECK-NOT:         arith.select
// CHECK:           scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.yield
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK-COUNT-2:     arith.select
// CHECK-NOT:     scf.for
tile.kernel @rows(%x: !tile.view<[H, M, 32], f32>, %y: !tile.view<[M, 32], f32>, %n: index, %heads: index) grid(%m = M ceildiv 64)
    schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %past = arith.addi %row, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %q = tile.iota %row axis 0 : !C
  %end = tile.dim "M"
  %end_i32 = arith.index_cast %end : index to i32
  %end_s = tile.splat %end_i32 : i32 -> !C
  // expected-remark @+1 {{loop split: iterations in which 2 masks are uniform run without them}}
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%old = %zero) -> (!T) {
    %col = arith.muli %j, %c32 : index
    %all = scf.for %h = %c0 to %heads step %c1 iter_args(%before = %old) -> (!T) {
      %t = tile.load %x[%h, %col, %c0] : !tile.view<[H, M, 32], f32> -> !T
      %k = tile.iota %col axis 1 : !C
      %seen = arith.cmpi sle, %k, %q : !C
      %exists = arith.cmpi slt, %q, %end_s : !C
      %a = arith.select %seen, %t, %zero : !M, !T
      %s = arith.select %exists, %a, %zero : !M, !T
      %new = arith.addf %before, %s : !T
      scf.yield %new : !T
    }
    scf.yield %all : !T
  }
  tile.store %sum, %y[%row, %c0] : !T, !tile.view<[M, 32], f32>
}

// A mask that is the same in all iterations of both loops stays with the inner one, and so does one that is in no range of the
// outer iterations.
// CHECK-LABEL: tile.kernel @same
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             arith.addf
// CHECK:           scf.for
// CHECK:             arith.select
// CHECK-LABEL: tile.kernel @square
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             arith.addf
// CHECK:           scf.for
// CHECK:             arith.select
tile.kernel @same(%x: !tile.view<[H, M, 32], f32>, %y: !tile.view<[M, 32], f32>, %n: index, %heads: index) grid(%m = M ceildiv 64)
    schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %q = tile.iota %row axis 0 : !C
  %end = tile.dim "M"
  %end_i32 = arith.index_cast %end : index to i32
  %end_s = tile.splat %end_i32 : i32 -> !C
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%old = %zero) -> (!T) {
    %col = arith.muli %j, %c32 : index
    // expected-remark @+1 {{loop split: iterations in which 1 mask is uniform run without it}}
    %all = scf.for %h = %c0 to %heads step %c1 iter_args(%before = %old) -> (!T) {
      %t = tile.load %x[%h, %col, %c0] : !tile.view<[H, M, 32], f32> -> !T
      %exists = arith.cmpi slt, %q, %end_s : !C
      %s = arith.select %exists, %t, %zero : !M, !T
      %new = arith.addf %before, %s : !T
      scf.yield %new : !T
    }
    scf.yield %all : !T
  }
  tile.store %sum, %y[%row, %c0] : !T, !tile.view<[M, 32], f32>
}

tile.kernel @square(%x: !tile.view<[H, M, 32], f32>, %y: !tile.view<[M, 32], f32>, %n: index, %heads: index) grid(%m = M ceildiv 64)
    schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %q = tile.iota %row axis 0 : !C
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%old = %zero) -> (!T) {
    %col = arith.muli %j, %j : index
    // expected-remark @+1 {{loop split: iterations in which 1 mask is uniform run without it}}
    %all = scf.for %h = %c0 to %heads step %c1 iter_args(%before = %old) -> (!T) {
      %t = tile.load %x[%h, %row, %c0] : !tile.view<[H, M, 32], f32> -> !T
      %k = tile.iota %col axis 1 : !C
      %seen = arith.cmpi sle, %k, %q : !C
      %s = arith.select %seen, %t, %zero : !M, !T
      %new = arith.addf %before, %s : !T
      scf.yield %new : !T
    }
    scf.yield %all : !T
  }
  tile.store %sum, %y[%row, %c0] : !T, !tile.view<[M, 32], f32>
}
