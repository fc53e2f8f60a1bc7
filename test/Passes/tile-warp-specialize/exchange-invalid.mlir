// Sums that the roles of two blocks cannot make together.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize)' -split-input-file -verify-diagnostics

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = tma, persistent = none, order = linear, section = 1, cluster = exchange, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 256], bf16>
!Sums = !tile.view<[M, 256], f32>
!Tile = tensor<128x256xbf16>
!Part = tensor<64x256xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>
tile.kernel @k(%x: !View, %y: !Sums, %z: !View) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x256xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<256x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<256x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x256xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x256xf32>
    // expected-error@+1 {{is not known to add at the same places in both blocks of a cluster (cluster = exchange); run tile-exchange-sums first}}
    tile.store %c, %y[%j, %c0] add : tensor<64x256xf32>, !Sums
    scf.yield %new : tensor<128x256xf32>
  }
  %out = arith.truncf %sum : tensor<128x256xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}
