// With placement = divided each consumer is a role of one warpgroup with one of the accumulators and the dots that lead to it.
// What the first makes and the second computes with crosses into registers, right before its first use: behind the dot that
// does not need it. What the second only multiplies, it reads from the slot, transposed here. Each has registers of its own.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = [240, 216], placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>
tile.kernel @k(%x: !View, %y: !View, %z: !View, %w: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %s1, %s2 = scf.for %j = %c0 to %rows step %c64 iter_args(%old1 = %zero, %old2 = %zero) -> (!S, !S) {
    %b = tile.load %x[%j, %c0] : !View -> !Tile
    %s = tile.dot %a, %b : !Tile, !Tile -> !S
    %p = arith.truncf %s : !S to !Tile
    %c = tile.load %y[%j, %c0] : !View -> !Tile
    %g = tile.dot %a, %c : !Tile, !Tile -> !S
    %new1 = tile.dot %p, %b, %old1 : !Tile, !Tile -> !S
    %all = arith.extf %p : !Tile to !S
    %gated = arith.mulf %all, %g : !S
    %q = arith.truncf %gated : !S to !Tile
    %half = tile.dot %q, %c, %old2 : !Tile, !Tile -> !S
    %p_t = tile.transpose %p : !Tile -> !Tile
    %new2 = tile.dot %p_t, %a, %half : !Tile, !Tile -> !S
    scf.yield %new1, %new2 : !S, !S
  }
  %t1 = arith.truncf %s1 : !S to !Tile
  %t2 = arith.truncf %s2 : !S to !Tile
  tile.store %t1, %z[%first, %c0] : !Tile, !View
  tile.store %t2, %w[%first, %c0] : !Tile, !View
}

// CHECK-DAG: %[[B:.*]] = hop.pipe.create "x.1" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK-DAG: %[[C:.*]] = hop.pipe.create "y" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK-DAG: %[[P:.*]] = hop.pipe.create "consumer0.0" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK: hop.role @producer elected registers(24)
// CHECK-NOT: hop.pipe.wait
// CHECK: hop.role @consumer0 warpgroups(1) registers(240)
// CHECK-NOT: hop.pipe.wait %[[C]]
// CHECK: %[[OWN:.*]] = arith.truncf
// CHECK-NEXT: %[[SLOT:.*]] = hop.pipe.acquire %[[P]]
// CHECK-NEXT: hop.stage %[[OWN]], %[[SLOT]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.pipe.commit %[[P]], %[[SLOT]]
// CHECK: hop.mma %[[OWN]], %{{.*}} acc(
// CHECK: tile.store
// CHECK-NOT: tile.store
// CHECK: hop.role @consumer1 warpgroups(1) registers(216)
// CHECK-NOT: hop.pipe.wait %[[B]]
// CHECK: scf.for
// CHECK: hop.pipe.wait %[[C]]
// CHECK: hop.mma
// CHECK-NEXT: %[[TILE:.*]] = hop.pipe.wait %[[P]]
// CHECK-NEXT: %[[TAKEN:.*]] = hop.fetch %[[TILE]]
// CHECK-NEXT: arith.extf %[[TAKEN]]
// CHECK: hop.mma
// CHECK: hop.mma %[[TILE]], %{{.*}} {transpose_a}
// CHECK-NEXT: hop.pipe.release %[[P]], %[[TILE]]
// CHECK: tile.store
