// Stores that add: what they add to, and what else touches it.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

tile.kernel @half(%y: !tile.view<[M, 64], bf16>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xbf16>
  // expected-error@+1 {{adds f32, got 'bf16': a sum of 'bf16' would be rounded at each of its additions; add to a view of f32, and round it in a kernel of its own}}
  tile.store %t, %y[%m, %c0] add : tensor<64x64xbf16>, !tile.view<[M, 64], bf16>
}

// -----

tile.kernel @loaded(%y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{loads from 'y', to which the kernel adds in an order that is not specified; use a view of its own, or do it in a kernel of its own}}
  %t = tile.load %y[%m, %c0] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
  // expected-note@+1 {{added here}}
  tile.store %t, %y[%m, %c0] add : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @gathered(%n: !tile.view<[N], i32>, %y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %rows = tile.load %n[%c0] : !tile.view<[N], i32> -> tensor<64xi32>
  // expected-error@+1 {{loads from 'y', to which the kernel adds in an order that is not specified}}
  %t = tile.gather %y[%c0, %c0] rows %rows : !tile.view<[M, 64], f32>, tensor<64xi32> -> tensor<64x64xf32>
  // expected-note@+1 {{added here}}
  tile.store %t, %y[%m, %c0] add : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @stored(%y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  // expected-error@+1 {{stores to 'y', to which the kernel adds in an order that is not specified}}
  tile.store %t, %y[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
  // expected-note@+1 {{added here}}
  tile.store %t, %y[%m, %c0] add : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @twice(%y: !tile.view<[M, 64], f32>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  %yes = arith.constant true
  // expected-note@+1 {{the speculation}}
  %r = tile.speculate -> tensor<64x64xf32> {
    tile.yield_if %yes, %t : i1, tensor<64x64xf32>
  } exact {
    tile.yield %t : tensor<64x64xf32>
  }
  // expected-error@+1 {{adds to 'y' in a kernel that speculates, and a grid point whose speculation fails runs twice: it would add twice; write the exact region alone}}
  tile.store %r, %y[%m, %c0] add : tensor<64x64xf32>, !tile.view<[M, 64], f32>
  tile.store %r, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @in_a_region(%y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  %yes = arith.constant true
  // expected-note@+1 {{the speculation}}
  %r = tile.speculate -> tensor<64x64xf32> {
    // expected-error@+1 {{adds to 'y' in a kernel that speculates}}
    tile.store %t, %y[%m, %c0] add : tensor<64x64xf32>, !tile.view<[M, 64], f32>
    tile.yield_if %yes, %t : i1, tensor<64x64xf32>
  } exact {
    tile.yield %t : tensor<64x64xf32>
  }
}

// -----

tile.kernel @of_elements(%y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  %t = arith.constant dense<1.0> : tensor<64xf32>
  %yes = arith.constant true
  // expected-note@+1 {{the speculation}}
  %r = tile.speculate -> tensor<64xf32> {
    tile.yield_if %yes, %t : i1, tensor<64xf32>
  } exact {
    // expected-error@+1 {{adds to 'y' in a kernel that speculates}}
    tile.scatter_add %t, %y[%m] : tensor<64xf32>, !tile.view<[M], f32>, index
    tile.yield %t : tensor<64xf32>
  }
}

// -----

// Additions of elements.

tile.kernel @types(%x: !tile.view<[M], f32>, %i: i32) grid(%m = M) {
  %t = tile.load %x[%m] : !tile.view<[M], f32> -> tensor<64xf32>
  %at = tile.splat %i : i32 -> tensor<32xi32>
  // expected-error@+1 {{'tile.scatter_add' op has indices of 'tensor<32xi32>' for a tile of 'tensor<64xf32>'; they have its shape}}
  tile.scatter_add %t, %x[%at] : tensor<64xf32>, !tile.view<[M], f32>, tensor<32xi32>
}

// -----

tile.kernel @elements(%x: !tile.view<[M], bf16>, %s: f32) grid(%m = M) {
  %t = tile.splat %s : f32 -> tensor<64xf32>
  // expected-error@+1 {{'tile.scatter_add' op has a tile of 'f32' and a view of 'bf16'}}
  tile.scatter_add %t, %x[%m] : tensor<64xf32>, !tile.view<[M], bf16>, index
}

// -----

tile.kernel @rank(%x: !tile.view<[M, N], f32>, %s: f32) grid(%m = M) {
  %t = tile.splat %s : f32 -> tensor<64xf32>
  // expected-error@+1 {{'tile.scatter_add' op takes one index per dimension of the view: expected 2, got 1}}
  tile.scatter_add %t, %x[%m] : tensor<64xf32>, !tile.view<[M, N], f32>, index
}

// -----

tile.kernel @loaded(%x: !tile.view<[M], f32>) grid(%m = M) {
  // expected-error@+1 {{loads from 'x', to which the kernel adds in an order that is not specified}}
  %t = tile.load %x[%m] : !tile.view<[M], f32> -> tensor<64xf32>
  // expected-note@+1 {{added here}}
  tile.scatter_add %t, %x[%m] : tensor<64xf32>, !tile.view<[M], f32>, index
}

// -----

tile.kernel @stored(%x: !tile.view<[M], f32>, %s: f32) grid(%m = M) {
  %t = tile.splat %s : f32 -> tensor<64xf32>
  // expected-error@+1 {{stores to 'x', to which the kernel adds in an order that is not specified}}
  tile.store %t, %x[%m] : tensor<64xf32>, !tile.view<[M], f32>
  // expected-note@+1 {{added here}}
  tile.scatter_add %t, %x[%m] : tensor<64xf32>, !tile.view<[M], f32>, index
}

// -----

tile.kernel @exchanged(%x: !tile.view<[M], f32>, %s: f32) grid(%m = M) {
  %t = tile.splat %s : f32 -> tensor<64xf32>
  // expected-error@+1 {{is exchanged, as blocks of a cluster do with sums; add, or leave it out}}
  tile.store %t, %x[%m] exchanged : tensor<64xf32>, !tile.view<[M], f32>
}
