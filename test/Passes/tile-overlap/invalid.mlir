// Loops that cannot be rotated.
//
// RUN: tessera-opt %s --tile-overlap -split-input-file -verify-diagnostics

// expected-error@+1 {{overlap = 2 has no loop to overlap; overlap = 1 would work}}
tile.kernel @gemm(%a: !tile.view<[M, K], f16>, %b: !tile.view<[K, 64], f16>, %c: !tile.view<[M, 64], f32>)
    grid(%i = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %k = tile.dim "K"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  // Two dots that only accumulate do not depend on each other in the sense that matters.
  // expected-note@+1 {{no dot of the loop reads what was computed from another dot of the same iteration}}
  %sum = scf.for %x = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %at = tile.load %a[%i, %x] : !tile.view<[M, K], f16> -> tensor<64x64xf16>
    %bt = tile.load %b[%x, %c0] : !tile.view<[K, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %at, %bt, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %e = tile.dot %at, %bt, %d : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %e : tensor<64x64xf32>
  }
  tile.store %sum, %c[%i, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// The weights of an iteration need the sum of the one before.
// expected-error@+1 {{overlap = 2 has no loop to overlap; overlap = 1 would work}}
tile.kernel @cycle(%a: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %k = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %s = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    // expected-note@+1 {{the operands of a dot need the result of that dot in the iteration before, so its work cannot run under the next iteration's}}
    %p = arith.addf %s, %acc : tensor<64x64xf32>
    %ph = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %ph, %v : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// expected-error@+1 {{overlap = 2 has no loop to overlap; overlap = 1 would work}}
tile.kernel @shared(%a: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    // expected-note@+1 {{the tile feeds dots of both stages and would have to be kept from one iteration to the next; load it again for the later dot}}
    %k = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %kt = tile.transpose %k : tensor<64x64xf16> -> tensor<64x64xf16>
    %s = tile.dot %q, %kt : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %ph = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.dot %ph, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// expected-error@+1 {{overlap = 2 has no loop to overlap; overlap = 1 would work}}
tile.kernel @stored(%a: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f16>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  scf.for %j = %c0 to %n step %c64 {
    %k = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %s = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %ph = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    // expected-note@+1 {{the store would move past another access of the same view}}
    tile.store %ph, %z[%m, %c0] : tensor<64x64xf16>, !tile.view<[M, 64], f16>
    %v = tile.load %z[%j, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %ph, %v : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %dh = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    tile.store %dh, %y[%j, %c0] : tensor<64x64xf16>, !tile.view<[M, 64], f16>
  }
}

// -----

// expected-error@+1 {{overlap = 2 has no loop to overlap; overlap = 1 would work}}
tile.kernel @straight(%a: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %t = tile.load %a[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %t, %t : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// One loop overlaps, the other is explained.
tile.kernel @mixed(%x: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %k = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %s = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %ph = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %ph, %v, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  // expected-remark@+1 {{loop not overlapped: no dot of the loop reads what was computed from another dot of the same iteration}}
  %more = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) {
    %k = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %more, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// With three iterations a step the first dot runs ahead of the work, and it needs its result.
// expected-error@+1 {{overlap = 3 has no loop to overlap; overlap = 1 would work}}
tile.kernel @ahead(%a: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 3> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum, %last = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero, %old = %zero)
      -> (tensor<64x64xf32>, tensor<64x64xf32>) {
    %k = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    // expected-note@+1 {{it needs a result that a step computes after it}}
    %s = tile.dot %q, %k, %old : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %t = math.absf %s : tensor<64x64xf32>
    %ph = arith.truncf %t : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %ph, %v, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d, %t : tensor<64x64xf32>, tensor<64x64xf32>
  }
  %both = arith.addf %sum, %last : tensor<64x64xf32>
  tile.store %both, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
