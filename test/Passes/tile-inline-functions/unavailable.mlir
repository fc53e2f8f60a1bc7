// A value that is not there is refused where something takes it, and leaves where nothing does.
//
// RUN: tessera-opt %s --split-input-file --tile-inline-functions -verify-diagnostics | FileCheck %s

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>
!Y = !tile.view<[M, 32], i32>

// What is computed of the head in vain goes with it.
func.func @mask(%h: i32, %q: i32, %k: i32) -> i1 {
  %c2 = arith.constant 2 : i32
  %twice = arith.muli %h, %c2 : i32
  %sum = arith.addi %twice, %h : i32
  %seen = arith.cmpi sle, %k, %q : i32
  func.return %seen : i1
}

// CHECK-LABEL: tile.kernel @unused
// CHECK-NOT:     tile.unavailable
// CHECK-NOT:     arith.muli
// CHECK:         arith.cmpi sle
tile.kernel @unused(%y: !Y) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %h = tile.unavailable "there is no head here" : i32
  %q = tile.iota %m axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %seen = tile.map @mask(%h, %q, %k) : (i32, !C, !C) -> !M
  %r = arith.select %seen, %q, %k : !M, !C
  tile.store %r, %y[%m, %c0] : !C, !Y
}

// -----

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>
!Y = !tile.view<[M, 32], i32>

func.func @mask(%h: i32, %q: i32, %k: i32) -> i1 {
  %far = arith.subi %q, %k : i32
  // expected-error @+1 {{takes a value that is not there: there is no head here, use LISTS = head}}
  %seen = arith.cmpi sle, %far, %h : i32
  func.return %seen : i1
}

tile.kernel @used(%y: !Y) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %h = tile.unavailable "there is no head here, use LISTS = head" : i32
  %q = tile.iota %m axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %seen = tile.map @mask(%h, %q, %k) : (i32, !C, !C) -> !M
  %r = arith.select %seen, %q, %k : !M, !C
  tile.store %r, %y[%m, %c0] : !C, !Y
}
