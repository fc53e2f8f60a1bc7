// Which iterations lose their mask, and the bounds of the loops.
//
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=overlap=1 --tile-choose-schedule --tile-split-loops --canonicalize --cse | FileCheck %s --check-prefix=TAIL
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-choose-schedule --tile-overlap --tile-split-loops --canonicalize --cse | FileCheck %s --check-prefix=ROTATED
// RUN: tessera-opt %S/../Inputs/causal.mlir --tile-override-schedule=schedule=overlap=1 --tile-choose-schedule --tile-split-loops --canonicalize --cse | FileCheck %s --check-prefix=CAUSAL
// RUN: tessera-opt %S/../Inputs/window.mlir --tile-override-schedule=schedule=overlap=1 --tile-choose-schedule --tile-split-loops --canonicalize --cse | FileCheck %s --check-prefix=WINDOW
// RUN: tessera-opt %S/../Inputs/causal.mlir --tile-choose-schedule --tile-split-loops=split=false | FileCheck %s --check-prefix=OFF
// RUN: tessera-opt %S/../Inputs/gemm.mlir --tile-choose-schedule --tile-split-loops | FileCheck %s --check-prefix=GEMM
// RUN: tessera-opt %s --tile-split-loops --canonicalize --cse | FileCheck %s

// Block j is full when 128 j + 127 < SK.
// TAIL:       %[[SK:.*]] = tile.dim "SK"
// TAIL:       %[[N:.*]] = arith.ceildivui %[[SK]],
// TAIL:       %[[FULL:.*]] = arith.floordivsi %[[SK]], %c128
// TAIL:       %[[MIN:.*]] = arith.minsi %[[N]], %[[FULL]]
// TAIL:       %[[PAST:.*]] = arith.maxsi %[[MIN]], %c0
// TAIL:       %[[R:.*]]:3 = scf.for %{{.*}} = %c0 to %[[PAST]] step %c1
// TAIL-NOT:     tile.iota
// TAIL-NOT:     arith.select
// TAIL:         scf.yield
// TAIL:       scf.for %{{.*}} = %[[PAST]] to %[[N]] step %c1 iter_args(%{{.*}} = %[[R]]#0, %{{.*}} = %[[R]]#1, %{{.*}} = %[[R]]#2)
// TAIL:         tile.iota
// TAIL:         arith.select
// TAIL:         scf.yield

// After the rotation the prologue has a mask, the first loop none, the second one; there is one epilogue.
// ROTATED:      arith.select
// ROTATED:      %[[R:.*]]:4 = scf.for %{{.*}} = %c1 to %[[PAST:[^ ]*]] step %c1
// ROTATED-NOT:    arith.select
// ROTATED:        scf.yield
// ROTATED:      scf.for %{{.*}} = %[[PAST]] to %{{.*}} iter_args(%{{.*}} = %[[R]]#0, %{{.*}} = %[[R]]#1, %{{.*}} = %[[R]]#2, %{{.*}} = %[[R]]#3)
// ROTATED:        arith.select
// ROTATED:        scf.yield
// ROTATED:      tile.dot
// ROTATED-NOT:  tile.dot

// Both parts of the condition: 32 j + 31 < SK and 32 j + 31 <= diagonal.
// CAUSAL:       %[[DIAGONAL:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CAUSAL:       %[[N:.*]] = arith.ceildivsi
// CAUSAL:       %[[INSIDE:.*]] = arith.floordivsi %{{.*}}, %c32
// CAUSAL:       %[[MIN:.*]] = arith.minsi %[[N]], %[[INSIDE]]
// CAUSAL:       %[[NEXT:.*]] = arith.addi %[[DIAGONAL]], %c1
// CAUSAL:       %[[BELOW:.*]] = arith.floordivsi %[[NEXT]], %c32
// CAUSAL:       %[[BOTH:.*]] = arith.minsi %[[MIN]], %[[BELOW]]
// CAUSAL:       %[[PAST:.*]] = arith.maxsi %[[BOTH]], %c0
// CAUSAL:       scf.for %{{.*}} = %c0 to %[[PAST]] step %c1
// CAUSAL-NOT:     arith.select
// CAUSAL:       scf.for %{{.*}} = %[[PAST]] to %[[N]] step %c1
// CAUSAL:         arith.select

// A band: masked, full, masked. The step is 32, so the thresholds row - 37 and row - 30 move to its grid.
// WINDOW:       %[[UPPER:.*]] = arith.minsi
// WINDOW:       %[[RIGHT:.*]] = arith.addi %[[ROW:.*]], %c-30
// WINDOW:       %[[PAST:.*]] = arith.minsi %[[UPPER]], %[[RIGHT]]
// WINDOW:       %[[LEFT:.*]] = arith.addi %[[ROW]], %c-37
// WINDOW:       %[[MAX:.*]] = arith.maxsi %[[LOWER:.*]], %[[LEFT]]
// WINDOW:       %[[FIRST:.*]] = arith.minsi %[[MAX]], %[[UPPER]]
// WINDOW:       %[[D1:.*]] = arith.subi %[[FIRST]], %[[LOWER]]
// WINDOW:       %[[S1:.*]] = arith.ceildivsi %[[D1]], %c32
// WINDOW:       %[[M1:.*]] = arith.muli %[[S1]], %c32
// WINDOW:       %[[FROM:.*]] = arith.addi %[[LOWER]], %[[M1]]
// WINDOW:       %[[TO1:.*]] = arith.minsi %[[FROM]], %[[UPPER]]
// WINDOW:       %[[A:.*]] = scf.for %{{.*}} = %[[LOWER]] to %[[TO1]] step %c32
// WINDOW:         arith.cmpi sgt
// WINDOW:         arith.cmpi slt
// WINDOW:         arith.select
// WINDOW:       %[[TO2:.*]] = arith.minsi %[[TO:.*]], %[[UPPER]]
// WINDOW:       %[[B:.*]] = scf.for %{{.*}} = %[[FROM]] to %[[TO2]] step %c32 iter_args(%{{.*}} = %[[A]])
// WINDOW-NOT:     arith.select
// At the end only the columns after the diagonal are left to compare.
// WINDOW:       scf.for %{{.*}} = %[[TO]] to %[[UPPER]] step %c32 iter_args(%{{.*}} = %[[B]])
// WINDOW:         %[[AFTER:.*]] = arith.cmpi sgt
// WINDOW-NOT:     arith.cmpi
// WINDOW:         arith.select %[[AFTER]]

// OFF:          scf.for
// OFF-NOT:      scf.for
// GEMM:         scf.for
// GEMM-NOT:     scf.for

// Two selects of two conditions, arithmetic on tiles, a rank-1 mask that is broadcast, not, and an i32 induction
// variable. x: 3 (4 j + i) + 5 > 2 n, false everywhere for 12 j + 14 <= 2 n. y: not (4 j + i >= m), true for
// 4 j + 3 < m. As m may be any number, what is computed of it has 64 bits.
// CHECK-LABEL: tile.kernel @forms
// CHECK-SAME:    %any: i32, %[[MARG:[a-z0-9]+]]: i32
// CHECK:         %[[NARG:.*]] = arith.andi
// CHECK:         %[[TWICE:.*]] = arith.addi %[[NARG]], %[[NARG]] : i32
// CHECK:         %[[T:.*]] = arith.index_cast %[[TWICE]] : i32 to index
// CHECK:         %[[X:.*]] = arith.addi %[[T]], %c-2
// CHECK:         arith.floordivsi %[[X]], %c12
// CHECK:         %[[M:.*]] = arith.extsi %[[MARG]] : i32 to i64
// CHECK:         arith.floordivsi %[[M]], %c4_i64
// CHECK:         %[[PAST:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK:         scf.for %{{.*}} = %c0_i32 to %[[PAST]] step %c1_i32
// CHECK-NOT:       arith.select
// CHECK:         scf.for %{{.*}} = %[[PAST]] to %[[NARG]] step %c1_i32
// CHECK:           arith.select
// CHECK:           arith.select
tile.kernel @forms(%x: !tile.view<[S, 4], f32>, %any: i32, %m: i32) grid(%g = S) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i32
  %o = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %most = arith.constant 1023 : i32
  %n = arith.andi %any, %most : i32
  %three = arith.constant dense<3> : tensor<4xi32>
  %five = arith.constant dense<5> : tensor<4xi32>
  %all = arith.constant dense<true> : tensor<4x4xi1>
  %f0 = arith.constant dense<0.0> : tensor<4x4xf32>
  %t = tile.load %x[%g, %c0] : !tile.view<[S, 4], f32> -> tensor<4x4xf32>
  %r = scf.for %j = %z to %n step %o iter_args(%a = %t) -> (tensor<4x4xf32>) : i32 {
    %c = arith.muli %j, %four : i32
    %ci = arith.index_cast %c : i32 to index
    %i = tile.iota %ci axis 0 : tensor<4xi32>
    %i3 = arith.muli %i, %three : tensor<4xi32>
    %i35 = arith.addi %i3, %five : tensor<4xi32>
    %n2 = arith.addi %n, %n : i32
    %ns = tile.splat %n2 : i32 -> tensor<4xi32>
    %p = arith.cmpi sgt, %i35, %ns : tensor<4xi32>
    %pb = tile.broadcast %p axis 0 : tensor<4xi1> -> tensor<4x4xi1>
    %s = arith.select %pb, %f0, %a : tensor<4x4xi1>, tensor<4x4xf32>
    %ib = tile.broadcast %i axis 1 : tensor<4xi32> -> tensor<4x4xi32>
    %ms = tile.splat %m : i32 -> tensor<4x4xi32>
    %q = arith.cmpi sge, %ib, %ms : tensor<4x4xi32>
    %nq = arith.xori %q, %all : tensor<4x4xi1>
    %u = arith.addf %s, %s : tensor<4x4xf32>
    %v = arith.select %nq, %u, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    scf.yield %v : tensor<4x4xf32>
  }
  tile.store %r, %x[%g, %c0] : tensor<4x4xf32>, !tile.view<[S, 4], f32>
}

// Two conditions of the end and one of the start: the loop of the start keeps its own alone, and ends where those of the
// end begin if that is earlier.
// CHECK-LABEL: tile.kernel @three
// CHECK:         %[[FROM:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK:         %[[PAST:.*]] = arith.minsi
// CHECK:         %[[LATEST:.*]] = arith.maxsi %[[PAST]], %c0
// CHECK:         %[[EARLIEST:.*]] = arith.minsi %[[FROM]], %[[LATEST]]
// CHECK:         %[[FIRST:.*]] = arith.minsi %[[EARLIEST]], %[[END:.*]] : index
// CHECK:         %[[SECOND:.*]] = arith.maxsi %[[PAST]], %[[FIRST]]
// CHECK:         scf.for %{{.*}} = %c0 to %[[FIRST]]
// CHECK:           %[[BEFORE:.*]] = arith.cmpi sge
// CHECK-NOT:       arith.cmpi
// CHECK:           arith.select %[[BEFORE]]
// CHECK:         scf.for %{{.*}} = %[[FIRST]] to %[[SECOND]]
// CHECK-NOT:       arith.select
// CHECK:         scf.for %{{.*}} = %[[SECOND]] to %[[END]]
// CHECK:           arith.cmpi sge
// CHECK:           arith.cmpi sle
// CHECK:           arith.cmpi slt
// CHECK:           arith.select
tile.kernel @three(%x: !tile.view<[S, 8], f32>, %before: index, %after: index, %end: index) grid(%g = S ceildiv 8) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %f0 = arith.constant dense<0.0> : tensor<8x8xf32>
  %row = arith.muli %g, %c8 : index
  %rows = tile.iota %row axis 0 : tensor<8x8xi32>
  %left = arith.index_cast %before : index to i32
  %right = arith.index_cast %after : index to i32
  %l = tile.splat %left : i32 -> tensor<8x8xi32>
  %r = tile.splat %right : i32 -> tensor<8x8xi32>
  %s = tile.dim "S"
  %s_i32 = arith.index_cast %s : index to i32
  %past = tile.splat %s_i32 : i32 -> tensor<8x8xi32>
  %firsts = arith.subi %rows, %l : tensor<8x8xi32>
  %lasts = arith.addi %rows, %r : tensor<8x8xi32>
  %sum = scf.for %j = %c0 to %end step %c1 iter_args(%a = %f0) -> (tensor<8x8xf32>) {
    %col = arith.muli %j, %c8 : index
    %t = tile.load %x[%col, %c0] : !tile.view<[S, 8], f32> -> tensor<8x8xf32>
    %cols = tile.iota %col axis 1 : tensor<8x8xi32>
    %not_before = arith.cmpi sge, %cols, %firsts : tensor<8x8xi32>
    %not_after = arith.cmpi sle, %cols, %lasts : tensor<8x8xi32>
    %inside = arith.cmpi slt, %cols, %past : tensor<8x8xi32>
    %window = arith.andi %not_before, %not_after : tensor<8x8xi1>
    %visible = arith.andi %inside, %window : tensor<8x8xi1>
    %seen = arith.select %visible, %t, %f0 : tensor<8x8xi1>, tensor<8x8xf32>
    %next = arith.addf %a, %seen : tensor<8x8xf32>
    scf.yield %next : tensor<8x8xf32>
  }
  tile.store %sum, %x[%row, %c0] : tensor<8x8xf32>, !tile.view<[S, 8], f32>
}

// A mask that does not change from iteration to iteration: all of the loop with it, or all of it without.
// CHECK-LABEL: tile.kernel @invariant
// CHECK:         %[[REST:.*]] = arith.subi %c4, %{{.*}} : index
// CHECK:         %[[HOLDS:.*]] = arith.cmpi sle, %[[REST]], %c0
// CHECK:         %[[PAST:.*]] = arith.select %[[HOLDS]], %[[N:.*]], %c0 : index
// CHECK:         %[[CLAMPED:.*]] = arith.maxsi %[[PAST]], %c0
// CHECK:         scf.for %{{.*}} = %c0 to %[[CLAMPED]]
// CHECK-NOT:       arith.select
// CHECK:         scf.for %{{.*}} = %[[CLAMPED]] to %[[N]]
// CHECK:           arith.select
tile.kernel @invariant(%x: !tile.view<[S, 4], f32>) grid(%g = S) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tile.dim "S"
  %f0 = arith.constant dense<0.0> : tensor<4x4xf32>
  %t = tile.load %x[%g, %c0] : !tile.view<[S, 4], f32> -> tensor<4x4xf32>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%a = %t) -> (tensor<4x4xf32>) {
    %i = tile.iota %c0 axis 0 : tensor<4x4xi32>
    %d = tile.dim "S"
    %d32 = arith.index_cast %d : index to i32
    %ds = tile.splat %d32 : i32 -> tensor<4x4xi32>
    %p = arith.cmpi slt, %i, %ds : tensor<4x4xi32>
    %s = arith.select %p, %a, %f0 : tensor<4x4xi1>, tensor<4x4xf32>
    %u = arith.addf %s, %s : tensor<4x4xf32>
    scf.yield %u : tensor<4x4xf32>
  }
  tile.store %r, %x[%g, %c0] : tensor<4x4xf32>, !tile.view<[S, 4], f32>
}

// The rows of a repeated iota begin at its start, whatever their number: columns 8 j + 7 <= 16 g are visible to all of
// them, and those from 8 j > 16 g + 3 on to none.
// CHECK-LABEL: tile.kernel @period
// CHECK:         %[[ROW:.*]] = arith.muli %{{.*}}, %c16 : index
// CHECK:         %[[NEXT:.*]] = arith.addi %[[ROW]], %c1 : index
// CHECK:         %[[PAST:.*]] = arith.floordivsi %[[NEXT]], %c8 : index
// CHECK:         scf.for
// CHECK-NOT:       arith.select
// CHECK:         scf.for
// CHECK:           arith.select
tile.kernel @period(%x: !tile.view<[S, 8], f32>, %n: index) grid(%g = S) schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %f0 = arith.constant dense<0.0> : tensor<32x8xf32>
  %row = arith.muli %g, %c16 : index
  %t = tile.load %x[%g, %c0] : !tile.view<[S, 8], f32> -> tensor<32x8xf32>
  %last = tile.iota %row axis 0 period 4 : tensor<32x8xi32>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%a = %t) -> (tensor<32x8xf32>) {
    %col = arith.muli %j, %c8 : index
    %cols = tile.iota %col axis 1 : tensor<32x8xi32>
    %visible = arith.cmpi sle, %cols, %last : tensor<32x8xi32>
    %m = arith.select %visible, %a, %f0 : tensor<32x8xi1>, tensor<32x8xf32>
    %b = arith.addf %m, %t : tensor<32x8xf32>
    scf.yield %b : tensor<32x8xf32>
  }
  tile.store %r, %x[%g, %c0] : tensor<32x8xf32>, !tile.view<[S, 8], f32>
}
