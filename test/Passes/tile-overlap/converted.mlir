// What is converted on its way stands with the dot that reads it, so that no converted tile crosses from one step to the next:
// the loop carries P and O alone.
// RUN: tessera-opt %s --tile-overlap | FileCheck %s

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 2, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = rows, transpose = 0, work = tiles>
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

// CHECK: scf.for {{.*}} -> (tensor<128x64xf32>, tensor<128x64xbf16>) {
// CHECK: tile.load {{.*}} -> tensor<64x64xf8E4M3FN>
// CHECK-NEXT: arith.extf {{.*}} to tensor<64x64xbf16>
// CHECK-NEXT: tile.transpose
// CHECK-NEXT: tile.dot
// CHECK: tile.load {{.*}} -> tensor<64x64xf8E4M3FN>
// CHECK-NEXT: arith.extf {{.*}} to tensor<64x64xf32>
// CHECK: arith.truncf {{.*}} to tensor<64x64xbf16>
// CHECK-NEXT: tile.dot
// CHECK: scf.yield
