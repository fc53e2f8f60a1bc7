// What is compared is compared in whole numbers: sums that 32 bits may not have are made in 64.
//
// RUN: tessera-opt %s --tile-widen-comparisons --split-input-file | FileCheck %s

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>

// Indices, extents and what is computed of them have 32 bits, also three of them.
// CHECK-LABEL: @places
// CHECK-NOT:     i64
tile.kernel @places(%y: !tile.view<[M], i32>, %x: !tile.view<[N], f32>) grid(%m = M ceildiv 64, %n = N ceildiv 32) {
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %col = arith.muli %n, %c32 : index
  %rows = tile.dim "M"
  %columns = tile.dim "N"
  %shift = arith.subi %columns, %rows : index
  %shift_i32 = arith.index_cast %shift : index to i32
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %col axis 1 : !C
  %shifts = tile.splat %shift_i32 : i32 -> !C
  %own = arith.addi %q, %shifts : !C
  %window = arith.constant dense<4096> : !C
  %first = arith.subi %own, %window : !C
  %distance = arith.subi %own, %k : !C
  %away = math.absi %distance : !C
  %not_before = arith.cmpi sge, %k, %first : !C
  %near = arith.cmpi slt, %away, %window : !C
  %seen = arith.andi %not_before, %near : !M
  %some = tile.any %seen : !M
  %some_i32 = arith.extui %some : i1 to i32
  tile.store %some_i32, %y[%row] : i32, !tile.view<[M], i32>
}

// -----

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>

// An argument may be any number, and so may a constant. The sum that is also stored wraps, and is made once more.
// CHECK-LABEL: @arguments
// CHECK-SAME:    %[[W:[a-z]+]]: i32) grid
// CHECK:         %[[WIDE:.*]] = arith.extsi %[[W]] : i32 to i64
// CHECK:         %[[Q:.*]] = tile.iota %{{.*}} axis 0 : tensor<64x32xi32>
// CHECK:         %[[Q64:.*]] = arith.extsi %[[Q]] : tensor<64x32xi32> to tensor<64x32xi64>
// CHECK:         %[[WS:.*]] = tile.splat %[[W]] : i32 -> tensor<64x32xi32>
// CHECK-NEXT:    %[[WS64:.*]] = tile.splat %[[WIDE]] : i64 -> tensor<64x32xi64>
// CHECK:         %[[LAST:.*]] = arith.addi %[[Q]], %[[WS]] : tensor<64x32xi32>
// CHECK:         %[[LAST64:.*]] = arith.addi %[[Q64]], %[[WS64]] : tensor<64x32xi64>
// CHECK:         %[[SCALED:.*]] = arith.muli %[[LAST64]], %{{.*}} : tensor<64x32xi64>
// CHECK:         arith.cmpi sle, %{{.*}}, %[[SCALED]] : tensor<64x32xi64>
// A comparison of numbers that are no sums is right in 32 bits.
// CHECK:         arith.cmpi sle, %{{.*}}, %[[WS]] : tensor<64x32xi32>
// CHECK:         tile.store %[[LAST]]
tile.kernel @arguments(%y: !tile.view<[M], i32>, %z: !tile.view<[M, 32], i32>, %w: i32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %ws = tile.splat %w : i32 -> !C
  %last = arith.addi %q, %ws : !C
  %three = arith.constant dense<3> : !C
  %scaled = arith.muli %last, %three : !C
  %seen = arith.cmpi sle, %k, %scaled : !C
  %plain = arith.cmpi sle, %k, %ws : !C
  %both = arith.andi %seen, %plain : !M
  %some = tile.any %both : !M
  %some_i32 = arith.extui %some : i1 to i32
  tile.store %some_i32, %y[%row] : i32, !tile.view<[M], i32>
  tile.store %last, %z[%row, %c0] : !C, !tile.view<[M, 32], i32>
}

// -----

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>

// So may what is loaded. A minimum of a sum with a number of 32 bits is one again.
// CHECK-LABEL: @loaded
// CHECK:         %[[OWN:.*]] = tile.load %starts
// CHECK:         %[[OWN64:.*]] = arith.extsi %[[OWN]] : tensor<64xi32> to tensor<64xi64>
// CHECK:         %[[STARTS:.*]] = tile.broadcast %[[OWN64]] axis 1 : tensor<64xi64> -> tensor<64x32xi64>
// CHECK:         %[[SUM:.*]] = arith.addi %[[STARTS]], %{{.*}} : tensor<64x32xi64>
// CHECK:         %[[LEAST:.*]] = arith.minsi %[[SUM]], %{{.*}} : tensor<64x32xi64>
// CHECK:         %[[LOW:.*]] = arith.trunci %[[LEAST]] : tensor<64x32xi64> to tensor<64x32xi32>
// CHECK:         arith.cmpi sge, %{{.*}}, %[[LOW]] : tensor<64x32xi32>
// CHECK:         tile.store %[[LOW]]
tile.kernel @loaded(%y: !tile.view<[M], i32>, %z: !tile.view<[M, 32], i32>, %starts: !tile.view<[M], i32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %own = tile.load %starts[%row] : !tile.view<[M], i32> -> tensor<64xi32>
  %start = tile.broadcast %own axis 1 : tensor<64xi32> -> !C
  %k = tile.iota %c0 axis 1 : !C
  %sum = arith.addi %start, %k : !C
  %ten = arith.constant dense<10> : !C
  %least = arith.minsi %sum, %ten : !C
  %seen = arith.cmpi sge, %k, %least : !C
  %some = tile.any %seen : !M
  %some_i32 = arith.extui %some : i1 to i32
  tile.store %some_i32, %y[%row] : i32, !tile.view<[M], i32>
  tile.store %least, %z[%row, %c0] : !C, !tile.view<[M, 32], i32>
}

// -----

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>

// Indices too: bounds of loops, and where an iota begins. A bound that is no index is the nearest one.
// CHECK-LABEL: @indices
// CHECK:         %[[BEGIN:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK:         %[[WIDE:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK:         %[[START:.*]] = arith.addi %[[BEGIN]], %[[WIDE]] : i64
// CHECK:         %[[STEPS:.*]] = tile.iota %c0{{.*}} axis 0 : tensor<64x32xi32>
// CHECK:         %[[STEPS64:.*]] = arith.extsi %[[STEPS]] : tensor<64x32xi32> to tensor<64x32xi64>
// CHECK:         %[[STARTS:.*]] = tile.splat %[[START]] : i64 -> tensor<64x32xi64>
// CHECK:         %[[ROWS:.*]] = arith.addi %[[STARTS]], %[[STEPS64]]
// CHECK:         arith.cmpi sle, %{{.*}}, %[[ROWS]] : tensor<64x32xi64>
// CHECK:         %[[NOT_LESS:.*]] = arith.maxsi %[[START]], %c-2147483648_i64 : i64
// CHECK:         %[[NOT_MORE:.*]] = arith.minsi %[[NOT_LESS]], %c2147483647_i64 : i64
// CHECK:         %[[END:.*]] = arith.index_cast %[[NOT_MORE]] : i64 to index
// CHECK:         scf.for %{{.*}} = %c0 to %[[END]]
tile.kernel @indices(%y: !tile.view<[M], i32>, %a: i32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %ahead = arith.index_cast %a : i32 to index
  %start = arith.addi %row, %ahead : index
  %q = tile.iota %start axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %seen = arith.cmpi sle, %k, %q : !C
  %some = tile.any %seen : !M
  scf.for %j = %c0 to %start step %c1 {
    %some_i32 = arith.extui %some : i1 to i32
    tile.store %some_i32, %y[%row] : i32, !tile.view<[M], i32>
  }
}

// -----

// Order without sign, and integers of fewer bits, are those of the bits.
// CHECK-LABEL: @narrow
// CHECK-NOT:     i64
tile.kernel @narrow(%y: !tile.view<[M], i32>, %a: i32) grid(%m = M) {
  %sum = arith.addi %a, %a : i32
  %below = arith.cmpi ult, %sum, %a : i32
  %below_i32 = arith.extui %below : i1 to i32
  tile.store %below_i32, %y[%m] : i32, !tile.view<[M], i32>
  %b = arith.trunci %a : i32 to i8
  %twice = arith.addi %b, %b : i8
  %less = arith.cmpi slt, %twice, %b : i8
  %less_i32 = arith.extui %less : i1 to i32
  tile.store %less_i32, %y[%m] : i32, !tile.view<[M], i32>
}
