// Gradients that are declared and used get a body: each operation by its rule, of what depends on a floating-point argument.
//
// RUN: tessera-opt %s --tile-differentiate --canonicalize --cse | FileCheck %s

// A product, an integer, a number that is asked for, and what no adjoint needs.
func.func @scaled(%s: f32, %k: i32) -> f32 {
  %cap = tile.argument "cap" : f32
  %index = arith.sitofp %k : i32 to f32
  %factor = arith.mulf %index, %cap : f32
  %y = arith.mulf %s, %factor : f32
  func.return %y : f32
}
// CHECK-LABEL: func.func private @scaled_gradient(
// CHECK-SAME:    %{{.*}}: f32, %[[K:.*]]: i32, %[[DY:.*]]: f32) -> f32
// CHECK:       %[[CAP:.*]] = tile.argument "cap"
// CHECK-NEXT:  %[[INDEX:.*]] = arith.sitofp %[[K]]
// CHECK-NEXT:  %[[FACTOR:.*]] = arith.mulf %[[INDEX]], %[[CAP]]
// CHECK-NEXT:  %[[DS:.*]] = arith.mulf %[[DY]], %[[FACTOR]]
// CHECK-NEXT:  return %[[DS]]
func.func private @scaled_gradient(f32, i32, f32) -> f32 attributes {tile.gradient_of = @scaled}

// Several results, several arguments, and one that nothing depends on.
func.func @both(%a: f32, %b: f32, %c: f32) -> (f32, i1, f32) {
  %less = arith.cmpf olt, %a, %b : f32
  %sum = arith.addf %a, %b : f32
  %least = arith.select %less, %a, %b : f32
  func.return %sum, %less, %least : f32, i1, f32
}
// CHECK-LABEL: func.func private @both_gradient(
// CHECK-SAME:    %[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32, %[[DSUM:.*]]: f32, %[[DLEAST:.*]]: f32) -> (f32, f32, f32)
// CHECK:       %[[ZERO:.*]] = arith.constant 0.0
// CHECK-NEXT:  %[[LESS:.*]] = arith.cmpf olt, %[[A]], %[[B]]
// CHECK-NEXT:  %[[TO_A:.*]] = arith.select %[[LESS]], %[[DLEAST]], %[[ZERO]]
// CHECK-NEXT:  %[[TO_B:.*]] = arith.select %[[LESS]], %[[ZERO]], %[[DLEAST]]
// CHECK-NEXT:  %[[DA:.*]] = arith.addf %[[TO_A]], %[[DSUM]]
// CHECK-NEXT:  %[[DB:.*]] = arith.addf %[[TO_B]], %[[DSUM]]
// CHECK-NEXT:  return %[[DA]], %[[DB]], %[[ZERO]]
func.func private @both_gradient(f32, f32, f32, f32, f32) -> (f32, f32, f32) attributes {tile.gradient_of = @both}

// The result serves where it saves a function; flags of a sine are those of its cosine.
func.func @functions(%x: f32) -> f32 {
  %e = math.exp %x : f32
  %t = math.tanh %e fastmath<afn> : f32
  %s = math.sin %t fastmath<afn> : f32
  func.return %s : f32
}
// CHECK-LABEL: func.func private @functions_gradient(
// CHECK:       %[[ONE:.*]] = arith.constant 1.0
// CHECK-NEXT:  %[[E:.*]] = math.exp
// CHECK-NEXT:  %[[T:.*]] = math.tanh %[[E]] fastmath<afn>
// CHECK-NEXT:  %[[C:.*]] = math.cos %[[T]] fastmath<afn>
// CHECK-NEXT:  %[[DT:.*]] = arith.mulf %{{.*}}, %[[C]]
// CHECK-NEXT:  %[[SQUARE:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK-NEXT:  %[[SLOPE:.*]] = arith.subf %[[ONE]], %[[SQUARE]]
// CHECK-NEXT:  %[[DE:.*]] = arith.mulf %[[DT]], %[[SLOPE]]
// CHECK-NEXT:  %[[DX:.*]] = arith.mulf %[[DE]], %[[E]]
// CHECK-NEXT:  return %[[DX]]
func.func private @functions_gradient(f32, f32) -> f32 attributes {tile.gradient_of = @functions}

// Gradients of functions that are called: one that the source defines, and one that is written.
func.func @own(%x: f32) -> f32 {
  %y = math.cbrt %x : f32
  func.return %y : f32
}
func.func @own_gradient(%x: f32, %dy: f32) -> f32 attributes {tile.gradient_of = @own} {
  func.return %dy : f32
}
func.func @square(%x: f32) -> f32 {
  %y = arith.mulf %x, %x : f32
  func.return %y : f32
}
func.func @caller(%x: f32) -> f32 {
  %a = func.call @own(%x) : (f32) -> f32
  %b = func.call @square(%a) : (f32) -> f32
  func.return %b : f32
}
// CHECK-LABEL: func.func private @caller_gradient(
// CHECK-SAME:    %[[X:.*]]: f32, %{{.*}}: f32)
// CHECK-NEXT:  %[[A:.*]] = call @own(%[[X]])
// CHECK-NEXT:  %[[DA:.*]] = call @square.gradient(%[[A]], %{{.*}})
// CHECK-NEXT:  %[[DX:.*]] = call @own_gradient(%[[X]], %[[DA]])
// CHECK-NEXT:  return %[[DX]]
func.func private @caller_gradient(f32, f32) -> f32 attributes {tile.gradient_of = @caller}

// Nobody asks for this one, so that nobody minds that it has none.
func.func @unused(%x: f32) -> f32 {
  %y = math.cbrt %x : f32
  func.return %y : f32
}
// CHECK-NOT: @unused_gradient
func.func private @unused_gradient(f32, f32) -> f32 attributes {tile.gradient_of = @unused}

func.func @users(%x: f32, %k: i32) {
  %a = func.call @scaled_gradient(%x, %k, %x) : (f32, i32, f32) -> f32
  %b:3 = func.call @both_gradient(%x, %x, %x, %x, %x) : (f32, f32, f32, f32, f32) -> (f32, f32, f32)
  %c = func.call @functions_gradient(%x, %x) : (f32, f32) -> f32
  %d = func.call @caller_gradient(%x, %x) : (f32, f32) -> f32
  func.return
}
