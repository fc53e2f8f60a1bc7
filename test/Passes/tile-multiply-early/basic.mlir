// What no step of a loop changes is multiplied before it.
//
// RUN: tessera-opt %s --tile-multiply-early | FileCheck %s
// RUN: tessera-opt %s --tile-multiply-early 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: remark: multiplied before the loop: 2 factors that no step changes; a step multiplies 1 time in place of 2
// REMARK: remark: not multiplied before the loop: the constants that no step changes have a product that 'f32' does not hold

!X = !tile.view<[N], f32>
!Y = !tile.view<[M, N], f32>

// A number for each row and a constant meet before the loop; a step multiplies by its own number alone.
// CHECK-LABEL: tile.kernel @rows
// CHECK-DAG:     %[[LOG2E:.*]] = arith.constant dense<1.44
// CHECK:         %[[OF_ROWS:.*]] = tile.load %q
// CHECK:         %[[EARLY:.*]] = arith.mulf %[[OF_ROWS]], %[[LOG2E]] : tensor<64xf32>
// CHECK-NEXT:    scf.for
// CHECK:           %[[STEP:.*]] = tile.splat
// CHECK-NEXT:      %[[UNIT:.*]] = arith.mulf %[[EARLY]], %[[STEP]] : tensor<64xf32>
// CHECK-NEXT:      tile.store %[[UNIT]]
// CHECK-NOT:       arith.mulf
tile.kernel @rows(%q: !X, %k: !X, %y: !Y) grid(%m = N ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tile.dim "N"
  %log2e = arith.constant dense<1.44269504> : tensor<64xf32>
  %of_rows = tile.load %q[%c0] : !X -> tensor<64xf32>
  scf.for %j = %c0 to %n step %c1 {
    %step = tile.load %k[%j] : !X -> f32
    %of_step = tile.splat %step : f32 -> tensor<64xf32>
    %both = arith.mulf %of_rows, %of_step : tensor<64xf32>
    %unit = arith.mulf %both, %log2e : tensor<64xf32>
    tile.store %unit, %y[%j, %c0] : tensor<64xf32>, !Y
    scf.yield
  }
}

// Scalars too, out of each of two loops as far as they go. The factor of the outer loop stays in it.
// CHECK-LABEL: tile.kernel @nested
// CHECK:         %[[AB:.*]] = arith.mulf %a, %b : f32
// CHECK:         scf.for
// CHECK:           %[[OUTER:.*]] = tile.load
// CHECK:           %[[ABX:.*]] = arith.mulf %[[AB]], %[[OUTER]] : f32
// CHECK:           scf.for
// CHECK:             %[[INNER:.*]] = tile.load
// CHECK-NEXT:        %[[ALL:.*]] = arith.mulf %[[ABX]], %[[INNER]] : f32
// CHECK-NEXT:        tile.store %[[ALL]]
tile.kernel @nested(%x: !X, %y: !Y, %a: f32, %b: f32) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tile.dim "N"
  scf.for %i = %c0 to %n step %c1 {
    %outer = tile.load %x[%i] : !X -> f32
    scf.for %j = %c0 to %n step %c1 {
      %inner = tile.load %x[%j] : !X -> f32
      %ax = arith.mulf %a, %outer : f32
      %ixa = arith.mulf %inner, %ax : f32
      %all = arith.mulf %ixa, %b : f32
      tile.store %all, %y[%i, %j] : f32, !Y
      scf.yield
    }
    scf.yield
  }
}

// What saves no multiplication of a step stays: one factor alone, a product that another operation takes too, and one that stands
// before the factor of the step already. A tile of rank 2 would take registers.
// CHECK-LABEL: tile.kernel @stays
// CHECK:         scf.for
// CHECK-NOT:       arith.mulf
// CHECK:           %[[X:.*]] = tile.load %x
// CHECK:           %[[ONE:.*]] = arith.mulf %[[X]], %a
// CHECK:           %[[TWO:.*]] = arith.mulf %[[X]], %b
// CHECK:           %[[TWICE:.*]] = arith.mulf %[[TWO]], %a
// CHECK:           %[[AB:.*]] = arith.mulf %a, %b
// CHECK:           %[[ABX:.*]] = arith.mulf %[[AB]], %[[X]]
// CHECK:           %[[WIDE:.*]] = tile.splat %[[X]]
// CHECK:           %[[TILE:.*]] = arith.mulf %[[WIDE]], %{{.*}} : tensor<8x8xf32>
// CHECK:           arith.mulf %[[TILE]], %{{.*}} : tensor<8x8xf32>
tile.kernel @stays(%x: !X, %y: !Y, %z: !Y, %a: f32, %b: f32) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tile.dim "N"
  %tile = tile.load %z[%c0, %c0] : !Y -> tensor<8x8xf32>
  %other = arith.addf %tile, %tile : tensor<8x8xf32>
  scf.for %j = %c0 to %n step %c1 {
    %t = tile.load %x[%j] : !X -> f32
    %one = arith.mulf %t, %a : f32
    tile.store %one, %y[%j, %c0] : f32, !Y
    %two = arith.mulf %t, %b : f32
    tile.store %two, %y[%j, %c0] : f32, !Y
    %twice = arith.mulf %two, %a : f32
    tile.store %twice, %y[%j, %c0] : f32, !Y
    %ab = arith.mulf %a, %b : f32
    %abx = arith.mulf %ab, %t : f32
    tile.store %abx, %y[%j, %c0] : f32, !Y
    %wide = tile.splat %t : f32 -> tensor<8x8xf32>
    %with_tile = arith.mulf %wide, %tile : tensor<8x8xf32>
    %with_both = arith.mulf %with_tile, %other : tensor<8x8xf32>
    tile.store %with_both, %y[%j, %c0] : tensor<8x8xf32>, !Y
    scf.yield
  }
}

// Constants whose product no f32 holds stay where they are.
// CHECK-LABEL: tile.kernel @large
// CHECK:         scf.for
// CHECK:           arith.mulf
// CHECK:           arith.mulf
tile.kernel @large(%x: !X, %y: !Y) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tile.dim "N"
  %a = arith.constant 1.0e25 : f32
  %b = arith.constant 1.0e20 : f32
  scf.for %j = %c0 to %n step %c1 {
    %own = tile.load %x[%j] : !X -> f32
    %some = arith.mulf %own, %a : f32
    %all = arith.mulf %some, %b : f32
    tile.store %all, %y[%c0, %j] : f32, !Y
    scf.yield
  }
}
