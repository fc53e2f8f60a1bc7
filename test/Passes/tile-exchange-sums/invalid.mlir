// Sums that the blocks of a cluster cannot make together.
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(tile.kernel(tile-exchange-sums))' -split-input-file -verify-diagnostics

// FRAME
!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
!Tile = tensor<128x128xbf16>
!Part = tensor<64x128xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>
#s = #tile.schedule<cluster = exchange, placement = apart>
tile.kernel @NAME(%x: !View, %y: !Sums, %z: !View, %n: !tile.view<[M], i32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  // HERE
    scf.yield %new : tensor<128x128xf32>
  }
  %out = arith.truncf %sum : tensor<128x128xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}

// CASE elsewhere
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<128x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x128xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x128xf32>
    // expected-error@+1 {{adds at a place that depends on the first grid index, so that the blocks of a cluster have no sum in common; use cluster = 1}}
    tile.store %c, %y[%first, %c0] add : tensor<64x128xf32>, !Sums

// CASE longer
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %first step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<128x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x128xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x128xf32>
    // expected-error@+1 {{does not add as often in both blocks of a cluster: the number of iterations of the loop around it depends on the first grid index; use cluster = 1}}
    tile.store %c, %y[%j, %c0] add : tensor<64x128xf32>, !Sums

// CASE sometimes
  %even = arith.cmpi eq, %m, %c0 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<128x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x128xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    scf.if %even {
      %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x128xf32>
      // expected-error@+1 {{does not add as often in both blocks of a cluster: the condition around it depends on the first grid index; use cluster = 1}}
      tile.store %c, %y[%j, %c0] add : tensor<64x128xf32>, !Sums
    }

// CASE scaled
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<128x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x128xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x128xf32>
    %half = arith.constant dense<0.5> : tensor<64x128xf32>
    %d = arith.mulf %c, %half : tensor<64x128xf32>
    // expected-error@+1 {{adds more than the result of a dot as it is, and the blocks of a cluster make half of its columns each; use cluster = 1}}
    tile.store %d, %y[%j, %c0] add : tensor<64x128xf32>, !Sums

// -----
!View = !tile.view<[M, 16], bf16>
!Sums = !tile.view<[M, 16], f32>
!Tile = tensor<128x16xbf16>
!Part = tensor<64x16xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>
#s = #tile.schedule<cluster = exchange, placement = apart>
tile.kernel @narrow(%x: !View, %y: !Sums, %z: !View, %n: !tile.view<[M], i32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x16xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x16xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<16x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<16x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x16xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x16xf32>
    // expected-error@+1 {{adds a dot whose second operand, of tensor<128x16xbf16>, cannot be halved in whole chunks of columns as it lies in shared memory; use cluster = 1}}
    tile.store %c, %y[%j, %c0] add : tensor<64x16xf32>, !Sums
    scf.yield %new : tensor<128x16xf32>
  }
  %out = arith.truncf %sum : tensor<128x16xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}

// -----
!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
!Tile = tensor<128x128xbf16>
!Part = tensor<64x128xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>
#s = #tile.schedule<cluster = exchange, placement = apart>
tile.kernel @looked_up(%x: !View, %y: !Sums, %z: !View, %n: !tile.view<[M], i32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %number = tile.load %n[%m] : !tile.view<[M], i32> -> i32
  %place = arith.index_cast %number : i32 to index
  %a = tile.load %x[%place, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<128x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x128xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x128xf32>
    // expected-error@+1 {{adds a dot whose second operand the blocks of a cluster need of each other, and it has a place that takes more than arithmetic on the first grid index; use cluster = 1}}
    tile.store %c, %y[%j, %c0] add : tensor<64x128xf32>, !Sums
    scf.yield %new : tensor<128x128xf32>
  }
  %out = arith.truncf %sum : tensor<128x128xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}

// -----
#s = #tile.schedule<cluster = exchange, placement = apart>
// expected-error@+1 {{has no dot of a computed tile, beside other dots of a loop, whose result only leaves by a store that adds it; use cluster = 1}}
tile.kernel @nothing(%y: !tile.view<[M, 128], f32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x128xf32>
  tile.store %t, %y[%c0, %c0] add : tensor<64x128xf32>, !tile.view<[M, 128], f32>
}
