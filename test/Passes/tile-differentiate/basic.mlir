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

// Of a sigmoid neither the exponential nor its square is needed, which may be infinite.
func.func @gated(%x: f32) -> f32 {
  %l = math.log1p %x : f32
  %y = tile.sigmoid %l : f32
  func.return %y : f32
}
// CHECK-LABEL: func.func private @gated_gradient(
// CHECK-SAME:    %[[X:.*]]: f32, %[[DY:.*]]: f32
// CHECK:       %[[L:.*]] = math.log1p %[[X]]
// CHECK:       %[[Y:.*]] = tile.sigmoid %[[L]]
// CHECK:       %[[SHARE:.*]] = arith.mulf %[[DY]], %[[Y]]
// CHECK:       %[[REST:.*]] = arith.subf %{{.*}}, %[[Y]]
// CHECK:       %[[DL:.*]] = arith.mulf %[[SHARE]], %[[REST]]
// CHECK:       %[[SUM:.*]] = arith.addf %[[X]], %{{.*}}
// CHECK:       arith.divf %[[DL]], %[[SUM]]
func.func private @gated_gradient(f32, f32) -> f32 attributes {tile.gradient_of = @gated}

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

// Rounding counts as exact: the cotangent in the other type, there and back. What comes from an integer, bits of one too, is a
// constant.
func.func @rounded(%x: f32, %k: i32) -> f32 {
  %r = arith.truncf %x : f32 to bf16
  %e = arith.extf %r : bf16 to f32
  %factor = arith.bitcast %k : i32 to f32
  %y = arith.mulf %e, %factor : f32
  func.return %y : f32
}
// CHECK-LABEL: func.func private @rounded_gradient(
// CHECK-SAME:    %{{.*}}: f32, %[[K:.*]]: i32, %[[DY:.*]]: f32) -> f32
// CHECK:       %[[FACTOR:.*]] = arith.bitcast %[[K]]
// CHECK-NEXT:  %[[DE:.*]] = arith.mulf %[[DY]], %[[FACTOR]]
// CHECK-NEXT:  %[[DR:.*]] = arith.truncf %[[DE]] : f32 to bf16
// CHECK-NEXT:  %[[DX:.*]] = arith.extf %[[DR]] : bf16 to f32
// CHECK-NEXT:  return %[[DX]]
func.func private @rounded_gradient(f32, i32, f32) -> f32 attributes {tile.gradient_of = @rounded}

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
  %e = func.call @rounded_gradient(%x, %k, %x) : (f32, i32, f32) -> f32
  %f = func.call @gated_gradient(%x, %x) : (f32, f32) -> f32
  func.return
}

// With respect to what a function asks for: the adjoint of a load adds to the same element. A view of 16 bits has a gradient of
// f32, which is not rounded on its way; integers choose elements.
func.func @asking(%s: f32, %h: i32) -> f32 {
  %cap = tile.argument "cap" : f32
  %slopes = tile.argument "slopes" : !tile.view<[H, 4], bf16>
  %c1 = arith.constant 1 : index
  %head = arith.index_cast %h : i32 to index
  %stored = tile.load %slopes[%head, %c1] : !tile.view<[H, 4], bf16> -> bf16
  %slope = arith.extf %stored : bf16 to f32
  %x = arith.mulf %s, %slope : f32
  %y = arith.mulf %x, %cap : f32
  func.return %y : f32
}
// CHECK-LABEL: func.func private @asking_gradient(
// CHECK-SAME:    %[[S:.*]]: f32, %[[H:.*]]: i32, %[[DY:.*]]: f32)
// CHECK-DAG:   %[[HEAD:.*]] = arith.index_cast %[[H]]
// CHECK-DAG:   %[[CAP:.*]] = tile.argument "cap"
// CHECK:       %[[X:.*]] = arith.mulf %[[S]], %{{.*}}
// CHECK:       %[[DX:.*]] = arith.mulf %[[DY]], %[[CAP]]
// CHECK:       %[[DCAP:.*]] = arith.mulf %[[DY]], %[[X]]
// CHECK:       %[[DSLOPE:.*]] = arith.mulf %[[DX]], %[[S]]
// CHECK-NOT:   arith.truncf
// CHECK:       %[[DSLOPES:.*]] = tile.argument "dslopes" : !tile.view<[H, 4], f32>
// CHECK:       tile.store %[[DSLOPE]], %[[DSLOPES]][%[[HEAD]], %c1] add : f32
// CHECK:       %[[SUMS:.*]] = tile.argument "dcap" : !tile.view<[1], f32>
// CHECK:       tile.store %[[DCAP]], %[[SUMS]][%c0] add : f32
// CHECK-NEXT:  return
func.func private @asking_gradient(f32, i32, f32)
    attributes {tile.gradient_of = @asking, tile.with_respect_to = ["slopes", "cap"]}

// What a function that is called asks for, and what comes of it.
func.func @of_head(%h: i32) -> f32 {
  %gains = tile.argument "gains" : !tile.view<[H], f32>
  %head = arith.index_cast %h : i32 to index
  %gain = tile.load %gains[%head] : !tile.view<[H], f32> -> f32
  %e = math.exp %gain : f32
  func.return %e : f32
}
func.func @calling(%s: f32, %h: i32) -> f32 {
  %gain = func.call @of_head(%h) : (i32) -> f32
  %squared = func.call @square(%gain) : (f32) -> f32
  %y = arith.mulf %s, %squared : f32
  func.return %y : f32
}
// CHECK-LABEL: func.func private @calling_gradient(
// CHECK-SAME:    %[[S:.*]]: f32, %[[H:.*]]: i32, %[[DY:.*]]: f32)
// CHECK:       %[[GAIN:.*]] = call @of_head(%[[H]])
// CHECK:       %[[D:.*]] = arith.mulf %[[DY]], %[[S]]
// CHECK:       %[[DGAIN:.*]] = call @square.gradient(%[[GAIN]], %[[D]])
// CHECK:       call @of_head.gradient(%[[H]], %[[DGAIN]]) : (i32, f32) -> ()
// CHECK-NEXT:  return
func.func private @calling_gradient(f32, i32, f32)
    attributes {tile.gradient_of = @calling, tile.with_respect_to = ["gains"]}

// With respect to nothing.
// CHECK-LABEL: func.func private @none_gradient(
// CHECK-NEXT:  return
func.func private @none_gradient(f32, i32, f32) attributes {tile.gradient_of = @calling, tile.with_respect_to = []}

func.func @askers(%x: f32, %h: i32) {
  func.call @asking_gradient(%x, %h, %x) : (f32, i32, f32) -> ()
  func.call @calling_gradient(%x, %h, %x) : (f32, i32, f32) -> ()
  func.call @none_gradient(%x, %h, %x) : (f32, i32, f32) -> ()
  func.return
}

// Where a derivative may be infinite, a cotangent of 0 stays 0: elements outside of a view are 0.
func.func @heated(%s: f32, %q: i32) -> f32 {
  %heats = tile.argument "heats" : !tile.view<[SQ], f32>
  %at = arith.index_cast %q : i32 to index
  %heat = tile.load %heats[%at] : !tile.view<[SQ], f32> -> f32
  %y = arith.divf %s, %heat : f32
  func.return %y : f32
}
// CHECK-LABEL: func.func private @heated_gradient(
// CHECK-SAME:    %{{.*}}: f32, %{{.*}}: i32, %[[DY:.*]]: f32) -> f32
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0.0
// CHECK:       %[[HEAT:.*]] = tile.load
// CHECK:       %[[NONE:.*]] = arith.cmpf oeq, %[[DY]], %[[ZERO]]
// CHECK:       %[[DS:.*]] = arith.divf %[[DY]], %[[HEAT]]
// CHECK:       %[[SAFE:.*]] = arith.select %[[NONE]], %[[ZERO]], %[[DS]]
// CHECK:       return %[[SAFE]]
func.func private @heated_gradient(f32, i32, f32) -> f32 attributes {tile.gradient_of = @heated}
// CHECK-LABEL: func.func private @heats_gradient(
// CHECK:       %[[NONE:.*]] = arith.cmpf oeq
// CHECK:       %[[SAFE:.*]] = arith.select %[[NONE]]
// CHECK:       tile.store %[[SAFE]], %{{.*}} add : f32
func.func private @heats_gradient(f32, i32, f32)
    attributes {tile.gradient_of = @heated, tile.with_respect_to = ["heats"]}
func.func @heaters(%x: f32, %q: i32) {
  %a = func.call @heated_gradient(%x, %q, %x) : (f32, i32, f32) -> f32
  func.call @heats_gradient(%x, %q, %x) : (f32, i32, f32) -> ()
  func.return
}

// Over the keys of a query the cotangents of its scores sum to 0: so do those of what is added to all of them, whatever it is
// multiplied with, and what is added to an element that differs for each key stays.
func.func @gated_pair(%s: f32, %q: i32, %k: i32) -> f32 {
  %gates = tile.argument "gates" : !tile.view<[S], f32>
  %row = arith.index_cast %q : i32 to index
  %column = arith.index_cast %k : i32 to index
  %of_query = tile.load %gates[%row] : !tile.view<[S], f32> -> f32
  %of_key = tile.load %gates[%column] : !tile.view<[S], f32> -> f32
  %twice = arith.addf %of_query, %of_query : f32
  %up = arith.addf %s, %twice : f32
  %down = arith.subf %up, %of_key : f32
  func.return %down : f32
}
// CHECK-LABEL: func.func private @gates_gradient(
// CHECK-SAME:    %{{.*}}: f32, %{{.*}}: i32, %[[K:.*]]: i32, %[[DY:.*]]: f32)
// CHECK-NOT:   tile.store
// CHECK:       %[[COLUMN:.*]] = arith.index_cast %[[K]]
// CHECK:       %[[DKEY:.*]] = arith.negf %[[DY]]
// CHECK:       tile.store %[[DKEY]], %{{.*}}[%[[COLUMN]]] add : f32
// CHECK-NOT:   tile.store
// CHECK:       return
func.func private @gates_gradient(f32, i32, i32, f32)
    attributes {tile.gradient_of = @gated_pair, tile.with_respect_to = ["gates"], tile.zero_sum_over = 2}
// A factor of the score is no such number, nor is what a function of the score takes.
func.func @warm(%s: f32, %q: i32, %k: i32) -> f32 {
  %gates = tile.argument "gates" : !tile.view<[S], f32>
  %row = arith.index_cast %q : i32 to index
  %of_query = tile.load %gates[%row] : !tile.view<[S], f32> -> f32
  %warm = arith.mulf %s, %of_query : f32
  func.return %warm : f32
}
// CHECK-LABEL: func.func private @warm_gradient(
// CHECK:       tile.store
func.func private @warm_gradient(f32, i32, i32, f32)
    attributes {tile.gradient_of = @warm, tile.with_respect_to = ["gates"], tile.zero_sum_over = 2}
func.func @gaters(%x: f32, %q: i32) {
  func.call @gates_gradient(%x, %q, %q, %x) : (f32, i32, i32, f32) -> ()
  func.call @warm_gradient(%x, %q, %q, %x) : (f32, i32, i32, f32) -> ()
  func.return
}
