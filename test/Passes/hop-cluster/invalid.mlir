// RUN: tessera-opt %s --split-input-file --pass-pipeline="builtin.module(hop.kernel(hop-cluster))" -verify-diagnostics

// expected-error@+1 {{has no load that the blocks of a cluster share; use cluster = 1}}
hop.kernel @own attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-note@+1 {{'x': its place depends on the first grid index}}
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 1>
  // expected-note@+1 {{'rows': the number of iterations of the loop around its load depends on the first grid index}}
  %q = hop.pipe.create "rows" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    scf.for %i = %c0 to %m step %c1 {
      hop.pipe.load %q, %x[%i, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    }
  }
}
