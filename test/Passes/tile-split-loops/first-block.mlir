// A mask outside of loops says by a scalar where what is loaded for each row hides nothing: by the largest of these. What indices
// alone decide stays for hop-guard-masks, and what has no bound as it is.
//
// RUN: tessera-opt %s --tile-split-loops --canonicalize --split-input-file | FileCheck %s

!C = tensor<64x32xi32>
!M = tensor<64x32xi1>
!T = tensor<64x32xf32>
!N = !tile.view<[M], i32>

// CHECK-LABEL: tile.kernel @first
// CHECK:         %[[ROW:.*]] = arith.muli
// CHECK:         %[[OF_ROWS:.*]] = tile.reduce_range max %{{.*}} to 64 -> i32 {
// CHECK:         %[[BEHIND:.*]] = arith.cmpi sge
// CHECK:         %[[UP_TO:.*]] = arith.cmpi sle
// CHECK:         %[[BOUND:.*]] = arith.extsi %[[OF_ROWS]] : i32 to i64
// CHECK:         %[[EXCESS:.*]] = arith.subi %[[BOUND]], %{{.*}} : i64
// CHECK:         %[[HOLDS:.*]] = arith.cmpi sle, %[[EXCESS]], %c0_i64 : i64
// CHECK:         %[[ALL:.*]] = tile.splat %[[HOLDS]] : i1
// CHECK:         %[[SEEN:.*]] = arith.ori %[[ALL]], %[[BEHIND]]
// CHECK:         %[[BOTH:.*]] = arith.andi %[[SEEN]], %[[UP_TO]]
// CHECK:         arith.select %[[BOTH]]
tile.kernel @first(%x: !tile.view<[M, 32], f32>, %starts: !N, %y: !tile.view<[M, 32], f32>, %col: index)
    grid(%m = M ceildiv 64) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %own = tile.load %starts[%row] : !N -> tensor<64xi32>
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 32], f32> -> !T
  %start = tile.broadcast %own axis 1 : tensor<64xi32> -> !C
  %k = tile.iota %col axis 1 : !C
  %q = tile.iota %row axis 0 : !C
  %behind = arith.cmpi sge, %k, %start : !C
  %up_to = arith.cmpi sle, %k, %q : !C
  %seen = arith.andi %behind, %up_to : !M
  %s = arith.select %seen, %t, %zero : !M, !T
  tile.store %s, %y[%row, %c0] : !T, !tile.view<[M, 32], f32>
}

// The other way round the fill is where the mask is true. Equal numbers have no bound.
// CHECK-LABEL: tile.kernel @opposite
// CHECK:         tile.iota
// CHECK:         %[[BEFORE:.*]] = arith.cmpi slt
// CHECK:         %[[SAME:.*]] = arith.cmpi eq
// CHECK:         %[[SOME:.*]] = arith.cmpi sgt
// CHECK:         %[[ANY:.*]] = tile.splat %[[SOME]] : i1
// CHECK:         %[[HIDDEN:.*]] = arith.andi %[[ANY]], %[[BEFORE]]
// CHECK:         %[[EITHER:.*]] = arith.ori %[[HIDDEN]], %[[SAME]]
// CHECK:         arith.select %[[EITHER]]
tile.kernel @opposite(%x: !tile.view<[M, 32], f32>, %starts: !N, %y: !tile.view<[M, 32], f32>, %col: index)
    grid(%m = M ceildiv 64) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %own = tile.load %starts[%row] : !N -> tensor<64xi32>
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 32], f32> -> !T
  %start = tile.broadcast %own axis 1 : tensor<64xi32> -> !C
  %k = tile.iota %col axis 1 : !C
  %before = arith.cmpi slt, %k, %start : !C
  %same = arith.cmpi eq, %k, %start : !C
  %hidden = arith.ori %before, %same : !M
  %s = arith.select %hidden, %zero, %t : !M, !T
  tile.store %s, %y[%row, %c0] : !T, !tile.view<[M, 32], f32>
}
