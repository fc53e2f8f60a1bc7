// Loops whose first dot cannot run ahead by itself (overlap = lead).
//
// RUN: %cases %s | tessera-opt --tile-overlap -split-input-file -verify-diagnostics

// FRAME
tile.kernel @NAME(%a: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = lead> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // HERE
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// CASE one
// expected-error@+1 {{overlap = lead has no loop whose first dot can run ahead; overlap = 1 would work}}
  // expected-note@+1 {{the loop has no two dots of one role in its own body}}
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %k = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>

// CASE independent
// expected-error@+1 {{overlap = lead has no loop whose first dot can run ahead; overlap = 1 would work}}
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %k = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    // expected-note@+1 {{the last dot of the loop does not depend on the first one}}
    %e = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %d = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    tile.store %e, %z[%j, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>

// CASE cycle
// The first dot adds onto what the iteration before made.
// expected-error@+1 {{overlap = lead has no loop whose first dot can run ahead; overlap = 1 would work}}
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %k = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    // expected-note@+1 {{the first dot needs a result of the iteration before}}
    %s = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %p, %v : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>

// -----
// expected-error@+1 {{overlap = lead has no loop whose first dot can run ahead; overlap = 1 would work}}
tile.kernel @outer(%a: !tile.view<[N, 64, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = lead> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    // expected-note@+1 {{an outer index of the load depends on the iteration, so that behind the last one it would lie outside of the view}}
    %k = tile.load %a[%j, %c0, %c0] : !tile.view<[N, 64, 64], f16> -> tensor<64x64xf16>
    %s = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.dot %p, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// FRAME
tile.kernel @NAME(%a: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = lead> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    // HERE
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// CASE stored
// expected-error@+1 {{overlap = lead has no loop whose first dot can run ahead; overlap = 1 would work}}
    // expected-note@+1 {{the kernel stores to the view, which a load ahead would not see}}
    %k = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %s = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %p, %v, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    tile.store %p, %a[%j, %c0] : tensor<64x64xf16>, !tile.view<[N, 64], f16>

// CASE kept
// Without the number of a pipe nothing could keep the tile.
// expected-error@+1 {{overlap = lead has no loop whose first dot can run ahead; overlap = 1 would work}}
    // expected-note@+1 {{dots of two steps read the tile, and it has no pipe that could keep it; run tile-choose-schedule first}}
    %k = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %s = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.dot %p, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
