// A choice between sums leaves what they have in common outside, and its scalars take factors and what rows have.
//
// RUN: tessera-opt %s --tile-inline-functions --canonicalize --cse | FileCheck %s

!T = tensor<64x32xf32>
!C = tensor<64x32xi32>
!R = tensor<64xf32>
!X = !tile.view<[M, 32], f32>

// A bonus where q and k are both odd or both even. The products take one multiply-add, whose addend is of rows and places.
func.func @bonus(%x: f32, %bonus: f32, %scale: f32, %q: i32, %k: i32, %ref: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %log2e = arith.constant 1.5 : f32
  %s = arith.mulf %x, %scale : f32
  %differs = arith.xori %q, %k : i32
  %odd = arith.andi %differs, %c1 : i32
  %same = arith.cmpi eq, %odd, %c0 : i32
  %more = arith.addf %s, %bonus : f32
  %y = arith.select %same, %more, %s : f32
  %e = arith.mulf %y, %log2e : f32
  %less = arith.subf %e, %ref : f32
  func.return %less : f32
}
// CHECK-LABEL: tile.kernel @bonuses
// CHECK-DAG:     %[[FACTOR:.*]] = arith.mulf %scale, %{{.*}} : f32
// CHECK-DAG:     %[[BONUS:.*]] = arith.mulf %bonus, %{{.*}} : f32
// CHECK-DAG:     %[[SAME:.*]] = arith.cmpi eq
// CHECK-DAG:     %[[REFS:.*]] = arith.negf %{{.*}} : tensor<64xf32>
// CHECK-DAG:     %[[BONUSES:.*]] = tile.splat %[[BONUS]] : f32 -> tensor<64xf32>
// CHECK-DAG:     %[[SUMS:.*]] = arith.addf %[[REFS]], %[[BONUSES]] : tensor<64xf32>
// CHECK-DAG:     %[[LESS:.*]] = tile.broadcast %[[REFS]] axis 1
// CHECK-DAG:     %[[MORE:.*]] = tile.broadcast %[[SUMS]] axis 1
// CHECK:         %[[CHOSEN:.*]] = arith.select %[[SAME]], %[[MORE]], %[[LESS]]
// CHECK:         %[[PRODUCT:.*]] = arith.mulf
// CHECK-NEXT:    arith.addf %[[PRODUCT]], %[[CHOSEN]]
// CHECK-NOT:     arith.select
tile.kernel @bonuses(%x: !X, %bonus: f32, %scale: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !X -> !T
  %ref = tile.reduce max %s axis 1 : !T -> !R
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %y = tile.map @bonus(%s, %bonus, %scale, %q, %k, %ref axis 1) : (!T, f32, f32, !C, !C, !R) -> !T
  tile.store %y, %x[%row, %c0] : !T, !X
}

// One tile times one of two numbers; a third, by another condition, is added.
func.func @stripe(%s: f32, %slope: f32, %q: i32, %k: i32) -> f32 {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %c7 = arith.constant 7 : i32
  %is_before = arith.cmpi slt, %q, %k : i32
  %small = arith.mulf %s, %slope : f32
  %y = arith.select %is_before, %s, %small : f32
  %is_near = arith.cmpi slt, %k, %c7 : i32
  %more = arith.select %is_near, %one, %two : f32
  %z = arith.addf %y, %more : f32
  func.return %z : f32
}
// CHECK-LABEL: tile.kernel @stripes
// CHECK-DAG:     %[[S:.*]] = tile.load
// CHECK-DAG:     %[[BEFORE:.*]] = arith.cmpi slt
// CHECK-DAG:     %[[SLOPES:.*]] = tile.splat %slope
// CHECK-DAG:     %[[FACTOR:.*]] = arith.select %[[BEFORE]], %{{.*}}, %[[SLOPES]]
// CHECK-DAG:     %[[ADDED:.*]] = arith.select
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[S]], %[[FACTOR]]
// CHECK-NEXT:    arith.addf %[[PRODUCT]], %[[ADDED]]
tile.kernel @stripes(%x: !X, %slope: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !X -> !T
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %y = tile.map @stripe(%s, %slope, %q, %k) : (!T, f32, !C, !C) -> !T
  tile.store %y, %x[%row, %c0] : !T, !X
}

// A comparison of scores chooses between the products: they, and not their factors, are in registers already.
func.func @leak(%s: f32, %slope: f32, %q: i32, %k: i32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %is_positive = arith.cmpf ogt, %s, %zero : f32
  %is_before = arith.cmpi slt, %q, %k : i32
  %keeps = arith.ori %is_positive, %is_before : i1
  %small = arith.mulf %s, %slope : f32
  %y = arith.select %keeps, %s, %small : f32
  func.return %y : f32
}
// CHECK-LABEL: tile.kernel @leaks
// CHECK:         %[[SMALL:.*]] = arith.mulf %[[S:.*]], %{{.*}} : tensor<64x32xf32>
// CHECK-NEXT:    arith.select %{{.*}}, %[[S]], %[[SMALL]]
tile.kernel @leaks(%x: !X, %slope: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !X -> !T
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %y = tile.map @leak(%s, %slope, %q, %k) : (!T, f32, !C, !C) -> !T
  tile.store %y, %x[%row, %c0] : !T, !X
}

// Nothing in common: a number in place of a score stays one, whatever the score is. With a condition of the whole tile the
// scalars are chosen.
func.func @hide(%s: f32, %far: f32, %h: i32, %q: i32, %k: i32) -> (f32, f32) {
  %c3 = arith.constant 3 : i32
  %is_seen = arith.cmpi sge, %q, %k : i32
  %y = arith.select %is_seen, %s, %far : f32
  %is_first = arith.cmpi eq, %h, %c3 : i32
  %more = arith.addf %s, %far : f32
  %z = arith.select %is_first, %more, %s : f32
  func.return %y, %z : f32, f32
}
// CHECK-LABEL: tile.kernel @hides
// CHECK-DAG:     %[[FIRST:.*]] = arith.cmpi eq, %{{.*}} : i32
// CHECK-DAG:     %[[S:.*]] = tile.load
// CHECK-DAG:     arith.select %{{.*}}, %[[S]], %{{.*}} : tensor<64x32xi1>
// CHECK-DAG:     %[[MORE:.*]] = arith.select %[[FIRST]], %far, %{{.*}} : f32
// CHECK-DAG:     %[[MORES:.*]] = tile.splat %[[MORE]]
// CHECK-DAG:     arith.addf %[[S]], %[[MORES]]
tile.kernel @hides(%x: !X, %far: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.load %x[%row, %c0] : !X -> !T
  %q = tile.iota %row axis 0 : !C
  %k = tile.iota %c0 axis 1 : !C
  %h = arith.index_cast %m : index to i32
  %y, %z = tile.map @hide(%s, %far, %h, %q, %k) : (!T, f32, i32, !C, !C) -> (!T, !T)
  tile.store %y, %x[%row, %c0] : !T, !X
  tile.store %z, %x[%row, %c0] : !T, !X
}
