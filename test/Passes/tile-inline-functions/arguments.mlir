// What functions of a kernel ask for becomes an argument of the kernel, and of a sequence that launches it: once for a name,
// with the extents that the kernel's dimensions have there.
//
// RUN: tessera-opt %s --tile-inline-functions -split-input-file -verify-diagnostics | FileCheck %s

func.func @scaled(%x: f32, %i: i32) -> f32 {
  %factor = tile.argument "factor" : f32
  %slopes = tile.argument "slopes" : !tile.view<[M], f32>
  %at = arith.index_cast %i : i32 to index
  // expected-remark @+1 {{loaded as a vector, an element for each row}}
  %slope = tile.load %slopes[%at] : !tile.view<[M], f32> -> f32
  %y = arith.mulf %x, %factor : f32
  %z = arith.mulf %y, %slope : f32
  func.return %z : f32
}
func.func @store(%x: !tile.view<[M], f32>, %y: !tile.view<[M], f32>, %m: index) {
  %c64 = arith.constant 64 : index
  %at = arith.muli %m, %c64 : index
  %t = tile.load %x[%at] : !tile.view<[M], f32> -> tensor<64xf32>
  %i = tile.iota %at axis 0 : tensor<64xi32>
  %u = tile.map @scaled(%t, %i) : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>
  tile.store %u, %y[%at] : tensor<64xf32>, !tile.view<[M], f32>
  func.return
}
// CHECK: tile.kernel @first(%x: !tile.view<[M], f32>, %y: !tile.view<[M], f32>, %factor: f32, %slopes: !tile.view<[M], f32>)
tile.kernel @first(%x: !tile.view<[M], f32>, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  func.call @store(%x, %y, %m) : (!tile.view<[M], f32>, !tile.view<[M], f32>, index) -> ()
}
tile.kernel @second(%x: !tile.view<[M], f32>, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  func.call @store(%x, %y, %m) : (!tile.view<[M], f32>, !tile.view<[M], f32>, index) -> ()
}
// CHECK: tile.sequence @both(%x: !tile.view<[N], f32>, %y: !tile.view<[N], f32>, %factor: f32, %slopes: !tile.view<[N], f32>)
// CHECK: tile.launch @first(%x, %between, %factor, %slopes)
// CHECK: tile.launch @second(%between, %y, %factor, %slopes)
tile.sequence @both(%x: !tile.view<[N], f32>, %y: !tile.view<[N], f32>) {
  %between = tile.workspace : !tile.view<[N], f32>
  tile.launch @first(%x, %between) : !tile.view<[N], f32>, !tile.view<[N], f32>
  tile.launch @second(%between, %y) : !tile.view<[N], f32>, !tile.view<[N], f32>
}

// -----

tile.kernel @k(%y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  %c64 = arith.constant 64 : index
  %at = arith.muli %m, %c64 : index
  %factor = tile.argument "factor" : f32
  %t = tile.splat %factor : f32 -> tensor<64xf32>
  tile.store %t, %y[%at] : tensor<64xf32>, !tile.view<[M], f32>
}
tile.sequence @s(%y: !tile.view<[M], f32>, %factor: i32) {
  // expected-error @+1 {{asks for 'factor' of 'f32'; the argument of this name of 's' is 'i32'}}
  tile.launch @k(%y) : !tile.view<[M], f32>
}

// -----

// A workspace of the name, where it stands before the launch; its dimensions have the sequence's names.
!X = !tile.view<[M], f32>
tile.kernel @put(%x: !X, %to: !X) grid(%m = M ceildiv 64) {
  %c64 = arith.constant 64 : index
  %at = arith.muli %m, %c64 : index
  %t = tile.load %x[%at] : !X -> tensor<64xf32>
  tile.store %t, %to[%at] : tensor<64xf32>, !X
}
// CHECK: tile.kernel @take(%y: !tile.view<[M], f32>, %kept: !tile.view<[M], f32>)
tile.kernel @take(%y: !X) grid(%m = M ceildiv 64) {
  %c64 = arith.constant 64 : index
  %at = arith.muli %m, %c64 : index
  %kept = tile.argument "kept" : !X
  %t = tile.load %kept[%at] : !X -> tensor<64xf32>
  tile.store %t, %y[%at] : tensor<64xf32>, !X
}
// CHECK: tile.sequence @with(%x: !tile.view<[N], f32>, %y: !tile.view<[N], f32>)
// CHECK: tile.launch @take(%y, %kept)
tile.sequence @with(%x: !tile.view<[N], f32>, %y: !tile.view<[N], f32>) {
  %kept = tile.workspace : !tile.view<[N], f32>
  tile.launch @put(%x, %kept) : !tile.view<[N], f32>, !tile.view<[N], f32>
  tile.launch @take(%y) : !tile.view<[N], f32>
}
// CHECK: tile.sequence @without(%x: !tile.view<[N], f32>, %y: !tile.view<[N], f32>, %kept: !tile.view<[N], f32>)
// CHECK: tile.launch @take(%y, %kept)
tile.sequence @without(%x: !tile.view<[N], f32>, %y: !tile.view<[N], f32>) {
  tile.launch @take(%y) : !tile.view<[N], f32>
  %other = tile.workspace : !tile.view<[N], f32>
  tile.launch @put(%x, %other) : !tile.view<[N], f32>, !tile.view<[N], f32>
}

// -----

// A workspace of another type.
!X = !tile.view<[M], f32>
tile.kernel @put(%x: !X, %to: !tile.view<[M], i32>) grid(%m = M ceildiv 64) {
  %c64 = arith.constant 64 : index
  %at = arith.muli %m, %c64 : index
  %t = tile.load %x[%at] : !X -> tensor<64xf32>
  %i = arith.fptosi %t : tensor<64xf32> to tensor<64xi32>
  tile.store %i, %to[%at] : tensor<64xi32>, !tile.view<[M], i32>
}
tile.kernel @take(%y: !X) grid(%m = M ceildiv 64) {
  %c64 = arith.constant 64 : index
  %at = arith.muli %m, %c64 : index
  %kept = tile.argument "kept" : !X
  %t = tile.load %kept[%at] : !X -> tensor<64xf32>
  tile.store %t, %y[%at] : tensor<64xf32>, !X
}
tile.sequence @with(%x: !tile.view<[N], f32>, %y: !tile.view<[N], f32>) {
  %kept = tile.workspace : !tile.view<[N], i32>
  tile.launch @put(%x, %kept) : !tile.view<[N], f32>, !tile.view<[N], i32>
  // expected-error @+1 {{passes %kept of type '!tile.view<[N], i32>' as 'kept' of kernel 'take', which takes '!tile.view<[M], f32>'}}
  tile.launch @take(%y) : !tile.view<[N], f32>
}
