// With producer = all a tile of rank 2 that arithmetic reads comes through a pipe: each consumer takes its rows of the slot into
// registers and gives the slot back at once. Loads of one number share a pipe, in the loop and before it.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Bias = !tile.view<[M, M], f32>
!Out  = !tile.view<[M, M], f32>
!Tile = tensor<128x64xbf16>
!S    = tensor<128x128xf32>
tile.kernel @k(%x: !View, %bias: !Bias, %y: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %start = tile.load %bias[%first, %c0] pipe 1 : !Bias -> !S
  %sum = scf.for %j = %c0 to %rows step %c128 iter_args(%old = %start) -> (!S) {
    %b = tile.load %x[%j, %c0] pipe 0 : !View -> !Tile
    %b_t = tile.transpose %b : !Tile -> tensor<64x128xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<64x128xbf16> -> !S
    %t = tile.load %bias[%first, %j] pipe 1 : !Bias -> !S
    %biased = arith.addf %s, %t : !S
    %new = arith.maximumf %old, %biased : !S
    scf.yield %new : !S
  }
  tile.store %sum, %y[%first, %c0] : !S, !Out
}

// CHECK: %[[BIAS:.*]] = hop.pipe.create "bias" : !hop.pipe<tensor<128x128xf32>, 2>
// CHECK: hop.role @producer elected
// CHECK: hop.pipe.load %[[BIAS]]
// CHECK: scf.for
// CHECK: hop.pipe.load %[[BIAS]]
// CHECK: hop.role @consumer warpgroups(2)
// CHECK: ^{{.*}}(%[[WARPGROUP:.*]]: index)
// CHECK: %[[FIRST:.*]] = hop.pipe.wait %[[BIAS]]
// CHECK-NEXT: hop.slice %[[FIRST]]
// CHECK-NEXT: %[[START:.*]] = hop.fetch
// CHECK-NEXT: hop.pipe.release %[[BIAS]], %[[FIRST]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[START]]) -> (tensor<64x128xf32>)
// CHECK: %[[S:.*]] = hop.mma
// CHECK: %[[SLOT:.*]] = hop.pipe.wait %[[BIAS]]
// CHECK-NEXT: %[[MINE:.*]] = hop.slice %[[SLOT]][%[[WARPGROUP]]] : {{.*}} -> !hop.shared<tensor<64x128xf32>, rows = 128>
// CHECK-NEXT: %[[T:.*]] = hop.fetch %[[MINE]] : !hop.shared<tensor<64x128xf32>, rows = 128> -> tensor<64x128xf32>
// CHECK-NEXT: hop.pipe.release %[[BIAS]], %[[SLOT]]
// CHECK-NEXT: arith.addf %[[S]], %[[T]] : tensor<64x128xf32>
