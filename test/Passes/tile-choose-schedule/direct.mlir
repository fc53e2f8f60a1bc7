// The number of warpgroups of a kernel without a dot.
// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -verify-diagnostics

// One warpgroup has 4 KB, of which a multiprocessor holds enough.
// expected-remark@+3 {{schedule rejected: consumers = 3: 384 threads that move 4 neighbours each cannot share 1x4096 tiles; 1x4608 would work}}
// expected-remark-re@+2 {{schedule chosen: #tile.schedule<producer = none, consumers = {{[124]}}, stages = 1}}
!Tile = tensor<1x4096xf32>
tile.kernel @twice(%x: !tile.view<[M, 4096], f32>, %y: !tile.view<[M, 4096], f32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 4096], f32> -> !Tile
  %u = arith.addf %t, %t : !Tile
  tile.store %u, %y[%m, %c0] : !Tile, !tile.view<[M, 4096], f32>
}

// -----

// Columns of vectors, 3 warpgroups on request.
// expected-remark@+1 {{schedule chosen: #tile.schedule<producer = none, consumers = 3,}}
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

// -----

// A row of 16 KB, of which a thread keeps 64 elements: with 96 registers 5 blocks have theirs on the way at a time. The
// weights, the same for all blocks, do not count.
// expected-remark@+4 {{schedule rejected: consumers = 3: 384 threads that move 8 neighbours each cannot share 1x8192 tiles}}
// expected-remark-re@+3 {{schedule chosen: #tile.schedule<producer = none, consumers = 1, {{.*}}consumer_registers = 96}}
!Row = tensor<1x8192xf32>
!In = !tile.view<[M, 8192], bf16>
tile.kernel @norm(%x: !In, %w: !tile.view<[8192], bf16>, %y: !In) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !In -> tensor<1x8192xbf16>
  %f = arith.extf %t : tensor<1x8192xbf16> to !Row
  %sum = tile.reduce sum %f axis 1 : !Row -> tensor<1xf32>
  %all = tile.broadcast %sum axis 1 : tensor<1xf32> -> !Row
  %u = arith.divf %f, %all : !Row
  %v = tile.load %w[%c0] : !tile.view<[8192], bf16> -> tensor<8192xbf16>
  %g = arith.extf %v : tensor<8192xbf16> to tensor<8192xf32>
  %h = tile.broadcast %g axis 0 : tensor<8192xf32> -> !Row
  %p = arith.mulf %u, %h : !Row
  %o = arith.truncf %p : !Row to tensor<1x8192xbf16>
  tile.store %o, %y[%m, %c0] : tensor<1x8192xbf16>, !In
}

// -----

// As many as are asked for.
// expected-remark-re@+1 {{schedule chosen: #tile.schedule<producer = none, consumers = 1, {{.*}}consumer_registers = 40}}
tile.kernel @few(%x: !tile.view<[N], bf16>, %y: !tile.view<[N], bf16>) grid(%n = N ceildiv 1024)
    schedule #tile.schedule<consumers = 1, consumer_registers = 40> {
  %c1024 = arith.constant 1024 : index
  %first = arith.muli %n, %c1024 : index
  %t = tile.load %x[%first] : !tile.view<[N], bf16> -> tensor<1024xbf16>
  tile.store %t, %y[%first] : tensor<1024xbf16>, !tile.view<[N], bf16>
}

// -----

// expected-error@+3 {{no schedule of this kernel fits the machine with #tile.schedule<consumers = 4, consumer_registers = 240>}}
// expected-note@+2 {{this would work: #tile.schedule<producer = none, consumers = 1,}}
// expected-note@+1 {{the launch gives a thread 128 registers, and 240 are asked for; use at most so many}}
tile.kernel @many(%x: !tile.view<[N], bf16>, %y: !tile.view<[N], bf16>) grid(%n = N ceildiv 4096)
    schedule #tile.schedule<consumers = 4, consumer_registers = 240> {
  %c4096 = arith.constant 4096 : index
  %first = arith.muli %n, %c4096 : index
  %t = tile.load %x[%first] : !tile.view<[N], bf16> -> tensor<4096xbf16>
  tile.store %t, %y[%first] : tensor<4096xbf16>, !tile.view<[N], bf16>
}
