// What the blocks of a cluster cannot take from each other.
// RUN: %cases %s | tessera-opt -split-input-file -verify-diagnostics

// FRAME
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>],
    schedule = #tile.schedule<cluster = 4>, parts} {
^bb0(%m: index):
  %buffer = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 4096>
  %arrived = hop.barriers "arrived" count 1 : !hop.barriers<1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%warpgroup: index):
    %acc = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    %wide = arith.constant dense<0.0> : tensor<64x128xf32, #hop.layout<accumulator>>
    // HERE
  }
}

// CASE
    // expected-error @+1 {{takes a tile of the block 4 before, and the kernel has no parts in clusters of more than a power of 2 of blocks}}
    %theirs = hop.from_block %acc before 4 through %buffer, %arrived
      : tensor<64x64xf32, #hop.layout<accumulator>>, !hop.buffer<tensor<1xi32>, 4096>, !hop.barriers<1>

// CASE
    // expected-error @+1 {{takes a tile of the block 3 before, and the kernel has no parts in clusters of more than a power of 2 of blocks}}
    %theirs = hop.from_block %acc before 3 through %buffer, %arrived
      : tensor<64x64xf32, #hop.layout<accumulator>>, !hop.buffer<tensor<1xi32>, 4096>, !hop.barriers<1>

// CASE
    // expected-error @+1 {{writes 8192 values, got '!hop.buffer<tensor<1xi32>, 4096>'}}
    %theirs = hop.from_block %wide before 1 through %buffer, %arrived
      : tensor<64x128xf32, #hop.layout<accumulator>>, !hop.buffer<tensor<1xi32>, 4096>, !hop.barriers<1>

// CASE
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %m step %c1 {
      // expected-error @+1 {{stands in a loop or a conditional, and its buffer is written once; put it outside of them}}
      %theirs = hop.from_block %acc before 1 through %buffer, %arrived
        : tensor<64x64xf32, #hop.layout<accumulator>>, !hop.buffer<tensor<1xi32>, 4096>, !hop.barriers<1>
    }
