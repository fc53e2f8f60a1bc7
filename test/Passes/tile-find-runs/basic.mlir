// Rows that numbers name one behind the other become runs, of the longest length that follows from the program.
//
// RUN: tessera-opt %s --tile-find-runs -verify-diagnostics | FileCheck %s

!Cache = !tile.view<[PAGES, ROWS, 64], bf16>
!Flat = !tile.view<[ROWS, 64], bf16>
!Table = !tile.view<[B, LENGTH], i32>
!Q = !tile.view<[M, 64], bf16>
!O = !tile.view<[M, 64], f32>

// Key k is row k mod 16 of page k / 16, up to the last key. An entry is read where the table has it.
// CHECK-LABEL: tile.kernel @pages
// CHECK:       scf.for
// CHECK:       %[[COL:.*]] = arith.muli
// CHECK-NOT:   tile.gather %
// CHECK:       %[[K:.*]] = tile.gather_runs %k[%c0{{.*}}, %c0{{.*}}] run 16 with(%b, %[[COL]], %{{.*}} : index, index, i32) {
// CHECK-NEXT:  ^bb0(%[[I:.*]]: index, %[[B:.*]]: index, %[[FIRST:.*]]: index, %[[LENGTH:.*]]: i32):
// CHECK:         %[[ROW:.*]] = arith.muli %[[I]], %{{.*}} : index
// CHECK:         %[[KEY:.*]] = arith.addi %[[FIRST]], %[[ROW]] : index
// CHECK:         %[[KEY32:.*]] = arith.index_cast %[[KEY]] : index to i32
// CHECK:         %[[ENTRY:.*]] = arith.divui %[[KEY32]], %{{.*}} : i32
// CHECK:         %[[NEAREST:.*]] = arith.maxsi
// CHECK:         %[[LOADED:.*]] = tile.load %table[%[[B]], %[[NEAREST]]]
// CHECK:         arith.select %{{.*}}, %[[LOADED]], %{{.*}} : i32
// CHECK-NOT:     arith.remui
// CHECK:         %[[LEFT:.*]] = arith.subi %{{.*}}, %{{.*}} : i64
// CHECK:         arith.minsi
// CHECK:         tile.yield %{{.*}}, %{{.*}} : index, index
// CHECK:       } : !tile.view<[ROWS, 64], bf16> -> tensor<64x64xbf16>
// CHECK:       tile.transpose %[[K]]
tile.kernel @pages(%q: !Q, %k: !Flat, %table: !Table, %lengths: !tile.view<[B], i32>, %o: !O) grid(%m = M ceildiv 64, %b = B) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %end = tile.dim "LENGTH"
  %row = arith.muli %m, %c64 : index
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  %length = tile.load %lengths[%b] : !tile.view<[B], i32> -> i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %page_rows = arith.constant dense<16> : tensor<64xi32>
  %none = arith.constant dense<-1> : tensor<64xi32>
  %sum = scf.for %j = %c0 to %end step %c1 iter_args(%old = %zero) -> (tensor<64x64xf32>) {
    %col = arith.muli %j, %c64 : index
    %keys = tile.iota %col axis 0 : tensor<64xi32>
    %ends = tile.splat %length : i32 -> tensor<64xi32>
    %inside = arith.cmpi slt, %keys, %ends : tensor<64xi32>
    %number = arith.divui %keys, %page_rows : tensor<64xi32>
    %place = arith.remui %keys, %page_rows : tensor<64xi32>
    %entry = tile.gather %table[%b, %c0] rows %number : !Table, tensor<64xi32> -> tensor<64xi32>
    %start = arith.muli %entry, %page_rows : tensor<64xi32>
    %at = arith.addi %start, %place : tensor<64xi32>
    %known = arith.select %inside, %at, %none : tensor<64xi1>, tensor<64xi32>
    // expected-remark @below {{comes in runs of 16 rows, each by bulk copies}}
    %kt = tile.gather %k[%c0, %c0] rows %known : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
    %k_t = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %new = tile.dot %qt, %k_t, %old : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    scf.yield %new : tensor<64x64xf32>
  }
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
}

// One run with an end: rows of a packed sequence.
// CHECK-LABEL: tile.kernel @packed
// CHECK:       tile.gather_runs %k[%{{.*}}, %{{.*}}] run 64 with(%{{.*}} : i32, index, i32)
// CHECK:         tile.yield %{{.*}}, %{{.*}} : index, index
tile.kernel @packed(%q: !Q, %k: !Flat, %starts: !tile.view<[B], i32>, %o: !O) grid(%m = M ceildiv 64, %b = B) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %next = arith.addi %b, %c1 : index
  %begin = tile.load %starts[%b] : !tile.view<[B], i32> -> i32
  %end = tile.load %starts[%next] : !tile.view<[B], i32> -> i32
  %begins = tile.splat %begin : i32 -> tensor<64xi32>
  %ends = tile.splat %end : i32 -> tensor<64xi32>
  %none = arith.constant dense<-1> : tensor<64xi32>
  %own = tile.iota %row axis 0 : tensor<64xi32>
  %at = arith.addi %begins, %own : tensor<64xi32>
  %inside = arith.cmpi sgt, %ends, %at : tensor<64xi32>
  %known = arith.select %inside, %at, %none : tensor<64xi1>, tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{comes in runs of 64 rows, each by bulk copies}}
  %kt = tile.gather %k[%c0, %c0] rows %known : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  %sum = tile.dot %qt, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
}

// Pages of any multiple of 16 rows: a run of 16 lies in one. A condition in parts, one of which is the same for all rows.
// CHECK-LABEL: tile.kernel @any_page
// CHECK:       tile.gather_runs %k[%{{.*}}, %{{.*}}, %{{.*}}] run 16
// CHECK:         arith.select %{{.*}}, %{{.*}}, %{{.*}} : i64
// CHECK:         tile.yield %{{.*}}, %{{.*}}, %{{.*}} : index, index, index
tile.kernel @any_page(%q: !Q, %k: !Cache, %table: !Table, %o: !O, %length: i32) grid(%m = M ceildiv 64, %b = B) {
  %flag = arith.cmpi sgt, %b, %m : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %rows = tile.dim "ROWS"
  %rows_i32 = arith.index_cast %rows : index to i32
  %of_page = tile.splat %rows_i32 : i32 -> tensor<64xi32>
  %of_run = arith.constant dense<16> : tensor<64xi32>
  %none = arith.constant dense<-1> : tensor<64xi32>
  %keys = tile.iota %row axis 0 : tensor<64xi32>
  %run = arith.divui %keys, %of_run : tensor<64xi32>
  %first = arith.muli %run, %of_run : tensor<64xi32>
  %in_run = arith.remui %keys, %of_run : tensor<64xi32>
  %number = arith.divui %first, %of_page : tensor<64xi32>
  %before = arith.remui %first, %of_page : tensor<64xi32>
  %place = arith.addi %before, %in_run : tensor<64xi32>
  %ends = tile.splat %length : i32 -> tensor<64xi32>
  %flags = tile.splat %flag : i1 -> tensor<64xi1>
  %below = arith.cmpi sle, %keys, %ends : tensor<64xi32>
  %inside = arith.andi %below, %flags : tensor<64xi1>
  %entry = tile.gather %table[%b, %c0] rows %number : !Table, tensor<64xi32> -> tensor<64xi32>
  %page = arith.select %inside, %entry, %none : tensor<64xi1>, tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{comes in runs of 16 rows, each by bulk copies}}
  %kt = tile.gather %k[%c0, %c0, %c0] rows %page, %place : !Cache, tensor<64xi32>, tensor<64xi32> -> tensor<64x64xbf16>
  %sum = tile.dot %qt, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
}

// Bounds of iterations that are compared in 64 bits, as their arithmetic may have more than 32, and numbers that have not.
// CHECK-LABEL: tile.kernel @widened
// CHECK:       tile.gather_runs %k[%{{.*}}, %{{.*}}] run 16 with(%{{.*}}, %{{.*}} : i64, i64)
// CHECK:         %[[STEP:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK:         %[[KEY:.*]] = arith.addi %{{.*}}, %[[STEP]] : i64
// CHECK:         %[[LEFT:.*]] = arith.subi %{{.*}}, %[[KEY]] : i64
// CHECK:         arith.addi %[[LEFT]], %{{.*}} : i64
// CHECK:         tile.yield %{{.*}}, %{{.*}} : index, index
tile.kernel @widened(%q: !Q, %k: !Flat, %lengths: !tile.view<[B], i32>, %from: i32, %o: !O) grid(%m = M ceildiv 64, %b = B) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c2 = arith.constant 2 : i64
  %row = arith.muli %m, %c64 : index
  %from64 = arith.extsi %from : i32 to i64
  %begin = arith.muli %from64, %c2 : i64
  %length = tile.load %lengths[%b] : !tile.view<[B], i32> -> i32
  %length64 = arith.extsi %length : i32 to i64
  %begins = tile.splat %begin : i64 -> tensor<64xi64>
  %ends = tile.splat %length64 : i64 -> tensor<64xi64>
  %none = arith.constant dense<-1> : tensor<64xi32>
  %of_page = arith.constant dense<16> : tensor<64xi32>
  %steps = tile.iota %c0 axis 0 : tensor<64xi32>
  %steps64 = arith.extsi %steps : tensor<64xi32> to tensor<64xi64>
  %keys = arith.addi %begins, %steps64 : tensor<64xi64>
  %inside = arith.cmpi sle, %keys, %ends : tensor<64xi64>
  %place = arith.remui %steps, %of_page : tensor<64xi32>
  %known = arith.select %inside, %place, %none : tensor<64xi1>, tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{comes in runs of 16 rows, each by bulk copies}}
  %kt = tile.gather %k[%c0, %c0] rows %known : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  %sum = tile.dot %qt, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
}

// The length that each iteration loads is that of the load before the loop, but for a view that the kernel stores to.
// CHECK-LABEL: tile.kernel @loaded_before
// CHECK:       %[[LENGTH:.*]] = tile.load %lengths[%b]
// CHECK:       scf.for
// CHECK:         %[[OTHER:.*]] = tile.load %stored[%b]
// CHECK:         tile.gather_runs %k[%c0{{.*}}, %c0{{.*}}] run 16 with(%{{.*}}, %[[LENGTH]], %[[OTHER]] : index, i32, i32) {
tile.kernel @loaded_before(%q: !Q, %k: !Flat, %lengths: !tile.view<[B], i32>, %stored: !tile.view<[B], i32>, %o: !O)
    grid(%m = M ceildiv 64, %b = B) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  %length = tile.load %lengths[%b] : !tile.view<[B], i32> -> i32
  %before = tile.load %stored[%b] : !tile.view<[B], i32> -> i32
  %end = arith.index_cast %length : i32 to index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<-1> : tensor<64xi32>
  %of_page = arith.constant dense<16> : tensor<64xi32>
  %sum = scf.for %j = %c0 to %end step %c1 iter_args(%old = %zero) -> (tensor<64x64xf32>) {
    %col = arith.muli %j, %c64 : index
    %keys = tile.iota %col axis 0 : tensor<64xi32>
    %own = tile.load %lengths[%b] : !tile.view<[B], i32> -> i32
    %ends = tile.splat %own : i32 -> tensor<64xi32>
    %inside = arith.cmpi slt, %keys, %ends : tensor<64xi32>
    %other = tile.load %stored[%b] : !tile.view<[B], i32> -> i32
    %bounds = tile.splat %other : i32 -> tensor<64xi32>
    %below = arith.cmpi slt, %keys, %bounds : tensor<64xi32>
    %both = arith.andi %inside, %below : tensor<64xi1>
    %place = arith.remui %keys, %of_page : tensor<64xi32>
    %known = arith.select %both, %place, %none : tensor<64xi1>, tensor<64xi32>
    // expected-remark @below {{comes in runs of 16 rows, each by bulk copies}}
    %kt = tile.gather %k[%c0, %c0] rows %known : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
    %k_t = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %new = tile.dot %qt, %k_t, %old : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    scf.yield %new : tensor<64x64xf32>
  }
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
  tile.store %before, %stored[%b] : i32, !tile.view<[B], i32>
}
