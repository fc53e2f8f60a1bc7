// Masks and maxima go before factors of rows that are positive, however it is known.
//
// RUN: tessera-opt %s --tile-mask-early | FileCheck %s

!X = !tile.view<[M, 64], f32>
!Y = !tile.view<[M], f32>

// The larger one of a loaded number and a positive constant is positive, of each row and of all.
// CHECK-LABEL: tile.kernel @positive
// CHECK:         %[[X:.*]] = tile.load %x
// CHECK:         %[[ROWS:.*]] = arith.maximumf
// CHECK:         %[[UNIT:.*]] = arith.mulf %[[ROWS]], %{{.*}} : tensor<64xf32>
// CHECK:         %[[SEEN:.*]] = arith.select %{{.*}}, %[[X]], %{{.*}} : tensor<64x64xi1>
// CHECK:         %[[LARGEST:.*]] = tile.reduce max %[[SEEN]] axis 1
// CHECK:         %[[MAX:.*]] = arith.mulf %[[LARGEST]], %[[UNIT]] : tensor<64xf32>
// CHECK:         tile.store %[[MAX]]
tile.kernel @positive(%x: !X, %q: !Y, %k: !Y, %y: !Y) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %minus_inf = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %least = arith.constant dense<0x1F800000> : tensor<64xf32>
  %t = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %rows = tile.iota %m axis 0 : tensor<64x64xi32>
  %cols = tile.iota %c0 axis 1 : tensor<64x64xi32>
  %visible = arith.cmpi sle, %cols, %rows : tensor<64x64xi32>
  %of_q = tile.load %q[%m] : !Y -> tensor<64xf32>
  %of_rows = arith.maximumf %of_q, %least : tensor<64xf32>
  %given = tile.load %k[%m] : !Y -> f32
  %least_k = arith.constant 1.0e-18 : f32
  %of_k = arith.maximumf %given, %least_k : f32
  %of_ks = tile.splat %of_k : f32 -> tensor<64xf32>
  %unit = arith.mulf %of_rows, %of_ks : tensor<64xf32>
  %units = tile.broadcast %unit axis 1 : tensor<64xf32> -> tensor<64x64xf32>
  %e = arith.mulf %t, %units : tensor<64x64xf32>
  %seen = arith.select %visible, %e, %minus_inf : tensor<64x64xi1>, tensor<64x64xf32>
  %max = tile.reduce max %seen axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  tile.store %max, %y[%m] : tensor<64xf32>, !Y
}

// The factors of a column are several for the maximum of one row.
// CHECK-LABEL: tile.kernel @columns
// CHECK:         %[[E:.*]] = arith.mulf
// CHECK:         tile.reduce max %[[E]] axis 1
tile.kernel @columns(%x: !X, %q: !Y, %y: !Y) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %least = arith.constant dense<1.0> : tensor<64xf32>
  %t = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %of_q = tile.load %q[%m] : !Y -> tensor<64xf32>
  %of_columns = arith.maxnumf %of_q, %least : tensor<64xf32>
  %units = tile.broadcast %of_columns axis 0 : tensor<64xf32> -> tensor<64x64xf32>
  %e = arith.mulf %t, %units : tensor<64x64xf32>
  %max = tile.reduce max %e axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  tile.store %max, %y[%m] : tensor<64xf32>, !Y
}

// Nothing is known of a loaded tile, nor of a product that may be too small for f32.
// CHECK-LABEL: tile.kernel @unknown
// CHECK:         %[[OF_TILE:.*]] = arith.mulf %{{.*}} : tensor<64x64xf32>
// CHECK:         tile.reduce max %[[OF_TILE]]
// CHECK:         %[[OF_PRODUCT:.*]] = arith.mulf %{{.*}} : tensor<64x64xf32>
// CHECK:         tile.reduce max %[[OF_PRODUCT]]
tile.kernel @unknown(%x: !X, %q: !Y, %y: !Y) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !X -> tensor<64x64xf32>
  %of_tile = tile.load %q[%m] : !Y -> tensor<64xf32>
  %tiles = tile.broadcast %of_tile axis 1 : tensor<64xf32> -> tensor<64x64xf32>
  %e0 = arith.mulf %t, %tiles : tensor<64x64xf32>
  %max0 = tile.reduce max %e0 axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  tile.store %max0, %y[%m] : tensor<64xf32>, !Y
  %given = tile.load %q[%m] : !Y -> f32
  %least = arith.constant 1.0e-20 : f32
  %one = arith.maximumf %given, %least : f32
  %square = arith.mulf %one, %one : f32
  %squares = tile.splat %square : f32 -> tensor<64x64xf32>
  %e1 = arith.mulf %t, %squares : tensor<64x64xf32>
  %max1 = tile.reduce max %e1 axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  tile.store %max1, %y[%m] : tensor<64xf32>, !Y
}
