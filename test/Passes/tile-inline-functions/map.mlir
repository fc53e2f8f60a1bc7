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

// A view with the columns first: neighbours in a row of the tile are none in memory.
func.func @turned(%s: f32, %q: i32, %k: i32) -> f32 {
  %turned = tile.argument "turned" : !tile.view<[N, M], f32>
  %i = arith.index_cast %q : i32 to index
  %j = arith.index_cast %k : i32 to index
  // expected-remark @+1 {{gathered, one by one: an element for each score}}
  %w = tile.load %turned[%j, %i] : !tile.view<[N, M], f32> -> f32
  %y = arith.addf %s, %w : f32
  func.return %y : f32
}
// CHECK-LABEL: tile.kernel @columns_first
// CHECK-DAG:     %[[Q:.*]] = tile.iota %{{.*}} axis 0
// CHECK-DAG:     %[[K:.*]] = tile.iota %{{.*}} axis 1
// CHECK:         %[[TURNED:.*]] = tile.gather_elements %turned[%[[K]], %[[Q]]] {{.*}} -> tensor<64x32xf32>
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

// What depends on the row alone is gathered once for each row, outside of the loop; a distance once for each element.
func.func @distances(%s: f32, %q: i32, %k: i32) -> f32 {
  %of = tile.argument "of" : !tile.view<[M], i32>
  %ends = tile.argument "ends" : !tile.view<[N], f32>
  %table = tile.argument "table" : !tile.view<[N], f32>
  %c1 = arith.constant 1 : i32
  %i = arith.index_cast %q : i32 to index
  // expected-remark @+1 {{loaded as a vector, an element for each row}}
  %number = tile.load %of[%i] : !tile.view<[M], i32> -> i32
  %next = arith.addi %number, %c1 : i32
  %j = arith.index_cast %next : i32 to index
  // expected-remark @+1 {{gathered, one by one: an element for each row}}
  %end = tile.load %ends[%j] : !tile.view<[N], f32> -> f32
  %away = arith.subi %q, %k : i32
  %l = arith.index_cast %away : i32 to index
  // expected-remark @+1 {{gathered, one by one: an element for each score}}
  %bias = tile.load %table[%l] : !tile.view<[N], f32> -> f32
  %x = arith.addf %s, %end : f32
  %y = arith.addf %x, %bias : f32
  func.return %y : f32
}
// CHECK-LABEL: tile.kernel @gathers
// CHECK:         %[[OF:.*]] = tile.load %of[%{{.*}}] : !tile.view<[M], i32> -> tensor<64xi32>
// CHECK:         %[[NEXT:.*]] = arith.addi %[[OF]], %{{.*}} : tensor<64xi32>
// CHECK:         %[[END:.*]] = tile.gather_elements %ends[%[[NEXT]]] : !tile.view<[N], f32>, tensor<64xi32> -> tensor<64xf32>
// CHECK:         scf.for
// CHECK:           tile.broadcast %[[END]] axis 1
// CHECK:           tile.gather_elements %table[%{{.*}}] : !tile.view<[N], f32>, tensor<64x32xi32> -> tensor<64x32xf32>
tile.kernel @gathers(%x: !tile.view<[M, N], f32>, %y: !tile.view<[M, 32], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %sum = scf.for %j = %c0 to %n step %c32 iter_args(%old = %zero) -> (!T) {
    %s = tile.load %x[%row, %j] : !tile.view<[M, N], f32> -> !T
    %q = tile.iota %row axis 0 : !C
    %k = tile.iota %j axis 1 : !C
    %e = tile.map @distances(%s, %q, %k) : (!T, !C, !C) -> !T
    %new = arith.addf %old, %e : !T
    scf.yield %new : !T
  }
  tile.store %sum, %y[%row, %c0] : !T, !tile.view<[M, 32], f32>
}

// Elements of 16 bits are extended before they are repeated, and a load whose indices do not change stands ahead of what
// asks for it in each iteration, with the scalar that it is computed from. A vector of rows that have few elements does not leave with one.
func.func @seen(%b: i32, %q: i32, %k: i32) -> i1 {
  %halves = tile.argument "halves" : !tile.view<[M], bf16>
  %lengths = tile.argument "lengths" : !tile.view<[H], i32>
  %batch = arith.index_cast %b : i32 to index
  %i = arith.index_cast %q : i32 to index
  // expected-remark @+1 {{loaded as a vector, an element for each row}}
  %half = tile.load %halves[%i] : !tile.view<[M], bf16> -> bf16
  // expected-remark @+1 {{loaded as a scalar: the indices are the same for all elements}}
  %length = tile.load %lengths[%batch] : !tile.view<[H], i32> -> i32
  %shifts = tile.argument "shifts" : !tile.view<[H, M], f32>
  // expected-remark @+1 {{loaded as a vector, an element for each row}}
  %shift = tile.load %shifts[%batch, %i] : !tile.view<[H, M], f32> -> f32
  %whole = arith.extf %half : bf16 to f32
  %positive = arith.cmpf ogt, %whole, %shift : f32
  %inside = arith.cmpi slt, %k, %length : i32
  %both = arith.andi %positive, %inside : i1
  func.return %both : i1
}
// CHECK-LABEL: tile.kernel @loaded
// CHECK:         %[[HALF:.*]] = tile.load %halves[%{{.*}}] : !tile.view<[M], bf16> -> tensor<64xbf16>
// CHECK:         %[[WHOLE:.*]] = arith.extf %[[HALF]] : tensor<64xbf16> to tensor<64xf32>
// CHECK:         %[[LENGTH:.*]] = tile.load %lengths[%{{.*}}] : !tile.view<[H], i32> -> i32
// CHECK:         tile.visits
// CHECK:           tile.load %shifts[%{{.*}}, %{{.*}}] : !tile.view<[H, M], f32> -> tensor<64xf32>
// CHECK:           tile.broadcast %[[WHOLE]] axis 1
tile.kernel @loaded(%x: !X, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 64, %h = H) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %q = tile.iota %row axis 0 : !C
  %first, %past = tile.visits %j = %c0 to %c4 {
    %head = arith.index_cast %h : index to i32
    %col = arith.muli %j, %c32 : index
    %k = tile.iota %col axis 1 : !C
    %seen = tile.map @seen(%head, %q, %k) : (i32, !C, !C) -> !M
    tile.mask %seen : !M
  }
  %zero = arith.constant dense<0.0> : !R
  %sum = scf.for %j = %first to %past step %c1 iter_args(%old = %zero) -> (!R) {
    %t = tile.load %x[%h, %row, %c0] : !X -> !T
    %s = tile.reduce sum %t axis 1 : !T -> !R
    %new = arith.addf %old, %s : !R
    scf.yield %new : !R
  }
  tile.store %sum, %y[%row] : !R, !tile.view<[M], f32>
}

// One of rows that have more elements than 64 leaves the loop with the scalar that it is computed from.
func.func @shifted(%s: f32, %b: i32, %q: i32) -> f32 {
  %shifts = tile.argument "shifts" : !tile.view<[H, M], f32>
  %batch = arith.index_cast %b : i32 to index
  %i = arith.index_cast %q : i32 to index
  // expected-remark @+1 {{loaded as a vector, an element for each row}}
  %shift = tile.load %shifts[%batch, %i] : !tile.view<[H, M], f32> -> f32
  %y = arith.addf %s, %shift : f32
  func.return %y : f32
}
// CHECK-LABEL: tile.kernel @many
// CHECK:         %[[SHIFTS:.*]] = tile.load %shifts[%{{.*}}, %{{.*}}] : !tile.view<[H, M], f32> -> tensor<64xf32>
// CHECK:         scf.for
// CHECK:           tile.broadcast %[[SHIFTS]] axis 1
tile.kernel @many(%y: !tile.view<[H, M, 128], f32>) grid(%m = M ceildiv 64, %h = H) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %q = tile.iota %row axis 0 : tensor<64x128xi32>
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %sum = scf.for %j = %c0 to %c4 step %c1 iter_args(%old = %zero) -> (tensor<64x128xf32>) {
    %head = arith.index_cast %h : index to i32
    %new = tile.map @shifted(%old, %head, %q) : (tensor<64x128xf32>, i32, tensor<64x128xi32>) -> tensor<64x128xf32>
    scf.yield %new : tensor<64x128xf32>
  }
  tile.store %sum, %y[%h, %row, %c0] : tensor<64x128xf32>, !tile.view<[H, M, 128], f32>
}

// A factor and its inverse are none, as in the derivative of a function that divides by what it multiplies with.
func.func @there_and_back(%s: f32, %cap: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %above = arith.mulf %s, %cap : f32
  %square = arith.mulf %s, %s : f32
  %less = arith.subf %one, %square : f32
  %part = arith.mulf %above, %less : f32
  %y = arith.divf %part, %cap : f32
  func.return %y : f32
}
// CHECK-LABEL: tile.kernel @factors
// CHECK:         %[[S:.*]] = tile.load %x
// CHECK-NOT:     tile.splat
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[S]], %[[S]]
// CHECK:         %[[LESS:.*]] = arith.addf
// CHECK-NEXT:    %[[Y:.*]] = arith.mulf %[[S]], %[[LESS]]
// CHECK-NEXT:    tile.store %[[Y]]
tile.kernel @factors(%x: !tile.view<[M, 32], f32>, %cap: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !tile.view<[M, 32], f32> -> !T
  %y = tile.map @there_and_back(%s, %cap) : (!T, f32) -> !T
  tile.store %y, %x[%row, %c0] : !T, !tile.view<[M, 32], f32>
}
