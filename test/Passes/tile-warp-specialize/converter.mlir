// What a dot reads from shared memory and is computed of one loaded tile and numbers is made by a role of one warpgroup, which
// takes tiles from the producer's pipe and hands what it makes on through one of its own. Both operands b go through it, in
// order. The consumers wait for what is made alone.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = rows, transpose = 0, work = tiles>
!Q = !tile.view<[M, 64], bf16>
!View = !tile.view<[M, 64], f8E4M3FN>
!Out = !tile.view<[M, 64], f32>
!Tile = tensor<128x64xbf16>
!Bytes = tensor<64x64xf8E4M3FN>
!F32 = tensor<64x64xf32>
!Part = tensor<64x64xbf16>
!S = tensor<128x64xf32>
tile.kernel @k(%q: !Q, %x: !View, %y: !View, %z: !Out, %scale: f32) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %q[%m, %c0] : !Q -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (!S) {
    %b8 = tile.load %x[%j, %c0] : !View -> !Bytes
    %b = arith.extf %b8 : !Bytes to !Part
    %b_t = tile.transpose %b : !Part -> !Part
    %s = tile.dot %a, %b_t : !Tile, !Part -> !S
    %p = arith.truncf %s : !S to !Tile
    %v8 = tile.load %y[%j, %c0] : !View -> !Bytes
    %v32 = arith.extf %v8 : !Bytes to !F32
    %scales = tile.splat %scale : f32 -> !F32
    %scaled = arith.mulf %v32, %scales : !F32
    %v = arith.truncf %scaled : !F32 to !Part
    %new = tile.dot %p, %v, %old : !Tile, !Part -> !S
    scf.yield %new : !S
  }
  tile.store %sum, %z[%m, %c0] : !S, !Out
}

// CHECK-DAG: %[[X:.*]] = hop.pipe.create "x" : !hop.pipe<tensor<64x64xf8E4M3FN>, 2>
// CHECK-DAG: %[[Y:.*]] = hop.pipe.create "y" : !hop.pipe<tensor<64x64xf8E4M3FN>, 2>
// CHECK-DAG: %[[XC:.*]] = hop.pipe.create "x.converted" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK-DAG: %[[YC:.*]] = hop.pipe.create "y.converted" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK: hop.role @producer elected registers(24)
// CHECK-NOT: arith.extf
// CHECK: hop.role @converter warpgroups(1) registers(56)
// CHECK: scf.for
// CHECK-NEXT: %[[T:.*]] = hop.pipe.wait %[[X]]
// CHECK-NEXT: %[[OWN:.*]] = hop.pipe.acquire %[[XC]]
// CHECK-NEXT: %[[B8:.*]] = hop.fetch %[[T]]
// CHECK-NEXT: %[[B:.*]] = arith.extf %[[B8]]
// CHECK-NEXT: hop.stage %[[B]], %[[OWN]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.pipe.release %[[X]], %[[T]]
// CHECK-NEXT: hop.pipe.commit %[[XC]], %[[OWN]]
// CHECK-NEXT: hop.pipe.wait %[[Y]]
// CHECK: hop.pipe.acquire %[[YC]]
// CHECK: tile.splat
// CHECK: arith.mulf
// CHECK: arith.truncf
// CHECK: hop.stage
// CHECK-NOT: hop.mma
// CHECK: hop.role @consumer warpgroups(2) registers(208)
// CHECK-NOT: arith.extf
// CHECK: %[[CB:.*]] = hop.pipe.wait %[[XC]]
// CHECK: hop.mma %{{.*}}, %[[CB]] {transpose_b}
// CHECK-NEXT: hop.pipe.release %[[XC]], %[[CB]]
// CHECK: %[[CV:.*]] = hop.pipe.wait %[[YC]]
// CHECK: hop.mma %{{.*}}, %[[CV]] acc
// CHECK-NEXT: hop.pipe.release %[[YC]], %[[CV]]
