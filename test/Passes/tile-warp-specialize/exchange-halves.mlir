// At 192 columns half of the other block's second operand is no whole chunk of the own tile: a block loads half of its own once
// more, which the reducer multiplies in place of the whole. What leaves are three pieces of 32 columns, through as many
// slots to one writer, which passes one ticket on: that of the second block is behind that of the first.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, persistent = dynamic, order = linear, section = 1, cluster = exchange, producer_registers = 24, consumer_registers = 200, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 192], bf16>
!Sums = !tile.view<[M, 192], f32>
!Tile = tensor<128x192xbf16>
!Part = tensor<64x192xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>
tile.kernel @k(%x: !View, %y: !Sums, %z: !View) grid(%m = M ceildiv 128) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x192xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x192xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<192x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<192x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x192xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x192xf32>
    tile.store %c, %y[%j, %c0] add ticket %j from %m to %first exchanged : tensor<64x192xf32>, !Sums
    scf.yield %new : tensor<128x192xf32>
  }
  %out = arith.truncf %sum : tensor<128x192xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}

// CHECK-DAG: %[[A:.*]] = hop.pipe.create "x" : !hop.pipe<tensor<128x192xbf16>, 1>
// CHECK-DAG: %[[THEIRS:.*]] = hop.pipe.create "x.theirs" : !hop.pipe<tensor<128x96xbf16>, 1>
// CHECK-DAG: %[[OWN:.*]] = hop.pipe.create "x.half" : !hop.pipe<tensor<128x96xbf16>, 1>
// CHECK: hop.role @producer elected
// CHECK: hop.pipe.load %[[A]], %{{.*}}[%[[ROW:.*]], %c0]
// CHECK: %[[HALF:.*]] = arith.muli %{{.*}}, %c96 : index
// CHECK: hop.pipe.load %[[THEIRS]], %{{.*}}[%{{.*}}, %[[HALF]]]
// CHECK: hop.pipe.load %[[OWN]], %{{.*}}[%[[ROW]], %[[HALF]]]
// CHECK: hop.role @writer elected
// CHECK: hop.pipe.wait %{{.*}} : !hop.pipe<tensor<64x32xf32>, 3>
// CHECK: %[[RANK:.*]] = hop.cluster_rank
// CHECK: %[[TICKET:.*]] = arith.addi %{{.*}}, %[[RANK]] : index
// CHECK: hop.ticket.wait %{{.*}}[%[[TICKET]]] tile [64, 96] is
// CHECK-COUNT-3: hop.bulk_store {{.*}} add exchanged
// CHECK: hop.ticket.pass %{{.*}}[%[[TICKET]]]
// CHECK: hop.role @reducer warpgroups(1)
// CHECK-DAG: %[[OF_OTHER:.*]] = hop.pipe.wait %[[THEIRS]]
// CHECK-DAG: %[[MINE:.*]] = hop.pipe.wait %[[OWN]]
// CHECK: %[[D0:.*]] = hop.mma %{{.*}}, %[[MINE]] {transpose_a} : {{.*}} -> tensor<64x96xf32>
// CHECK: hop.mma %{{.*}}, %[[OF_OTHER]] acc(%[[D0]] : {{.*}}) {transpose_a}
// CHECK-COUNT-3: hop.columns %{{.*}} : tensor<64x96xf32> -> tensor<64x32xf32>
// CHECK-NOT: hop.pipe.wait %[[A]]
// CHECK: hop.role @consumer warpgroups(2)
// CHECK: hop.pipe.wait %[[A]]
