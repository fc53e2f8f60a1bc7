// Kernels in which there are no turns to take.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-pingpong))' -split-input-file -verify-diagnostics

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 8], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<pingpong = true>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N, 8], bf16>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  // expected-error@+1 {{pingpong = true needs two or more warpgroups to take turns; the role has 1}}
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %f = hop.mma_issue %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
      %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
      %e = math.exp2 %d : tensor<64x64xf32, #hop.layout<accumulator>>
    }
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 8], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<pingpong = true>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N, 8], bf16>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  // expected-error@+1 {{pingpong = true needs a loop with products and elementwise work on their results, of which this kernel has none; use pingpong = false}}
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %f = hop.mma_issue %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
      %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    }
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 8], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<pingpong = true>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N, 8], bf16>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  // expected-error@+1 {{pingpong = true needs a loop with products and elementwise work on their results, of which this kernel has none; use pingpong = false}}
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %f = hop.mma_issue %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %e = math.exp2 %d : tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----

// A tile that all warpgroups write together.
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 8], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<pingpong = true>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N, 8], bf16>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %f = hop.mma_issue %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
      %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
      %e = math.exp2 %d : tensor<64x64xf32, #hop.layout<accumulator>>
      // expected-error@+1 {{waits for all consumer warpgroups, of which one at a time has its turn; use pingpong = false}}
      hop.role_sync
    }
  }
}
