// RUN: %cases %s | tessera-opt --tile-inline-functions -split-input-file -verify-diagnostics

func.func @f(%x: f32) -> f32 {
  // expected-error @+1 {{the function 'f' calls itself (f -> f)}}
  %y = func.call @f(%x) : (f32) -> f32
  func.return %y : f32
}
tile.kernel @k(%x: f32) grid(%m = 1) {
  %t = tile.splat %x : f32 -> tensor<64x64xf32>
  %y = tile.map @f(%t) : (tensor<64x64xf32>) -> tensor<64x64xf32>
}

// -----
tile.kernel @k(%x: f32) grid(%m = 1) {
  %t = tile.splat %x : f32 -> tensor<64x64xf32>
  // expected-error @+1 {{applies 'f', which is no function of the source}}
  %y = tile.map @f(%t) : (tensor<64x64xf32>) -> tensor<64x64xf32>
}

// -----
// expected-note @+1 {{it takes and returns one scalar for each tile or scalar}}
func.func @f(%x: i32) -> f32 {
  %y = arith.sitofp %x : i32 to f32
  func.return %y : f32
}
tile.kernel @k(%x: f32) grid(%m = 1) {
  %t = tile.splat %x : f32 -> tensor<64x64xf32>
  // expected-error @+1 {{applies 'f' to elements of '(f32) -> f32'; the function is '(i32) -> f32'}}
  %y = tile.map @f(%t) : (tensor<64x64xf32>) -> tensor<64x64xf32>
}

// -----
func.func @f(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{is a loop or a condition in a function of elements, which tile.map applies to all elements at once; choose between values by arith.select}}
  %y = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x) -> (f32) {
    scf.yield %a : f32
  }
  func.return %y : f32
}
tile.kernel @k(%x: f32) grid(%m = 1) {
  %t = tile.splat %x : f32 -> tensor<64x64xf32>
  %y = tile.map @f(%t) : (tensor<64x64xf32>) -> tensor<64x64xf32>
}

// -----
func.func @f(%x: f32) -> f32 {
  %v = tile.argument "v" : !tile.view<[M, 64], f32>
  %c0 = arith.constant 0 : index
  %t = tile.splat %x : f32 -> tensor<64x64xf32>
  tile.store %t, %v[%c0, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
  func.return %x : f32
}
tile.kernel @k(%x: f32) grid(%m = 1) {
  %t = tile.splat %x : f32 -> tensor<64x64xf32>
  // expected-error @-6 {{is not available in a function of elements}}
  %y = tile.map @f(%t) : (tensor<64x64xf32>) -> tensor<64x64xf32>
}

// FRAME
func.func @f(%q: i32) -> f32 {
  %v = tile.argument "v" : !tile.view<[M, 4], f32>
  %i = arith.index_cast %q : i32 to index
  // HERE
  // expected-error @+1 {{has the index 5 in dimension 1 of '!tile.view<[M, 4], f32>', which lies outside for every element}}
  %b = tile.load %v[%i, %c5] : !tile.view<[M, 4], f32> -> f32
  func.return %b : f32
}
tile.kernel @k(%x: f32) grid(%m = 1) {
  %q = tile.iota %m axis 0 : tensor<64x64xi32>
  %y = tile.map @f(%q) : (tensor<64x64xi32>) -> tensor<64x64xf32>
}

// CASE
  %c5 = arith.constant 5 : index

// CASE
  %c5_i32 = arith.constant 5 : i32
  %c5 = arith.index_cast %c5_i32 : i32 to index

// -----
func.func @f(%q: i32) -> f8E4M3FN {
  %v = tile.argument "v" : !tile.view<[M, 4], f8E4M3FN>
  %i = arith.index_cast %q : i32 to index
  %c3 = arith.constant 3 : index
  // expected-error @+1 {{moves elements of 8 bits as tiles of rank 2}}
  %b = tile.load %v[%i, %c3] : !tile.view<[M, 4], f8E4M3FN> -> f8E4M3FN
  func.return %b : f8E4M3FN
}
tile.kernel @k(%x: f32) grid(%m = 1) {
  %q = tile.iota %m axis 0 : tensor<64x64xi32>
  %y = tile.map @f(%q) : (tensor<64x64xi32>) -> tensor<64x64xf8E4M3FN>
}

// -----
func.func @f(%q: i32) -> i32 {
  %i = arith.index_cast %q : i32 to index
  // expected-error @+1 {{computes with the index of an element, which only a tile.load takes; compute in i32 and cast at the load}}
  %j = arith.addi %i, %i : index
  %k = arith.index_cast %j : index to i32
  func.return %k : i32
}
tile.kernel @k(%x: f32) grid(%m = 1) {
  %q = tile.iota %m axis 0 : tensor<64x64xi32>
  %y = tile.map @f(%q) : (tensor<64x64xi32>) -> tensor<64x64xi32>
}

// FRAME
func.func @f(%x: f32) -> f32 {
  // HERE
}
tile.kernel @k(%x: f32) grid(%m = 1) {
  %t = tile.splat %x : f32 -> tensor<64x64xf32>
  %y = tile.map @f(%t) : (tensor<64x64xf32>) -> tensor<64x64xf32>
}

// CASE
  // expected-error @+1 {{asks for 'x' of 'i32'; the argument of this name of 'k' is 'f32'}}
  %y = tile.argument "x" : i32
  %z = arith.sitofp %y : i32 to f32
  func.return %z : f32

// CASE
  %v = tile.argument "v" : !tile.view<[M], f32>
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{stores in a function of elements, which computes, and adds elements to memory (tile.store ... add); store the tile that tile.map gives}}
  tile.store %x, %v[%c0] : f32, !tile.view<[M], f32>
  func.return %x : f32

// CASE
  %v = tile.argument "v" : !tile.view<[M], f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1.0 : f32
  // expected-error @+1 {{adds a number that is the same for all elements; let it depend on one, or add it in the kernel}}
  tile.store %c1, %v[%c0] add : f32, !tile.view<[M], f32>
  func.return %x : f32

// CASE
  %v = tile.argument "v" : !tile.view<[M, 4], f32>
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  // expected-error @+1 {{has the index 5 in dimension 1 of '!tile.view<[M, 4], f32>', which lies outside for every element}}
  tile.store %x, %v[%c0, %c5] add : f32, !tile.view<[M, 4], f32>
  func.return %x : f32
