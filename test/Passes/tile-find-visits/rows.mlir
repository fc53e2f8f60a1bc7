// Masks that compare with integers that are loaded for each row: the least and the largest of a tile's rows bound the iterations.
//
// RUN: tessera-opt %s --tile-find-visits --canonicalize -split-input-file -verify-diagnostics | FileCheck %s

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>
!N = !tile.view<[M], i32>

// A row past the end counts as the last one; blocks from the least start on, up to the diagonal. What is loaded may be any number,
// so that the bound has 64 bits.
// CHECK-LABEL: @packed
// CHECK:         %[[LEAST:.*]] = tile.reduce_range min %[[I:.*]] to 64 -> i32 {
// CHECK:           %[[AT:.*]] = arith.addi %[[ROW:.*]], %[[I]]
// CHECK:           %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// CHECK:           %[[BELOW:.*]] = arith.minsi %[[AT]], %[[LAST]]
// CHECK:           %[[PLACE:.*]] = arith.maxsi %[[BELOW]], %c0
// CHECK:           tile.load %starts[%[[PLACE]]]
// CHECK:           tile.yield
// CHECK:         %[[WIDE:.*]] = arith.extsi %[[LEAST]] : i32 to i64
// CHECK:         %[[BEFORE:.*]] = arith.addi %[[WIDE]], %c-31_i64 : i64
// CHECK:         %[[BLOCK:.*]] = arith.ceildivsi %[[BEFORE]], %c32_i64 : i64
// CHECK:         arith.index_cast %[[BLOCK]] : i64 to index
// CHECK-NOT:     tile.visits
tile.kernel @packed(%y: !tile.view<[M, 32], f32>, %starts: !N, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %own = tile.load %starts[%row] : !N -> tensor<64xi32>
  // expected-remark @+1 {{the mask leaves out iterations at both ends, as its comparisons with the least and the largest of what is loaded for each row say; the end moves with the rows}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %start = tile.broadcast %own axis 1 : tensor<64xi32> -> !C
    %behind = arith.cmpi sge, %k, %start : !C
    %before = arith.cmpi sle, %k, %q : !C
    %seen = arith.andi %behind, %before : !M
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// By the number of a document: the load of the end asks itself whether the number is one.
// CHECK-LABEL: @gathered
// CHECK:         tile.reduce_range max %{{.*}} to 64 -> i32 {
// CHECK:           %[[NUMBER:.*]] = arith.select
// CHECK:           %[[PLACE:.*]] = arith.index_cast %[[NUMBER]] : i32 to index
// CHECK:           %[[END:.*]] = tile.load %ends[%[[PLACE]]]
// CHECK:           tile.yield %[[END]]
tile.kernel @gathered(%y: !tile.view<[M, 32], f32>, %numbers: !N, %ends: !tile.view<[D], i32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %own = tile.load %numbers[%row] : !N -> tensor<64xi32>
  %past_own = tile.gather_elements %ends[%own] : !tile.view<[D], i32>, tensor<64xi32> -> tensor<64xi32>
  // expected-remark @+1 {{the mask leaves out iterations at the end, as its comparisons with the least and the largest}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %end = tile.broadcast %past_own axis 1 : tensor<64xi32> -> !C
    %seen = arith.cmpi slt, %k, %end : !C
    tile.mask %seen : !M
  }
  %i = arith.index_cast %past : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// What is loaded for each column is another in each iteration.
// CHECK-LABEL: @of_columns
// CHECK-NOT:     tile.reduce_range
tile.kernel @of_columns(%y: !tile.view<[M, 32], f32>, %starts: !N, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-remark @+1 {{every iteration is visited: it compares tiles that are not computed from tile.iota, splats and constants}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %of_keys = tile.load %starts[%col] : !N -> tensor<32xi32>
    %q = tile.iota %row axis 0 : !C
    %start = tile.broadcast %of_keys axis 0 : tensor<32xi32> -> !C
    %seen = arith.cmpi sge, %q, %start : !C
    tile.mask %seen : !M
  }
  %i = arith.index_cast %past : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// What the kernel stores may have changed.
// CHECK-LABEL: @stored
// CHECK-NOT:     tile.reduce_range
tile.kernel @stored(%y: !tile.view<[M, 32], f32>, %starts: !N, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %own = tile.load %starts[%row] : !N -> tensor<64xi32>
  // expected-remark @+1 {{every iteration is visited: it compares tiles that are not computed from tile.iota, splats and constants}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %start = tile.broadcast %own axis 1 : tensor<64xi32> -> !C
    %seen = arith.cmpi sge, %k, %start : !C
    tile.mask %seen : !M
  }
  tile.store %own, %starts[%row] : tensor<64xi32>, !N
  %i = arith.index_cast %past : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// -----

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>
!N = !tile.view<[M], i64>

// The low bits of what is loaded may be any number.
// CHECK-LABEL: @low_bits
tile.kernel @low_bits(%y: !tile.view<[M, 32], f32>, %starts: !N, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %own = tile.load %starts[%row] : !N -> tensor<64xi64>
  // expected-remark @+1 {{every iteration is visited: it compares integers that may have wrapped in 32 bits}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %low = arith.trunci %own : tensor<64xi64> to tensor<64xi32>
    %start = tile.broadcast %low axis 1 : tensor<64xi32> -> !C
    %seen = arith.cmpi sge, %k, %start : !C
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// -----

!M = tensor<64x32xi1>
!C = tensor<64x32xi32>
!N = !tile.view<[M], i32>

// A block that is the same in all iterations: what rows and columns load shares a number only where neither least is above the other
// largest. The numbers count as they are, also beyond 2^30.
// CHECK-LABEL: @block
// CHECK-DAG:     %[[MOST_OF_ROWS:.*]] = tile.reduce_range max %{{.*}} to 64 -> i32
// CHECK-DAG:     %[[LEAST_OF_ROWS:.*]] = tile.reduce_range min %{{.*}} to 64 -> i32
// CHECK-DAG:     %[[LEAST_OF_COLUMNS:.*]] = tile.reduce_range min %{{.*}} to 32 -> i32
// CHECK-DAG:     %[[MOST_OF_COLUMNS:.*]] = tile.reduce_range max %{{.*}} to 32 -> i32
// CHECK-NOT:     1073741824
// CHECK-DAG:     arith.cmpi sle, %[[LEAST_OF_ROWS]], %[[MOST_OF_COLUMNS]] : i32
// CHECK-DAG:     arith.cmpi sge, %[[MOST_OF_ROWS]], %[[LEAST_OF_COLUMNS]] : i32
// CHECK:         tile.store
tile.kernel @block(%y: !tile.view<[M], i32>, %numbers: !N) grid(%m = M ceildiv 64, %n = M ceildiv 32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %col = arith.muli %n, %c32 : index
  // expected-remark @+1 {{the mask leaves out iterations at the end, as its comparisons with the least and the largest of what is loaded for each row say}}
  %first, %past = tile.visits %i = %c0 to %c1 {
    %of_rows = tile.load %numbers[%row] : !N -> tensor<64xi32>
    %of_columns = tile.load %numbers[%col] : !N -> tensor<32xi32>
    %mine = tile.broadcast %of_rows axis 1 : tensor<64xi32> -> !C
    %other = tile.broadcast %of_columns axis 0 : tensor<32xi32> -> !C
    %same = arith.cmpi eq, %mine, %other : !C
    tile.mask %same : !M
  }
  %count = arith.index_cast %past : index to i32
  tile.store %count, %y[%row] : i32, !tile.view<[M], i32>
}

// A sum of what both load may have wrapped: nothing is said of it.
// CHECK-LABEL: @sum_of_both
// CHECK-NOT:     arith.cmpi
// CHECK:         tile.store
tile.kernel @sum_of_both(%y: !tile.view<[M], i32>, %numbers: !N) grid(%m = M ceildiv 64, %n = M ceildiv 32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %col = arith.muli %n, %c32 : index
  // expected-remark @+1 {{every iteration is visited: it compares integers that may have wrapped in 32 bits}}
  %first, %past = tile.visits %i = %c0 to %c1 {
    %zero = arith.constant dense<0> : !C
    %of_rows = tile.load %numbers[%row] : !N -> tensor<64xi32>
    %of_columns = tile.load %numbers[%col] : !N -> tensor<32xi32>
    %mine = tile.broadcast %of_rows axis 1 : tensor<64xi32> -> !C
    %other = tile.broadcast %of_columns axis 0 : tensor<32xi32> -> !C
    %sum = arith.addi %mine, %other : !C
    %none = arith.cmpi ne, %sum, %zero : !C
    tile.mask %none : !M
  }
  %count = arith.index_cast %past : index to i32
  tile.store %count, %y[%row] : i32, !tile.view<[M], i32>
}

!W = tensor<64x32xi64>

// In 64 bits the largest and the least of both bound it.
// CHECK-LABEL: @sum_of_both_in_64_bits
// CHECK:         tile.reduce_range max %{{.*}} to 64 -> i32
// CHECK:         %[[MOST_OF_COLUMNS:.*]] = tile.reduce_range max %{{.*}} to 32 -> i32
// CHECK:         %[[WIDE:.*]] = arith.extsi %[[MOST_OF_COLUMNS]] : i32 to i64
// CHECK:         %[[MOST:.*]] = arith.addi %{{.*}}, %[[WIDE]] : i64
// CHECK:         arith.cmpi sge, %[[MOST]], %c1_i64 : i64
// CHECK:         tile.store
tile.kernel @sum_of_both_in_64_bits(%y: !tile.view<[M], i32>, %numbers: !N) grid(%m = M ceildiv 64, %n = M ceildiv 32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %col = arith.muli %n, %c32 : index
  // expected-remark @+1 {{the mask leaves out iterations at the end, as its comparisons with the least and the largest}}
  %first, %past = tile.visits %i = %c0 to %c1 {
    %zero = arith.constant dense<0> : !W
    %of_rows = tile.load %numbers[%row] : !N -> tensor<64xi32>
    %of_columns = tile.load %numbers[%col] : !N -> tensor<32xi32>
    %mine = tile.broadcast %of_rows axis 1 : tensor<64xi32> -> !C
    %other = tile.broadcast %of_columns axis 0 : tensor<32xi32> -> !C
    %mine_wide = arith.extsi %mine : !C to !W
    %other_wide = arith.extsi %other : !C to !W
    %sum = arith.addi %mine_wide, %other_wide : !W
    %some = arith.cmpi sgt, %sum, %zero : !W
    tile.mask %some : !M
  }
  %count = arith.index_cast %past : index to i32
  tile.store %count, %y[%row] : i32, !tile.view<[M], i32>
}

// A short loop around such blocks: what all of them load comes first, and nothing waits for the block before.
// CHECK-LABEL: @group
// CHECK-NOT:     scf.for
// CHECK-COUNT-4: tile.reduce_range max %{{.*}} to 32 -> i32
// CHECK:         tile.store
tile.kernel @group(%y: !tile.view<[M], i32>, %numbers: !N, %least: i32) grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %begin = arith.muli %m, %c128 : index
  %all = scf.for %n = %c0 to %c4 step %c1 iter_args(%before = %c0) -> (index) {
    %ahead = arith.muli %n, %c32 : index
    %col = arith.addi %begin, %ahead : index
    // expected-remark @+1 {{the mask leaves out iterations at the end, as its comparisons with the least and the largest}}
    %first, %past = tile.visits %i = %c0 to %c1 {
      %leasts = tile.splat %least : i32 -> !C
      %of_columns = tile.load %numbers[%col] : !N -> tensor<32xi32>
      %other = tile.broadcast %of_columns axis 0 : tensor<32xi32> -> !C
      %some = arith.cmpi sgt, %other, %leasts : !C
      tile.mask %some : !M
    }
    %now = arith.addi %before, %past : index
    scf.yield %now : index
  }
  %count = arith.index_cast %all : index to i32
  tile.store %count, %y[%begin] : i32, !tile.view<[M], i32>
}
