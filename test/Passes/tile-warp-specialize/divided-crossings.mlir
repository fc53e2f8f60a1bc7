// What crosses between consumers of different programs takes the fewest bytes.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' --split-input-file | FileCheck %s

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>

// The second consumer computes with %w alone, which the first has no use for and makes in 16 bits; %p and %t, of which it is made,
// stay where they are.
// CHECK-LABEL: hop.kernel @product
// CHECK: %[[PIPE:.*]] = hop.pipe.create "consumer0.0" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK-NOT: hop.pipe.create "consumer0
// CHECK: hop.role @consumer0
// CHECK: arith.mulf
// CHECK-NEXT: %[[W:.*]] = arith.truncf
// CHECK-NEXT: %[[SLOT:.*]] = hop.pipe.acquire %[[PIPE]]
// CHECK-NEXT: hop.stage %[[W]], %[[SLOT]]
// CHECK: hop.role @consumer1
// CHECK-NOT: math.
// CHECK: hop.fetch
// CHECK-NEXT: hop.pipe.release
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.mulf
tile.kernel @product(%x: !View, %y: !View, %z: !View, %w: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %s1, %s2 = scf.for %j = %c0 to %rows step %c64 iter_args(%old1 = %zero, %old2 = %zero) -> (!S, !S) {
    %b = tile.load %x[%j, %c0] : !View -> !Tile
    %s = tile.dot %a, %b : !Tile, !Tile -> !S
    %t = math.tanh %s : !S
    %p = math.exp2 %t : !S
    %p_t = arith.truncf %p : !S to !Tile
    %w32 = arith.mulf %p, %t : !S
    %w_t = arith.truncf %w32 : !S to !Tile
    %c = tile.load %y[%j, %c0] : !View -> !Tile
    %g = tile.dot %a, %c : !Tile, !Tile -> !S
    %new1 = tile.dot %p_t, %b, %old1 : !Tile, !Tile -> !S
    %w_g = arith.extf %w_t : !Tile to !S
    %gated = arith.mulf %w_g, %g : !S
    %q = arith.truncf %gated : !S to !Tile
    %new2 = tile.dot %q, %c, %old2 : !Tile, !Tile -> !S
    scf.yield %new1, %new2 : !S, !S
  }
  %t1 = arith.truncf %s1 : !S to !Tile
  %t2 = arith.truncf %s2 : !S to !Tile
  tile.store %t1, %z[%first, %c0] : !Tile, !View
  tile.store %t2, %w[%first, %c0] : !Tile, !View
}

// Two tiles of 32 bits that the first consumer has take more than the one of which it makes them: that crosses, and the second
// consumer computes them again.
// CHECK-LABEL: hop.kernel @again
// CHECK: %[[PIPE:.*]] = hop.pipe.create "consumer0.0" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK-NOT: hop.pipe.create "consumer0
// CHECK: hop.role @consumer0
// CHECK: arith.truncf
// CHECK-NEXT: hop.pipe.acquire %[[PIPE]]
// CHECK: math.tanh
// CHECK: hop.role @consumer1
// CHECK: hop.fetch
// CHECK: math.tanh
// CHECK: math.exp2
tile.kernel @again(%x: !View, %y: !View, %z: !View, %w: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %s1, %s2 = scf.for %j = %c0 to %rows step %c64 iter_args(%old1 = %zero, %old2 = %zero) -> (!S, !S) {
    %b = tile.load %x[%j, %c0] : !View -> !Tile
    %s = tile.dot %a, %b : !Tile, !Tile -> !S
    %r_t = arith.truncf %s : !S to !Tile
    %r = arith.extf %r_t : !Tile to !S
    %t = math.tanh %r : !S
    %e = math.exp2 %t : !S
    %p = arith.mulf %t, %e : !S
    %p_t = arith.truncf %p : !S to !Tile
    %c = tile.load %y[%j, %c0] : !View -> !Tile
    %g = tile.dot %a, %c : !Tile, !Tile -> !S
    %new1 = tile.dot %p_t, %b, %old1 : !Tile, !Tile -> !S
    %g_t = arith.mulf %t, %g : !S
    %gated = arith.addf %e, %g_t : !S
    %q = arith.truncf %gated : !S to !Tile
    %new2 = tile.dot %q, %c, %old2 : !Tile, !Tile -> !S
    scf.yield %new1, %new2 : !S, !S
  }
  %t1 = arith.truncf %s1 : !S to !Tile
  %t2 = arith.truncf %s2 : !S to !Tile
  tile.store %t1, %z[%first, %c0] : !Tile, !View
  tile.store %t2, %w[%first, %c0] : !Tile, !View
}
