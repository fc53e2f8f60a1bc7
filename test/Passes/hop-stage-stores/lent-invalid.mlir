// Stores for which no pipe lends slots.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-stores))' -split-input-file -verify-diagnostics

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = lent, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %a = hop.pipe.create "a" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %u = hop.pipe.wait %a : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %a, %u : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{goes through slots that an elected role lends (store = lent), and there is none; use producer = operands or store = tma}}
    tile.store %t, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = lent, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %a = hop.pipe.create "a" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    // expected-error@+1 {{comes before the last tile is read, and slots are lent to stores (store = lent) after the last load; use store = tma}}
    tile.store %t, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    // expected-note@+1 {{the read}}
    %u = hop.pipe.wait %a : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %a, %u : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = lent, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %a = hop.pipe.create "a" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    // expected-error@+1 {{goes through slots that a pipe lends (store = lent), and no pipe that is read before it can; use store = tma}}
    tile.store %t, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = lent, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-note@+1 {{'a': it has 2 slots of tensor<64x64xbf16>, and 3 warpgroups take 3}}
  %a = hop.pipe.create "a" : !hop.pipe<tensor<64x64xbf16>, 2>
  // expected-note@+1 {{'b': a slot of tensor<32x64xbf16> has no room for a warpgroup's tensor<64x64xbf16>}}
  %b = hop.pipe.create "b" : !hop.pipe<tensor<32x64xbf16>, 4>
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(3) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %u = hop.pipe.wait %a : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %a, %u : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %v = hop.pipe.wait %b : !hop.pipe<tensor<32x64xbf16>, 4> -> !hop.shared<tensor<32x64xbf16>, rows = 32>
    hop.pipe.release %b, %v : !hop.pipe<tensor<32x64xbf16>, 4>, !hop.shared<tensor<32x64xbf16>, rows = 32>
    // expected-error@+1 {{goes through slots that a pipe lends (store = lent), and no pipe that is read before it can; use store = tma}}
    tile.store %t, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
  }
}

// -----

// Slots that start at multiples of 512 bytes are no place for a swizzle that repeats every 1024.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = lent, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-note@+1 {{'a': a slot of tensor<256x32xbf16> has no room for a warpgroup's tensor<64x64xbf16>}}
  %a = hop.pipe.create "a" : !hop.pipe<tensor<256x32xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %u = hop.pipe.wait %a : !hop.pipe<tensor<256x32xbf16>, 2> -> !hop.shared<tensor<256x32xbf16>, rows = 256>
    hop.pipe.release %a, %u : !hop.pipe<tensor<256x32xbf16>, 2>, !hop.shared<tensor<256x32xbf16>, rows = 256>
    // expected-error@+1 {{goes through slots that a pipe lends (store = lent), and no pipe that is read before it can; use store = tma}}
    tile.store %t, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = lent, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-note@+1 {{'a': a slot of it is held beyond the store}}
  %a = hop.pipe.create "a" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %u = hop.pipe.wait %a : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{goes through slots that a pipe lends (store = lent), and no pipe that is read before it can; use store = tma}}
    tile.store %t, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    hop.pipe.release %a, %u : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = lent, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %a = hop.pipe.create "a" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %a, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    hop.attempt {
    %u = hop.pipe.wait %a : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %a, %u : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{stands in a hop.attempt, and @producer has none}}
    tile.store %t, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    } exact {
      hop.warpgroup_sync
    }
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<store = lent, placement = rows>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-note@+1 {{'a': it is not filled by one elected role, which could lend slots}}
  %a = hop.pipe.create "a" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %elected = hop.elected %wg
    scf.if %elected {
      hop.pipe.load %a, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
    }
    %u = hop.pipe.wait %a : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %a, %u : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{goes through slots that a pipe lends (store = lent), and no pipe that is read before it can; use store = tma}}
    tile.store %t, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
  }
}
