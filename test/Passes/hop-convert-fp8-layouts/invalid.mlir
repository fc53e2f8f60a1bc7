// Operands of 8 bits that do not have the contracted dimension innermost.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-convert-fp8-layouts))' -split-input-file -verify-diagnostics

!Acc = tensor<64x64xf32, #hop.layout<accumulator>>
!Tile = !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>

hop.kernel @b attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !Tile
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies elements of 8 bits, which wgmma reads along the contracted dimension alone: operand b is stored as KxN and would have to be NxK}}
    %o = hop.mma %v, %v : !Tile, !Tile -> !Acc
  }
}

// -----

!Acc = tensor<64x64xf32, #hop.layout<accumulator>>
!Tile = !hop.shared<tensor<64x64xf8E5M2>, rows = 64>

hop.kernel @a attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !Tile
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{operand a is stored as KxM and would have to be MxK}}
    %o = hop.mma %v, %v {transpose_a, transpose_b} : !Tile, !Tile -> !Acc
  }
}
