// Ranges that are whole, and ranges in parts: their grids, workspaces, bounds and what follows.
//
// RUN: tessera-opt %s --tile-split-reductions --canonicalize --cse --mlir-print-local-scope | FileCheck %s
// RUN: tessera-opt %s --tile-split-reductions -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!X = !tile.view<[M, K], f32>
!Y = !tile.view<[M], f32>
!Tile = tensor<16x64xf32>
!Row = tensor<16xf32>

// Without parts the first region stands where the operation was.
// CHECK-LABEL: tile.kernel @whole(
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %{{.*}} step %c1
// CHECK: tile.store %[[SUM]], %y
// CHECK-NOT: tile.kernel @whole_
tile.kernel @whole(%x: !X, %y: !Y) grid(%m = M ceildiv 16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c16 : index
  %k = tile.dim "K"
  %steps = arith.ceildivsi %k, %c64 : index
  %zero = arith.constant dense<0.0> : !Row
  %sum = tile.split_reduce %first, %past = %c0 to %steps part 0 -> !Row {
    %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (!Row) {
      %col = arith.muli %i, %c64 : index
      %t = tile.load %x[%row, %col] : !X -> !Tile
      %own = tile.reduce sum %t axis 1 : !Tile -> !Row
      %new = arith.addf %old, %own : !Row
      scf.yield %new : !Row
    }
    tile.yield %part : !Row
  } merge %left with %right {
    %both = arith.addf %left, %right : !Row
    tile.yield %both : !Row
  }
  tile.store %sum, %y[%row] : !Row, !Y
}

// A product of few tiles: the sums of 128 x 128 elements are merged by 16 grid points each, which shift rows, keep columns
// and repeat what belongs to both.
!A = !tile.view<[M, K], f16>
!B = !tile.view<[K, N], f16>
!C = !tile.view<[M, N], f32>
!Acc = tensor<128x128xf32>
// REMARK: remark: is split: 'product_parts' computes the states of parts, which 'product_merge' merges, 8 rows in each grid point
// CHECK-LABEL: tile.kernel @product_parts(%a: {{.*}}, %b: {{.*}}, %state0: !tile.view<[PARTS, POINTS, 128, 128], f32>) grid(%m = M ceildiv 128, %n = N ceildiv 128, %part = PARTS) schedule #tile.schedule<consumers = 2> {
// CHECK: %[[FIRST:.*]] = arith.muli %part, %c8
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %c8
// CHECK: %[[PAST:.*]] = arith.minsi %[[END]]
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[PAST]] step %c1
// CHECK: tile.store %[[SUM]], %state0[%part, %{{.*}}, %c0, %c0]
// CHECK-LABEL: tile.kernel @product_merge(
// CHECK-SAME: grid(%m = M ceildiv 8, %n = N ceildiv 128) {
// CHECK: %[[TILE:.*]] = arith.divui %m, %c16
// CHECK: %[[NUMBER:.*]] = arith.remui %m, %c16
// CHECK: %[[OFFSET:.*]] = arith.muli %[[NUMBER]], %c8
// CHECK: tile.load %state0[%c0, %{{.*}}, %[[OFFSET]], %c0] : {{.*}} -> tensor<8x128xf32>
// CHECK: scf.for %[[P:.*]] = %c1 to %[[PAST:.*]] step %c4 {{.*}} -> (tensor<8x128xf32>) {
// CHECK-NEXT: %[[P0:.*]] = tile.load %state0[%[[P]], %{{.*}}, %[[OFFSET]], %c0] : {{.*}} -> tensor<8x128xf32>
// CHECK-COUNT-3: tile.load
// CHECK: %[[S1:.*]] = arith.addf %{{.*}}, %[[P0]]
// CHECK: %[[S2:.*]] = arith.addf %[[S1]]
// CHECK: %[[S3:.*]] = arith.addf %[[S2]]
// CHECK: arith.addf %[[S3]]
// CHECK: scf.for %[[P:.*]] = %[[PAST]] to %{{.*}} step %c1 {{.*}} -> (tensor<8x128xf32>) {
// CHECK-NEXT: tile.load %state0[%[[P]], %{{.*}}, %[[OFFSET]], %c0] : {{.*}} -> tensor<8x128xf32>
// CHECK: tile.load %bias[%{{.*}}] : !tile.view<[N], f32> -> tensor<128xf32>
// CHECK: tile.load %scale[%{{.*}}] : !tile.view<[M], f32> -> tensor<8xf32>
// CHECK: tile.store %{{.*}}, %c[%{{.*}}, %{{.*}}] : tensor<8x128xf32>
// CHECK-LABEL: tile.sequence @product(
// CHECK-SAME: dims(TILES = M ceildiv 128, TILES1 = N ceildiv 128, POINTS = TILES * TILES1, PARTS = K ceildiv 512) {
// CHECK-NEXT: %state0 = tile.workspace : !tile.view<[PARTS, POINTS, 128, 128], f32>
// CHECK-NEXT: tile.launch @product_parts(%a, %b, %state0)
// CHECK-NEXT: tile.launch @product_merge(%c, %bias, %scale, %state0)
tile.kernel @product(%a: !A, %b: !B, %c: !C, %bias: !tile.view<[N], f32>, %scale: !tile.view<[M], f32>)
    grid(%m = M ceildiv 128, %n = N ceildiv 128) schedule #tile.schedule<consumers = 2> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %m, %c128 : index
  %col = arith.muli %n, %c128 : index
  %depth = tile.dim "K"
  %steps = arith.ceildivsi %depth, %c64 : index
  %zero = arith.constant dense<0.0> : !Acc
  %sum = tile.split_reduce %first, %past = %c0 to %steps part 8 -> !Acc {
    %own = scf.for %i = %first to %past step %c1 iter_args(%acc = %zero) -> (!Acc) {
      %k = arith.muli %i, %c64 : index
      %at = tile.load %a[%row, %k] : !A -> tensor<128x64xf16>
      %bt = tile.load %b[%k, %col] : !B -> tensor<64x128xf16>
      %new = tile.dot %at, %bt, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> !Acc
      scf.yield %new : !Acc
    }
    tile.yield %own : !Acc
  } merge %left with %right {
    %both = arith.addf %left, %right : !Acc
    tile.yield %both : !Acc
  }
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %bias_t = tile.load %bias[%col] : !tile.view<[N], f32> -> tensor<128xf32>
  %bias_1 = arith.addf %bias_t, %one : tensor<128xf32>
  %biases = tile.broadcast %bias_1 axis 0 : tensor<128xf32> -> !Acc
  %scale_t = tile.load %scale[%row] : !tile.view<[M], f32> -> tensor<128xf32>
  %scale_1 = arith.addf %scale_t, %one : tensor<128xf32>
  %scales = tile.broadcast %scale_1 axis 1 : tensor<128xf32> -> !Acc
  %scaled = arith.mulf %sum, %scales : !Acc
  %all = arith.addf %scaled, %biases : !Acc
  tile.store %all, %c[%row, %col] : !Acc, !C
}

// The range ends at the diagonal: grid points have parts of their own number, and the last one takes what is left. What
// follows adds up rows, so that they are not cut. It has an index of its own, which parts do not have.
// REMARK: remark: is split: 'uneven_parts' computes the states of parts, which 'uneven_merge' merges, 64 rows in each grid point
// CHECK-LABEL: tile.kernel @uneven_parts(
// CHECK-SAME: grid(%m = M ceildiv 64, %part = PARTS) {
// CHECK: %[[LENGTH:.*]] = arith.maxsi
// CHECK: %[[UP:.*]] = arith.ceildivui %[[LENGTH]], %c2
// CHECK: %[[COUNT:.*]] = arith.minsi %[[UP]]
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %c1
// CHECK: %[[IS_LAST:.*]] = arith.cmpi eq, %part, %[[LAST]]
// CHECK: %[[PAST:.*]] = arith.select %[[IS_LAST]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[PAST]] step %c1
// CHECK-LABEL: tile.kernel @uneven_merge(
// CHECK-SAME: grid(%m = M ceildiv 64, %c = 4) {
// CHECK: %[[UP:.*]] = arith.ceildivui %{{.*}}, %c2
// CHECK: %[[COUNT:.*]] = arith.minsi %[[UP]]
// CHECK: scf.for %{{.*}} = %c1 to %[[MIDDLE:.*]] step %c4
// CHECK: scf.for %{{.*}} = %[[MIDDLE]] to %[[COUNT]] step %c1
// CHECK: tile.reduce sum %{{.*}} axis 0 : tensor<64x64xf32> -> tensor<64xf32>
// CHECK-LABEL: tile.sequence @uneven(
// CHECK-SAME: dims(TILES = M ceildiv 64, PARTS = K ceildiv 128) {
tile.kernel @uneven(%x: !X, %z: !tile.view<[M, 4], f32>) grid(%m = M ceildiv 64, %c = 4) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %k = tile.dim "K"
  %steps = arith.ceildivsi %k, %c64 : index
  %own_end = arith.addi %m, %c1 : index
  %end = arith.minsi %own_end, %steps : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = tile.split_reduce %first, %past = %c0 to %end part 2 -> tensor<64x64xf32> {
    %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (tensor<64x64xf32>) {
      %col = arith.muli %i, %c64 : index
      %t = tile.load %x[%row, %col] : !X -> tensor<64x64xf32>
      %new = arith.addf %old, %t : tensor<64x64xf32>
      scf.yield %new : tensor<64x64xf32>
    }
    tile.yield %part : tensor<64x64xf32>
  } merge %left with %right {
    %both = arith.addf %left, %right : tensor<64x64xf32>
    tile.yield %both : tensor<64x64xf32>
  }
  %all = tile.reduce sum %sum axis 0 : tensor<64x64xf32> -> tensor<64xf32>
  tile.store %all, %z[%row, %c] box [64, 1] : tensor<64xf32>, !tile.view<[M, 4], f32>
}

// Bounds that a mask gives are those of the whole tile, and a box that is one of rows is cut as rows are.
// CHECK-LABEL: tile.kernel @masked_merge(
// CHECK-SAME: grid(%m = M ceildiv 16) {
// CHECK: tile.visits
// CHECK: tile.iota %{{.*}} axis 0 : tensor<64x64xi32>
// CHECK: tile.mask %{{.*}} : tensor<64x64xi1>
// CHECK: tile.load %state0[%c0, %{{.*}}, %{{.*}}, %c0] : {{.*}} -> tensor<16x64xf32>
// CHECK: tile.store %{{.*}}, %z[%{{.*}}, %c0] : tensor<16x64xf32>
tile.kernel @masked(%x: !X, %z: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %k = tile.dim "K"
  %steps = arith.ceildivsi %k, %c64 : index
  %seven = arith.constant dense<7> : tensor<64x64xi32>
  %begin, %end = tile.visits %j = %c0 to %steps {
    %col = arith.muli %j, %c64 : index
    %cols = tile.iota %col axis 1 : tensor<64x64xi32>
    %rows = tile.iota %row axis 0 : tensor<64x64xi32>
    %reach = arith.addi %rows, %seven : tensor<64x64xi32>
    %seen = arith.cmpi sle, %cols, %reach : tensor<64x64xi32>
    tile.mask %seen : tensor<64x64xi1>
  }
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = tile.split_reduce %first, %past = %begin to %end part 2 -> tensor<64x64xf32> {
    %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (tensor<64x64xf32>) {
      %col = arith.muli %i, %c64 : index
      %t = tile.load %x[%row, %col] : !X -> tensor<64x64xf32>
      %new = arith.addf %old, %t : tensor<64x64xf32>
      scf.yield %new : tensor<64x64xf32>
    }
    tile.yield %part : tensor<64x64xf32>
  } merge %left with %right {
    %both = arith.addf %left, %right : tensor<64x64xf32>
    tile.yield %both : tensor<64x64xf32>
  }
  tile.store %sum, %z[%row, %c0] box [64, 64] : tensor<64x64xf32>, !X
}

// As many parts as multiprocessors: a grid in one dimension, and a range that ends with a number that is loaded.
// CHECK-LABEL: tile.kernel @filled_parts(
// CHECK-SAME: grid(%slot = SLOTS) {
// CHECK: %[[POINT:.*]] = arith.remui %slot, %[[POINTS:.*]] : index
// CHECK: %[[PART:.*]] = arith.divui %slot, %[[POINTS]]
// CHECK: %[[SHARE:.*]] = arith.divui %c132, %[[POINTS]]
// CHECK: tile.store %{{.*}}, %state0[%{{.*}}] : f32, !tile.view<[SLOTS], f32>
// CHECK: tile.store %{{.*}}, %state1[%{{.*}}] : i32, !tile.view<[SLOTS], i32>
// CHECK-LABEL: tile.sequence @filled(
// CHECK-SAME: dims(ROUNDS = M ceildiv 132, SLOTS = ROUNDS * 132) {
tile.kernel @filled(%x: !X, %ends: !tile.view<[M], i32>, %y: !Y, %z: !tile.view<[M], i32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end_i32 = tile.load %ends[%m] : !tile.view<[M], i32> -> i32
  %end = arith.index_cast %end_i32 : i32 to index
  %zero = arith.constant 0.0 : f32
  %sum, %count = tile.split_reduce %first, %past = %c0 to %end fill -> f32, i32 {
    %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (f32) {
      %v = tile.load %x[%m, %i] : !X -> f32
      %new = arith.addf %old, %v : f32
      scf.yield %new : f32
    }
    %n = arith.subi %past, %first : index
    %n_i32 = arith.index_cast %n : index to i32
    tile.yield %part, %n_i32 : f32, i32
  } merge %left, %n_left with %right, %n_right {
    %both = arith.addf %left, %right : f32
    %n_both = arith.addi %n_left, %n_right : i32
    tile.yield %both, %n_both : f32, i32
  }
  tile.store %sum, %y[%m] : f32, !Y
  tile.store %count, %z[%m] : i32, !tile.view<[M], i32>
}

// Of so many parts of a fixed range all but the first are loaded at once.
// CHECK-LABEL: tile.kernel @fixed_parts(
// CHECK-SAME: grid(%part = 7) {
// CHECK-LABEL: tile.kernel @fixed_merge(
// CHECK-COUNT-7: tile.load %state0
// CHECK-NOT: scf.for
// CHECK: tile.store
tile.kernel @fixed(%x: !tile.view<[100], f32>, %y: !tile.view<[1], f32>) grid(%i = 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %one = arith.constant 1.0 : f32
  %product = tile.split_reduce %first, %past = %c0 to %c100 part 16 -> f32 {
    %part = scf.for %e = %first to %past step %c1 iter_args(%old = %one) -> (f32) {
      %v = tile.load %x[%e] : !tile.view<[100], f32> -> f32
      %new = arith.mulf %old, %v : f32
      scf.yield %new : f32
    }
    tile.yield %part : f32
  } merge %left with %right {
    %both = arith.mulf %left, %right : f32
    tile.yield %both : f32
  }
  tile.store %product, %y[%c0] : f32, !tile.view<[1], f32>
}

// A speculation within a part is one of the kernel of parts.
// CHECK-LABEL: tile.kernel @speculative_parts(
// CHECK: %[[MAX:.*]] = tile.speculate -> tensor<16xf32> {
// CHECK: tile.store %[[MAX]], %state0
tile.kernel @speculative(%x: !X, %y: !Y) grid(%m = M ceildiv 16) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %row = arith.muli %m, %c16 : index
  %k = tile.dim "K"
  %limit = arith.constant dense<1.0> : !Row
  %max = tile.split_reduce %first, %past = %c0 to %k part 64 -> !Row {
    %t = tile.load %x[%row, %first] : !X -> !Tile
    %m0 = tile.reduce max %t axis 1 : !Tile -> !Row
    %own = tile.speculate -> !Row {
      %holds = arith.cmpf oge, %m0, %limit : !Row
      tile.yield_if %holds, %m0 : tensor<16xi1>, !Row
    } exact {
      %m1 = arith.maxnumf %m0, %limit : !Row
      tile.yield %m1 : !Row
    }
    tile.yield %own : !Row
  } merge %left with %right {
    %both = arith.maxnumf %left, %right : !Row
    tile.yield %both : !Row
  }
  tile.store %max, %y[%row] : !Row, !Y
}

// Three indices and the part are more than a grid has.
// CHECK-LABEL: tile.kernel @three_parts(
// CHECK-SAME: grid(%point = POINTS, %part = PARTS) {
// CHECK-LABEL: tile.kernel @three_merge(
// CHECK-SAME: grid(%i = A, %j = B, %k = C) {
// CHECK-LABEL: tile.sequence @three(
// CHECK-SAME: dims(POINTS = A * B * C, PARTS = D ceildiv 4) {
// REMARK: remark: has one part, so that the range stays whole
// CHECK-LABEL: tile.kernel @one(
tile.kernel @three(%x: !tile.view<[A, B, C, D], f32>, %y: !tile.view<[A, B, C], f32>) grid(%i = A, %j = B, %k = C) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = tile.dim "D"
  %zero = arith.constant 0.0 : f32
  %sum = tile.split_reduce %first, %past = %c0 to %d part 4 -> f32 {
    %part = scf.for %e = %first to %past step %c1 iter_args(%old = %zero) -> (f32) {
      %v = tile.load %x[%i, %j, %k, %e] : !tile.view<[A, B, C, D], f32> -> f32
      %new = arith.addf %old, %v : f32
      scf.yield %new : f32
    }
    tile.yield %part : f32
  } merge %left with %right {
    %both = arith.addf %left, %right : f32
    tile.yield %both : f32
  }
  tile.store %sum, %y[%i, %j, %k] : f32, !tile.view<[A, B, C], f32>
}
tile.kernel @one(%x: !tile.view<[8], f32>, %y: !tile.view<[1], f32>) grid(%i = 1) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %sum = tile.split_reduce %first, %past = %c0 to %c8 part 16 -> f32 {
    %v = tile.load %x[%first] : !tile.view<[8], f32> -> f32
    tile.yield %v : f32
  } merge %left with %right {
    %both = arith.addf %left, %right : f32
    tile.yield %both : f32
  }
  tile.store %sum, %y[%c0] : f32, !tile.view<[1], f32>
}
