// Loops within loops: the innermost loop whose dots other work reads, or a loop around one of dots alone.
//
// RUN: tessera-opt %s --tile-overlap --canonicalize -split-input-file -verify-diagnostics | FileCheck %s

// No dot reads what another one made: the dot of an iteration is issued before the work of the one before it. What the loop
// around it does stays in its iteration.
// CHECK-LABEL: tile.kernel @mixed
// CHECK:       scf.for
// CHECK:         %[[FIRST:.*]] = tile.dot
// CHECK:         %[[SUM:.*]]:2 = scf.for {{.*}} iter_args(%[[OLD:.*]] = %{{.*}}, %[[S:.*]] = %[[FIRST]])
// CHECK:           %[[NEXT:.*]] = tile.dot
// CHECK:           tile.load %{{.*}} -> f32
// CHECK:           %[[OWN:.*]] = arith.mulf %[[S]],
// CHECK:           %[[NEW:.*]] = arith.addf %[[OLD]], %[[OWN]]
// CHECK:           scf.yield %[[NEW]], %[[NEXT]]
// CHECK:         }
// CHECK:         %[[LAST:.*]] = arith.mulf %[[SUM]]#1,
// CHECK:         %[[ALL:.*]] = arith.addf %[[SUM]]#0, %[[LAST]]
// CHECK:         arith.truncf %[[ALL]]
// CHECK:         tile.dot
// CHECK:         scf.yield
// CHECK-NOT:   tile.dot
tile.kernel @mixed(%q: !tile.view<[H, M, 64], f16>, %k: !tile.view<[H, N, 64], f16>, %v: !tile.view<[N, 64], f16>, %w: !tile.view<[H], f32>,
                   %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %heads = tile.dim "H"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %out = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    // expected-remark@+1 {{loop not overlapped: the loop of dots in it overlaps, and steps of several iterations would each hold a copy of that}}
    %scores = scf.for %h = %c0 to %heads step %c1 iter_args(%old = %zero) -> (tensor<64x64xf32>) {
      %qt = tile.load %q[%h, %row, %c0] : !tile.view<[H, M, 64], f16> -> tensor<64x64xf16>
      %kt = tile.load %k[%h, %j, %c0] : !tile.view<[H, N, 64], f16> -> tensor<64x64xf16>
      %k_t = tile.transpose %kt : tensor<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %qt, %k_t : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %weight = tile.load %w[%h] : !tile.view<[H], f32> -> f32
      %each = tile.splat %weight : f32 -> tensor<64x64xf32>
      %own = arith.mulf %s, %each : tensor<64x64xf32>
      %new = arith.addf %old, %own : tensor<64x64xf32>
      scf.yield %new : tensor<64x64xf32>
    }
    %p = arith.truncf %scores : tensor<64x64xf32> to tensor<64x64xf16>
    %vt = tile.load %v[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %next = tile.dot %p, %vt, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %out, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// A loop of dots alone stands for one dot: the later dot of an iteration is in flight under the work of the next one.
// CHECK-LABEL: tile.kernel @deep
// CHECK:       scf.for
// CHECK:         tile.dot
// CHECK:       %[[P:.*]] = arith.truncf
// CHECK:       scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[PACKED:.*]] = %[[P]])
// CHECK:         %[[S:.*]] = scf.for
// CHECK:           tile.dot
// CHECK:         %[[NEXT:.*]] = tile.dot %[[PACKED]], %{{.*}}, %[[ACC]]
// CHECK:         %[[E:.*]] = math.exp2 %[[S]]
// CHECK:         %[[PN:.*]] = arith.truncf %[[E]]
// CHECK:         scf.yield %[[NEXT]], %[[PN]]
// CHECK:       tile.dot
tile.kernel @deep(%q: !tile.view<[M, K], f16>, %k: !tile.view<[N, K], f16>, %v: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %depth = tile.dim "K"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %out = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    // expected-remark@+1 {{loop not overlapped: no dot of the loop reads what was computed from another dot of the same iteration, and no other work reads what a dot made}}
    %scores = scf.for %x = %c0 to %depth step %c64 iter_args(%old = %zero) -> (tensor<64x64xf32>) {
      %qt = tile.load %q[%row, %x] : !tile.view<[M, K], f16> -> tensor<64x64xf16>
      %kt = tile.load %k[%j, %x] : !tile.view<[N, K], f16> -> tensor<64x64xf16>
      %k_t = tile.transpose %kt : tensor<64x64xf16> -> tensor<64x64xf16>
      %s = tile.dot %qt, %k_t, %old : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %s : tensor<64x64xf32>
    }
    %e = math.exp2 %scores : tensor<64x64xf32>
    %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xf16>
    %vt = tile.load %v[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %next = tile.dot %p, %vt, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %out, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// expected-error@+1 {{overlap = 2 has no loop to overlap; overlap = 1 would work}}
tile.kernel @behind(%a: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %out = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %at = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %s = tile.dot %at, %at, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    // expected-note@+2 {{a dot lies in a nested region of the loop's body and reads what was computed from another dot of the same iteration}}
    // expected-note@+1 {{no dot of the loop reads what was computed from another dot of the same iteration}}
    %more = scf.for %x = %c0 to %n step %c1 iter_args(%old = %s) -> (tensor<64x64xf32>) {
      %t = tile.dot %p, %at, %old : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %t : tensor<64x64xf32>
    }
    scf.yield %more : tensor<64x64xf32>
  }
  tile.store %out, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
