// The number of warpgroups of a kernel without a dot.
// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -verify-diagnostics

// One warpgroup has 4 KB, of which a multiprocessor holds enough.
// expected-remark@+3 {{schedule rejected: consumers = 3: 384 threads that move 4 neighbours each cannot share 1x4096 tiles; 1x4608 would work}}
// expected-remark-re@+2 {{schedule chosen: #tile.schedule<warp_specialize = false, consumers = {{[124]}}, stages = 1}}
!Tile = tensor<1x4096xf32>
tile.kernel @twice(%x: !tile.view<[M, 4096], f32>, %y: !tile.view<[M, 4096], f32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 4096], f32> -> !Tile
  %u = arith.addf %t, %t : !Tile
  tile.store %u, %y[%m, %c0] : !Tile, !tile.view<[M, 4096], f32>
}

// -----

// Columns of vectors, 3 warpgroups on request.
// expected-remark@+1 {{schedule chosen: #tile.schedule<warp_specialize = false, consumers = 3,}}
tile.kernel @vector(%x: !tile.view<[N], bf16>, %y: !tile.view<[N], bf16>) grid(%n = N ceildiv 3072)
    schedule #tile.schedule<consumers = 3> {
  %c3072 = arith.constant 3072 : index
  %first = arith.muli %n, %c3072 : index
  %t = tile.load %x[%first] : !tile.view<[N], bf16> -> tensor<3072xbf16>
  tile.store %t, %y[%first] : tensor<3072xbf16>, !tile.view<[N], bf16>
}

// -----

tile.kernel @speculation(%x: !tile.view<[M, 1024], f32>, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 2) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %row = arith.muli %m, %c2 : index
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 1024], f32> -> tensor<2x1024xf32>
  // expected-error@+1 {{runs grid points again that a producer loads again, and a kernel without a tile.dot has none; write the exact region alone}}
  %r = tile.speculate -> tensor<2xf32> {
    %s = tile.reduce sum %t axis 1 : tensor<2x1024xf32> -> tensor<2xf32>
    %valid = arith.cmpf oeq, %s, %s : tensor<2xf32>
    tile.yield_if %valid, %s : tensor<2xi1>, tensor<2xf32>
  } exact {
    %s = tile.reduce sum %t axis 1 : tensor<2x1024xf32> -> tensor<2xf32>
    tile.yield %s : tensor<2xf32>
  }
  tile.store %r, %y[%row] : tensor<2xf32>, !tile.view<[M], f32>
}
