// What comes in no runs, or not by bulk copies, is copied 16 bytes at a time, and a remark says why.
//
// RUN: tessera-opt %s --tile-find-runs -split-input-file -verify-diagnostics | FileCheck %s
// CHECK-NOT: gather_runs

!Flat = !tile.view<[ROWS, 64], bf16>
!List = !tile.view<[N], i32>
!Q = !tile.view<[M, 64], bf16>
!O = !tile.view<[M, 64], f32>

tile.kernel @list(%q: !Q, %k: !Flat, %list: !List, %o: !O) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-note @below {{gives numbers of which nothing is known}}
  %numbers = tile.load %list[%row] : !List -> tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time: they come in no runs of 8 or more that follow from the program}}
  %kt = tile.gather %k[%c0, %c0] rows %numbers : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  %sum = tile.dot %qt, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
}

!Cache = !tile.view<[PAGES, ROWS, 64], bf16>

// Pages may have any number of rows.
tile.kernel @unknown_page(%q: !Q, %k: !Cache, %list: !List, %o: !O) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %rows = tile.dim "ROWS"
  %rows_i32 = arith.index_cast %rows : index to i32
  %of_page = tile.splat %rows_i32 : i32 -> tensor<64xi32>
  %keys = tile.iota %row axis 0 : tensor<64xi32>
  // expected-note @below {{divides by what is not known to be a multiple of a run's rows}}
  %number = arith.divui %keys, %of_page : tensor<64xi32>
  %place = arith.remui %keys, %of_page : tensor<64xi32>
  %page = tile.gather %list[%c0] rows %number : !List, tensor<64xi32> -> tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time}}
  %kt = tile.gather %k[%c0, %c0, %c0] rows %page, %place : !Cache, tensor<64xi32>, tensor<64xi32> -> tensor<64x64xbf16>
  %sum = tile.dot %qt, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
}

// A block of keys that begins anywhere, in pages.
tile.kernel @anywhere(%q: !Q, %k: !Flat, %list: !tile.view<[N], i32>, %o: !O, %from: i32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %start = arith.index_cast %from : i32 to index
  %of_page = arith.constant dense<16> : tensor<64xi32>
  %keys = tile.iota %start axis 0 : tensor<64xi32>
  // expected-note @below {{divides what is not known to start at a multiple of a run's rows}}
  %number = arith.divui %keys, %of_page : tensor<64xi32>
  %place = arith.remui %keys, %of_page : tensor<64xi32>
  %page = tile.gather %list[%c0] rows %number : !tile.view<[N], i32>, tensor<64xi32> -> tensor<64xi32>
  %begin = arith.muli %page, %of_page : tensor<64xi32>
  %at = arith.addi %begin, %place : tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time}}
  %kt = tile.gather %k[%c0, %c0] rows %at : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  %sum = tile.dot %qt, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
}

// The last rows of a run, every second row, and one row.
tile.kernel @otherwise(%q: !Q, %k: !Flat, %o: !O, %from: i32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %none = arith.constant dense<-1> : tensor<64xi32>
  %two = arith.constant dense<2> : tensor<64xi32>
  %keys = tile.iota %row axis 0 : tensor<64xi32>
  %froms = tile.splat %from : i32 -> tensor<64xi32>
  // expected-note @below {{does not hold for the first rows of a run alone}}
  %behind = arith.cmpi sge, %keys, %froms : tensor<64xi32>
  %some = arith.select %behind, %keys, %none : tensor<64xi1>, tensor<64xi32>
  // expected-note @below {{gives numbers of which nothing is known}}
  %second = arith.muli %keys, %two : tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time}}
  %a = tile.gather %k[%c0, %c0] rows %some : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time}}
  %b = tile.gather %k[%c0, %c0] rows %second : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time}}
  // expected-note @below {{counts rows from an index that is not the constant 0}}
  %c = tile.gather %k[%row, %c0] rows %keys : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  %x = tile.dot %qt, %a : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  %y = tile.dot %qt, %b, %x : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  %z = tile.dot %qt, %c, %y : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %z, %o[%row, %c0] : tensor<64x64xf32>, !O
}

// -----

!Short = !tile.view<[ROWS, 32], bf16>
!Q = !tile.view<[M, 64], bf16>
!O = !tile.view<[M, 32], f32>

tile.kernel @short_rows(%q: !Q, %k: !Short, %o: !O) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %keys = tile.iota %row axis 0 period 32 : tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time: copies of runs move rows of 128 bytes or a multiple}}
  %kt = tile.gather %k[%c0, %c0] rows %keys : !Short, tensor<64xi32> -> tensor<64x32xbf16>
  %sum = tile.dot %qt, %kt : tensor<64x64xbf16>, tensor<64x32xbf16> -> tensor<64x32xf32>
  tile.store %sum, %o[%row, %c0] : tensor<64x32xf32>, !O
}

// -----

!Flat = !tile.view<[ROWS, 64], bf16>
!List = !tile.view<[N], i32>
!Q = !tile.view<[M, 64], bf16>
!O = !tile.view<[M, 64], f32>

// Numbers that a loop hands on.
tile.kernel @handed_on(%q: !Q, %k: !Flat, %list: !List, %o: !O) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %first = tile.load %list[%c0] : !List -> tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-note @below {{hands on numbers of which nothing is known}}
  %sum, %last = scf.for %i = %c0 to %c9 step %c1 iter_args(%old = %zero, %numbers = %first) -> (tensor<64x64xf32>, tensor<64xi32>) {
    // expected-remark @below {{copies rows 16 bytes at a time}}
    %kt = tile.gather %k[%c0, %c0] rows %numbers : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
    %new = tile.dot %qt, %kt, %old : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %place = arith.muli %i, %c64 : index
    %next = tile.load %list[%place] : !List -> tensor<64xi32>
    scf.yield %new, %next : tensor<64x64xf32>, tensor<64xi32>
  }
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
}

// Numbers of 64 bits as places, in a comparison whose sides may be so far apart that their difference has more, and numbers that may
// go round where they are widened.
tile.kernel @wide(%q: !Q, %k: !Flat, %o: !O, %from: i64, %begin: i32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %none = arith.constant dense<-1> : tensor<64xi32>
  %keys = tile.iota %row axis 0 : tensor<64xi32>
  // expected-note @below {{is no number of 32 bits for each row}}
  %keys64 = arith.extsi %keys : tensor<64xi32> to tensor<64xi64>
  %froms = tile.splat %from : i64 -> tensor<64xi64>
  // expected-note @below {{compares numbers of more than 32 bits}}
  %inside = arith.cmpi slt, %keys64, %froms : tensor<64xi64>
  %some = arith.select %inside, %keys, %none : tensor<64xi1>, tensor<64xi32>
  %begins = tile.splat %begin : i32 -> tensor<64xi32>
  %moved = arith.addi %keys, %begins : tensor<64xi32>
  // expected-note @below {{widens numbers that may go from the largest one to the least}}
  %moved64 = arith.extsi %moved : tensor<64xi32> to tensor<64xi64>
  %end = arith.constant dense<1000> : tensor<64xi64>
  %before = arith.cmpi slt, %moved64, %end : tensor<64xi64>
  %others = arith.select %before, %keys, %none : tensor<64xi1>, tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time}}
  %a = tile.gather %k[%c0, %c0] rows %keys64 : !Flat, tensor<64xi64> -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time}}
  %b = tile.gather %k[%c0, %c0] rows %some : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time}}
  %c = tile.gather %k[%c0, %c0] rows %others : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  %x = tile.dot %qt, %a : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  %y = tile.dot %qt, %b, %x : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  %z = tile.dot %qt, %c, %y : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %z, %o[%row, %c0] : tensor<64x64xf32>, !O
}

// Up to the largest number of 64 bits there is one row more than it says.

tile.kernel @up_to(%q: !Q, %k: !Flat, %last: i64, %o: !O) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %none = arith.constant dense<-1> : tensor<64xi32>
  %least = arith.constant 0 : i64
  %end = arith.maxsi %last, %least : i64
  %ends = tile.splat %end : i64 -> tensor<64xi64>
  %keys = tile.iota %c0 axis 0 : tensor<64xi32>
  %keys64 = arith.extsi %keys : tensor<64xi32> to tensor<64xi64>
  // expected-note @below {{compares numbers of more than 32 bits}}
  %inside = arith.cmpi sle, %keys64, %ends : tensor<64xi64>
  %numbers = arith.select %inside, %keys, %none : tensor<64xi1>, tensor<64xi32>
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-remark @below {{copies rows 16 bytes at a time}}
  %kt = tile.gather %k[%c0, %c0] rows %numbers : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  %sum = tile.dot %qt, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !O
}
