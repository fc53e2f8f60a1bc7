// What a rotation has put before a loop comes through the pipe of the loop, as the producer loads it there: no thread loads it itself.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>
!Q = !tile.view<[M, 64], bf16>
!N = !tile.view<[M], f32>
!Out = !tile.view<[M, M], f32>
!Tile = tensor<128x64xbf16>
!Numbers = tensor<128xf32>
!S = tensor<128x128xf32>
tile.kernel @k(%q: !Q, %k: !Q, %n: !N, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %a = tile.load %q[%m, %c0] : !Q -> !Tile
  %first = tile.load %k[%c0, %c0] pipe 1 : !Q -> !Tile
  %first_t = tile.transpose %first : !Tile -> tensor<64x128xbf16>
  %x = tile.dot %a, %first_t : !Tile, tensor<64x128xbf16> -> !S
  %first_numbers = tile.load %n[%c0] pipe 2 : !N -> !Numbers
  %first_repeated = tile.broadcast %first_numbers axis 0 : !Numbers -> !S
  %first_sum = arith.addf %x, %first_repeated : !S
  tile.store %first_sum, %z[%m, %c0] : !S, !Out
  scf.for %j = %c128 to %rows step %c128 {
    %b = tile.load %k[%j, %c0] pipe 1 : !Q -> !Tile
    %b_t = tile.transpose %b : !Tile -> tensor<64x128xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<64x128xbf16> -> !S
    %numbers = tile.load %n[%j] pipe 2 : !N -> !Numbers
    %repeated = tile.broadcast %numbers axis 0 : !Numbers -> !S
    %sum = arith.addf %s, %repeated : !S
    tile.store %sum, %z[%m, %j] : !S, !Out
  }
}

// CHECK: %[[N:.*]] = hop.pipe.create "n" : !hop.pipe<tensor<128xf32>, 2>
// CHECK: hop.role @producer
// CHECK: hop.pipe.load %[[N]], %{{.*}}[%c0]
// CHECK: scf.for
// CHECK: hop.pipe.load %[[N]]
// CHECK: hop.role @consumer
// CHECK-NOT: tile.load
// CHECK: %[[FIRST:.*]] = hop.pipe.wait %[[N]]
// CHECK-NEXT: hop.fetch %[[FIRST]]
// CHECK: scf.for
// CHECK-NOT: tile.load
// CHECK: %[[NEXT:.*]] = hop.pipe.wait %[[N]]
// CHECK-NEXT: hop.fetch %[[NEXT]]
