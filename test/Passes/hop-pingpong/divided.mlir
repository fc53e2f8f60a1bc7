// Consumers of different programs: the products of one wait for the vector that the other makes behind its own products of the next
// iteration. Iterations hand on what they read ahead, and the vector behind the loops is read by the last one.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-pingpong))' -split-input-file -verify-diagnostics | FileCheck %s

#s = #tile.schedule<placement = divided, pingpong = true>
!A = tensor<64x64xf32, #hop.layout<accumulator>>
!Row = tensor<64xf32, #hop.layout<row>>
!Slot = !hop.shared<tensor<64xf32>, rows = 64>
!Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Rows = !hop.pipe<tensor<64xf32>, 2>

// CHECK-LABEL: hop.kernel @two_loops
// CHECK: hop.role @maker
// CHECK: scf.for
// CHECK: hop.mma_issue
// CHECK: hop.pipe.commit
// CHECK: hop.role @taker
// CHECK: %[[FIRST:.*]] = hop.pipe.wait %[[PIPE:.*]] :
// CHECK-NEXT: %[[TAKEN:.*]] = hop.fetch %[[FIRST]]
// CHECK-NEXT: hop.pipe.release %[[PIPE]], %[[FIRST]]
// CHECK-NEXT: %[[ONE:.*]]:2 = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[NOW:.*]] = %[[TAKEN]])
// CHECK-NEXT: tile.broadcast %[[NOW]]
// CHECK-NEXT: arith.mulf %[[ACC]]
// CHECK-NEXT: %[[WAIT:.*]] = hop.pipe.wait %[[PIPE]]
// CHECK-NEXT: %[[NEXT:.*]] = hop.fetch %[[WAIT]]
// CHECK-NEXT: hop.pipe.release
// CHECK-NEXT: hop.mma_issue
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
// CHECK: %[[TWO:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[ONE]]#0, %{{.*}} = %[[ONE]]#1)
// CHECK: scf.yield
// CHECK-NOT: hop.pipe.wait
// CHECK: tile.broadcast %[[TWO]]#1
hop.kernel @two_loops attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #s} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %s = hop.staging "s" : !Shared
  %rows = hop.pipe.create "rows" : !Rows
  hop.role @maker warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %f = hop.mma_issue %s, %s : !Shared, !Shared -> !hop.flight<!A>
      %d = hop.mma_wait %f pending 0 : !hop.flight<!A> -> !A
      %v = tile.reduce max %d axis 1 : !A -> !Row
      %slot = hop.pipe.acquire %rows : !Rows -> !Slot
      hop.stage %v, %slot : !Row, !Slot
      hop.warpgroup_sync
      hop.pipe.commit %rows, %slot : !Rows, !Slot
    }
  }
  hop.role @taker warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !A
    %one = scf.for %i = %c0 to %m step %m iter_args(%acc = %zero) -> (!A) {
      %t = hop.pipe.wait %rows : !Rows -> !Slot
      %v = hop.fetch %t : !Slot -> !Row
      hop.pipe.release %rows, %t : !Rows, !Slot
      %b = tile.broadcast %v axis 1 : !Row -> !A
      %scaled = arith.mulf %acc, %b : !A
      %f = hop.mma_issue %s, %s acc(%scaled : !A) : !Shared, !Shared -> !hop.flight<!A>
      %d = hop.mma_wait %f pending 0 : !hop.flight<!A> -> !A
      scf.yield %d : !A
    }
    %two = scf.for %i = %m to %m step %m iter_args(%acc = %one) -> (!A) {
      %t = hop.pipe.wait %rows : !Rows -> !Slot
      %v = hop.fetch %t : !Slot -> !Row
      hop.pipe.release %rows, %t : !Rows, !Slot
      %b = tile.broadcast %v axis 1 : !Row -> !A
      %scaled = arith.mulf %acc, %b : !A
      %f = hop.mma_issue %s, %s acc(%scaled : !A) : !Shared, !Shared -> !hop.flight<!A>
      %d = hop.mma_wait %f pending 0 : !hop.flight<!A> -> !A
      scf.yield %d : !A
    }
    %t = hop.pipe.wait %rows : !Rows -> !Slot
    %v = hop.fetch %t : !Slot -> !Row
    hop.pipe.release %rows, %t : !Rows, !Slot
    %b = tile.broadcast %v axis 1 : !Row -> !A
    %o = arith.mulf %two, %b : !A
    %u = math.exp2 %o : !A
  }
}

// -----

// No vector behind the loop would be left for the last iteration.
#s = #tile.schedule<placement = divided, pingpong = true>
!A = tensor<64x64xf32, #hop.layout<accumulator>>
!Row = tensor<64xf32, #hop.layout<row>>
!Slot = !hop.shared<tensor<64xf32>, rows = 64>
!Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Rows = !hop.pipe<tensor<64xf32>, 2>
// expected-error@+1 {{pingpong = true has the products of a consumer wait for those of another one that makes a vector of rows for them, in a loop and once more behind it, and no consumer of this kernel gets one so; use pingpong = false}}
hop.kernel @loop_alone attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #s} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %s = hop.staging "s" : !Shared
  %rows = hop.pipe.create "rows" : !Rows
  hop.role @taker warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !A
    %one = scf.for %i = %c0 to %m step %m iter_args(%acc = %zero) -> (!A) {
      %t = hop.pipe.wait %rows : !Rows -> !Slot
      %v = hop.fetch %t : !Slot -> !Row
      hop.pipe.release %rows, %t : !Rows, !Slot
      %b = tile.broadcast %v axis 1 : !Row -> !A
      %scaled = arith.mulf %acc, %b : !A
      %f = hop.mma_issue %s, %s acc(%scaled : !A) : !Shared, !Shared -> !hop.flight<!A>
      %d = hop.mma_wait %f pending 0 : !hop.flight<!A> -> !A
      scf.yield %d : !A
    }
  }
}
