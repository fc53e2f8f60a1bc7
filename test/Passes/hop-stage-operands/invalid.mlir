// A tile that a loop carries twice has two values at once, which one buffer cannot hold.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-operands))' -split-input-file -verify-diagnostics

hop.kernel @delayed attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    %p = arith.truncf %x : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    // expected-note@+1 {{the one before it}}
    scf.for %i = %c0 to %m step %c1 iter_args(%a = %x, %older = %p, %old = %p) -> (tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>) {
      %d = hop.mma %older, %v acc(%a : tensor<64x64xf32, #hop.layout<accumulator>>) {transpose_a} : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
      // expected-error@+1 {{makes the operand of a product while the one before it, in the same shared memory, is still to be read; use overlap = 1}}
      %new = arith.truncf %d : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
      scf.yield %d, %old, %new : tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>
    }
  }
}

// -----

// Of second operands too, which have no other place.
hop.kernel @second attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    %p = arith.truncf %x : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    // expected-note@+1 {{the one before it}}
    scf.for %i = %c0 to %m step %c1 iter_args(%a = %x, %older = %p, %old = %p) -> (tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>) {
      %d = hop.mma %v, %older acc(%a : tensor<64x64xf32, #hop.layout<accumulator>>) : !hop.shared<tensor<64x64xbf16>, rows = 64>, tensor<64x64xbf16, #hop.layout<accumulator>> -> tensor<64x64xf32, #hop.layout<accumulator>>
      // expected-error@+1 {{makes the operand of a product while the one before it, in the same shared memory, is still to be read; use overlap = 1}}
      %new = arith.truncf %d : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
      scf.yield %d, %old, %new : tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>
    }
  }
}
