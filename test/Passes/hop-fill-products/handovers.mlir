// With placement = divided tiles that a role hands on go on behind the products that it issues next, if little stands between.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-fill-products))' --split-input-file | FileCheck %s

!A = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xbf16, #hop.layout<accumulator>>
!Row = tensor<64xf32, #hop.layout<row>>
!RowSlot = !hop.shared<tensor<64xf32>, rows = 64>
!Slot = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Rows = !hop.pipe<tensor<64xf32>, 2>
!Tiles = !hop.pipe<tensor<64x64xbf16>, 2>

// The factors and P, for both of which the threads meet once, and the products multiply copies. The maximum, which others wait for while exponents are computed, stays.
// CHECK-LABEL: hop.kernel @softmax
// CHECK: %[[MAXIMA:.*]] = hop.pipe.create "maxima"
// CHECK: %[[FACTORS:.*]] = hop.pipe.create "factors"
// CHECK: %[[TILES:.*]] = hop.pipe.create "tiles"
// CHECK: hop.pipe.commit %[[MAXIMA]]
// CHECK-NOT: hop.pipe.acquire
// CHECK: %[[P:.*]] = arith.truncf
// CHECK: hop.mma_issue %[[P]]
// CHECK-SAME: {copies_a}
// CHECK-NEXT: hop.mma_issue %[[P]]
// CHECK-SAME: {copies_a}
// CHECK-NEXT: %[[ROWS:.*]] = hop.pipe.acquire %[[FACTORS]]
// CHECK-NEXT: %[[SLOT:.*]] = hop.pipe.acquire %[[TILES]]
// CHECK-NEXT: hop.stage %{{.*}}, %[[ROWS]]
// CHECK-NEXT: hop.stage %[[P]], %[[SLOT]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.pipe.commit %[[FACTORS]], %[[ROWS]]
// CHECK-NEXT: hop.pipe.commit %[[TILES]], %[[SLOT]]
// CHECK-NEXT: hop.mma_wait
hop.kernel @softmax attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<placement = divided>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c = hop.staging "c" : !Slot
  %maxima = hop.pipe.create "maxima" : !Rows
  %factors = hop.pipe.create "factors" : !Rows
  %tiles = hop.pipe.create "tiles" : !Tiles
  hop.role @maker warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %low = arith.constant dense<0.0> : !Row
    %zero = arith.constant dense<0.0> : !A
    scf.for %i = %c0 to %m step %m iter_args(%old = %low, %left = %zero, %right = %zero) -> (!Row, !A, !A) {
      %f = hop.mma_issue %c, %c : !Slot, !Slot -> !hop.flight<!A>
      %s = hop.mma_wait %f pending 0 : !hop.flight<!A> -> !A
      %top = tile.reduce max %s axis 1 : !A -> !Row
      %max = arith.maxnumf %old, %top : !Row
      %mine = hop.pipe.acquire %maxima : !Rows -> !RowSlot
      hop.stage %max, %mine : !Row, !RowSlot
      hop.warpgroup_sync
      hop.pipe.commit %maxima, %mine : !Rows, !RowSlot
      %all = tile.broadcast %max axis 1 : !Row -> !A
      %less = arith.subf %s, %all : !A
      %e = math.exp2 %less : !A
      %down = arith.subf %old, %max : !Row
      %factor = math.exp2 %down : !Row
      %rows = hop.pipe.acquire %factors : !Rows -> !RowSlot
      hop.stage %factor, %rows : !Row, !RowSlot
      hop.warpgroup_sync
      hop.pipe.commit %factors, %rows : !Rows, !RowSlot
      %own = hop.pipe.acquire %tiles : !Tiles -> !Slot
      %p = arith.truncf %e : !A to !P
      hop.stage %p, %own : !P, !Slot
      hop.warpgroup_sync
      hop.pipe.commit %tiles, %own : !Tiles, !Slot
      %scale = tile.broadcast %factor axis 1 : !Row -> !A
      %l = arith.mulf %left, %scale : !A
      %r = arith.mulf %right, %scale : !A
      %g = hop.mma_issue %p, %c acc(%l : !A) : !P, !Slot -> !hop.flight<!A>
      %h = hop.mma_issue %p, %c acc(%r : !A) : !P, !Slot -> !hop.flight<!A>
      %o0, %o1 = hop.mma_wait %g, %h keep %p pending 0 : !hop.flight<!A>, !hop.flight<!A> keep !P -> !A, !A
      scf.yield %max, %o0, %o1 : !Row, !A, !A
    }
  }
}

// -----

!A = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xbf16, #hop.layout<accumulator>>
!Slot = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Tiles = !hop.pipe<tensor<64x64xbf16>, 2>

// A product before which the role waits for its own products, or for another one, comes behind.
// CHECK-LABEL: hop.kernel @stays
// CHECK: %[[TILES:.*]] = hop.pipe.create "tiles"
// CHECK: hop.mma_issue
// CHECK: hop.pipe.commit %[[TILES]]
// CHECK-NEXT: hop.mma_wait
// CHECK-NEXT: hop.mma_issue
// CHECK: hop.pipe.commit %[[TILES]]
// CHECK-NEXT: hop.pipe.wait
// CHECK-NEXT: hop.mma_issue
// CHECK-NOT: copies_a
hop.kernel @stays attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<placement = divided>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c = hop.staging "c" : !Slot
  %tiles = hop.pipe.create "tiles" : !Tiles
  %others = hop.pipe.create "others" : !Tiles
  %twins = hop.pipe.create "twins" : !Tiles
  hop.role @maker warpgroups(1) {
  ^bb0(%wg: index):
    %p = arith.constant dense<1.0> : !P
    %f = hop.mma_issue %c, %c : !Slot, !Slot -> !hop.flight<!A>
    %b2 = hop.pipe.acquire %twins : !Tiles -> !Slot
    hop.stage %p, %b2 : !P, !Slot
    hop.warpgroup_sync
    hop.pipe.commit %twins, %b2 : !Tiles, !Slot
    %b = hop.pipe.acquire %tiles : !Tiles -> !Slot
    hop.stage %p, %b : !P, !Slot
    hop.warpgroup_sync
    hop.pipe.commit %tiles, %b : !Tiles, !Slot
    %s = hop.mma_wait %f pending 0 : !hop.flight<!A> -> !A
    %g = hop.mma_issue %p, %c acc(%s : !A) : !P, !Slot -> !hop.flight<!A>
    %t = hop.mma_wait %g keep %p pending 0 : !hop.flight<!A> keep !P -> !A
    %d2 = hop.pipe.acquire %twins : !Tiles -> !Slot
    hop.stage %p, %d2 : !P, !Slot
    hop.warpgroup_sync
    hop.pipe.commit %twins, %d2 : !Tiles, !Slot
    %d = hop.pipe.acquire %tiles : !Tiles -> !Slot
    hop.stage %p, %d : !P, !Slot
    hop.warpgroup_sync
    hop.pipe.commit %tiles, %d : !Tiles, !Slot
    %other = hop.pipe.wait %others : !Tiles -> !Slot
    %h = hop.mma_issue %p, %other acc(%t : !A) : !P, !Slot -> !hop.flight<!A>
    %u = hop.mma_wait %h keep %p pending 0 : !hop.flight<!A> keep !P -> !A
    hop.pipe.release %others, %other : !Tiles, !Slot
  }
}

// -----

!A = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xbf16, #hop.layout<accumulator>>
!Slot = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Tiles = !hop.pipe<tensor<64x64xbf16>, 2>

// With another placement all is handed on where it is made.
// CHECK-LABEL: hop.kernel @tiles
// CHECK-COUNT-2: hop.pipe.commit
// CHECK-NEXT: hop.mma_issue
// CHECK-NOT: copies_a
hop.kernel @tiles attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c = hop.staging "c" : !Slot
  %tiles = hop.pipe.create "tiles" : !Tiles
  %twins = hop.pipe.create "twins" : !Tiles
  hop.role @maker warpgroups(1) {
  ^bb0(%wg: index):
    %p = arith.constant dense<1.0> : !P
    %a2 = hop.pipe.acquire %twins : !Tiles -> !Slot
    hop.stage %p, %a2 : !P, !Slot
    hop.warpgroup_sync
    hop.pipe.commit %twins, %a2 : !Tiles, !Slot
    %a = hop.pipe.acquire %tiles : !Tiles -> !Slot
    hop.stage %p, %a : !P, !Slot
    hop.warpgroup_sync
    hop.pipe.commit %tiles, %a : !Tiles, !Slot
    %f = hop.mma_issue %p, %c : !P, !Slot -> !hop.flight<!A>
    %s = hop.mma_wait %f keep %p pending 0 : !hop.flight<!A> keep !P -> !A
  }
}

// -----

!A = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xbf16, #hop.layout<accumulator>>
!Slot = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Tiles = !hop.pipe<tensor<64x64xbf16>, 2>

// So is one tile alone.
// CHECK-LABEL: hop.kernel @one
// CHECK: hop.pipe.commit
// CHECK-NEXT: hop.mma_issue
// CHECK-NOT: copies_a
hop.kernel @one attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<placement = divided>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c = hop.staging "c" : !Slot
  %tiles = hop.pipe.create "tiles" : !Tiles
  hop.role @maker warpgroups(1) {
  ^bb0(%wg: index):
    %p = arith.constant dense<1.0> : !P
    %own = hop.pipe.acquire %tiles : !Tiles -> !Slot
    hop.stage %p, %own : !P, !Slot
    hop.warpgroup_sync
    hop.pipe.commit %tiles, %own : !Tiles, !Slot
    %f = hop.mma_issue %p, %c : !P, !Slot -> !hop.flight<!A>
    %s = hop.mma_wait %f keep %p pending 0 : !hop.flight<!A> keep !P -> !A
  }
}

// -----

!A = tensor<64x64xf32, #hop.layout<accumulator>>
!P = tensor<64x64xbf16, #hop.layout<accumulator>>
!Row = tensor<64xf32, #hop.layout<row>>
!RowSlot = !hop.shared<tensor<64xf32>, rows = 64>
!Slot = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Rows = !hop.pipe<tensor<64xf32>, 2>
!Tiles = !hop.pipe<tensor<64x64xbf16>, 2>

// Slots are taken right behind the products of which the tiles are made, ahead of the mask.
// CHECK-LABEL: hop.kernel @masked
// CHECK: %[[FACTORS:.*]] = hop.pipe.create "factors"
// CHECK: %[[TILES:.*]] = hop.pipe.create "tiles"
// CHECK: hop.mma_issue
// CHECK-NEXT: %[[ROWS:.*]] = hop.pipe.acquire %[[FACTORS]]
// CHECK-NEXT: %[[SLOT:.*]] = hop.pipe.acquire %[[TILES]]
// CHECK-NEXT: tile.iota
// CHECK: hop.mma_wait
// CHECK-NOT: hop.pipe.acquire
// CHECK: hop.mma_issue
// CHECK-NEXT: hop.stage %{{.*}}, %[[ROWS]]
// CHECK-NEXT: hop.stage %{{.*}}, %[[SLOT]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.pipe.commit %[[FACTORS]], %[[ROWS]]
// CHECK-NEXT: hop.pipe.commit %[[TILES]], %[[SLOT]]
// CHECK-NEXT: hop.mma_wait
hop.kernel @masked attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<placement = divided>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c = hop.staging "c" : !Slot
  %factors = hop.pipe.create "factors" : !Rows
  %tiles = hop.pipe.create "tiles" : !Tiles
  hop.role @maker warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !A
    %none = arith.constant dense<0> : tensor<64x64xi32, #hop.layout<accumulator>>
    scf.for %i = %c0 to %m step %m iter_args(%o = %zero) -> (!A) {
      %f = hop.mma_issue %c, %c : !Slot, !Slot -> !hop.flight<!A>
      %columns = tile.iota %i axis 1 : tensor<64x64xi32, #hop.layout<accumulator>>
      %mask = arith.cmpi sgt, %columns, %none : tensor<64x64xi32, #hop.layout<accumulator>>
      %s = hop.mma_wait %f pending 0 : !hop.flight<!A> -> !A
      %e = arith.select %mask, %s, %zero : tensor<64x64xi1, #hop.layout<accumulator>>, !A
      %factor = tile.reduce max %e axis 1 : !A -> !Row
      %rows = hop.pipe.acquire %factors : !Rows -> !RowSlot
      hop.stage %factor, %rows : !Row, !RowSlot
      hop.warpgroup_sync
      hop.pipe.commit %factors, %rows : !Rows, !RowSlot
      %own = hop.pipe.acquire %tiles : !Tiles -> !Slot
      %p = arith.truncf %e : !A to !P
      hop.stage %p, %own : !P, !Slot
      hop.warpgroup_sync
      hop.pipe.commit %tiles, %own : !Tiles, !Slot
      %g = hop.mma_issue %p, %c acc(%o : !A) : !P, !Slot -> !hop.flight<!A>
      %o1 = hop.mma_wait %g keep %p pending 0 : !hop.flight<!A> keep !P -> !A
      scf.yield %o1 : !A
    }
  }
}
