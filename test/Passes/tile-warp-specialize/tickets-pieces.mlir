// A sum of 96 columns is made in one part, as these have no halves of whole chunks. It leaves in three pieces of 32 columns,
// through as many slots to one writer with one ticket. In any order the writer takes the whole part.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s
// RUN: sed 's/ ticket %j from %m to %c0//; s/ fixed_sums//' %s | tessera-opt --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s --check-prefix=ANY

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, persistent = dynamic, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 200, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 96], bf16>
!Sums = !tile.view<[M, 96], f32>
!Tile = tensor<128x96xbf16>
!Part = tensor<64x96xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>
tile.kernel @k(%x: !View, %y: !Sums, %z: !View) grid(%m = M ceildiv 128) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x96xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x96xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<96x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<96x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x96xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x96xf32>
    tile.store %c, %y[%j, %c0] add ticket %j from %m to %c0 : tensor<64x96xf32>, !Sums
    scf.yield %new : tensor<128x96xf32>
  }
  %out = arith.truncf %sum : tensor<128x96xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}

// CHECK: hop.pipe.create "y.1" : !hop.pipe<tensor<64x32xf32>, 3>
// CHECK: hop.role @writer elected
// CHECK: scf.for %[[J:.*]] =
// CHECK: %[[PIECE:.*]] = hop.pipe.wait
// CHECK: hop.ticket.wait %{{.*}}[%[[J]]] tile [64, 96] is
// CHECK: hop.bulk_store %[[PIECE]], %{{.*}}[%[[J]], %c0] add
// CHECK: hop.bulk_store %{{.*}}, %{{.*}}[%[[J]], %c32] add
// CHECK: hop.bulk_store %{{.*}}, %{{.*}}[%[[J]], %c64] add
// CHECK: hop.ticket.pass %{{.*}}[%[[J]]] tile [64, 96] to
// CHECK: hop.role @reducer warpgroups(1)
// CHECK: %[[DOT:.*]] = hop.mma %{{.*}} {transpose_a} : {{.*}} -> tensor<64x96xf32>
// CHECK-COUNT-3: hop.columns %[[DOT]]{{.*}} : tensor<64x96xf32> -> tensor<64x32xf32>

// ANY: hop.pipe.create "y.1" : !hop.pipe<tensor<64x96xf32>, 2>
// ANY: hop.role @writer elected
// ANY: hop.bulk_store %{{.*}} add : !hop.shared<tensor<64x96xf32>
// ANY-NOT: hop.columns
