// Consumers of different programs with products of their own in each iteration: those of one begin behind the first vector that the other
// makes without it. Who next waits for a vector that may not be there waits for its products before, and gives back what they read.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-pingpong))' | FileCheck %s

#s = #tile.schedule<placement = divided, pingpong = true>
!A = tensor<64x64xf32, #hop.layout<accumulator>>
!Row = tensor<64xf32, #hop.layout<row>>
!Slot = !hop.shared<tensor<64xf32>, rows = 64>
!Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Rows = !hop.pipe<tensor<64xf32>, 1>
!Tiles = !hop.pipe<tensor<64x64xbf16>, 1>

// CHECK-LABEL: hop.kernel @in_turn
// CHECK: %[[TILES:.*]] = hop.pipe.create "tiles"
// CHECK: %[[M0:.*]] = hop.pipe.create "m0"
// CHECK: %[[A0:.*]] = hop.pipe.create "a0"
// CHECK: %[[M1:.*]] = hop.pipe.create "m1"
// CHECK: %[[A1:.*]] = hop.pipe.create "a1"

// The first one needs nothing of the second one before it has made its vectors, and its own products wait for nothing. It gives its tile
// back before it waits for a1, but takes m1, which is there when a1 is, under its last product.
// CHECK: hop.role @first
// CHECK: scf.for
// CHECK-NEXT: hop.mma_issue
// CHECK: hop.pipe.commit %[[M0]]
// CHECK: hop.pipe.commit %[[A0]]
// CHECK: %[[TILE:.*]] = hop.pipe.wait %[[TILES]]
// CHECK-NEXT: hop.mma_issue %{{.*}}, %[[TILE]]
// CHECK-NEXT: hop.mma_wait
// CHECK-NEXT: hop.pipe.release %[[TILES]], %[[TILE]]
// CHECK-NEXT: %[[WAIT:.*]] = hop.pipe.wait %[[A1]]
// CHECK-NEXT: hop.fetch %[[WAIT]]
// CHECK: hop.mma_issue
// CHECK-NEXT: hop.pipe.wait %[[M1]]
// CHECK: hop.mma_wait

// CHECK: hop.role @second
// CHECK: scf.for
// CHECK-NEXT: %[[FIRST:.*]] = hop.pipe.wait %[[M0]]
// CHECK-NEXT: %[[MAX:.*]] = hop.fetch %[[FIRST]]
// CHECK-NEXT: hop.pipe.release %[[M0]], %[[FIRST]]
// CHECK-NEXT: hop.mma_issue
// CHECK-NEXT: hop.mma_wait
// CHECK-NEXT: hop.pipe.wait %[[A0]]
hop.kernel @in_turn attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #s} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %s = hop.staging "s" : !Shared
  %tiles = hop.pipe.create "tiles" : !Tiles
  %m0 = hop.pipe.create "m0" : !Rows
  %a0 = hop.pipe.create "a0" : !Rows
  %m1 = hop.pipe.create "m1" : !Rows
  %a1 = hop.pipe.create "a1" : !Rows
  hop.role @first warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %low = arith.constant dense<0.0> : !Row
    %zero = arith.constant dense<0.0> : !A
    %end:2 = scf.for %i = %c0 to %m step %m iter_args(%old = %low, %acc = %zero) -> (!Row, !A) {
      %f = hop.mma_issue %s, %s : !Shared, !Shared -> !hop.flight<!A>
      %d = hop.mma_wait %f pending 0 : !hop.flight<!A> -> !A
      %top = tile.reduce max %d axis 1 : !A -> !Row
      %max = arith.maxnumf %old, %top : !Row
      %own = hop.pipe.acquire %m0 : !Rows -> !Slot
      hop.stage %max, %own : !Row, !Slot
      hop.warpgroup_sync
      hop.pipe.commit %m0, %own : !Rows, !Slot
      %less = arith.subf %old, %max : !Row
      %factor = math.exp2 %less : !Row
      %other = hop.pipe.acquire %a0 : !Rows -> !Slot
      hop.stage %factor, %other : !Row, !Slot
      hop.warpgroup_sync
      hop.pipe.commit %a0, %other : !Rows, !Slot
      %t = hop.pipe.wait %tiles : !Tiles -> !Shared
      %g = hop.mma_issue %s, %t acc(%acc : !A) : !Shared, !Shared -> !hop.flight<!A>
      %w1 = hop.pipe.wait %a1 : !Rows -> !Slot
      %factor1 = hop.fetch %w1 : !Slot -> !Row
      hop.pipe.release %a1, %w1 : !Rows, !Slot
      %all = tile.broadcast %factor1 axis 1 : !Row -> !A
      %mid = hop.mma_wait %g pending 0 : !hop.flight<!A> -> !A
      hop.pipe.release %tiles, %t : !Tiles, !Shared
      %scaled = arith.mulf %mid, %all : !A
      %h = hop.mma_issue %s, %s acc(%scaled : !A) : !Shared, !Shared -> !hop.flight<!A>
      %w2 = hop.pipe.wait %m1 : !Rows -> !Slot
      %next = hop.fetch %w2 : !Slot -> !Row
      hop.pipe.release %m1, %w2 : !Rows, !Slot
      %new = hop.mma_wait %h pending 0 : !hop.flight<!A> -> !A
      scf.yield %next, %new : !Row, !A
    }
  }
  hop.role @second warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %f = hop.mma_issue %s, %s : !Shared, !Shared -> !hop.flight<!A>
      %w0 = hop.pipe.wait %a0 : !Rows -> !Slot
      %factor0 = hop.fetch %w0 : !Slot -> !Row
      hop.pipe.release %a0, %w0 : !Rows, !Slot
      %d = hop.mma_wait %f pending 0 : !hop.flight<!A> -> !A
      %top = tile.reduce max %d axis 1 : !A -> !Row
      %w1 = hop.pipe.wait %m0 : !Rows -> !Slot
      %before = hop.fetch %w1 : !Slot -> !Row
      hop.pipe.release %m0, %w1 : !Rows, !Slot
      %max = arith.maxnumf %before, %top : !Row
      %own = hop.pipe.acquire %m1 : !Rows -> !Slot
      hop.stage %max, %own : !Row, !Slot
      hop.warpgroup_sync
      hop.pipe.commit %m1, %own : !Rows, !Slot
      %factor = arith.mulf %factor0, %max : !Row
      %other = hop.pipe.acquire %a1 : !Rows -> !Slot
      hop.stage %factor, %other : !Row, !Slot
      hop.warpgroup_sync
      hop.pipe.commit %a1, %other : !Rows, !Slot
    }
  }
}
