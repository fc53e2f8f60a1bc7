// Scalars and rows of values that the consumers load from memory are brought into the L2 cache by the producer, which is ahead of
// them: in the same iterations, at the same places. Not what the kernel writes, nor what lies where a loaded number says, or where a
// loop's own values do: the producer does not know these. Tiles of rank 2 come through pipes, or are too large.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Rows = !tile.view<[M], f32>
!Numbers = !tile.view<[M], i32>
!Out  = !tile.view<[M, M], f32>
!Tile = tensor<128x64xbf16>
!S    = tensor<128x128xf32>
!Row  = tensor<128xf32>

// CHECK-LABEL: hop.kernel @k
// CHECK: ^bb0(%{{[^:]*}}: {{[^,]*}}, {{.*}}, %[[ROWS:[^:]*]]: !tile.view<[M], f32>, %[[SCALES:[^:]*]]: !tile.view<[M], f32>,
// CHECK: hop.role @producer elected
// CHECK: hop.pipe.load
// CHECK: hop.l2_prefetch %[[ROWS]][%{{.*}}], 128 : !tile.view<[M], f32>
// CHECK: scf.for %[[J:.*]] =
// CHECK: hop.pipe.load %{{.*}}, %{{.*}}[%[[J]],
// CHECK-NEXT: hop.l2_prefetch %[[SCALES]][%[[J]]], 1 : !tile.view<[M], f32>
// CHECK-NOT: hop.l2_prefetch
// CHECK: hop.role @consumer warpgroups(2)
// CHECK-NOT: hop.l2_prefetch
// CHECK: tile.load %[[ROWS]]{{.*}} -> tensor<64xf32>
// CHECK: tile.load %[[SCALES]]{{.*}} -> f32
tile.kernel @k(%x: !View, %bias: !Out, %rows: !Rows, %scales: !Rows, %numbers: !Numbers, %sums: !Rows, %y: !Out)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %n = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %zero = arith.constant dense<0.0> : !S
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %factor = tile.load %rows[%first] : !Rows -> !Row
  %written = tile.load %sums[%first] : !Rows -> !Row
  %sum, %last = scf.for %j = %c0 to %n step %c128 iter_args(%old = %zero, %place = %c0) -> (!S, index) {
    %b = tile.load %x[%j, %c0] pipe 0 : !View -> !Tile
    %b_t = tile.transpose %b : !Tile -> tensor<64x128xbf16>
    %scale = tile.load %scales[%j] : !Rows -> f32
    %carried = tile.load %scales[%place] : !Rows -> f32
    %number = tile.load %numbers[%place] : !Numbers -> i32
    %there = arith.index_cast %number : i32 to index
    %far = tile.load %scales[%there] : !Rows -> f32
    %t = tile.load %bias[%first, %j] : !Out -> !S
    %s = tile.dot %a, %b_t : !Tile, tensor<64x128xbf16> -> !S
    %both = arith.mulf %scale, %carried : f32
    %all = arith.mulf %both, %far : f32
    %scale_s = tile.splat %all : f32 -> !S
    %scaled = arith.mulf %s, %scale_s : !S
    %biased = arith.addf %scaled, %t : !S
    %new = arith.addf %old, %biased : !S
    %next = arith.addi %place, %c1 : index
    scf.yield %new, %next : !S, index
  }
  %both = arith.addf %factor, %written : !Row
  %factor_s = tile.broadcast %both axis 1 : !Row -> !S
  %out = arith.mulf %sum, %factor_s : !S
  tile.store %out, %y[%first, %c0] : !S, !Out
  tile.store %factor, %sums[%first] : !Row, !Rows
}

// Values in a box of one row lie as those without a box do; in one of two rows they do not.
// CHECK-LABEL: hop.kernel @boxes
// CHECK: ^bb0({{.*}}, %[[ROWS:[^:]*]]: !tile.view<[H, M], f32>, %[[SCALES:[^:]*]]: !tile.view<[M], f32>,
// CHECK: hop.role @producer elected
// CHECK: hop.l2_prefetch %[[ROWS]][%{{.*}}, %{{.*}}], 128 : !tile.view<[H, M], f32>
// CHECK-NOT: hop.l2_prefetch %[[ROWS]]
// CHECK: hop.l2_prefetch %[[SCALES]][%{{.*}}], 1 : !tile.view<[M], f32>
// CHECK-NOT: hop.l2_prefetch
// CHECK: hop.role @consumer warpgroups(2)
tile.kernel @boxes(%x: !View, %rows: !tile.view<[H, M], f32>, %scales: !Rows, %y: !Out)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %n = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %zero = arith.constant dense<0.0> : !S
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %factor = tile.load %rows[%c0, %first] box [1, 128] : !tile.view<[H, M], f32> -> !Row
  %halves = tile.load %rows[%c0, %first] box [2, 64] : !tile.view<[H, M], f32> -> !Row
  %sum = scf.for %j = %c0 to %n step %c128 iter_args(%old = %zero) -> !S {
    %b = tile.load %x[%j, %c0] pipe 0 : !View -> !Tile
    %b_t = tile.transpose %b : !Tile -> tensor<64x128xbf16>
    %scale = tile.load %scales[%j] : !Rows -> f32
    %s = tile.dot %a, %b_t : !Tile, tensor<64x128xbf16> -> !S
    %scale_s = tile.splat %scale : f32 -> !S
    %scaled = arith.mulf %s, %scale_s : !S
    %new = arith.addf %old, %scaled : !S
    scf.yield %new : !S
  }
  %both = arith.addf %factor, %halves : !Row
  %factor_s = tile.broadcast %both axis 1 : !Row -> !S
  %out = arith.mulf %sum, %factor_s : !S
  tile.store %out, %y[%first, %c0] : !S, !Out
}
