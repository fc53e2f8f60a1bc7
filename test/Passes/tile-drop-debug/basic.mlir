// What shows and checks values is removed, with what only it needs, and said at its place.
// RUN: tessera-opt %s --tile-drop-debug -verify-diagnostics | FileCheck %s

!T = tensor<64x64xf32>
// CHECK-LABEL: func.func @elements
func.func @elements(%e: f32) -> f32 {
  // CHECK-NEXT: return
  %zero = arith.constant 0.0 : f32
  %below = arith.cmpf olt, %e, %zero : f32
  // expected-warning@+1 {{tile.print is left out of machine code; tessera run (the interpreter) shows the value}}
  tile.print "negative" %e if %below : f32
  func.return %e : f32
}

// CHECK-LABEL: tile.kernel @k
tile.kernel @k(%x: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[C64:.*]] = arith.constant 64
  %c64 = arith.constant 64 : index
  // CHECK-NEXT: %[[ROW:.*]] = arith.muli {{.*}}, %[[C64]]
  %row = arith.muli %m, %c64 : index
  // CHECK-NEXT: %[[T:.*]] = tile.load
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], f32> -> !T
  // CHECK-NEXT: tile.store %[[T]]
  %least = arith.constant dense<0.0> : !T
  %above = arith.cmpf oge, %t, %least : !T
  // expected-remark@+1 {{tile.assert is left out of machine code; tessera run (the interpreter) checks it}}
  tile.assert %above, "negative" : tensor<64x64xi1>
  tile.store %t, %x[%row, %c0] : !T, !tile.view<[M, 64], f32>
}

// A branch that is only shown goes with what is in it, shown too, and with what that alone needs.
// CHECK-LABEL: func.func @branch
func.func @branch(%c: i1, %x: f32, %y: f32) -> f32 {
  // CHECK-NEXT: return
  %product = arith.mulf %x, %y : f32
  %r = scf.if %c -> (f32) {
    %sum = arith.addf %product, %y : f32
    // expected-warning@+1 {{tile.print is left out}}
    tile.print "sum" %sum : f32
    scf.yield %sum : f32
  } else {
    scf.yield %y : f32
  }
  // expected-warning@+1 {{tile.print is left out}}
  tile.print "choice" %r : f32
  func.return %x : f32
}
