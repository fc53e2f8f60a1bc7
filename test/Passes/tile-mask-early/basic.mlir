// A mask goes before what keeps -inf, a maximum before a product with a positive number.
//
// RUN: tessera-opt %s --tile-mask-early | FileCheck %s

!X = !tile.view<[M, 64], f32>
!Y = !tile.view<[M], f32>

// The mask is of what is loaded, as is the maximum; a reference that is chosen only above -inf stays behind.
// CHECK-LABEL: tile.kernel @reference
// CHECK:         %[[X:.*]] = tile.load
// CHECK:         %[[SEEN:.*]] = arith.select %{{.*}}, %[[X]], %{{.*}} : tensor<64x64xi1>
// CHECK:         %[[LARGEST:.*]] = tile.reduce max %[[SEEN]]
// CHECK:         %[[MAX:.*]] = arith.mulf %[[LARGEST]], %{{.*}} : tensor<64xf32>
// CHECK:         %[[REF:.*]] = arith.select %{{.*}}, %[[MAX]]
// CHECK:         %[[ALL:.*]] = tile.broadcast %[[REF]]
// CHECK:         %[[SEEN2:.*]] = arith.select %{{.*}}, %[[X]], %{{.*}} : tensor<64x64xi1>
// CHECK:         %[[E:.*]] = arith.mulf %[[SEEN2]]
// CHECK:         %[[LESS:.*]] = arith.subf %[[E]], %[[ALL]]
// CHECK:         tile.store %[[LESS]]
tile.kernel @reference(%x: !X, %y: !X, %scale: f32) grid(%m = M ceildiv 64) requires(scale > 1.0e-30) {
  %c0 = arith.constant 0 : index
  %log2e = arith.constant 1.44269504 : f32
  %minus_inf = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %lowest = arith.constant dense<0xFF800000> : tensor<64xf32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %t = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %rows = tile.iota %m axis 0 : tensor<64x64xi32>
  %cols = tile.iota %c0 axis 1 : tensor<64x64xi32>
  %visible = arith.cmpi sle, %cols, %rows : tensor<64x64xi32>
  %scale2 = arith.mulf %scale, %log2e : f32
  %scales = tile.splat %scale2 : f32 -> tensor<64x64xf32>
  %none = tile.broadcast %zero axis 1 : tensor<64xf32> -> tensor<64x64xf32>
  %e0 = arith.mulf %t, %scales : tensor<64x64xf32>
  %less0 = arith.subf %e0, %none : tensor<64x64xf32>
  %seen0 = arith.select %visible, %less0, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
  %max = tile.reduce max %seen0 axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  %sees = arith.cmpf ogt, %max, %lowest : tensor<64xf32>
  %ref = arith.select %sees, %max, %zero : tensor<64xi1>, tensor<64xf32>
  %all = tile.broadcast %ref axis 1 : tensor<64xf32> -> tensor<64x64xf32>
  %e1 = arith.mulf %t, %scales : tensor<64x64xf32>
  %less1 = arith.subf %e1, %all : tensor<64x64xf32>
  %seen1 = arith.select %visible, %less1, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
  tile.store %seen1, %y[%m, %c0] : tensor<64x64xf32>, !X
}

// The maximum that a loop carries begins above -inf, and stays there.
// CHECK-LABEL: tile.kernel @online
// CHECK:         scf.for
// CHECK:           %[[X:.*]] = tile.load
// CHECK:           %[[SEEN:.*]] = arith.select %{{.*}}, %[[X]]
// CHECK:           arith.subf
// CHECK-NOT:       arith.select
tile.kernel @online(%x: !X, %y: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = tile.dim "M"
  %minus_inf = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %lowest = arith.constant dense<0xF1800000> : tensor<64xf32>
  %max = scf.for %i = %c0 to %end step %c1 iter_args(%old = %lowest) -> (tensor<64xf32>) {
    %t = tile.load %x[%i, %c0] : !X -> tensor<64x64xf32>
    %rows = tile.iota %i axis 0 : tensor<64x64xi32>
    %cols = tile.iota %c0 axis 1 : tensor<64x64xi32>
    %visible = arith.cmpi sle, %cols, %rows : tensor<64x64xi32>
    %largest = tile.reduce max %t axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    %new = arith.maxnumf %old, %largest : tensor<64xf32>
    %all = tile.broadcast %new axis 1 : tensor<64xf32> -> tensor<64x64xf32>
    %less = arith.subf %t, %all : tensor<64x64xf32>
    %seen = arith.select %visible, %less, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
    tile.store %seen, %y[%i, %c0] : tensor<64x64xf32>, !X
    scf.yield %new : tensor<64xf32>
  }
}

// Nothing is known of a factor without a requirement, of a reference that may be -inf or NaN, and of other values that a mask
// leaves; a sum of products is rounded otherwise, and what has another use stays.
// CHECK-LABEL: tile.kernel @stays
// CHECK:         %[[SCALED:.*]] = arith.mulf
// CHECK:         arith.select %{{.*}}, %[[SCALED]]
// CHECK:         %[[LESS:.*]] = arith.subf
// CHECK:         arith.select %{{.*}}, %[[LESS]]
// CHECK:         %[[TWICE:.*]] = arith.mulf
// CHECK:         arith.select %{{.*}}, %[[TWICE]]
// CHECK:         %[[SHARED:.*]] = arith.mulf
// CHECK:         arith.select %{{.*}}, %[[SHARED]]
// CHECK:         tile.reduce sum %[[SHARED]]
tile.kernel @stays(%x: !X, %y: !X, %z: !Y, %scale: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %minus_inf = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %two = arith.constant dense<2.0> : tensor<64x64xf32>
  %t = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %rows = tile.iota %m axis 0 : tensor<64x64xi32>
  %cols = tile.iota %c0 axis 1 : tensor<64x64xi32>
  %visible = arith.cmpi sle, %cols, %rows : tensor<64x64xi32>
  %scales = tile.splat %scale : f32 -> tensor<64x64xf32>
  %e = arith.mulf %t, %scales : tensor<64x64xf32>
  %seen = arith.select %visible, %e, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
  tile.store %seen, %y[%m, %c0] : tensor<64x64xf32>, !X
  %max = tile.reduce max %seen axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  %all = tile.broadcast %max axis 1 : tensor<64xf32> -> tensor<64x64xf32>
  %less = arith.subf %t, %all : tensor<64x64xf32>
  %seen_less = arith.select %visible, %less, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
  tile.store %seen_less, %y[%m, %c0] : tensor<64x64xf32>, !X
  %twice = arith.mulf %t, %two : tensor<64x64xf32>
  %or_zero = arith.select %visible, %twice, %zero : tensor<64x64xi1>, tensor<64x64xf32>
  tile.store %or_zero, %y[%m, %c0] : tensor<64x64xf32>, !X
  %shared = arith.mulf %two, %seen_less : tensor<64x64xf32>
  %seen_shared = arith.select %visible, %shared, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
  tile.store %seen_shared, %y[%m, %c0] : tensor<64x64xf32>, !X
  %sum = tile.reduce sum %shared axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  tile.store %sum, %z[%m] : tensor<64xf32>, !Y
}

// The factor of the products is one of their sum with a bias, so that mask and maximum go before it; without either the sum stays.
// CHECK-LABEL: tile.kernel @bias
// CHECK:         %[[X:.*]] = tile.load
// CHECK:         %[[RELATIVE:.*]] = arith.divf %slope, %scale
// CHECK:         %[[FACTOR:.*]] = tile.splat %[[RELATIVE]]
// CHECK:         %[[PART:.*]] = arith.mulf %{{.*}}, %[[FACTOR]]
// CHECK:         %[[SUM:.*]] = arith.addf %[[PART]], %[[X]]
// CHECK:         %[[SEEN:.*]] = arith.select %{{.*}}, %[[SUM]]
// CHECK:         tile.reduce max %[[SEEN]]
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[X]]
// CHECK:         %[[BIAS:.*]] = arith.mulf
// CHECK:         %[[STAYS:.*]] = arith.addf %[[BIAS]], %[[SCALED]]
// CHECK:         tile.store %[[STAYS]]
tile.kernel @bias(%x: !X, %y: !X, %z: !Y, %scale: f32, %slope: f32) grid(%m = M ceildiv 64) requires(scale > 1.0e-30) {
  %c0 = arith.constant 0 : index
  %minus_inf = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %t = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %rows = tile.iota %m axis 0 : tensor<64x64xi32>
  %cols = tile.iota %c0 axis 1 : tensor<64x64xi32>
  %visible = arith.cmpi sle, %cols, %rows : tensor<64x64xi32>
  %away = arith.subi %cols, %rows : tensor<64x64xi32>
  %distance = arith.sitofp %away : tensor<64x64xi32> to tensor<64x64xf32>
  %scales = tile.splat %scale : f32 -> tensor<64x64xf32>
  %slopes = tile.splat %slope : f32 -> tensor<64x64xf32>
  %e = arith.mulf %t, %scales : tensor<64x64xf32>
  %bias = arith.mulf %distance, %slopes : tensor<64x64xf32>
  %biased = arith.addf %bias, %e : tensor<64x64xf32>
  %seen = arith.select %visible, %biased, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
  %max = tile.reduce max %seen axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  tile.store %max, %z[%m] : tensor<64xf32>, !Y
  %e2 = arith.mulf %t, %scales : tensor<64x64xf32>
  %bias2 = arith.mulf %distance, %slopes : tensor<64x64xf32>
  %biased2 = arith.addf %bias2, %e2 : tensor<64x64xf32>
  tile.store %biased2, %y[%m, %c0] : tensor<64x64xf32>, !X
}

// The second number that the loop carries is the first one of the step before, which begins with -inf: neither keeps the mask's.
// CHECK-LABEL: tile.kernel @carried
// CHECK:         %[[LESS:.*]] = arith.subf
// CHECK:         arith.select %{{.*}}, %[[LESS]]
tile.kernel @carried(%x: !X, %y: !X, %z: !Y) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %minus_inf = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %lowest = arith.constant dense<0xFF800000> : tensor<64xf32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %t = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %l = tile.load %z[%m] : !Y -> tensor<64xf32>
  %rows = tile.iota %m axis 0 : tensor<64x64xi32>
  %cols = tile.iota %c0 axis 1 : tensor<64x64xi32>
  %visible = arith.cmpi sle, %cols, %rows : tensor<64x64xi32>
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %lowest, %b = %zero) -> (tensor<64xf32>, tensor<64xf32>) {
    %ref = arith.maxnumf %a, %b : tensor<64xf32>
    %all = tile.broadcast %ref axis 1 : tensor<64xf32> -> tensor<64x64xf32>
    %less = arith.subf %t, %all : tensor<64x64xf32>
    %seen = arith.select %visible, %less, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
    tile.store %seen, %y[%m, %c0] : tensor<64x64xf32>, !X
    scf.yield %l, %a : tensor<64xf32>, tensor<64xf32>
  }
}

// A constant factor beside a number of the program stays where it is: their quotient would be one more number.
// CHECK-LABEL: tile.kernel @constant_bias
// CHECK-NOT:     arith.divf
// CHECK:         %[[PRODUCT:.*]] = arith.mulf
// CHECK:         %[[BIASED:.*]] = arith.mulf
// CHECK:         %[[SUM:.*]] = arith.addf %[[PRODUCT]], %[[BIASED]]
// CHECK:         arith.select %{{.*}}, %[[SUM]]
tile.kernel @constant_bias(%x: !X, %y: !X, %scale: f32) grid(%m = M ceildiv 64) requires(scale > 1.0e-30) {
  %c0 = arith.constant 0 : index
  %log2e = arith.constant dense<1.44269502> : tensor<64x64xf32>
  %minus_inf = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %rows = tile.iota %m axis 0 : tensor<64x64xi32>
  %cols = tile.iota %c0 axis 1 : tensor<64x64xi32>
  %visible = arith.cmpi sle, %cols, %rows : tensor<64x64xi32>
  %t = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %b = tile.load %y[%m, %c0] : !X -> tensor<64x64xf32>
  %scales = tile.splat %scale : f32 -> tensor<64x64xf32>
  %e = arith.mulf %t, %scales : tensor<64x64xf32>
  %bias = arith.mulf %b, %log2e : tensor<64x64xf32>
  %sum = arith.addf %e, %bias : tensor<64x64xf32>
  %masked = arith.select %visible, %sum, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
  tile.store %masked, %y[%m, %c0] : tensor<64x64xf32>, !X
}
