// Where the products of a tile stand behind a condition that is loaded, or takes divisions, what is asked of the next tile is computed while the
// last product of this one runs, and in the branch without products.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-async-mma,hop-fill-products))' --split-input-file | FileCheck %s

!acc = tensor<64x64xf32, #hop.layout<accumulator>>
!slot = !hop.shared<tensor<64x64xbf16>, rows = 64>
!numbers = !hop.pipe<tensor<1xi32>, 2>

// CHECK-LABEL: hop.kernel @next
// CHECK: hop.role @consumer
// The first tile's, where there is one:
// CHECK: %[[BLOCK:.*]] = hop.block_index
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[BLOCK]]
// CHECK: %[[FIRST:.*]]:2 = scf.if %[[ANY]]
// CHECK: arith.remui %[[BLOCK]]
// CHECK: tile.load
// CHECK: scf.while (%{{.*}} = %[[BLOCK]], %{{.*}} = %[[FIRST]]#0, %{{.*}} = %[[FIRST]]#1)
// CHECK: ^bb0(%[[NUMBER:.*]]: index, %[[ROW:.*]]: index, %[[SEES:.*]]: i1):
// CHECK-NOT: arith.remui
// CHECK-NOT: tile.load
// CHECK: %[[TILE:.*]]:4 = scf.if %[[SEES]]
// CHECK: hop.mma_issue
// CHECK-NEXT: %[[GOT:.*]] = hop.pipe.get
// CHECK-NEXT: %[[NEXT:.*]] = arith.index_cast %[[GOT]]
// CHECK: %[[IS_TILE:.*]] = arith.cmpi slt, %[[NEXT]]
// CHECK-NEXT: %[[ASKED:.*]] = arith.select %[[IS_TILE]], %[[NEXT]], %[[NUMBER]]
// CHECK: %[[ROW_NEXT:.*]] = arith.remui %[[ASKED]]
// CHECK: %[[COUNT:.*]] = tile.load %{{.*}}[%[[ROW_NEXT]]]
// CHECK: %[[SEES_NEXT:.*]] = arith.cmpi sgt, %[[COUNT]]
// CHECK: %[[ACC:.*]] = hop.mma_wait
// CHECK: scf.yield %[[ACC]], %[[NEXT]], %[[ROW_NEXT]], %[[SEES_NEXT]]
// CHECK: } else {
// CHECK: hop.pipe.get
// CHECK: arith.remui
// CHECK: tile.load
// CHECK-NOT: hop.pipe.get
// CHECK: tile.store %[[TILE]]#0, %{{.*}}[%[[ROW]],
// CHECK-NEXT: scf.yield %[[TILE]]#1, %[[TILE]]#2, %[[TILE]]#3
hop.kernel @next attributes {argument_names = ["y", "n"], argument_types = [!tile.view<[M, 64], f32>, !tile.view<[M], i32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], f32>, %n: !tile.view<[M], i32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %numbers = hop.pipe.create "tiles" : !numbers
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %none = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : !acc
    %end = tile.dim "M"
    %block = hop.block_index
    %last = scf.while (%tile = %block) : (index) -> index {
      %more = arith.cmpi slt, %tile, %end : index
      scf.condition(%more) %tile : index
    } do {
    ^bb0(%number: index):
      %row = arith.remui %number, %end : index
      %count = tile.load %n[%row] : !tile.view<[M], i32> -> i32
      %sees = arith.cmpi sgt, %count, %none : i32
      %acc = scf.if %sees -> (!acc) {
        %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
        %s = hop.mma %k, %k {transpose_b} : !slot, !slot -> !acc
        hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
        scf.yield %s : !acc
      } else {
        scf.yield %zero : !acc
      }
      tile.store %acc, %y[%row, %c0] : !acc, !tile.view<[M, 64], f32>
      %got = hop.pipe.get %numbers : !numbers
      %next = arith.index_cast %got : i32 to index
      scf.yield %next : index
    }
  }
}

// -----

!acc = tensor<64x64xf32, #hop.layout<accumulator>>
!slot = !hop.shared<tensor<64x64xbf16>, rows = 64>
!numbers = !hop.pipe<tensor<1xi32>, 2>

// A condition that is compared at once stays, and so does one whose tile is stored and waited for before the number comes.
// CHECK-LABEL: hop.kernel @at_once
// CHECK: scf.while (%{{.*}} = %{{.*}}) : (index) -> index
// CHECK: hop.pipe.wait
// CHECK: hop.pipe.get
hop.kernel @at_once attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %numbers = hop.pipe.create "tiles" : !numbers
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !acc
    %end = tile.dim "M"
    %block = hop.block_index
    %last = scf.while (%tile = %block) : (index) -> index {
      %more = arith.cmpi slt, %tile, %end : index
      scf.condition(%more) %tile : index
    } do {
    ^bb0(%number: index):
      %sees = arith.cmpi sgt, %number, %c0 : index
      %acc = scf.if %sees -> (!acc) {
        %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
        %s = hop.mma %k, %k {transpose_b} : !slot, !slot -> !acc
        hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
        scf.yield %s : !acc
      } else {
        scf.yield %zero : !acc
      }
      tile.store %acc, %y[%number, %c0] : !acc, !tile.view<[M, 64], f32>
      %got = hop.pipe.get %numbers : !numbers
      %next = arith.index_cast %got : i32 to index
      scf.yield %next : index
    }
  }
}
