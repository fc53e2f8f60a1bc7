// Tiles that the blocks of a cluster have together: as many more columns, and fewer registers for each.
// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -verify-diagnostics

// 128 elements of each thread of 8 blocks of 256.
// expected-remark@+3 {{schedule rejected: consumers = 1: a thread needs}}
// expected-remark@+2 {{schedule rejected: consumers = 3: 3072 threads that move 4 neighbours each cannot share 1x262144 tiles}}
// expected-remark-re@+1 {{schedule chosen: #tile.schedule<producer = none, consumers = 2, {{.*}}cluster = 8,}}
tile.kernel @shares(%x: !tile.view<[M, 262144], f32>, %y: !tile.view<[M, 262144], f32>) grid(%m = M)
    schedule #tile.schedule<cluster = 8> {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 262144], f32> -> tensor<1x262144xf32>
  %sum = tile.reduce sum %t axis 1 : tensor<1x262144xf32> -> tensor<1xf32>
  %all = tile.broadcast %sum axis 1 : tensor<1xf32> -> tensor<1x262144xf32>
  %u = arith.divf %t, %all : tensor<1x262144xf32>
  tile.store %u, %y[%m, %c0] : tensor<1x262144xf32>, !tile.view<[M, 262144], f32>
}

// -----

// expected-error@+3 {{no schedule of this kernel fits the machine with #tile.schedule<cluster = 2>}}
// expected-note@+2 {{this would work: #tile.schedule<producer = none, consumers = 1,}}
// expected-note@+1 {{each block has some columns of every tile, and a reduction of columns takes those of others; use cluster = 1}}
tile.kernel @columns(%x: !tile.view<[M, 4096], f32>, %y: !tile.view<[4096], f32>) grid(%m = M ceildiv 8)
    schedule #tile.schedule<cluster = 2> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %row = arith.muli %m, %c8 : index
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 4096], f32> -> tensor<8x4096xf32>
  %sum = tile.reduce sum %t axis 0 : tensor<8x4096xf32> -> tensor<4096xf32>
  tile.store %sum, %y[%c0] add : tensor<4096xf32>, !tile.view<[4096], f32>
}

// -----

// expected-error@+3 {{no schedule of this kernel fits the machine with #tile.schedule<cluster = 4>}}
// expected-note@+2 {{this would work: #tile.schedule<producer = none, consumers = 1,}}
// expected-note@+1 {{each block has some columns of every tile, and tile.scan takes those of others; use cluster = 1}}
tile.kernel @scan(%x: !tile.view<[M, 4096], f32>, %y: !tile.view<[M, 4096], f32>) grid(%m = M)
    schedule #tile.schedule<cluster = 4> {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 4096], f32> -> tensor<1x4096xf32>
  %s = tile.scan sum %t axis 1 : tensor<1x4096xf32>
  tile.store %s, %y[%m, %c0] : tensor<1x4096xf32>, !tile.view<[M, 4096], f32>
}

// -----

// expected-error@+3 {{no schedule of this kernel fits the machine with #tile.schedule<persistent = static, cluster = 2>}}
// expected-note@+2 {{this would work: #tile.schedule<producer = none, consumers = 1,}}
// expected-note@+1 {{the blocks of a cluster run one grid point together; use persistent = none}}
tile.kernel @walk(%x: !tile.view<[M, 4096], f32>, %y: !tile.view<[M, 4096], f32>) grid(%m = M)
    schedule #tile.schedule<persistent = static, cluster = 2> {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 4096], f32> -> tensor<1x4096xf32>
  tile.store %t, %y[%m, %c0] : tensor<1x4096xf32>, !tile.view<[M, 4096], f32>
}

// -----

// expected-error@+1 {{has no dot of a computed tile, beside other dots of a loop, whose result only leaves by a store that adds it; use cluster = 1}}
tile.kernel @exchange(%x: !tile.view<[M, 4096], f32>, %y: !tile.view<[M, 4096], f32>) grid(%m = M)
    schedule #tile.schedule<cluster = exchange> {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 4096], f32> -> tensor<1x4096xf32>
  tile.store %t, %y[%m, %c0] : tensor<1x4096xf32>, !tile.view<[M, 4096], f32>
}
