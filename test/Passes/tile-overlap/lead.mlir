// The first dot of the next iteration is issued beside the last dots of a step.
//
// RUN: tessera-opt %s --tile-overlap --canonicalize | FileCheck %s

!A = tensor<64x64xf16>
!S = tensor<64x64xf32>
!V = !tile.view<[N, 64], f16>
#s = #tile.schedule<overlap = lead>

// Before the loop stands what the first iteration begins with. Of the tile that dots of two steps read, pipe 1, each step
// takes what the one before has read ahead, and the last one behind the loop is let pass. The tile of pipe 2 is read in its
// own step.
//
// CHECK-LABEL: tile.kernel @chain
// CHECK: %[[Q:.*]] = tile.load %y[
// CHECK: %[[FIRST:.*]] = tile.load %a[%c0, %c0] pipe 1 ahead
// CHECK: %[[FIRST_T:.*]] = tile.transpose %[[FIRST]]
// CHECK: %[[S0:.*]] = tile.dot %[[Q]], %[[FIRST_T]], %{{.*}} :
// CHECK: scf.for %[[J:.*]] = %c0 to %{{.*}} step %c64 iter_args(%[[OLD:.*]] = %{{.*}}, %[[S:.*]] = %[[S0]])
// CHECK-NEXT: %[[P:.*]] = arith.truncf %[[S]]
// CHECK-NEXT: %[[V:.*]] = tile.load %a[%[[J]], %c0] pipe 2 :
// CHECK-NEXT: %[[D:.*]] = tile.dot %[[P]], %[[V]], %[[OLD]]
// CHECK-NEXT: %[[W:.*]] = arith.truncf %[[D]]
// CHECK-NEXT: %[[K:.*]] = tile.load %a[%[[J]], %c0] pipe 1 :
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[J]], %c64
// CHECK-NEXT: %[[AHEAD:.*]] = tile.load %a[%[[NEXT]], %c0] pipe 1 ahead
// CHECK-NEXT: %[[AHEAD_T:.*]] = tile.transpose %[[AHEAD]]
// CHECK-NEXT: %[[E:.*]] = tile.dot %[[W]], %[[K]] :
// CHECK-NEXT: %[[SN:.*]] = tile.dot %[[Q]], %[[AHEAD_T]], %{{.*}} :
// CHECK-NEXT: scf.yield %[[E]], %[[SN]]
// CHECK: tile.skip_loads [1] times %c1
tile.kernel @chain(%a: !V, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : !S
  %one = arith.constant dense<1.0> : !S
  %q = tile.load %y[%m, %c0] pipe 0 : !tile.view<[M, 64], f16> -> !A
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!S) {
    %k = tile.load %a[%j, %c0] pipe 1 : !V -> !A
    %k_t = tile.transpose %k : !A -> !A
    %s = tile.dot %q, %k_t, %one : !A, !A -> !S
    %p = arith.truncf %s : !S to !A
    %v = tile.load %a[%j, %c0] pipe 2 : !V -> !A
    %d = tile.dot %p, %v, %acc : !A, !A -> !S
    %w = arith.truncf %d : !S to !A
    %e = tile.dot %w, %k : !A, !A -> !S
    scf.yield %e : !S
  }
  tile.store %sum, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}

// Nothing is kept where the dots of a step read tiles of their own.
// CHECK-LABEL: tile.kernel @apart
// CHECK-NOT: ahead
// CHECK-NOT: tile.skip_loads
// CHECK: tile.store
tile.kernel @apart(%a: !V, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : !S
  %q = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> !A
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!S) {
    %k = tile.load %a[%j, %c0] : !V -> !A
    %s = tile.dot %q, %k : !A, !A -> !S
    %p = arith.truncf %s : !S to !A
    %v = tile.load %a[%j, %c0] : !V -> !A
    %d = tile.dot %p, %v, %acc : !A, !A -> !S
    scf.yield %d : !S
  }
  tile.store %sum, %z[%m, %c0] : !S, !tile.view<[M, 64], f32>
}
