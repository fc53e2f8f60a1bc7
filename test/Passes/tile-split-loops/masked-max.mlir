// The largest elements of rows are looked for in iterations that need a mask, and not in others.
//
// RUN: tessera-opt %s --tile-split-loops --canonicalize --cse | FileCheck %s

!S = tensor<64x64xf32>
!Row = tensor<64xf32>
!X = !tile.view<[M, N], f32>
!Mask = tensor<64x64xi1>
!Cols = tensor<64x64xi32>

// CHECK-LABEL: tile.kernel @masked
// CHECK:       %[[WHOLE:.*]] = scf.for
// CHECK-NOT:     tile.reduce maximum
// CHECK:         tile.reduce sum
// CHECK:       scf.for
// CHECK:         arith.select
// CHECK:         %[[P:.*]] = math.exp2
// CHECK:         tile.reduce sum
// CHECK:         %[[OWN:.*]] = tile.reduce maximum %[[P]] axis 1
// CHECK:         arith.maximumf %{{.*}}, %[[OWN]]
tile.kernel @masked(%q: !tile.view<[M, 64], bf16>, %k: !tile.view<[N, 64], bf16>, %y: !tile.view<[M], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %n = tile.dim "N"
  %blocks = arith.ceildivsi %n, %c64 : index
  %n_i32 = arith.index_cast %n : index to i32
  %end = tile.splat %n_i32 : i32 -> !Cols
  %zero = arith.constant dense<0.0> : !Row
  %minus_inf = arith.constant dense<0xFF800000> : !S
  %qt = tile.load %q[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %sum, %largest = scf.for %j = %c0 to %blocks step %c1 iter_args(%sum_old = %zero, %old = %zero) -> (!Row, !Row) {
    %col = arith.muli %j, %c64 : index
    %kt = tile.load %k[%col, %c0] : !tile.view<[N, 64], bf16> -> tensor<64x64xbf16>
    %k_t = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %s = tile.dot %qt, %k_t : tensor<64x64xbf16>, tensor<64x64xbf16> -> !S
    %cols = tile.iota %col axis 1 : !Cols
    %inside = arith.cmpi slt, %cols, %end : !Cols
    %e = arith.select %inside, %s, %minus_inf : !Mask, !S
    %p = math.exp2 %e : !S
    %sum_p = tile.reduce sum %p axis 1 : !S -> !Row
    %sum_new = arith.addf %sum_old, %sum_p : !Row
    %new = tile.masked_max %old, %p : !Row, !S
    scf.yield %sum_new, %new : !Row, !Row
  }
  %both = arith.addf %sum, %largest : !Row
  tile.store %both, %y[%row] : !Row, !tile.view<[M], f32>
}

// What is loaded for columns may hide them, and so may a choice of the least number of a type. What a row has one of, and
// numbers, hide nothing of it.
// CHECK-LABEL: tile.kernel @others
// CHECK:         %[[A:.*]] = math.exp2
// CHECK:         %[[B:.*]] = math.exp2
// CHECK:         %[[C:.*]] = math.exp2
// CHECK:         tile.reduce maximum %[[A]] axis 1
// CHECK:         tile.reduce maximum %[[B]] axis 1
// CHECK-NOT:     tile.reduce maximum %[[C]]
tile.kernel @others(%x: !X, %of_columns: !tile.view<[N], f32>, %of_rows: !tile.view<[M], f32>, %y: !tile.view<[M], f32>, %a: f32)
    grid(%m = M ceildiv 64) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !Row
  %zeros = arith.constant dense<0.0> : !S
  %columns = tile.load %of_columns[%c0] : !tile.view<[N], f32> -> !Row
  %by_column = tile.broadcast %columns axis 0 : !Row -> !S
  %rows = tile.load %of_rows[%row] : !tile.view<[M], f32> -> !Row
  %by_row = tile.broadcast %rows axis 1 : !Row -> !S
  %factor = tile.splat %a : f32 -> !S
  %e_columns = arith.mulf %by_column, %factor : !S
  %p_columns = math.exp2 %e_columns : !S
  %places = tile.iota %c0 axis 1 : !Cols
  %five = arith.constant dense<5> : !Cols
  %is_five = arith.cmpi eq, %places, %five : !Cols
  %least = arith.constant dense<-65504.0> : !S
  %chosen = arith.select %is_five, %zeros, %least : !Mask, !S
  %p_chosen = math.exp2 %chosen : !S
  %e_rows = arith.mulf %by_row, %factor : !S
  %p_rows = math.exp2 %e_rows : !S
  %first = tile.masked_max %zero, %p_columns : !Row, !S
  %second = tile.masked_max %first, %p_chosen : !Row, !S
  %third = tile.masked_max %second, %p_rows : !Row, !S
  %sum = tile.reduce sum %p_rows axis 1 : !S -> !Row
  %both = arith.addf %sum, %third : !Row
  tile.store %both, %y[%row] : !Row, !tile.view<[M], f32>
}
