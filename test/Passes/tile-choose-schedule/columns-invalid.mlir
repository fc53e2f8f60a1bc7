// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -verify-diagnostics

// Columns that consumers do not share evenly.
tile.kernel @uneven(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[K, 128], bf16>, %o: !tile.view<[M, 128], f32>) grid(%m = M ceildiv 64)
    schedule #tile.schedule<placement = divided, consumers = 3> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %k = tile.dim "K"
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %d = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) {
    %at = tile.load %a[%m, %i] : !tile.view<[M, K], bf16> -> tensor<64x64xbf16>
    %bt = tile.load %b[%i, %c0] : !tile.view<[K, 128], bf16> -> tensor<64x128xbf16>
    // expected-error@+1 {{is cut into 3 parts of a multiple of 8 along its columns, and has 128 of them, as each consumer has some of the columns of a sum; use placement = rows}}
    %next = tile.dot %at, %bt, %acc : tensor<64x64xbf16>, tensor<64x128xbf16> -> tensor<64x128xf32>
    scf.yield %next : tensor<64x128xf32>
  }
  tile.store %d, %o[%m, %c0] : tensor<64x128xf32>, !tile.view<[M, 128], f32>
}

// -----

// Shares that no wgmma has.
tile.kernel @narrow(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[K, 24], bf16>, %o: !tile.view<[M, 24], f32>) grid(%m = M ceildiv 64)
    schedule #tile.schedule<placement = divided, consumers = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %k = tile.dim "K"
  %zero = arith.constant dense<0.0> : tensor<64x24xf32>
  %d = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x24xf32>) {
    %at = tile.load %a[%m, %i] : !tile.view<[M, K], bf16> -> tensor<64x64xbf16>
    %bt = tile.load %b[%i, %c0] : !tile.view<[K, 24], bf16> -> tensor<64x24xbf16>
    // expected-error@+1 {{is cut into 2 parts of a multiple of 8 along its columns, and has 24 of them, as each consumer has some of the columns of a sum; use placement = rows}}
    %next = tile.dot %at, %bt, %acc : tensor<64x64xbf16>, tensor<64x24xbf16> -> tensor<64x24xf32>
    scf.yield %next : tensor<64x24xf32>
  }
  tile.store %d, %o[%m, %c0] : tensor<64x24xf32>, !tile.view<[M, 24], f32>
}

// -----

// No number of consumers will do: the fewest say why.
tile.kernel @total(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[K, 128], bf16>, %o: !tile.view<[1], f32>) grid(%m = M ceildiv 64)
    schedule #tile.schedule<placement = divided> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %k = tile.dim "K"
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %d = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) {
    %at = tile.load %a[%m, %i] : !tile.view<[M, K], bf16> -> tensor<64x64xbf16>
    %bt = tile.load %b[%i, %c0] : !tile.view<[K, 128], bf16> -> tensor<64x128xbf16>
    %next = tile.dot %at, %bt, %acc : tensor<64x64xbf16>, tensor<64x128xbf16> -> tensor<64x128xf32>
    scf.yield %next : tensor<64x128xf32>
  }
  // expected-error@+1 {{has a tile that is needed in 2 parts, as each consumer has some of the columns of a sum, and makes no parts of it; use placement = rows}}
  %s = tile.reduce_all sum %d : tensor<64x128xf32> -> f32
  tile.store %s, %o[%c0] : f32, !tile.view<[1], f32>
}
