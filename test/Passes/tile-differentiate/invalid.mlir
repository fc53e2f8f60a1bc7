// RUN: %cases %s | tessera-opt --tile-differentiate -split-input-file -verify-diagnostics

func.func @f(%x: f32) -> f32 {
  // expected-error @+1 {{has no rule for its derivative; there are rules for arith.addf, subf}}
  %y = math.cbrt %x : f32
  func.return %y : f32
}
// expected-note @+1 {{'g' is to be the gradient of 'f'; define it as '(f32, f32) -> f32' to say what it is}}
func.func private @g(f32, f32) -> f32 attributes {tile.gradient_of = @f}
func.func @use(%x: f32) -> f32 {
  %y = func.call @g(%x, %x) : (f32, f32) -> f32
  func.return %y : f32
}

// -----
// The integer of a number's bits would pass for a constant.
func.func @f(%x: f32) -> f32 {
  // expected-error @+1 {{'arith.bitcast' op has no rule for its derivative}}
  %bits = arith.bitcast %x : f32 to i32
  %c1 = arith.constant 1 : i32
  %more = arith.addi %bits, %c1 : i32
  %y = arith.bitcast %more : i32 to f32
  func.return %y : f32
}
// expected-note @+1 {{define it as '(f32, f32) -> f32' to say what it is}}
func.func private @g(f32, f32) -> f32 attributes {tile.gradient_of = @f}
func.func @use(%x: f32) -> f32 {
  %y = func.call @g(%x, %x) : (f32, f32) -> f32
  func.return %y : f32
}

// -----
// expected-error @+1 {{is to be the gradient of 'f', which is no function of the source}}
func.func private @g(f32, f32) -> f32 attributes {tile.gradient_of = @f}

// -----
// expected-note @+1 {{it takes the arguments and the cotangents of the results of 'f'}}
func.func @f(%x: f32, %k: i32) -> f32 {
  func.return %x : f32
}
// expected-error @+1 {{is to be the gradient of 'f' and is a function '(f32, f32) -> f32'; the gradient is '(f32, i32, f32) -> f32'}}
func.func private @g(f32, f32) -> f32 attributes {tile.gradient_of = @f}

// -----
func.func @f(%x: f32) -> f32 {
  func.return %x : f32
}
func.func private @g(f32, f32) -> f32 attributes {tile.gradient_of = @f}
// expected-error @+1 {{is to be the gradient of 'f', which has 'g'}}
func.func private @h(f32, f32) -> f32 attributes {tile.gradient_of = @f}

// -----
func.func @f(%x: tensor<64xf32>, %s: f32) -> f32 {
  func.return %s : f32
}
// expected-error @+1 {{is to be the gradient of 'f', which takes or returns tiles; functions of scalars have gradients}}
func.func private @g(tensor<64xf32>, f32, f32) -> f32 attributes {tile.gradient_of = @f}
func.func @use(%t: tensor<64xf32>, %x: f32) -> f32 {
  %y = func.call @g(%t, %x, %x) : (tensor<64xf32>, f32, f32) -> f32
  func.return %y : f32
}

// FRAME
func.func @f(%x: f32) -> f32 {
  // HERE
func.func private @g(f32, f32) -> f32 attributes {tile.gradient_of = @f}
func.func @use(%x: f32) -> f32 {
  %y = func.call @g(%x, %x) : (f32, f32) -> f32
  func.return %y : f32
}

// CASE
  %y = func.call @h(%x) : (f32) -> f32
  func.return %y : f32
}
// expected-error @+1 {{the function 'h' calls itself; functions are inlined and cannot recurse}}
func.func @h(%x: f32) -> f32 {
  %y = func.call @h(%x) : (f32) -> f32
  func.return %y : f32
}

// CASE
  %c = arith.constant true
  // expected-error @+1 {{'scf.if' op has no rule for its derivative}}
  %y = scf.if %c -> f32 {
    scf.yield %x : f32
  } else {
    scf.yield %x : f32
  }
  func.return %y : f32
}
// expected-note @+1 {{'g' is to be the gradient of 'f'}}

// CASE
  // expected-error @+1 {{asks for the gradient of 'outside', which has no body}}
  %y = func.call @outside(%x) : (f32) -> f32
  func.return %y : f32
}
func.func private @outside(f32) -> f32

// CASE
  %t = tile.splat %x : f32 -> tensor<64xf32>
  // expected-error @+1 {{asks for the gradient of 'first', which takes or returns tiles; functions of scalars have gradients}}
  %y = func.call @first(%t) : (tensor<64xf32>) -> f32
  func.return %y : f32
}
func.func @first(%r: tensor<64xf32>) -> f32 {
  %y = arith.constant 0.0 : f32
  func.return %y : f32
}

// -----
func.func @f(%x: f32) -> f32 {
  func.return %x : f32
}
// expected-error @+1 {{is with respect to "slopes", which 'f' does not ask for}}
func.func private @g(f32, f32) attributes {tile.gradient_of = @f, tile.with_respect_to = ["slopes"]}
func.func @use(%x: f32) {
  func.call @g(%x, %x) : (f32, f32) -> ()
  func.return
}

// -----
func.func @f(%x: f32) -> f32 {
  // expected-error @+1 {{asks for "kinds" of '!tile.view<[H], i32>', which has no gradient; numbers of floating point of up to 32 bits and views of them have}}
  %kinds = tile.argument "kinds" : !tile.view<[H], i32>
  func.return %x : f32
}
func.func private @g(f32, f32) attributes {tile.gradient_of = @f, tile.with_respect_to = ["kinds"]}
func.func @use(%x: f32) {
  func.call @g(%x, %x) : (f32, f32) -> ()
  func.return
}

// -----
func.func @f(%x: f32) -> f32 {
  %cap = tile.argument "cap" : f32
  // expected-error @+1 {{asks for "dcap", which is the name of the gradient of "cap"; choose another one}}
  %other = tile.argument "dcap" : f32
  %y = arith.mulf %cap, %other : f32
  func.return %y : f32
}
func.func private @g(f32, f32) attributes {tile.gradient_of = @f, tile.with_respect_to = ["cap"]}
func.func @use(%x: f32) {
  func.call @g(%x, %x) : (f32, f32) -> ()
  func.return
}

// -----
func.func @first(%v: !tile.view<[H], f32>) -> f32 {
  %c0 = arith.constant 0 : index
  %y = tile.load %v[%c0] : !tile.view<[H], f32> -> f32
  func.return %y : f32
}
func.func @f(%x: f32) -> f32 {
  %v = tile.argument "v" : !tile.view<[H], f32>
  // expected-error @+1 {{takes the view "v" as a whole, and its gradient is that of elements which are loaded where it is asked for}}
  %y = func.call @first(%v) : (!tile.view<[H], f32>) -> f32
  func.return %y : f32
}
func.func private @g(f32, f32) attributes {tile.gradient_of = @f, tile.with_respect_to = ["v"]}
func.func @use(%x: f32) {
  func.call @g(%x, %x) : (f32, f32) -> ()
  func.return
}

// -----
func.func @f(%x: f32) -> f32 {
  %cap = tile.argument "cap" : f32
  // expected-error @+1 {{has no rule for its derivative}}
  %y = math.cbrt %cap : f32
  func.return %y : f32
}
// expected-note @+1 {{define it as '(f32, f32) -> ()' to say what it is}}
func.func private @g(f32, f32) attributes {tile.gradient_of = @f, tile.with_respect_to = ["cap"]}
func.func @use(%x: f32) {
  func.call @g(%x, %x) : (f32, f32) -> ()
  func.return
}

// -----
// expected-note @+1 {{and returns nothing, as it adds to memory}}
func.func @f(%x: f32) -> f32 {
  func.return %x : f32
}
// expected-error @+1 {{is to be the gradient of 'f' and is a function '(f32, f32) -> f32'; the gradient is '(f32, f32) -> ()'}}
func.func private @g(f32, f32) -> f32 attributes {tile.gradient_of = @f, tile.with_respect_to = []}

// -----
func.func @f(%x: f32) -> f32 {
  func.return %x : f32
}
// expected-error@+1 {{has cotangents that sum to 0 over argument 1 of 'f', which has 1}}
func.func private @g(f32, f32) attributes {tile.gradient_of = @f, tile.with_respect_to = ["x"], tile.zero_sum_over = 1}
