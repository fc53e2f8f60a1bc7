// Calls become copies of what they call, at any depth of regions and of calls, and no function is left.
//
// RUN: tessera-opt %s --tile-inline-functions --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

!T = tensor<64x64xf32>
!B = tensor<64x64xf16>
!R = tensor<64xf32>
!M = tensor<64xi1>
!X = !tile.view<[M, 64], f16>
!Y = !tile.view<[M], f32>

// CHECK-NOT: {{func[.]}}

func.func @unused(%x: f32) -> f32 {
  func.return %x : f32
}

func.func @widen(%x: !X, %row: index) -> !T {
  %c0 = arith.constant 0 : index
  %b = tile.load %x[%row, %c0] : !X -> !B
  %t = arith.extf %b : !B to !T
  func.return %t : !T
}

// Calls another function, below it; gives back an argument and two values.
func.func @sums(%x: !X, %row: index, %old: !R) -> (!R, !R, !R) {
  %t = func.call @widen(%x, %row) : (!X, index) -> !T
  %s = tile.reduce sum %t axis 1 : !T -> !R
  %n = func.call @add(%old, %s) : (!R, !R) -> !R
  func.return %old, %n, %s : !R, !R, !R
}

func.func @add(%a: !R, %b: !R) -> !R {
  %c = arith.addf %a, %b : !R
  func.return %c : !R
}

// No result, and a dimension of the kernel that calls it.
func.func @put(%r: !R, %y: !Y, %back: index) {
  %m = tile.dim "M"
  %at = arith.subi %m, %back : index
  tile.store %r, %y[%at] : !R, !Y
  func.return
}

// CHECK-LABEL: tile.kernel @k
// CHECK:       %[[ZERO:.*]] = arith.constant dense<0.0
// CHECK:       %[[R:.*]] = tile.speculate
tile.kernel @k(%x: !X, %y: !Y) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !R
  %r = tile.speculate -> !R {
    // CHECK:      %[[LOOP:.*]] = scf.for {{.*}} iter_args(%[[OLD:.*]] = %[[ZERO]])
    // CHECK:        %[[C:.*]] = arith.constant 0 : index
    // CHECK-NEXT:   %[[B:.*]] = tile.load %x[%{{.*}}, %[[C]]] {{.*}} loc("{{.*}}basic.mlir":[[#@LINE-36]]:8)
    // CHECK-NEXT:   %[[T:.*]] = arith.extf %[[B]]
    // CHECK-NEXT:   %[[S:.*]] = tile.reduce sum %[[T]] axis 1
    // CHECK-NEXT:   %[[N:.*]] = arith.addf %[[OLD]], %[[S]] {{.*}} loc("{{.*}}basic.mlir":[[#@LINE-25]]:8)
    // CHECK-NEXT:   %[[D:.*]] = arith.subf %[[S]], %[[OLD]]
    // CHECK-NEXT:   %[[A:.*]] = arith.addf %[[N]], %[[D]] {{.*}} loc("{{.*}}basic.mlir":[[#@LINE-27]]:8)
    // CHECK-NEXT:   scf.yield %[[A]]
    %l = scf.for %j = %c0 to %m step %c1 iter_args(%old = %zero) -> (!R) {
      %old_again, %n, %s = func.call @sums(%x, %j, %old) : (!X, index, !R) -> (!R, !R, !R)
      %d = arith.subf %s, %old_again : !R
      %a = func.call @add(%n, %d) : (!R, !R) -> !R
      scf.yield %a : !R
    }
    %v = arith.cmpf ole, %l, %zero : !R
    tile.yield_if %v, %l : !M, !R
  } exact {
    // CHECK:      } exact {
    // CHECK-NEXT:   %[[E:.*]] = arith.addf %[[ZERO]], %[[ZERO]]
    // CHECK-NEXT:   tile.yield %[[E]]
    %e = func.call @add(%zero, %zero) : (!R, !R) -> !R
    tile.yield %e : !R
  }
  // CHECK:      %[[M:.*]] = tile.dim "M"
  // CHECK-NEXT: %[[AT:.*]] = arith.subi %[[M]], %m
  // CHECK-NEXT: tile.store %[[R]], %y[%[[AT]]]
  // CHECK-NEXT: }
  func.call @put(%r, %y, %m) : (!R, !Y, index) -> ()
}

// A second kernel has its own dimension M.
// CHECK-LABEL: tile.kernel @other
// CHECK:         tile.dim "M"
// CHECK:         tile.store
// CHECK-NOT:   {{func[.]}}
tile.kernel @other(%y: !Y) grid(%m = M ceildiv 64) {
  %zero = arith.constant dense<0.0> : !R
  func.call @put(%zero, %y, %m) : (!R, !Y, index) -> ()
}
