// The iterations that a mask leaves, from its comparisons.
//
// RUN: tessera-opt %s --tile-find-visits --canonicalize --cse --canonicalize -split-input-file -verify-diagnostics | FileCheck %s

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>

// Rows from 64 m on see columns up to theirs: blocks up to (64 m + 63) / 32.
// CHECK-LABEL: @causal
// CHECK-NOT:     tile.visits
// CHECK:         %[[ROW:.*]] = arith.muli %m, %c64
// CHECK:         %[[REACH:.*]] = arith.addi %[[ROW]], %c64
// CHECK:         %[[END:.*]] = arith.ceildivsi %[[REACH]], %c32
// CHECK:         arith.minsi %n, %[[END]]
tile.kernel @causal(%y: !tile.view<[M, 32], f32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-remark @+1 {{the mask leaves out iterations at the end, as its comparisons say; the end moves with the rows}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %seen = arith.cmpi sle, %k, %q : !C
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// |k - q| <= w, and a part that is data.
// CHECK-LABEL: @window
// CHECK-COUNT-2: arith.ceildivsi
// CHECK-DAG:     %[[LEAST:.*]] = arith.maxsi %{{.*}}, %c0
// The window may be any number: no iteration begins behind the last one.
// CHECK-DAG:     %[[FIRST:.*]] = arith.minsi %[[LEAST]], %n
// CHECK-DAG:     %[[PAST:.*]] = arith.minsi %n, %{{.*}}
// CHECK:         arith.maxsi %[[PAST]], %[[FIRST]]
tile.kernel @window(%y: !tile.view<[M, 32], f32>, %n: index, %w: i32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %x = tile.load %y[%row, %c0] : !tile.view<[M, 32], f32> -> tensor<64x32xf32>
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %data = arith.cmpf ogt, %x, %zero : tensor<64x32xf32>
  // expected-remark @+1 {{the mask leaves out iterations at both ends, as its comparisons say; a part of it is taken to hold everywhere: it holds values that are not comparisons of integers; the end moves with the rows}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %away = arith.subi %k, %q : !C
    %distance = math.absi %away : !C
    %ws = tile.splat %w : i32 -> !C
    %near = arith.cmpi sle, %distance, %ws : !C
    %seen = arith.andi %near, %data : !M
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// CHECK-LABEL: @products
tile.kernel @products(%y: !tile.view<[M, 32], f32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-remark @+1 {{every iteration is visited: it multiplies two values that are not constant}}
  %first, %past = tile.visits %j = %c0 to %n {
    %k = tile.iota %j axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %p = arith.muli %k, %q : !C
    %seen = arith.cmpi sle, %p, %q : !C
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// The first keys and those near: what is between them is visited, and masked.
// CHECK-LABEL: @parts
tile.kernel @parts(%y: !tile.view<[M, 32], f32>, %n: index, %few: i32, %near: i32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-remark @+1 {{the mask leaves out iterations at both ends, as its comparisons say; iterations between its parts are visited too}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %fews = tile.splat %few : i32 -> !C
    %nears = tile.splat %near : i32 -> !C
    %is_first = arith.cmpi slt, %k, %fews : !C
    %away = arith.subi %q, %k : !C
    %is_near = arith.cmpi slt, %away, %nears : !C
    %not_after = arith.cmpi sle, %k, %q : !C
    %in_window = arith.andi %is_near, %not_after : !M
    %seen = arith.ori %is_first, %in_window : !M
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

!B = tensor<64x32xi8>

// Indices of 8 bits wrap: no comparison of them bounds iterations.
// CHECK-LABEL: @bytes
tile.kernel @bytes(%y: !tile.view<[M, 32], f32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-remark @+1 {{every iteration is visited: it compares integers that may have wrapped in 8 bits}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %low = arith.trunci %k : !C to !B
    %ten = arith.constant dense<10> : !B
    %seen = arith.cmpi slt, %low, %ten : !B
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// Where the columns end is where the loop over blocks ends: nothing is asked.
// CHECK-LABEL: @ends
// CHECK:         %[[BLOCKS:.*]] = arith.ceildivsi %n, %c32
// CHECK-NOT:     arith.minsi
// CHECK:         arith.index_cast %[[BLOCKS]]
tile.kernel @ends(%y: !tile.view<[M, 32], f32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %n_i32 = arith.index_cast %n : index to i32
  %end = tile.splat %n_i32 : i32 -> !C
  %blocks = arith.ceildivsi %n, %c32 : index
  // expected-remark @+1 {{the mask leaves out iterations at the end, as its comparisons say}}
  %first, %past = tile.visits %j = %c0 to %blocks {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %seen = arith.cmpi slt, %k, %end : !C
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// A tile of the grid has a first row, so that where its rows end says nothing of the blocks.
// CHECK-LABEL: @rows_that_end
// CHECK:         %[[BLOCKS:.*]] = arith.ceildivsi %n, %c32
// CHECK-NOT:     arith.select
// CHECK:         arith.index_cast %[[BLOCKS]]
tile.kernel @rows_that_end(%y: !tile.view<[M, 32], f32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %rows = tile.dim "M"
  %rows_i32 = arith.index_cast %rows : index to i32
  %end = tile.splat %rows_i32 : i32 -> !C
  %blocks = arith.ceildivsi %n, %c32 : index
  // expected-remark @+1 {{every iteration is visited}}
  %first, %past = tile.visits %j = %c0 to %blocks {
    %q = tile.iota %row axis 0 : !C
    %seen = arith.cmpi slt, %q, %end : !C
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}

// -----

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>

// What a mask hides of which a part is true everywhere: that part has no iteration, so the rest alone counts.
// CHECK-LABEL: @hidden
// CHECK-NOT:     arith.select
// CHECK-NOT:     arith.cmpi
tile.kernel @hidden(%y: !tile.view<[M, 32], f32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %all = arith.constant dense<true> : !M
  // expected-remark @+1 {{the mask leaves out iterations at the start, as its comparisons say}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %place = arith.cmpi sle, %k, %q : !C
    %seen = arith.andi %place, %all : !M
    %hidden = arith.xori %seen, %all : !M
    tile.mask %hidden : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = tile.splat %f : f32 -> tensor<64x32xf32>
  tile.store %t, %y[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
}
