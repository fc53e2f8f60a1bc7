// With store = writer a third role stores: a slice with the stores, their places and the loops around them. The consumers
// fill the slots. The sums of rank 1 go from registers.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Sums = !tile.view<[M, 64], f32>
!Tile = tensor<128x64xbf16>
!Acc  = tensor<128x64xf32>
tile.kernel @k(%x: !View, %y: !Sums, %r: !tile.view<[M], f32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  scf.for %j = %c0 to %rows step %c64 {
    %a = tile.load %x[%first, %c0] : !View -> !Tile
    %b = tile.load %x[%j, %c0] : !View -> tensor<64x64xbf16>
    %s = tile.dot %a, %b : !Tile, tensor<64x64xbf16> -> !Acc
    %row = arith.muli %j, %c128 : index
    tile.store %s, %y[%row, %c0] add : !Acc, !Sums
    %sum = tile.reduce sum %s axis 1 : !Acc -> tensor<128xf32>
    tile.store %sum, %r[%row] add : tensor<128xf32>, !tile.view<[M], f32>
  }
}

// CHECK: %[[RESULTS:.*]] = hop.pipe.create "y" : !hop.pipe<tensor<128x64xf32>, 2>
// CHECK: hop.role @producer elected registers(24)
// CHECK-NOT: hop.bulk_store
// CHECK: hop.role @writer elected registers(24)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: tile.dim
// CHECK-NEXT: scf.for %[[J:[^ ]*]] =
// CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[J]]
// CHECK-NEXT: %[[SLOT:.*]] = hop.pipe.wait %[[RESULTS]]
// CHECK-NEXT: hop.bulk_store %[[SLOT]], %{{.*}}[%[[ROW]], %{{.*}}] add
// CHECK-NEXT: hop.pipe.release %[[RESULTS]], %[[SLOT]]
// CHECK-NEXT: }
// CHECK: hop.role @consumer warpgroups(2)
// CHECK: %[[TO:.*]] = hop.pipe.acquire %[[RESULTS]]
// CHECK-NEXT: %[[MINE:.*]] = hop.slice %[[TO]]
// CHECK-NEXT: hop.stage %{{.*}}, %[[MINE]] : tensor<64x64xf32>
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.pipe.commit %[[RESULTS]], %[[TO]]
// CHECK: tile.store %{{.*}} add : tensor<64xf32>
