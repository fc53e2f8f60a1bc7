// Masks that stay in every iteration, and why.
//
// RUN: tessera-opt %s --tile-split-loops -verify-diagnostics | FileCheck %s

// CHECK-LABEL: tile.kernel @kept
// CHECK:         scf.for
// CHECK:         scf.for
// CHECK-NOT:     scf.for
tile.kernel @kept(%x: !tile.view<[S, 4], f32>, %n: index) grid(%g = S) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant dense<0.0> : tensor<4x4xf32>
  %two = arith.constant dense<2> : tensor<4x4xi32>
  %t = tile.load %x[%g, %c0] : !tile.view<[S, 4], f32> -> tensor<4x4xf32>
  %n32 = arith.index_cast %n : index to i32
  %ns = tile.splat %n32 : i32 -> tensor<4x4xi32>
  %r, %w = scf.for %j = %c0 to %n step %c1 iter_args(%a = %t, %k = %c0) -> (tensor<4x4xf32>, index) {
    %i = tile.iota %j axis 1 : tensor<4x4xi32>
    %e = arith.remui %i, %two : tensor<4x4xi32>
    %p0 = arith.cmpi slt, %e, %ns : tensor<4x4xi32>
    // expected-remark@+1 {{mask kept in every iteration: it compares tiles that are not computed from tile.iota, splats and constants}}
    %s0 = arith.select %p0, %a, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    %p1 = arith.cmpi ult, %i, %ns : tensor<4x4xi32>
    // expected-remark@+1 {{mask kept in every iteration: it compares without sign; use slt, sle, sgt or sge}}
    %s1 = arith.select %p1, %s0, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    %i2 = arith.muli %i, %i : tensor<4x4xi32>
    %p2 = arith.cmpi slt, %i2, %ns : tensor<4x4xi32>
    // expected-remark@+1 {{mask kept in every iteration: it multiplies two values that are not constant}}
    %s2 = arith.select %p2, %s1, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    %ik = tile.iota %k axis 1 : tensor<4x4xi32>
    %p3 = arith.cmpi slt, %ik, %ns : tensor<4x4xi32>
    // expected-remark@+1 {{mask kept in every iteration: it depends on a value that changes from iteration to iteration and is not affine in the induction variable}}
    %s3 = arith.select %p3, %s2, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    %p4 = arith.cmpi eq, %i, %ns : tensor<4x4xi32>
    // expected-remark@+1 {{mask kept in every iteration: the iterations that do not need it are not consecutive}}
    %s4 = arith.select %p4, %f0, %s3 : tensor<4x4xi1>, tensor<4x4xf32>
    %p5 = arith.cmpf ogt, %s4, %f0 : tensor<4x4xf32>
    %p6 = arith.cmpi slt, %i, %ns : tensor<4x4xi32>
    %p7 = arith.andi %p5, %p6 : tensor<4x4xi1>
    // expected-remark@+1 {{mask kept in every iteration: it holds values that are not comparisons of integers}}
    %s5 = arith.select %p7, %s4, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    %p8 = arith.xori %p6, %p4 : tensor<4x4xi1>
    // expected-remark@+1 {{mask kept in every iteration: it combines comparisons by an exclusive or}}
    %s6 = arith.select %p8, %s5, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    // A mask by data is no mask by position, and needs no remark.
    %s7 = arith.select %p5, %s6, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    scf.yield %s7, %k : tensor<4x4xf32>, index
  }
  // expected-remark@+1 {{loop not split: it compares its bounds without sign}}
  %u = scf.for unsigned %j = %c0 to %n step %c1 iter_args(%a = %r) -> (tensor<4x4xf32>) {
    %i = tile.iota %j axis 1 : tensor<4x4xi32>
    %p = arith.cmpi slt, %i, %ns : tensor<4x4xi32>
    %s = arith.select %p, %a, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    scf.yield %s : tensor<4x4xf32>
  }
  tile.store %u, %x[%g, %c0] : tensor<4x4xf32>, !tile.view<[S, 4], f32>
}
