// Quotients by constants grow with what is divided, so that comparisons of chunks leave intervals.
//
// RUN: tessera-opt %s --tile-find-visits --canonicalize --cse -split-input-file -verify-diagnostics | FileCheck %s

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>

// The keys of a row's chunk of 100: from the first of the chunk of the first row up to the last of that of the last.
// CHECK-LABEL: @same
// CHECK:         %[[ROW:.*]] = arith.muli %m, %c64
// CHECK:         %[[LAST:.*]] = arith.addi %[[ROW]], %c63
// CHECK:         %[[CHUNK:.*]] = arith.floordivsi %[[LAST]], %c100
// CHECK:         %[[BEFORE:.*]] = arith.muli %[[CHUNK]], %c100
// CHECK:         %[[REACH:.*]] = arith.addi %[[BEFORE]], %c100
// CHECK:         %[[PAST:.*]] = arith.ceildivsi %[[REACH]], %c32
// CHECK:         arith.minsi %n, %[[PAST]]
tile.kernel @same(%y: !tile.view<[M], i32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %size = arith.constant dense<100> : !C
  // expected-remark @+1 {{the mask leaves out iterations at both ends, as its comparisons say}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %of_q = arith.floordivsi %q, %size : !C
    %of_k = arith.floordivsi %k, %size : !C
    %seen = arith.cmpi eq, %of_q, %of_k : !C
    tile.mask %seen : !M
  }
  %count = arith.subi %past, %first : index
  %i = arith.index_cast %count : index to i32
  tile.store %i, %y[%row] : i32, !tile.view<[M], i32>
}

// From the first key of the chunk on, as a quotient, a remainder, a shift and bits say it: one bound.
// CHECK-LABEL: @begins
// CHECK:         %[[ROW:.*]] = arith.muli %m, %c64
// CHECK:         %[[CHUNK:.*]] = arith.floordivsi %[[ROW]], %c128
// CHECK:         %[[BEGIN:.*]] = arith.muli %[[CHUNK]], %c128
// CHECK:         %[[BLOCK:.*]] = arith.addi %[[BEGIN]], %c-31
// CHECK:         %[[FIRST:.*]] = arith.ceildivsi %[[BLOCK]], %c32
// CHECK-NOT:     floordivsi
// CHECK:         tile.store
tile.kernel @begins(%y: !tile.view<[M], i32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %size = arith.constant dense<128> : !C
  %bits = arith.constant dense<7> : !C
  %above = arith.constant dense<-128> : !C
  // expected-remark @+1 {{the mask leaves out iterations at the start, as its comparisons say}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %quotient = arith.divsi %q, %size : !C
    %begin = arith.muli %quotient, %size : !C
    %behind = arith.cmpi sge, %k, %begin : !C
    %remainder = arith.remsi %q, %size : !C
    %less = arith.subi %q, %remainder : !C
    %behind_less = arith.cmpi sge, %k, %less : !C
    %shifted = arith.shrsi %q, %bits : !C
    %key_shifted = arith.shrsi %k, %bits : !C
    %behind_shifted = arith.cmpi sge, %key_shifted, %shifted : !C
    %upper = arith.andi %q, %above : !C
    %behind_upper = arith.cmpi sge, %k, %upper : !C
    %both = arith.andi %behind, %behind_less : !M
    %three = arith.andi %both, %behind_shifted : !M
    %seen = arith.andi %three, %behind_upper : !M
    tile.mask %seen : !M
  }
  %i = arith.index_cast %first : index to i32
  tile.store %i, %y[%row] : i32, !tile.view<[M], i32>
}

// A multiple of a quotient of the iteration: of no row 3 (k / 10) <= q where k / 10 >= (q + 1) / 3, rounded up, of the last one.
// CHECK-LABEL: @multiple
// CHECK:         %[[ROW:.*]] = arith.muli %m, %c-64
// CHECK:         %[[OPPOSITE:.*]] = arith.addi %[[ROW]], %c-64
// CHECK:         %[[LIMIT:.*]] = arith.floordivsi %[[OPPOSITE]], %c3
// CHECK:         %[[KEY:.*]] = arith.muli %[[LIMIT]], %c-10
// CHECK:         %[[PAST:.*]] = arith.ceildivsi %[[KEY]], %c32
// CHECK:         arith.minsi %n, %[[PAST]]
tile.kernel @multiple(%y: !tile.view<[M], i32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %three = arith.constant dense<3> : !C
  %ten = arith.constant dense<10> : !C
  // expected-remark @+1 {{the mask leaves out iterations at the end, as its comparisons say}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %of_k = arith.floordivsi %k, %ten : !C
    %scaled = arith.muli %of_k, %three : !C
    %seen = arith.cmpi sle, %scaled, %q : !C
    tile.mask %seen : !M
  }
  %i = arith.index_cast %past : index to i32
  tile.store %i, %y[%row] : i32, !tile.view<[M], i32>
}

// A remainder of what an iteration works on is no interval, and no more is a quotient towards zero of what may be negative.
// CHECK-LABEL: @remainders
// CHECK-NOT:     floordivsi
tile.kernel @remainders(%y: !tile.view<[M], i32>, %n: index) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %four = arith.constant dense<4> : !C
  // expected-remark @+1 {{every iteration is visited: it compares remainders, or several quotients, that change from iteration to iteration}}
  %first, %past = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %rest = arith.remsi %k, %four : !C
    %of_q = arith.remsi %q, %four : !C
    %seen = arith.cmpi sle, %rest, %of_q : !C
    tile.mask %seen : !M
  }
  // expected-remark @+1 {{every iteration is visited: it compares tiles that are not computed from tile.iota, splats and constants}}
  %first_after, %past_after = tile.visits %j = %c0 to %n {
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %distance = arith.subi %k, %q : !C
    %quotient = arith.divsi %distance, %four : !C
    %seen = arith.cmpi sle, %quotient, %four : !C
    tile.mask %seen : !M
  }
  %count = arith.addi %past, %past_after : index
  %i = arith.index_cast %count : index to i32
  tile.store %i, %y[%row] : i32, !tile.view<[M], i32>
}
