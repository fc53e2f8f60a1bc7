// Equal shares of the ranges of all grid points: a kernel counts iterations, one lists shares, one computes them and one merges what
// was cut.
//
// RUN: tessera-opt %s --tile-split-reductions --canonicalize --cse --mlir-print-local-scope | FileCheck %s
// RUN: tessera-opt %s --tile-split-reductions -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!X = !tile.view<[M, K], f32>
!Y = !tile.view<[M, N], f32>
!Ends = !tile.view<[M], i32>
!Row = tensor<512xf32>

// REMARK: remark: is cut into equal shares, which 'sums_list' lists: 'sums_shares' computes 264 of them at once, and 'sums_merge' merges the states of grid points that were cut
//
// The range depends on %m alone.
// CHECK-LABEL: tile.kernel @sums_counts(%ends: {{.*}}, %counts: !tile.view<[M], i32>) grid(%m = M) {
// CHECK: %[[SOME:.*]] = arith.maxsi %{{.*}}, %c1
// CHECK: %[[SHARE:.*]] = arith.divui %c1073741824, %
// CHECK: tile.store %{{.*}}, %counts[%m]
//
// CHECK-LABEL: tile.kernel @sums_list(
// CHECK-SAME: %shares: !tile.view<[5, SLOTS], i32>, %used: !tile.view<[1], i32>) grid(%one = 1) {
// CHECK: %[[TOTALS:.*]]:2 = scf.for
// CHECK: %[[LEAST:.*]] = arith.maxui %{{.*}}, %c2_i32
// CHECK: arith.ceildivui %[[TOTALS]]#0, %[[LEAST]]
// CHECK: tile.scan sum %{{.*}} axis 0 : tensor<512xi32>
// CHECK: tile.scatter %{{.*}}, %shares[%c0, %c0] rows %[[BEGIN:.*]] :
// CHECK: tile.scatter %{{.*}}, %shares[%c1, %c0] rows %[[BEGIN]] :
// CHECK: tile.scatter %{{.*}}, %shares[%c2, %c0] rows %[[END:.*]] :
// CHECK: tile.scatter %{{.*}}, %shares[%c3, %c0] rows %[[END]] :
// CHECK: tile.scatter %{{.*}}, %shares[%c4, %c0] rows %[[END]] :
//
// CHECK-LABEL: tile.kernel @sums_shares(
// CHECK-SAME: %state0: !tile.view<[SLOTS, 2, 512], f32>) grid(%slot = SLOTS) schedule #tile.schedule<consumers = 1, persistent = none> {
// CHECK: %[[COLUMNS:.*]] = arith.ceildivui
// CHECK: %[[N:.*]] = arith.remui %slot, %[[COLUMNS]]
// CHECK: %[[W:.*]] = arith.divui %slot, %[[COLUMNS]]
// CHECK: tile.load %used[%c0]
// CHECK: tile.load %shares[%c0, %[[W]]]
// CHECK: scf.for %[[M:.*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK: tile.load %ends[%[[M]]]
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: tile.load %x[%[[M]], %
// CHECK: scf.if
// CHECK: tile.store %[[SUM]], %y[%[[M]], %
// CHECK: } else {
// CHECK: tile.store %[[SUM]], %state0[%slot, %{{.*}}, %c0]
//
// CHECK-LABEL: tile.kernel @sums_merge(
// CHECK-SAME: grid(%slot = SLOTS) {
// CHECK: scf.if
// CHECK: %[[OWN:.*]] = tile.load %state0[%slot, %c1, %c0]
// CHECK: %[[ALL:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[OWN]])
// CHECK: tile.load %state0[%{{.*}}, %c0, %c0]
// CHECK: tile.store %[[ALL]], %y[
//
// CHECK-LABEL: tile.sequence @sums(
// CHECK-SAME: dims(TILES = N ceildiv 512, ROUNDS = TILES ceildiv 264, SLOTS = ROUNDS * 264) {
// CHECK-COUNT-4: tile.workspace
// CHECK: tile.launch @sums_counts(
// CHECK: tile.launch @sums_list(
// CHECK: tile.launch @sums_shares(
// CHECK: tile.launch @sums_merge(
tile.kernel @sums(%x: !X, %ends: !Ends, %y: !Y) grid(%n = N ceildiv 512, %m = M)
    schedule #tile.schedule<consumers = 1, order = descending> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %col = arith.muli %n, %c512 : index
  %end_i32 = tile.load %ends[%m] : !Ends -> i32
  %end = arith.index_cast %end_i32 : i32 to index
  %zero = arith.constant dense<0.0> : !Row
  %sum = tile.split_reduce %first, %past = %c0 to %end part 2 balanced 2 -> !Row {
    %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (!Row) {
      %v = tile.load %x[%m, %i] : !X -> f32
      %all = tile.splat %v : f32 -> !Row
      %new = arith.addf %old, %all : !Row
      scf.yield %new : !Row
    }
    tile.yield %part : !Row
  } merge %left with %right {
    %both = arith.addf %left, %right : !Row
    tile.yield %both : !Row
  }
  tile.store %sum, %y[%m, %col] : !Row, !Y
}

// One range for all: no other index, and as many slots as shares. A speculation is its exact region.
// REMARK: remark: exact region alone: a share goes from grid point to grid point
// CHECK-LABEL: tile.kernel @one_counts(
// CHECK-SAME: grid(%one = 1) {
// CHECK-LABEL: tile.kernel @one_shares(
// CHECK-SAME: %state0: !tile.view<[132, 2], f32>) grid(%slot = 132)
// CHECK-NOT: tile.speculate
// CHECK: math.absf
// CHECK-LABEL: tile.kernel @one_merge(
tile.kernel @one(%x: !tile.view<[K], f32>, %y: !tile.view<[1], f32>) grid(%i = 1) {
  %c0 = arith.constant 0 : index
  %k = tile.dim "K"
  %sum = tile.split_reduce %first, %past = %c0 to %k balanced 1 -> f32 {
    %v = tile.load %x[%first] : !tile.view<[K], f32> -> f32
    %own = tile.speculate -> f32 {
      %holds = arith.cmpf oge, %v, %v : f32
      tile.yield_if %holds, %v : i1, f32
    } exact {
      %size = math.absf %v : f32
      tile.yield %size : f32
    }
    tile.yield %own : f32
  } merge %left with %right {
    %both = arith.addf %left, %right : f32
    tile.yield %both : f32
  }
  tile.store %sum, %y[%c0] : f32, !tile.view<[1], f32>
}

// Rows that do not depend on each other are merged by several grid points, several states at once.
// REMARK: remark: is cut into equal shares, which 'tiles_list' lists: {{.*}} merges the states of grid points that were cut, 16 rows in each grid point
// CHECK-LABEL: tile.kernel @tiles_merge(
// CHECK-SAME: grid(%slot = SLOTS, %rows = 4) {
// CHECK: %[[ROW:.*]] = arith.muli %rows, %c16
// CHECK: scf.if
// CHECK: tile.load %state0[%slot, %c1, %[[ROW]], %c0] : {{.*}} -> tensor<16x64xf32>
// CHECK: scf.for
// CHECK-COUNT-2: tile.load %state0[
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[ROW]]
// CHECK: tile.store %{{.*}}, %y[%{{.*}}, %[[AT]], %c0] : tensor<16x64xf32>
tile.kernel @tiles(%x: !tile.view<[B, M, K], f32>, %ends: !tile.view<[B], i32>, %y: !tile.view<[B, M, 64], f32>) grid(%m = M ceildiv 64, %b = B) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %end_i32 = tile.load %ends[%b] : !tile.view<[B], i32> -> i32
  %end = arith.index_cast %end_i32 : i32 to index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = tile.split_reduce %first, %past = %c0 to %end balanced 1 -> tensor<64x64xf32> {
    %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (tensor<64x64xf32>) {
      %col = arith.muli %i, %c64 : index
      %t = tile.load %x[%b, %row, %col] : !tile.view<[B, M, K], f32> -> tensor<64x64xf32>
      %new = arith.addf %old, %t : tensor<64x64xf32>
      scf.yield %new : tensor<64x64xf32>
    }
    tile.yield %part : tensor<64x64xf32>
  } merge %left with %right {
    %both = arith.addf %left, %right : tensor<64x64xf32>
    tile.yield %both : tensor<64x64xf32>
  }
  tile.store %sum, %y[%b, %row, %c0] : tensor<64x64xf32>, !tile.view<[B, M, 64], f32>
}

// `balanced 0` is no share.
// CHECK-LABEL: tile.kernel @whole(
// CHECK-NOT: tile.kernel @whole_
tile.kernel @whole(%x: !tile.view<[K], f32>, %y: !tile.view<[1], f32>) grid(%i = 1) {
  %c0 = arith.constant 0 : index
  %k = tile.dim "K"
  %sum = tile.split_reduce %first, %past = %c0 to %k part 0 balanced 0 -> f32 {
    %v = tile.load %x[%first] : !tile.view<[K], f32> -> f32
    tile.yield %v : f32
  } merge %left with %right {
    %both = arith.addf %left, %right : f32
    tile.yield %both : f32
  }
  tile.store %sum, %y[%c0] : f32, !tile.view<[1], f32>
}
