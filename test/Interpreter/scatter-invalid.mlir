// Of two rows for one place neither is the one that counts: in a tile, and of two grid points.
// RUN: not tessera run %s --kernel same_tile 2>&1 | FileCheck %s --check-prefix=TILE
// TILE: scatter-invalid.mlir:[[#]]:3: error: rows 0 and 1 of the tile go to one row of the view at grid point (0); which of them it holds then is not said
// RUN: not tessera run %s --kernel two_points 2>&1 | FileCheck %s --check-prefix=POINTS
// POINTS: scatter-invalid.mlir:[[#]]:3: error: grid points (0) and (1) both store element [1, 0] of 'y'; grid points run in no particular order and may not communicate

tile.kernel @same_tile(%y: !tile.view<[8, 4], f32>) grid(%i = 1) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<4x4xf32>
  %two = arith.constant dense<2> : tensor<4xi32>
  %n = tile.iota %c0 axis 0 : tensor<4xi32>
  %half = arith.divsi %n, %two : tensor<4xi32>
  tile.scatter %t, %y[%c0, %c0] rows %half : tensor<4x4xf32>, !tile.view<[8, 4], f32>, tensor<4xi32>
}

tile.kernel @two_points(%y: !tile.view<[8, 4], f32>) grid(%i = 2) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<2x4xf32>
  %n = tile.iota %i axis 0 : tensor<2xi32>
  tile.scatter %t, %y[%c0, %c0] rows %n : tensor<2x4xf32>, !tile.view<[8, 4], f32>, tensor<2xi32>
}
