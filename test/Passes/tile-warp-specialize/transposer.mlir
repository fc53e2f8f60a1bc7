// With transpose = 4 a role of one warpgroup transposes the tiles of 8-bit elements that a dot reads along their columns:
// each once, into a pipe of its own, from which the consumers take them. What is read along its rows goes to the consumers
// as it is.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s
// With fewer than four warps it shares the warpgroup of the producer, and its registers.
// RUN: sed 's/producer_registers = 24/producer_registers = 48/; s/transpose = 4/transpose = 3/' %s | tessera-opt --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s --check-prefix=WARPS
// WARPS: hop.role @producer elected registers(48)
// WARPS: hop.role @transposer warps(3) registers(48)
// WARPS: hop.transpose
// WARPS-NEXT: hop.warpgroup_sync
// WARPS: hop.role @consumer warpgroups(2) registers(216)

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 216, placement = rows, transpose = 4, work = tiles>
!View = !tile.view<[M, 64], f8E4M3FN>
!Out = !tile.view<[M, 64], f32>
!Tile = tensor<128x64xf8E4M3FN>
!Part = tensor<64x64xf8E4M3FN>
!S = tensor<128x64xf32>
tile.kernel @k(%x: !View, %y: !View, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (!S) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> !Part
    %s = tile.dot %a, %b_t : !Tile, !Part -> !S
    %p = arith.truncf %s : !S to !Tile
    %v = tile.load %y[%j, %c0] : !View -> !Part
    %new = tile.dot %p, %v, %old : !Tile, !Part -> !S
    scf.yield %new : !S
  }
  tile.store %sum, %z[%m, %c0] : !S, !Out
}

// CHECK-DAG: %[[X:.*]] = hop.pipe.create "x.1" : !hop.pipe<tensor<64x64xf8E4M3FN>, 2>
// CHECK-DAG: %[[Y:.*]] = hop.pipe.create "y" : !hop.pipe<tensor<64x64xf8E4M3FN>, 2>
// CHECK-DAG: %[[T:.*]] = hop.pipe.create "y.transposed" : !hop.pipe<tensor<64x64xf8E4M3FN>, 2>
// CHECK: hop.role @producer elected registers(24)
// CHECK: hop.pipe.load %[[X]]
// CHECK: hop.pipe.load %[[Y]]
// CHECK: hop.role @transposer warpgroups(1) registers(48)
// CHECK-NOT: hop.pipe.wait %[[X]]
// CHECK: scf.for
// CHECK-NEXT: %[[V:.*]] = hop.pipe.wait %[[Y]]
// CHECK-NEXT: %[[OWN:.*]] = hop.pipe.acquire %[[T]]
// CHECK-NEXT: hop.transpose %[[V]], %[[OWN]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.pipe.commit %[[T]], %[[OWN]]
// CHECK-NEXT: hop.pipe.release %[[Y]], %[[V]]
// CHECK: hop.role @consumer warpgroups(2) registers(216)
// CHECK-NOT: hop.pipe.wait %[[Y]]
// CHECK: %[[B:.*]] = hop.pipe.wait %[[X]]
// CHECK: hop.mma %{{.*}}, %[[B]] {transpose_b}
// CHECK: %[[TURNED:.*]] = hop.pipe.wait %[[T]]
// CHECK: hop.mma %{{.*}}, %[[TURNED]] acc({{.*}}) {in_accumulator_order, transpose_b}
// CHECK-NEXT: hop.pipe.release %[[T]], %[[TURNED]]
