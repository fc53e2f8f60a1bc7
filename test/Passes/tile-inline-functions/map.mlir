// A function of scalars becomes operations on tiles; what depends on no element stays scalar.
//
// RUN: tessera-opt %s --tile-inline-functions -verify-diagnostics | FileCheck %s

!T = tensor<64x32xf32>
!C = tensor<64x32xi32>
!M = tensor<64x32xi1>
!R = tensor<64xf32>
!X = !tile.view<[H, M, 32], f32>

func.func @score(%s: f32, %scale: f32, %h: i32, %q: i32, %k: i32, %ref: f32) -> f32 {
  %slopes = tile.argument "slopes" : !tile.view<[H], f32>
  %head = arith.index_cast %h : i32 to index
  // expected-remark @+1 {{loaded as a scalar: the indices are the same for all elements}}
  %slope = tile.load %slopes[%head] : !tile.view<[H], f32> -> f32
  %factor = arith.mulf %slope, %scale : f32
  %away = arith.subi %k, %q : i32
  %d = arith.sitofp %away : i32 to f32
  %bias = arith.mulf %factor, %d : f32
  %y = arith.addf %s, %bias : f32
  %z = arith.subf %y, %ref : f32
  func.return %z : f32
}

func.func @mask(%q: i32, %k: i32) -> i1 {
  %seen = arith.cmpi sle, %k, %q : i32
  func.return %seen : i1
}

func.func @all() -> i1 {
  %true = arith.constant true
  func.return %true : i1
}

func.func @bias(%s: f32, %h: i32, %q: i32, %k: i32) -> f32 {
  %rows = tile.argument "rows" : !tile.view<[H, M], f32>
  %whole = tile.argument "whole" : !tile.view<[H, M, 32], f32>
  %c3 = arith.constant 3 : i32
  %head = arith.index_cast %h : i32 to index
  %next = arith.addi %q, %c3 : i32
  %i = arith.index_cast %next : i32 to index
  %j = arith.index_cast %k : i32 to index
  // expected-remark @+1 {{loaded as a vector, an element for each row}}
  %r = tile.load %rows[%head, %i] : !tile.view<[H, M], f32> -> f32
  // expected-remark @+1 {{loaded as a tile: the indices are those of row and column}}
  %w = tile.load %whole[%head, %i, %j] : !tile.view<[H, M, 32], f32> -> f32
  %a = arith.addf %r, %w : f32
  %y = arith.addf %s, %a : f32
  func.return %y : f32
}

// CHECK-NOT:   func.
// CHECK-LABEL: tile.kernel @k(%x: {{.*}}, %y: {{.*}}, %scale: f32, %slopes: !tile.view<[H], f32>, %rows: !tile.view<[H, M], f32>, %whole:
// CHECK:         %[[SLOPE:.*]] = tile.load %slopes[%{{.*}}] : !tile.view<[H], f32> -> f32
// CHECK:         %[[FACTOR:.*]] = arith.mulf %[[SLOPE]], %scale : f32
// CHECK:         %[[AWAY:.*]] = arith.subi %{{.*}}, %{{.*}} : tensor<64x32xi32>
// CHECK:         %[[D:.*]] = arith.sitofp %[[AWAY]] : tensor<64x32xi32> to tensor<64x32xf32>
// CHECK:         %[[SPLAT:.*]] = tile.splat %[[FACTOR]]
// CHECK:         arith.mulf %[[D]], %[[SPLAT]] : tensor<64x32xf32>
// CHECK:         arith.cmpi sle, %{{.*}}, %{{.*}} : tensor<64x32xi32>
// CHECK:         arith.constant dense<true> : tensor<64x32xi1>
// CHECK:         %[[START:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK:         %[[R:.*]] = tile.load %rows[%{{.*}}, %[[START]]] {{.*}} -> tensor<64xf32>
// CHECK:         tile.broadcast %[[R]] axis 1
// CHECK:         tile.load %whole[%{{.*}}, %{{.*}}, %{{.*}}] {{.*}} -> tensor<64x32xf32>
tile.kernel @k(%x: !X, %y: !X, %scale: f32) grid(%m = M ceildiv 64, %h = H) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%h, %row, %c0] : !X -> !T
  %ref = tile.reduce max %s axis 1 : !T -> !R
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %head = arith.index_cast %h : index to i32
  %b = tile.map @score(%s, %scale, %head, %q, %k, %ref axis 1) : (!T, f32, i32, !C, !C, !R) -> !T
  %seen = tile.map @mask(%q, %k) : (!C, !C) -> !M
  %all = tile.map @all() : () -> !M
  %both = arith.andi %seen, %all : !M
  %zero = arith.constant dense<0.0> : !T
  %o = arith.select %both, %b, %zero : !M, !T
  %p = tile.map @bias(%o, %head, %q, %k) : (!T, i32, !C, !C) -> !T
  tile.store %p, %y[%h, %row, %c0] : !T, !X
}

// A view with the columns first.
func.func @turned(%s: f32, %q: i32, %k: i32) -> f32 {
  %turned = tile.argument "turned" : !tile.view<[N, M], f32>
  %i = arith.index_cast %q : i32 to index
  %j = arith.index_cast %k : i32 to index
  // expected-remark @+1 {{loaded as a tile: the indices are those of row and column}}
  %w = tile.load %turned[%j, %i] : !tile.view<[N, M], f32> -> f32
  %y = arith.addf %s, %w : f32
  func.return %y : f32
}
// CHECK-LABEL: tile.kernel @columns_first
// CHECK:         %[[LOADED:.*]] = tile.load %turned[%{{.*}}, %{{.*}}] : !tile.view<[N, M], f32> -> tensor<32x64xf32>
// CHECK:         %[[TURNED:.*]] = tile.transpose %[[LOADED]] : tensor<32x64xf32> -> tensor<64x32xf32>
// CHECK:         arith.addf %{{.*}}, %[[TURNED]]
tile.kernel @columns_first(%x: !tile.view<[M, N], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !tile.view<[M, N], f32> -> !T
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %y = tile.map @turned(%s, %q, %k) : (!T, !C, !C) -> !T
  tile.store %y, %x[%row, %c0] : !T, !tile.view<[M, N], f32>
}
