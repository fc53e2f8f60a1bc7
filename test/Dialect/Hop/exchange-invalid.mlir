// What the two blocks of a cluster cannot send each other.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

hop.kernel @alone attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 1>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-error@+1 {{needs a kernel whose schedule has cluster = exchange}}
  %p = hop.pipe.create "ds" exchanged : !hop.pipe<tensor<128x64xbf16>, 2>
}

// -----

hop.kernel @four attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 4>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %b = hop.buffer "ds" : !hop.buffer<tensor<128x64xbf16>, 1>
  %full = hop.barriers "ds.full" count 1 : !hop.barriers<1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = hop.slot %b[%zero] : !hop.buffer<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %own = hop.slice %t[%c0] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %theirs = hop.slice %t[%c1] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    // expected-error@+1 {{sends a tile to the other block of a cluster of two; use cluster = 2 or exchange}}
    hop.exchange %own, %theirs, %full[%zero] : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.barriers<1>
  }
}

// -----

hop.kernel @loaded attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = exchange>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-error@+1 {{is written by threads of both blocks, and no load fills it; leave out multicast and with}}
  %p = hop.pipe.create "ds" multicast exchanged : !hop.pipe<tensor<128x64xbf16>, 2>
}

// -----

hop.kernel @odd attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = exchange>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-error@+1 {{has slots of two tiles, one below the other, of a multiple of 8 rows each; got 'tensor<72x64xbf16>'}}
  %p = hop.pipe.create "ds" exchanged : !hop.pipe<tensor<72x64xbf16>, 2>
}

// -----

hop.kernel @columns attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = arith.constant dense<1.0> : tensor<64x64xf32>
    // expected-error@+1 {{takes columns of an accumulator, a multiple of 8 that divides their number; got 'tensor<64x24xf32>' of 'tensor<64x64xf32>'}}
    %u = hop.columns %t[0] : tensor<64x64xf32> -> tensor<64x24xf32>
  }
}

// -----

hop.kernel @beyond attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = arith.constant dense<1.0> : tensor<64x64xf32>
    // expected-error@+1 {{names part 2 of 2}}
    %u = hop.columns %t[2] : tensor<64x64xf32> -> tensor<64x32xf32>
  }
}
