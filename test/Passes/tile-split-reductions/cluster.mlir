// Ranges among the blocks of a cluster: the part of each, the tree in which states meet, and the schedule.
//
// RUN: tessera-opt %s --tile-split-reductions --canonicalize --cse --mlir-print-local-scope | FileCheck %s

!A = !tile.view<[M, K], bf16>
!B = !tile.view<[K, N], bf16>
!C = !tile.view<[M, N], f32>
!At = tensor<64x64xbf16>
!Acc = tensor<64x64xf32>

// CHECK-LABEL: tile.kernel @product(
// CHECK-SAME: schedule #tile.schedule<consumers = 1>
// CHECK-DAG: %[[RANK:.*]] = tile.cluster_rank
// CHECK-DAG: %[[SOME:.*]] = arith.maxsi
// CHECK-DAG: %[[SIZE:.*]] = arith.ceildivui %[[SOME]], %c4
// CHECK: %[[BEGIN:.*]] = arith.muli %[[RANK]], %[[SIZE]]
// CHECK: %[[FIRST:.*]] = arith.minsi %[[BEGIN]], %[[SOME]]
// CHECK: %[[END:.*]] = arith.addi %[[BEGIN]], %[[SIZE]]
// CHECK: %[[PAST:.*]] = arith.minsi %[[END]], %[[SOME]]
// CHECK: %[[OWN:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[PAST]]
// CHECK: %[[THEIRS:.*]] = tile.from_block %[[OWN]] before 1
// CHECK: %[[TWO:.*]] = arith.addf %[[THEIRS]], %[[OWN]]
// CHECK: %[[OTHERS:.*]] = tile.from_block %[[TWO]] before 2
// CHECK: %[[FOUR:.*]] = arith.addf %[[OTHERS]], %[[TWO]]
// CHECK: tile.store %[[FOUR]]
tile.kernel @product(%a: !A, %b: !B, %c: !C) grid(%n = N ceildiv 64, %m = M ceildiv 64)
    schedule #tile.schedule<consumers = 1, order = descending> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %col = arith.muli %n, %c64 : index
  %k = tile.dim "K"
  %steps = arith.ceildivsi %k, %c64 : index
  %zero = arith.constant dense<0.0> : !Acc
  %sum = tile.split_reduce %first, %past = %c0 to %steps cluster 4 -> !Acc {
    %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (!Acc) {
      %at = arith.muli %i, %c64 : index
      %x = tile.load %a[%row, %at] : !A -> !At
      %y = tile.load %b[%at, %col] : !B -> !At
      %new = tile.dot %x, %y, %old : !At, !At -> !Acc
      scf.yield %new : !Acc
    }
    tile.yield %part : !Acc
  } merge %left with %right {
    %both = arith.addf %left, %right : !Acc
    tile.yield %both : !Acc
  }
  tile.store %sum, %c[%row, %col] : !Acc, !C
}
