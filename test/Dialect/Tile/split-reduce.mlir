// Prints what it parses, with states of several kinds, in a kernel and in a function.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s

!X = !tile.view<[M, K], f32>
!Y = !tile.view<[M], f32>
!Tile = tensor<16x64xf32>
!Row = tensor<16xf32>

// CHECK-LABEL: func.func @sums
// CHECK: %[[FIRST:.*]]:2 = tile.split_reduce %first, %past = %{{.*}} to %{{.*}} fill -> tensor<16xf32>, i32 {
// CHECK: } merge %[[A:.*]], %[[B:.*]] with %[[C:.*]], %[[D:.*]] {
// CHECK: arith.addf %[[A]], %[[C]]
// CHECK: arith.addi %[[B]], %[[D]]
func.func @sums(%zero: !Row, %c0: index, %end: index) -> !Row {
  %n0 = arith.constant 0 : i32
  %sum, %n = tile.split_reduce %first, %past = %c0 to %end fill -> !Row, i32 {
    tile.yield %zero, %n0 : !Row, i32
  } merge %a, %b with %c, %d {
    %s = arith.addf %a, %c : !Row
    %t = arith.addi %b, %d : i32
    tile.yield %s, %t : !Row, i32
  }
  func.return %sum : !Row
}

// CHECK-LABEL: tile.kernel @row_sums
// CHECK: tile.split_reduce %first, %past = %{{.*}} to %{{.*}} part 4 balanced 2 -> tensor<16xf32> {
// CHECK:   scf.for %{{.*}} = %first to %past
// CHECK:   tile.yield %{{.*}} : tensor<16xf32>
// CHECK: } merge %{{.*}} with %{{.*}} {
tile.kernel @row_sums(%x: !X, %y: !Y) grid(%m = M ceildiv 16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c16 : index
  %k = tile.dim "K"
  %steps = arith.ceildivsi %k, %c64 : index
  %zero = arith.constant dense<0.0> : !Row
  %sum = tile.split_reduce %first, %past = %c0 to %steps part 4 balanced 2 -> !Row {
    %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (!Row) {
      %col = arith.muli %i, %c64 : index
      %t = tile.load %x[%row, %col] : !X -> !Tile
      %own = tile.reduce sum %t axis 1 : !Tile -> !Row
      %new = arith.addf %old, %own : !Row
      scf.yield %new : !Row
    }
    tile.yield %part : !Row
  } merge %left with %right {
    %both = arith.addf %left, %right : !Row
    tile.yield %both : !Row
  }
  tile.store %sum, %y[%row] : !Row, !Y
}
