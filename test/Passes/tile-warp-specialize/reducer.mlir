// With placement = apart a role of one warpgroup makes what is only added to memory: a slice with the dots, their stores and
// the loops around them. It gets the computed operand through a pipe that the consumers fill, and makes 64 of the 128
// columns at a time. The row of values comes through a pipe too (producer = all).
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = tma, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
!Tile = tensor<128x128xbf16>
!Part = tensor<64x128xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>
tile.kernel @k(%x: !View, %y: !Sums, %r: !tile.view<[B, M], f32>, %z: !View) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<128x64xbf16>
    %v = tile.load %r[%c0, %j] : !tile.view<[B, M], f32> -> tensor<64xf32>
    %start = tile.broadcast %v axis 0 : tensor<64xf32> -> !S
    %s = tile.dot %a, %b_t, %start : !Tile, tensor<128x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x128xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x128xf32>
    tile.store %c, %y[%j, %c0] add : tensor<64x128xf32>, !Sums
    scf.yield %new : tensor<128x128xf32>
  }
  %out = arith.truncf %sum : tensor<128x128xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}

// CHECK-DAG: %[[A:.*]] = hop.pipe.create "x" : !hop.pipe<tensor<128x128xbf16>, 1>
// CHECK-DAG: %[[ROW:.*]] = hop.pipe.create "r" : !hop.pipe<tensor<64xf32>, 2>
// CHECK-DAG: %[[OPERAND:.*]] = hop.pipe.create "y.operand" : !hop.pipe<tensor<128x64xbf16>, 2>
// CHECK: hop.role @producer elected registers(24)
// CHECK: hop.pipe.load %[[ROW]]
// CHECK-NOT: hop.pipe.wait
// CHECK: hop.role @reducer warpgroups(1) registers(72)
// CHECK: %[[ALL:.*]] = hop.pipe.wait %[[A]]
// CHECK: scf.for %[[J:[^ ]*]] =
// CHECK-NOT: hop.pipe.wait %[[ROW]]
// CHECK: %[[P:.*]] = hop.pipe.wait %[[OPERAND]]
// CHECK: %[[LEFT:.*]] = hop.slice %[[ALL]]{{.*}} -> !hop.shared<tensor<128x64xbf16>, rows = 128>
// CHECK-NEXT: %[[C0:.*]] = hop.mma %[[P]], %[[LEFT]] {transpose_a}
// CHECK-NEXT: tile.store %[[C0]], %{{.*}}[%[[J]], %{{.*}}] add : tensor<64x64xf32>
// CHECK: %[[RIGHT:.*]] = hop.slice %[[ALL]]
// CHECK: %[[C1:.*]] = hop.mma %[[P]], %[[RIGHT]] {transpose_a}
// CHECK-NEXT: hop.pipe.release %[[OPERAND]], %[[P]]
// CHECK-NEXT: tile.store %[[C1]], %{{.*}} add : tensor<64x64xf32>
// CHECK: hop.role @consumer warpgroups(2) registers(208)
// CHECK: %[[SLOT:.*]] = hop.pipe.wait %[[ROW]]
// CHECK-NEXT: hop.fetch %[[SLOT]] : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xf32>
// CHECK-NEXT: hop.pipe.release %[[ROW]], %[[SLOT]]
// The operand is handed over behind the product that reads it here too.
// CHECK: %[[MADE:.*]] = arith.truncf
// CHECK-NEXT: hop.mma %[[MADE]],
// CHECK-NEXT: hop.pipe.release
// CHECK-NEXT: %[[TO:.*]] = hop.pipe.acquire %[[OPERAND]]
// CHECK-NEXT: %[[MINE:.*]] = hop.slice %[[TO]]
// CHECK-NEXT: hop.stage %[[MADE]], %[[MINE]] : tensor<64x64xbf16>
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.pipe.commit %[[OPERAND]], %[[TO]]
// CHECK-NOT: {{ add }}
