// Stores that cannot go through shared memory, and those that stay in registers.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-stores))' -split-input-file -verify-diagnostics


hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 8], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = tma, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N, 8], bf16>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x8xbf16, #hop.layout<accumulator>>
    // expected-error@+1 {{stores 'tensor<64x8xbf16>', whose rows are no multiple of 32 bytes; use store = direct}}
    tile.store %t, %y[%m, %c0] : tensor<64x8xbf16, #hop.layout<accumulator>>, !tile.view<[N, 8], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 8], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = tma, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N, 8], bf16>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64xbf16, #hop.layout<row>>
    // expected-remark@+1 {{goes from registers: bulk stores take tiles of rank 2, of floats of 16 or 32 bits}}
    tile.store %t, %x[%m, %c0] : tensor<64xbf16, #hop.layout<row>>, !tile.view<[M, 64], bf16>
  }
}

// -----

// Bulk stores start at a multiple of 16 bytes, and at no negative index.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 128], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = tma, placement = rows>} {
^bb0(%x: !tile.view<[M, 128], bf16>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c4 = arith.constant 4 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    // expected-error@+1 {{stores from a column on that is not known to be a multiple of 8, where no bulk store can start; use store = direct}}
    tile.store %t, %x[%m, %c4] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 128], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 128], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = tma, placement = rows>} {
^bb0(%x: !tile.view<[M, 128], bf16>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %before = arith.constant -8 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    // expected-error@+1 {{stores at indices that are not known to be 0 or more, where no bulk store can start; use store = direct}}
    tile.store %t, %x[%m, %before] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 128], bf16>
  }
}
