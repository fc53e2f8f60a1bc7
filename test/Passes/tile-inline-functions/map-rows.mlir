// What rows or columns have one of is computed as a vector before it meets a tile, and for rows summed, scalars in it.
//
// RUN: tessera-opt %s --tile-inline-functions --canonicalize --cse -split-input-file | FileCheck %s

!T = tensor<64x32xf32>
!C = tensor<64x32xi32>
!R = tensor<64xf32>
!X = !tile.view<[M, 32], f32>

// A gate: two additions for each element beside the multiply-add, of its row and of its column.
func.func @gated(%x: f32, %scale: f32, %q: i32, %k: i32, %ref: f32) -> f32 {
  %gates = tile.argument "gates" : !tile.view<[M], f32>
  %log2e = arith.constant 1.5 : f32
  %more = arith.constant 3.0 : f32
  %i = arith.index_cast %q : i32 to index
  %j = arith.index_cast %k : i32 to index
  %of_row = tile.load %gates[%i] : !tile.view<[M], f32> -> f32
  %of_column = tile.load %gates[%j] : !tile.view<[M], f32> -> f32
  %s = arith.mulf %x, %scale : f32
  %raised = arith.addf %s, %of_row : f32
  %y = arith.subf %raised, %of_column : f32
  %z = arith.addf %y, %more : f32
  %e = arith.mulf %z, %log2e : f32
  %less = arith.subf %e, %ref : f32
  func.return %less : f32
}
// CHECK-LABEL: tile.kernel @gates
// CHECK-DAG:     %[[ROWS:.*]] = tile.load %gates[%{{.*}}] : !tile.view<[M], f32> -> tensor<64xf32>
// CHECK-DAG:     %[[COLUMNS:.*]] = tile.load %gates[%{{.*}}] : !tile.view<[M], f32> -> tensor<32xf32>
// CHECK-DAG:     %[[LOWERED:.*]] = tile.broadcast %[[COLUMNS]] axis 0
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[ROWS]], %{{.*}} : tensor<64xf32>
// CHECK:         arith.addf %[[SCALED]], %{{.*}} : tensor<64xf32>
// CHECK:         %[[SUM:.*]] = arith.subf %{{.*}}, %{{.*}} : tensor<64xf32>
// CHECK:         %[[RAISED:.*]] = tile.broadcast %[[SUM]] axis 1
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %{{.*}} : tensor<64x32xf32>
// CHECK-NEXT:    %[[FIRST:.*]] = arith.addf %[[PRODUCT]], %[[RAISED]] : tensor<64x32xf32>
// CHECK:         %[[SECOND:.*]] = arith.mulf %[[LOWERED]], %{{.*}} : tensor<64x32xf32>
// CHECK-NEXT:    arith.addf %[[SECOND]], %[[FIRST]] : tensor<64x32xf32>
// CHECK-NOT:     tensor<64x32xf32>
// CHECK:         tile.store
tile.kernel @gates(%x: !X, %scale: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !X -> !T
  %ref = tile.reduce max %s axis 1 : !T -> !R
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %y = tile.map @gated(%s, %scale, %q, %k, %ref axis 1) : (!T, f32, !C, !C, !R) -> !T
  tile.store %y, %x[%row, %c0] : !T, !X
}

// -----

!T = tensor<64x32xf32>
!R = tensor<64xf32>
!X = !tile.view<[M, 32], f32>

// One to subtract, and nothing else: as it was.
func.func @less(%x: f32, %scale: f32, %ref: f32) -> f32 {
  %s = arith.mulf %x, %scale : f32
  %less = arith.subf %s, %ref : f32
  func.return %less : f32
}
// CHECK-LABEL: tile.kernel @references
// CHECK:         %[[MAX:.*]] = tile.reduce max
// CHECK:         %[[REF:.*]] = tile.broadcast %[[MAX]] axis 1
// CHECK:         %[[PRODUCT:.*]] = arith.mulf
// CHECK-NEXT:    arith.subf %[[PRODUCT]], %[[REF]]
tile.kernel @references(%x: !X, %scale: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !X -> !T
  %ref = tile.reduce max %s axis 1 : !T -> !R
  %y = tile.map @less(%s, %scale, %ref axis 1) : (!T, f32, !R) -> !T
  tile.store %y, %x[%row, %c0] : !T, !X
}

// -----

!T = tensor<64x32xf32>
!C = tensor<64x32xi32>
!X = !tile.view<[M, 32], f32>
!N = !tile.view<[M], bf16>

// What is made of rows alone, and of columns alone, is made as vectors.
func.func @decay(%x: f32, %rate: f32, %q: i32, %k: i32) -> f32 {
  %numbers = tile.argument "numbers" : !N
  %i = arith.index_cast %q : i32 to index
  %j = arith.index_cast %k : i32 to index
  %stored = tile.load %numbers[%i] : !N -> bf16
  %of_row = arith.extf %stored : bf16 to f32
  %weight = math.exp2 %of_row : f32
  %other = tile.load %numbers[%j] : !N -> bf16
  %of_column = arith.extf %other : bf16 to f32
  %more = arith.maximumf %of_column, %rate : f32
  %least = arith.minimumf %weight, %more : f32
  %y = arith.mulf %x, %least : f32
  func.return %y : f32
}
// CHECK-LABEL: tile.kernel @decays
// CHECK:         arith.extf %{{.*}} : tensor<64xbf16> to tensor<64xf32>
// CHECK:         %[[WEIGHT:.*]] = math.exp2 %{{.*}} : tensor<64xf32>
// CHECK:         %[[WEIGHTS:.*]] = tile.broadcast %[[WEIGHT]] axis 1
// CHECK:         arith.extf %{{.*}} : tensor<32xbf16> to tensor<32xf32>
// CHECK:         %[[RATES:.*]] = tile.splat %rate : f32 -> tensor<32xf32>
// CHECK:         %[[MORE:.*]] = arith.maximumf %{{.*}}, %[[RATES]] : tensor<32xf32>
// CHECK:         %[[MORES:.*]] = tile.broadcast %[[MORE]] axis 0
// CHECK:         arith.minimumf %[[WEIGHTS]], %[[MORES]] : tensor<64x32xf32>
tile.kernel @decays(%x: !X, %rate: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !X -> !T
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %y = tile.map @decay(%s, %rate, %q, %k) : (!T, f32, !C, !C) -> !T
  tile.store %y, %x[%row, %c0] : !T, !X
}

// -----

!T = tensor<64x32xf32>
!C = tensor<64x32xi32>
!R = tensor<32xf32>
!X = !tile.view<[M, 32], f32>

// Two numbers of each column are summed as vectors: one addition for each element in place of two.
func.func @lowered(%x: f32, %k: i32, %ref: f32) -> f32 {
  %gates = tile.argument "gates" : !tile.view<[M], f32>
  %log2e = arith.constant 1.5 : f32
  %j = arith.index_cast %k : i32 to index
  %of_column = tile.load %gates[%j] : !tile.view<[M], f32> -> f32
  %y = arith.addf %x, %of_column : f32
  %e = arith.mulf %y, %log2e : f32
  %less = arith.subf %e, %ref : f32
  func.return %less : f32
}
// CHECK-LABEL: tile.kernel @columns
// CHECK:         %[[OWN:.*]] = tile.load %gates[%{{.*}}] : !tile.view<[M], f32> -> tensor<32xf32>
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[OWN]], %{{.*}} : tensor<32xf32>
// CHECK:         %[[SUM:.*]] = arith.subf %[[SCALED]], %{{.*}} : tensor<32xf32>
// CHECK:         %[[LOWERED:.*]] = tile.broadcast %[[SUM]] axis 0
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %{{.*}} : tensor<64x32xf32>
// CHECK-NEXT:    arith.addf %[[PRODUCT]], %[[LOWERED]] : tensor<64x32xf32>
// CHECK-NOT:     tensor<64x32xf32>
// CHECK:         tile.store
tile.kernel @columns(%x: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !X -> !T
  %ref = tile.reduce max %s axis 0 : !T -> !R
  %k = tile.iota %c0 axis 1 : !C
  %y = tile.map @lowered(%s, %k, %ref axis 0) : (!T, !C, !R) -> !T
  tile.store %y, %x[%row, %c0] : !T, !X
}
