// More shared memory than a thread block has, with what takes it.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-allocate-shared-memory))' -split-input-file -verify-diagnostics

// expected-error@+1 {{needs 278528 bytes of shared memory, a thread block has 232448; lower stages or the tile sizes}}
hop.kernel @much attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // expected-note@+1 {{k: 4 slots of 'tensor<256x128xbf16>'}}
  %k = hop.buffer "k" : !hop.buffer<tensor<256x128xbf16>, 4>
  // expected-note@+1 {{o: 'tensor<128x64xbf16>', which the consumers write}}
  %s = hop.staging "o" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
  }
}

// -----

// Fewer slots than one no ring has: a list of numbers is no ring of tiles.
// expected-error@+1 {{needs 263168 bytes of shared memory, a thread block has 232448; smaller tiles are needed}}
hop.kernel @single attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-note@+1 {{list: 256 slots of 'tensor<1xi32>'}}
  %list = hop.buffer "list" : !hop.buffer<tensor<1xi32>, 256>
  // expected-note@+1 {{k: 1 slots of 'tensor<256x256xbf16>'}}
  %k = hop.buffer "k" : !hop.buffer<tensor<256x256xbf16>, 1>
  // expected-note@+1 {{v: 1 slots of 'tensor<256x256xbf16>'}}
  %v = hop.buffer "v" : !hop.buffer<tensor<256x256xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
  }
}
