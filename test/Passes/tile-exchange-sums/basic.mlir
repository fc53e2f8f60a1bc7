// With cluster = exchange the stores of sums are marked whose place is the same in both blocks of a cluster; other stores are not.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-exchange-sums))' --verify-diagnostics | FileCheck %s

!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
!Tile = tensor<128x128xbf16>
!Part = tensor<64x128xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>

// Where neighbours begin at one iteration, as with a causal mask, the number of iterations is that of the pair.
// CHECK-LABEL: tile.kernel @pair
// CHECK: tile.store %{{.*}} add exchanged : tensor<64x128xf32>
// CHECK: tile.store %{{.*}} : tensor<128x128xbf16>
tile.kernel @pair(%x: !View, %y: !Sums, %z: !View) grid(%m = M ceildiv 128)
    schedule #tile.schedule<cluster = exchange, placement = apart> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %of_two = arith.divui %m, %c2 : index
  %begin = arith.muli %of_two, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %begin to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<128x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x128xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x128xf32>
    // expected-remark@+1 {{the blocks of a cluster send each other 'tensor<128x64xbf16>', and each adds half of the columns for both: 16384 bytes a step less are added to memory, and 16384 exchanged}}
    tile.store %c, %y[%j, %c0] add : tensor<64x128xf32>, !Sums
    scf.yield %new : tensor<128x128xf32>
  }
  %out = arith.truncf %sum : tensor<128x128xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}

// CHECK-LABEL: tile.kernel @each_for_itself
// CHECK-NOT: exchanged
tile.kernel @each_for_itself(%y: !Sums) grid(%m = M ceildiv 128)
    schedule #tile.schedule<cluster = 2, placement = apart> {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x128xf32>
  tile.store %t, %y[%c0, %c0] add : tensor<64x128xf32>, !Sums
}
