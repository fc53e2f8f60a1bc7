// A tile of 8 bits that is extended and then is a first operand, as it is or transposed, comes through a pipe, from which the consumers take it
// into registers: as its own rows, or as its columns. The slot is given back at once.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = operands, consumers = 1, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 104, placement = rows, transpose = 0, work = tiles>
!A = !tile.view<[M, 64], f8E4M3FN>
!B = !tile.view<[64, 16], f16>
!C = !tile.view<[M, 16], f32>
!S = tensor<64x16xf32>
!H = tensor<64x64xf16>
// CHECK-LABEL: hop.kernel @k
// CHECK-DAG: %[[A:.*]] = hop.pipe.create "a" : !hop.pipe<tensor<64x64xf8E4M3FN>, 2>
// CHECK-DAG: %[[T:.*]] = hop.pipe.create "t" : !hop.pipe<tensor<64x64xf8E4M3FN>, 2>
// CHECK: hop.role @producer
// CHECK-DAG: hop.pipe.load %[[A]]
// CHECK-DAG: hop.pipe.load %[[T]]
// CHECK: hop.role @consumer
// CHECK: %[[SLOT:.*]] = hop.pipe.wait %[[A]]
// CHECK: %[[BYTES:.*]] = hop.fetch %[[SLOT]] : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
// CHECK-NEXT: hop.pipe.release %[[A]], %[[SLOT]]
// CHECK: %[[WIDE:.*]] = arith.extf %[[BYTES]]
// CHECK: hop.mma %[[WIDE]], %{{.*}} : tensor<64x64xf16>
// CHECK: %[[COLUMNS:.*]] = hop.fetch %{{.*}} transposed : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
// CHECK: %[[TURNED:.*]] = arith.extf %[[COLUMNS]]
// CHECK: hop.mma %[[TURNED]], %{{.*}} acc(
// CHECK-NOT: transpose_a
tile.kernel @k(%a: !A, %t: !A, %b: !B, %c: !C, %d: !C, %end: index) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !S
  %y = tile.load %b[%c0, %c0] pipe 0 : !B -> tensor<64x16xf16>
  %sums:2 = scf.for %k = %c0 to %end step %c64 iter_args(%acc = %zero, %other = %zero) -> (!S, !S) {
    %x = tile.load %a[%k, %c0] pipe 1 : !A -> tensor<64x64xf8E4M3FN>
    %wide = arith.extf %x : tensor<64x64xf8E4M3FN> to !H
    %first = tile.dot %wide, %y, %acc : !H, tensor<64x16xf16> -> !S
    %z = tile.load %t[%k, %c0] pipe 2 : !A -> tensor<64x64xf8E4M3FN>
    %widened = arith.extf %z : tensor<64x64xf8E4M3FN> to !H
    %turned = tile.transpose %widened : !H -> !H
    %new = tile.dot %turned, %y, %other : !H, tensor<64x16xf16> -> !S
    scf.yield %first, %new : !S, !S
  }
  tile.store %sums#0, %c[%m, %c0] : !S, !C
  tile.store %sums#1, %d[%m, %c0] : !S, !C
}

// One sum has the rows of one operand and the columns of the other. So the latter is loaded into registers, and goes through shared memory.
// CHECK-LABEL: hop.kernel @mixed
// CHECK: hop.role @consumer
// CHECK: %[[BYTES:.*]] = hop.fetch %{{.*}} : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
// CHECK: arith.extf %[[BYTES]]
// CHECK: %[[COLUMNS:.*]] = tile.load %{{.*}} -> tensor<64x64xf8E4M3FN>
// CHECK: %[[WIDE:.*]] = arith.extf %[[COLUMNS]]
// CHECK: hop.mma %[[WIDE]], {{.*}} {transpose_a}
tile.kernel @mixed(%a: !A, %t: !A, %b: !B, %c: !C, %end: index) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !S
  %y = tile.load %b[%c0, %c0] pipe 0 : !B -> tensor<64x16xf16>
  %sum = scf.for %k = %c0 to %end step %c64 iter_args(%acc = %zero) -> (!S) {
    %x = tile.load %a[%k, %c0] pipe 1 : !A -> tensor<64x64xf8E4M3FN>
    %wide = arith.extf %x : tensor<64x64xf8E4M3FN> to !H
    %first = tile.dot %wide, %y, %acc : !H, tensor<64x16xf16> -> !S
    %z = tile.load %t[%k, %c0] : !A -> tensor<64x64xf8E4M3FN>
    %widened = arith.extf %z : tensor<64x64xf8E4M3FN> to !H
    %turned = tile.transpose %widened : !H -> !H
    %new = tile.dot %turned, %y, %first : !H, tensor<64x16xf16> -> !S
    scf.yield %new : !S
  }
  tile.store %sum, %c[%m, %c0] : !S, !C
}
