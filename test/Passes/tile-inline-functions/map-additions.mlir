// What a function of elements adds to memory: those that go to one place are summed first.
//
// RUN: tessera-opt %s --tile-inline-functions -verify-diagnostics --canonicalize --cse | FileCheck %s

func.func @add(%x: f32, %h: i32, %q: i32, %k: i32) -> f32 {
  %heads = tile.argument "heads" : !tile.view<[H], f32>
  %rows = tile.argument "rows" : !tile.view<[H, M], f32>
  %columns = tile.argument "columns" : !tile.view<[N], f32>
  %pairs = tile.argument "pairs" : !tile.view<[M, 128], f32>
  %lines = tile.argument "lines" : !tile.view<[M, N], f32>
  %table = tile.argument "table" : !tile.view<[H, P], f32>
  %ends = tile.argument "ends" : !tile.view<[M, 2], f32>
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : i32
  %hi = arith.index_cast %h : i32 to index
  %qi = arith.index_cast %q : i32 to index
  %ki = arith.index_cast %k : i32 to index
  %next = arith.addi %k, %c3 : i32
  %next_i = arith.index_cast %next : i32 to index
  %away = arith.subi %q, %k : i32
  %at = arith.index_cast %away : i32 to index
  // expected-remark @+1 {{added as a scalar, the sum of all elements}}
  tile.store %x, %heads[%hi] add : f32, !tile.view<[H], f32>
  // expected-remark @+1 {{added as a vector, the sums of the rows}}
  tile.store %x, %rows[%hi, %qi] add : f32, !tile.view<[H, M], f32>
  // expected-remark @+1 {{added as a vector, the sums of the columns}}
  tile.store %x, %columns[%next_i] add : f32, !tile.view<[N], f32>
  // expected-remark @+1 {{added as a tile}}
  tile.store %x, %pairs[%qi, %ki] add : f32, !tile.view<[M, 128], f32>
  // expected-remark @+1 {{added, one by one: an element for each score}}
  tile.store %x, %lines[%qi, %ki] add : f32, !tile.view<[M, N], f32>
  // expected-remark @+1 {{added, one by one: an element for each score}}
  tile.store %x, %table[%hi, %at] add : f32, !tile.view<[H, P], f32>
  // expected-remark @+1 {{added, one by one: an element for each row}}
  tile.store %x, %ends[%qi, %c1] add : f32, !tile.view<[M, 2], f32>
  func.return %x : f32
}

// CHECK-LABEL: tile.kernel @k
// CHECK:       %[[T:.*]] = tile.load %x
// CHECK:       %[[ROWS:.*]] = tile.reduce sum %[[T]] axis 1
// CHECK:       %[[COLUMNS:.*]] = tile.reduce sum %[[T]] axis 0
// CHECK:       tile.scatter_add %[[ROWS]], %heads[%h] : tensor<64xf32>, !tile.view<[H], f32>, index
// CHECK:       tile.store %[[ROWS]], %rows[%h, %m] add
// CHECK:       tile.store %[[COLUMNS]], %columns[%c3] add
// CHECK:       tile.store %[[T]], %pairs[%m, %c0] add
// CHECK:       tile.scatter_add %[[T]], %lines[%{{.*}}, %{{.*}}] : tensor<64x32xf32>, !tile.view<[M, N], f32>, tensor<64x32xi32>, tensor<64x32xi32>
// CHECK:       tile.scatter_add %[[T]], %table[%h, %{{.*}}]
// CHECK:       tile.scatter_add %[[ROWS]], %ends[%{{.*}}, %c1] : tensor<64xf32>, !tile.view<[M, 2], f32>, tensor<64xi32>, index
tile.kernel @k(%x: !tile.view<[H, M, 32], f32>, %y: !tile.view<[H, M, 32], f32>) grid(%m = M ceildiv 64, %h = H) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%h, %m, %c0] : !tile.view<[H, M, 32], f32> -> tensor<64x32xf32>
  %head = arith.index_cast %h : index to i32
  %q = tile.iota %m axis 0 : tensor<64x32xi32>
  %k = tile.iota %c0 axis 1 : tensor<64x32xi32>
  %s = tile.map @add(%t, %head, %q, %k) : (tensor<64x32xf32>, i32, tensor<64x32xi32>, tensor<64x32xi32>) -> tensor<64x32xf32>
  tile.store %s, %y[%h, %m, %c0] : tensor<64x32xf32>, !tile.view<[H, M, 32], f32>
}
