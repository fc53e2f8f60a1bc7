// A tile whose slot would be kept while a loop goes round the ring of its pipe is loaded again: equal loads of one pipe became
// one load.
//
// RUN: tessera-opt %s --tile-warp-specialize -split-input-file -verify-diagnostics | FileCheck %s

!V = !tile.view<[M, 64], f16>
!O = !tile.view<[M, 64], f32>
!T = tensor<64x64xf16>
!F = tensor<64x64xf32>
#s = #tile.schedule<producer = operands, consumers = 1, stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>

// Behind the loop; the use before it keeps the first load.
// CHECK-LABEL: hop.kernel @behind
// CHECK: %[[Y:.*]] = hop.pipe.create "y"
// CHECK: hop.role @producer
// CHECK: hop.pipe.load %[[Y]], %{{.*}}[%c0, %c0]
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: hop.pipe.load %[[Y]], %{{.*}}[%[[I]], %c0]
// CHECK-NEXT: }
// CHECK-NEXT: hop.pipe.load %[[Y]], %{{.*}}[%c0, %c0]
// CHECK: hop.role @consumer
// CHECK: %[[FIRST:.*]] = hop.pipe.wait %[[Y]]
// CHECK-NEXT: hop.mma %{{.*}}, %[[FIRST]] {transpose_b}
// CHECK-NEXT: hop.pipe.release %[[Y]], %[[FIRST]]
// CHECK: scf.for
// CHECK: }
// CHECK: %[[AGAIN:.*]] = hop.pipe.wait %[[Y]]
// CHECK-NEXT: hop.mma %{{.*}}, %[[AGAIN]] {{.*}}{transpose_b}
// CHECK-NEXT: hop.mma %{{.*}}, %[[AGAIN]] acc
// CHECK-NEXT: hop.pipe.release %[[Y]], %[[AGAIN]]
tile.kernel @behind(%x: !V, %y: !V, %z: !O) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tile.load %x[%m, %c0] pipe 0 : !V -> !T
  // expected-remark@+1 {{the tile is loaded again for a use behind a loop that goes round the slots of its pipe}}
  %b = tile.load %y[%c0, %c0] pipe 1 : !V -> !T
  %bt = tile.transpose %b : !T -> !T
  %first = tile.dot %a, %bt : !T, !T -> !F
  %sum = scf.for %i = %c0 to %m step %c1 iter_args(%s = %first) -> (!F) {
    %t = tile.load %y[%i, %c0] pipe 1 : !V -> !T
    %d = tile.dot %a, %t, %s : !T, !T -> !F
    scf.yield %d : !F
  }
  // expected-note@+1 {{the use}}
  %e = tile.dot %a, %bt, %sum : !T, !T -> !F
  %f = tile.dot %a, %b, %e : !T, !T -> !F
  tile.store %f, %z[%m, %c0] : !F, !O
}

// -----

!V = !tile.view<[M, 64], f16>
!O = !tile.view<[M, 64], f32>
!T = tensor<64x64xf16>
!F = tensor<64x64xf32>
#s = #tile.schedule<producer = operands, consumers = 1, stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>

// Before a conditional of a loop that goes round the ring.
// CHECK-LABEL: hop.kernel @inside
// CHECK: hop.role @producer
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: hop.pipe.load %[[Y:.*]], %{{.*}}[%c0, %c0]
// CHECK-NEXT: hop.pipe.load %[[Y]], %{{.*}}[%[[I]], %c0]
// CHECK: hop.role @consumer
// CHECK: scf.for
// CHECK: %[[AGAIN:.*]] = hop.pipe.wait %[[Y]]
// CHECK-NEXT: scf.if
// CHECK: hop.pipe.release %[[Y]], %[[AGAIN]]
tile.kernel @inside(%x: !V, %y: !V, %z: !O) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tile.load %x[%m, %c0] pipe 0 : !V -> !T
  // expected-remark@+1 {{the tile is loaded again for a use behind a loop that goes round the slots of its pipe}}
  %b = tile.load %y[%c0, %c0] pipe 1 : !V -> !T
  %first = tile.dot %a, %b : !T, !T -> !F
  %more = arith.cmpi slt, %c0, %m : index
  %sum = scf.for %i = %c0 to %m step %c1 iter_args(%s = %first) -> (!F) {
    // expected-note@+1 {{the use}}
    %r = scf.if %more -> !F {
      %u = tile.dot %a, %b, %s : !T, !T -> !F
      scf.yield %u : !F
    } else {
      scf.yield %s : !F
    }
    %t = tile.load %y[%i, %c0] pipe 1 : !V -> !T
    %d = tile.dot %a, %t, %r : !T, !T -> !F
    scf.yield %d : !F
  }
  tile.store %sum, %z[%m, %c0] : !F, !O
}

// -----

!V = !tile.view<[M, 64], f16>
!O = !tile.view<[M, 64], f32>
!T = tensor<64x64xf16>
!F = tensor<64x64xf32>
#s = #tile.schedule<producer = operands, consumers = 1, stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>

// The view is stored to, and may hold something else by then.
tile.kernel @stored(%x: !V, %y: !V, %z: !O) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tile.load %x[%m, %c0] pipe 0 : !V -> !T
  // expected-note@+1 {{this tile keeps its slot}}
  %b = tile.load %y[%c0, %c0] pipe 1 : !V -> !T
  %first = tile.dot %a, %b : !T, !T -> !F
  %sum = scf.for %i = %c0 to %m step %c1 iter_args(%s = %first) -> (!F) {
    // expected-error@+1 {{goes round the 2 slots of 'y' while a tile keeps one of them, and no number of slots is enough; load that tile again where it is used after the loop}}
    %t = tile.load %y[%i, %c0] pipe 1 : !V -> !T
    %d = tile.dot %a, %t, %s : !T, !T -> !F
    scf.yield %d : !F
  }
  %e = tile.dot %a, %b, %sum : !T, !T -> !F
  %f = arith.truncf %e : !F to !T
  tile.store %f, %y[%m, %c0] : !T, !V
}
