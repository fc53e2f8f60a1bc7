// With placement = divided dots that lead to accumulators of several consumers are dealt to these in turn. What each makes of its own
// crosses: tiles, and vectors of rows that the next dots of the other one are compared with, over the loop too.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = divided, helper_registers = 24, transpose = 0, sums = any, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>
!Row  = tensor<64xf32>
tile.kernel @k(%x: !View, %y: !View, %z: !View, %w: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %low = arith.constant dense<0.0> : !Row
  %last, %s1, %s2 = scf.for %j = %c0 to %rows step %c128 iter_args(%max = %low, %old1 = %zero, %old2 = %zero) -> (!Row, !S, !S) {
    %b = tile.load %x[%j, %c0] : !View -> !Tile
    %s = tile.dot %a, %b : !Tile, !Tile -> !S
    %top = tile.reduce max %s axis 1 : !S -> !Row
    %m0 = arith.maxnumf %max, %top : !Row
    %all0 = tile.broadcast %m0 axis 1 : !Row -> !S
    %e = arith.subf %s, %all0 : !S
    %p = arith.truncf %e : !S to !Tile
    %mid1 = tile.dot %p, %b, %old1 : !Tile, !Tile -> !S
    %mid2 = tile.dot %p, %a, %old2 : !Tile, !Tile -> !S
    %j1 = arith.addi %j, %c64 : index
    %c = tile.load %y[%j1, %c0] : !View -> !Tile
    %t = tile.dot %a, %c : !Tile, !Tile -> !S
    %top1 = tile.reduce max %t axis 1 : !S -> !Row
    %m1 = arith.maxnumf %m0, %top1 : !Row
    %all1 = tile.broadcast %m1 axis 1 : !Row -> !S
    %f = arith.subf %t, %all1 : !S
    %q = arith.truncf %f : !S to !Tile
    %new1 = tile.dot %q, %c, %mid1 : !Tile, !Tile -> !S
    %new2 = tile.dot %q, %a, %mid2 : !Tile, !Tile -> !S
    scf.yield %m1, %new1, %new2 : !Row, !S, !S
  }
  %t1 = arith.truncf %s1 : !S to !Tile
  %t2 = arith.truncf %s2 : !S to !Tile
  tile.store %t1, %z[%first, %c0] : !Tile, !View
  tile.store %t2, %w[%first, %c0] : !Tile, !View
}

// CHECK-DAG: %[[M0:.*]] = hop.pipe.create "consumer0.0" : !hop.pipe<tensor<64xf32>, 2>
// CHECK-DAG: %[[P:.*]] = hop.pipe.create "consumer0.1" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK-DAG: %[[M1:.*]] = hop.pipe.create "consumer1.2" : !hop.pipe<tensor<64xf32>, 2>
// CHECK-DAG: %[[Q:.*]] = hop.pipe.create "consumer1.3" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK: hop.role @consumer0
// CHECK: scf.for {{.*}} iter_args(%[[MAX:.*]] = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: %[[S:.*]] = hop.mma
// CHECK: tile.reduce max %[[S]]
// CHECK-NEXT: arith.maxnumf %[[MAX]]
// CHECK: hop.pipe.commit %[[M0]]
// CHECK: hop.pipe.commit %[[P]]
// CHECK: hop.mma
// CHECK-NOT: tile.reduce
// CHECK: %[[TAKEN:.*]] = hop.pipe.wait %[[Q]]
// CHECK-NEXT: hop.mma %[[TAKEN]]
// CHECK: %[[SLOT:.*]] = hop.pipe.wait %[[M1]]
// CHECK-NEXT: %[[NEXT:.*]] = hop.fetch %[[SLOT]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: hop.role @consumer1
// CHECK: scf.for
// CHECK: %[[TILE:.*]] = hop.pipe.wait %[[P]]
// CHECK-NEXT: hop.mma %[[TILE]]
// CHECK: %[[T:.*]] = hop.mma
// CHECK: tile.reduce max %[[T]]
// CHECK: hop.pipe.wait %[[M0]]
// CHECK: hop.pipe.commit %[[M1]]
// CHECK: hop.pipe.commit %[[Q]]
// CHECK-NOT: tile.reduce
