// What the verifiers of the dialect refuse.
// RUN: tessera-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// -----

// expected-error@+1 {{there are 1 to 65536 slots, got 0}}
"test.op"() : () -> (!hop.pipe<tensor<64x64xbf16>, 0>)

// -----

// expected-error@+1 {{there are 1 to 65536 slots, got 0}}
"test.op"() : () -> (!hop.buffer<tensor<64x64xbf16>, 0>)

// -----

// expected-error@+1 {{there are 1 to 65536 slots, got 0}}
"test.op"() : () -> (!hop.barriers<0>)

// -----

// expected-error@+1 {{a tile in shared memory has rank 2, elements of 2 or 4 bytes, rows of a multiple of 32 bytes and a multiple of 8 of them, or rank 1 and at most 256 elements of 2, 4 or 8 bytes, a multiple of 128 bytes; got 'tensor<32xbf16>' in 32 rows}}
"test.op"() : () -> (!hop.pipe<tensor<32xbf16>, 1>)

// -----

// expected-error@+1 {{got 'tensor<bf16>' in 0 rows}}
"test.op"() : () -> (!hop.pipe<tensor<bf16>, 1>)

// -----

// expected-error@+1 {{got 'tensor<64x8xbf16>' in 64 rows}}
"test.op"() : () -> (!hop.buffer<tensor<64x8xbf16>, 1>)

// -----

// expected-error@+1 {{got 'tensor<128x64xbf16>' in 64 rows}}
"test.op"() : () -> (!hop.shared<tensor<128x64xbf16>, rows = 64>)

// -----

// expected-error@+1 {{got 'tensor<0x64xbf16>' in 64 rows}}
"test.op"() : () -> (!hop.shared<tensor<0x64xbf16>, rows = 64>)

// -----

// expected-error@+1 {{got 'tensor<?x64xbf16>' in 64 rows}}
"test.op"() : () -> (!hop.shared<tensor<?x64xbf16>, rows = 64>)

// -----

// expected-error@+1 {{got 'tensor<64x64xindex>' in 64 rows}}
"test.op"() : () -> (!hop.shared<tensor<64x64xindex>, rows = 64>)

// -----

// expected-error@+1 {{got 'tensor<64x64xi64>' in 64 rows}}
"test.op"() : () -> (!hop.shared<tensor<64x64xi64>, rows = 64>)

// -----

// expected-error@+1 {{a flight is an f32 tile of rank 2, got 'tensor<64x64xbf16>'}}
"test.op"() : () -> (!hop.flight<tensor<64x64xbf16>>)

// -----

// expected-error@+1 {{a flight is an f32 tile of rank 2, got 'tensor<64xf32>'}}
"test.op"() : () -> (!hop.flight<tensor<64xf32>>)

// -----

// expected-error@+1 {{the layout #hop.layout<accumulator> is of rank 2, with multiples of 64 rows and 8 columns of integers or floats}}
"test.op"() : () -> (tensor<32x64xf32, #hop.layout<accumulator>>)

// -----

// expected-error@+1 {{the layout #hop.layout<accumulator> is of rank 2}}
"test.op"() : () -> (tensor<64x12xf32, #hop.layout<accumulator>>)

// -----

// expected-error@+1 {{the layout #hop.layout<accumulator> is of rank 2}}
"test.op"() : () -> (tensor<64xf32, #hop.layout<accumulator>>)

// -----

// expected-error@+1 {{the layout #hop.layout<accumulator> is of rank 2}}
"test.op"() : () -> (tensor<64x64xindex, #hop.layout<accumulator>>)

// -----

// expected-error@+1 {{the layout #hop.layout<row> is of rank 1, with a multiple of 64 elements}}
"test.op"() : () -> (tensor<17xf32, #hop.layout<row>>)

// -----

// expected-error@+1 {{the layout #hop.layout<row_partial> is of rank 1, with a multiple of 64 elements}}
"test.op"() : () -> (tensor<64x64xf32, #hop.layout<row_partial>>)

// -----

// expected-error@+1 {{the layout #hop.layout<column> is of rank 1, with a multiple of 8 elements}}
"test.op"() : () -> (tensor<12xf32, #hop.layout<column>>)

// -----

// expected-error@+1 {{body takes the named arguments and one index per grid dimension}}
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32):
}

// -----

// expected-error@+1 {{body takes the named arguments and one index per grid dimension}}
hop.kernel @k attributes {argument_names = [], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
}

// -----

// expected-error@+1 {{argument 0 is f32 but its block argument is }}
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: i32, %m: index):
}

// -----

// expected-error@+1 {{grid holds #tile.grid_dim, and its indices are of type index}}
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [4], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
}

// -----

// expected-error@+1 {{grid holds #tile.grid_dim, and its indices are of type index}}
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: i32):
}

// -----

// expected-error@+1 {{requirements hold #tile.divides, #tile.at_most and #tile.above}}
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>, requirements = [4]} {
^bb0(%x: f32, %m: index):
}

// -----

// expected-error@+1 {{has roles that cannot have their registers: the warpgroups take 95232 registers (24 for each thread of @producer, 240 for each thread of @consumer in 3 warpgroups), and the launch gives the block 65536, 128 for each of 512 threads; use at most 160 for @consumer}}
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @producer elected registers(24) {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(3) registers(240) {
  ^bb0(%wg: index):
  }
}

// -----

// 512 times 128 is what a multiprocessor has; a block of 384 threads gets 168 for each.
// expected-error@+1 {{the warpgroups take 65536 registers (32 for each thread of @producer, 240 for each thread of @consumer in 2 warpgroups), and the launch gives the block 64512, 168 for each of 384 threads; use at most 24 for @producer or at most 232 for @consumer}}
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @producer elected registers(32) {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(2) registers(240) {
  ^bb0(%wg: index):
  }
}

// -----

// A role may keep what the launch gives.
// expected-error@+1 {{the warpgroups take 66560 registers (168 for each thread of @producer, 176 for each thread of @consumer in 2 warpgroups), and the launch gives the block 64512, 168 for each of 384 threads; use at most 168 for @consumer}}
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(2) registers(176) {
  ^bb0(%wg: index):
  }
}

// -----

// expected-error@+1 {{has 9 warpgroups, a thread block has at most 8}}
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @loads elected {
  ^bb0(%wg: index):
  }
  hop.role @rows warpgroups(8) {
  ^bb0(%wg: index):
  }
  hop.role @stores elected {
  ^bb0(%wg: index):
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  // expected-error@+1 {{has 1 to 8 warpgroups, got 9}}
  hop.role @consumer warpgroups(9) registers(24) {
  ^bb0(%wg: index):
  }
}

// -----

// Elected roles share a warpgroup, which has four warps.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @a elected {
  ^bb0(%wg: index):
  }
  hop.role @b elected {
  ^bb0(%wg: index):
  }
  hop.role @c elected {
  ^bb0(%wg: index):
  }
  hop.role @d elected {
  ^bb0(%wg: index):
  }
  // expected-error@+1 {{needs warp 5 of the warpgroup that elected roles and those of warps share, which has 4; use fewer of them, or warpgroups(1)}}
  hop.role @e elected {
  ^bb0(%wg: index):
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  // expected-note@+1 {{the other role}}
  hop.role @loads elected registers(24) {
  ^bb0(%wg: index):
  }
  hop.role @rows warpgroups(1) registers(240) {
  ^bb0(%wg: index):
  }
  // expected-error@+1 {{asks for other registers than the role whose warpgroup it shares; setmaxnreg is of a whole warpgroup, so say the same for all of them}}
  hop.role @stores elected registers(40) {
  ^bb0(%wg: index):
  }
}

// -----

// Two warps beside three of another role.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @moves warps(3) registers(40) {
  ^bb0(%wg: index):
    hop.warpgroup_sync
  }
  // expected-error@+1 {{needs warp 5 of the warpgroup that elected roles and those of warps share, which has 4; use fewer of them, or warpgroups(1)}}
  hop.role @more warps(2) registers(40) {
  ^bb0(%wg: index):
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  // expected-error@+1 {{has 1 to 3 warps of a warpgroup that roles share, got 4; a whole one is warpgroups(1)}}
  hop.role @moves warps(4) {
  ^bb0(%wg: index):
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @moves warps(3) {
  ^bb0(%wg: index):
    // expected-error@+1 {{has a tile in registers, and @moves has 3 of the 4 warps among which the layout of a tile divides it; compute it in a role with warpgroups}}
    %t = arith.constant dense<0.0> : tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @moves warps(3) {
  ^bb0(%wg: index):
    // expected-error@+1 {{runs on all threads of a warpgroup, and @moves has 3 warps of one; move it to a role with warpgroups}}
    hop.turn.wait %wg
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  // expected-note@+1 {{see existing symbol definition here}}
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
  }
  // expected-error@+1 {{redefinition of symbol named 'rows'}}
  hop.role @rows elected {
  ^bb0(%wg: index):
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @loads elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{has a tile in registers, and @loads is one elected thread, which holds none; compute it in a role with warpgroups}}
    %t = arith.constant dense<0.0> : tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @loads elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{runs on all threads of a warpgroup, and @loads is one elected thread; move it to a role with warpgroups}}
    hop.warpgroup_sync
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @loads elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{runs on all threads of a warpgroup, and @loads is one elected thread; move it to a role with warpgroups}}
    hop.turn.wait %wg
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // expected-error@+1 {{body takes the index of the warpgroup within the role}}
  hop.role @consumer warpgroups(1) {
  ^bb0:
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // expected-error@+1 {{body takes the index of the warpgroup within the role}}
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: i32):
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // expected-error@+1 {{has 1 to 8 warpgroups, got 0}}
  hop.role @consumer warpgroups(0) registers(24) {
  ^bb0(%wg: index):
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // expected-error@+1 {{takes registers in multiples of 8 from 24 to 256, got 100}}
  hop.role @consumer warpgroups(1) registers(100) {
  ^bb0(%wg: index):
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // expected-error@+1 {{takes registers in multiples of 8 from 24 to 256, got 264}}
  hop.role @consumer warpgroups(1) registers(264) {
  ^bb0(%wg: index):
  }
}

// -----

// expected-error@+1 {{expects parent op 'hop.kernel'}}
%p = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the index of the warpgroup, the argument of the role around it}}
    hop.turn.start %m
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the index of the warpgroup, the argument of the role around it}}
    hop.turn.wait %m
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the index of the warpgroup, the argument of the role around it}}
    hop.turn.pass %m
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the index of the warpgroup, the argument of the role around it}}
    %e = hop.elected %m
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c = arith.constant true
    %v = arith.select %c, %x, %x : !tile.view<[M, 64], bf16>
    // expected-error@+1 {{takes its view straight from the kernel's arguments}}
    hop.pipe.load %kp, %v[%m, %m] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes a view of rank 2 or more and one index per dimension of it; got 1 for}}
    hop.pipe.load %kp, %x[%m] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes a view of rank 2 or more and one index per dimension of it; got 1 for}}
    hop.pipe.load %kp, %y[%m] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[N], f32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{copies 'tensor<64x64xf16>' from or to a view of 'bf16'}}
    hop.pipe.load %kp, %x[%m, %m] : !hop.pipe<tensor<64x64xf16>, 1>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{copies 'tensor<64x64xf16>' from or to a view of 'bf16'}}
    hop.bulk_store %st, %x[%m, %m] : !hop.shared<tensor<64x64xf16>, rows = 64>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.barriers "b" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c = arith.constant 0 : i32
    // expected-error@+1 {{takes a view of rank 2 or more and one index per dimension of it; got 3 for}}
    hop.bulk_load %x[%m, %m, %m], %st, %b[%c] : !tile.view<[M, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<1>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{gives the tile of a slot, '!hop.shared<tensor<64x64xbf16>, rows = 64>', got}}
    %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<32x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %b = hop.buffer "b" : !hop.buffer<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c = arith.constant 0 : i32
    // expected-error@+1 {{gives the tile of a slot, '!hop.shared<tensor<64x64xbf16>, rows = 64>', got}}
    %t = hop.slot %b[%c] : !hop.buffer<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the result of a hop.pipe.wait on the same pipe}}
    hop.pipe.release %kp, %st : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %lp = hop.pipe.create "l" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{takes the result of a hop.pipe.wait on the same pipe}}
    hop.pipe.release %lp, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the product}}
    %f = hop.mma_issue %t, %t : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    // expected-error@+1 {{gives a slot away that a product in flight reads; wait for it first}}
    hop.pipe.release %kp, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{gives the tile of a slot, '!hop.shared<tensor<64x64xbf16>, rows = 64>', got}}
    %t = hop.pipe.peek %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<32x64xbf16>, rows = 64>
  }
}

// -----

// The step after this one takes the slot and gives it back.
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{is of a slot that a later wait gives back, and is read beyond its block}}
    %t = hop.pipe.peek %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    scf.for %i = %c0 to %m step %c1 {
      // expected-note@+1 {{the use}}
      %d = hop.mma %t, %t : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    }
  }
}

// -----

// The loop carries the product in flight.
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{is of a slot that a later wait gives back, and is read beyond its block}}
    %t = hop.pipe.peek %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the use}}
    %f = hop.mma_issue %t, %t : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %g = scf.for %i = %c0 to %m step %c1 iter_args(%old = %f) -> (!hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>) {
      scf.yield %old : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    }
    %d = hop.mma_wait %g pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %h = hop.slice %t[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the product}}
    %f = hop.mma_issue %h, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %g = hop.mma_issue %st, %st acc(%f : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>) : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    // expected-error@+1 {{gives a slot away that a product in flight reads; wait for it first}}
    hop.pipe.release %kp, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %d = hop.mma_wait %g pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 96], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 96], bf16>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x96xbf16, #tile.wide>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes parts in the chunks of 'tensor<64x96xbf16, #tile.wide>'}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x96xbf16, #tile.wide>, rows = 64> -> !hop.shared<tensor<32x96xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 96], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 96], bf16>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x96xbf16, #tile.wide>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{stores the columns of a tile alone, and chunks of 'tensor<64x96xbf16, #tile.wide>' may have others}}
    hop.bulk_store %st, %x[%m, %m] : !hop.shared<tensor<64x96xbf16, #tile.wide>, rows = 64>, !tile.view<[M, 96], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes equal parts of its source}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<24x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes equal parts of its source}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<32x64xbf16>, rows = 32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes parts of rows or of columns, not of both}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<32x32xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes rows in multiples of 8, got 4}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<4x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<32x64xbf16>, rows = 32>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies 64x64 by 32x64 into 64x64}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<32x64xbf16>, rows = 32> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x32xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies 64x64 by 64x32 into 64x64}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x32xbf16>, rows = 64> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies 64x64 by 64x64 into 128x64}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<128x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies f16, bf16, f8E4M3FN or f8E5M2 tiles of one type into f32}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xf16>, rows = 64> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xf32>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xf32>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies f16, bf16, f8E4M3FN or f8E5M2 tiles of one type into f32}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xf32>, rows = 64>, !hop.shared<tensor<64x64xf32>, rows = 64> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies f16, bf16, f8E4M3FN or f8E5M2 tiles of one type into f32}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<32x64xbf16>, rows = 32>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{of a warpgroup has M in multiples of 64, got 32; change the rows of the tile or the number of consumers}}
    %d = hop.mma %a, %b : !hop.shared<tensor<32x64xbf16>, rows = 32>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<32x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<8x64xbf16>, rows = 8>
  %b = hop.staging "b" : !hop.shared<tensor<8x64xbf16>, rows = 8>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{has K in multiples of 16, got 8}}
    %d = hop.mma %a, %b {transpose_a} : !hop.shared<tensor<8x64xbf16>, rows = 8>, !hop.shared<tensor<8x64xbf16>, rows = 8> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<24x64xbf16>, rows = 24>
  %b = hop.staging "b" : !hop.shared<tensor<24x64xbf16>, rows = 24>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{has K in multiples of 16, got 24}}
    %d = hop.mma %a, %b {transpose_a} : !hop.shared<tensor<24x64xbf16>, rows = 24>, !hop.shared<tensor<24x64xbf16>, rows = 24> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies tiles of rank 2, got}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64xf32>
  }
}

// -----

// A second operand in registers is a share of a tile that shared memory can hold, for each warpgroup.
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %b = arith.constant dense<0.0> : tensor<64x64xbf16>
    // expected-error@+1 {{multiplies 64x64 by 128x64 into 64x64}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, tensor<64x64xbf16> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %b = arith.constant dense<0.0> : tensor<64x24xbf16>
    // expected-error@+1 {{reads b from shared memory, where its rows are a multiple of 32 bytes and their number one of 8; got 'tensor<64x24xbf16>'}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, tensor<64x24xbf16> -> tensor<64x24xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %b = arith.constant dense<0.0> : tensor<bf16>
    // expected-error@+1 {{reads b from shared memory, where its rows are a multiple of 32 bytes and their number one of 8; got 'tensor<bf16>'}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, tensor<bf16> -> tensor<64x64xf32>
  }
}

// -----

// N = 12: no tile that wgmma could read as B.
// expected-error@+1 {{got 'tensor<12x64xbf16>' in 12 rows}}
"test.op"() : () -> (!hop.shared<tensor<12x64xbf16>, rows = 12>)

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<96x64xbf16>, rows = 96>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{of a warpgroup has M in multiples of 64, got 96}}
    %d = hop.mma %a, %b : !hop.shared<tensor<96x64xbf16>, rows = 96>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<96x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xbf16>
    // expected-error@+1 {{multiplies tiles of rank 2, got}}
    %d = hop.mma %a, %st : tensor<64xbf16>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64x64xbf16>
    // expected-error@+1 {{cannot transpose an operand in registers; run hop-stage-operands}}
    %d = hop.mma_issue %a, %st {transpose_a} : tensor<64x64xbf16>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32>>
    %t = hop.mma_wait %d pending 0 : !hop.flight<tensor<64x64xf32>> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{copies registers, and its operand a is in shared memory}}
    %d = hop.mma_issue %st, %st {copies_a} : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32>>
    %t = hop.mma_wait %d pending 0 : !hop.flight<tensor<64x64xf32>> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    // expected-error@+1 {{accumulator is 'tensor<64x64xf32, #hop.layout<accumulator>>', the result 'tensor<64x64xf32>'}}
    %d = hop.mma %st, %st acc(%a : tensor<64x64xf32, #hop.layout<accumulator>>) : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64x64xf32>
    // expected-error@+1 {{accumulator is 'tensor<64x64xf32>', the flight 'tensor<64x64xf32, #hop.layout<accumulator>>'}}
    %f = hop.mma_issue %st, %st acc(%a : tensor<64x64xf32>) : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{flight is used once, by the next product, a wait or a loop; it has 2 uses}}
    %f = hop.mma_issue %st, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %e = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{flight is used once, by the next product, a wait or a loop; it has 0 uses}}
    %f = hop.mma_issue %st, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %f = hop.mma_issue %st, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    // expected-error@+1 {{turns each flight into one tile}}
    %d:2 = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %f = hop.mma_issue %st, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    // expected-error@+1 {{into 'tensor<64x64xf32>'}}
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{makes whole elements of parts or parts of whole elements, got}}
    %b = hop.convert_layout sum %a : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{makes whole elements of parts or parts of whole elements, got}}
    %b = hop.convert_layout sum %a : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<column>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<column>>
    // expected-error@+1 {{makes whole elements of parts or parts of whole elements, got}}
    %b = hop.convert_layout sum %a : tensor<64xf32, #hop.layout<column>> -> tensor<64xf32, #hop.layout<row_partial>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{makes whole elements of parts or parts of whole elements, got}}
    %b = hop.convert_layout sum %a : tensor<64xf32, #hop.layout<row>> -> tensor<128xf32, #hop.layout<row_partial>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row_partial>>
    // expected-error@+1 {{takes a whole tile of rank 1 as a partial one, got}}
    %b = hop.row_factor %a : tensor<64xf32, #hop.layout<row_partial>> -> tensor<64xf32, #hop.layout<row_partial>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{takes a whole tile of rank 1 as a partial one, got}}
    %b = hop.row_factor %a : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<column>>
    // expected-error@+1 {{takes a whole tile of rank 1 as a partial one, got}}
    %b = hop.row_factor %a : tensor<64xf32, #hop.layout<column>> -> tensor<64xf32, #hop.layout<row_partial>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    %b = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<column>>
    // expected-error@+1 {{requires the same encoding for all operands and results}}
    %c = "arith.addf"(%a, %b) : (tensor<64xf32, #hop.layout<row>>, tensor<64xf32, #hop.layout<column>>) -> tensor<64xf32, #hop.layout<row>>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64x64xf32>
    // expected-error@+1 {{writes a tile of 16 or 32 bits to one of its shape and type, got}}
    hop.stage %a, %st : tensor<64x64xf32>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64x32xbf16>
    // expected-error@+1 {{writes a tile of 16 or 32 bits to one of its shape and type, got}}
    hop.stage %a, %st : tensor<64x32xbf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64x64xf16>
    // expected-error@+1 {{writes a tile of 16 or 32 bits to one of its shape and type, got}}
    hop.stage %a, %st : tensor<64x64xf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 192], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 192], bf16>, %m: index):
  // expected-error@+1 {{needs a kernel whose schedule has cluster = 2, 4 or exchange}}
  %p = hop.pipe.create "x" multicast : !hop.pipe<tensor<64x64xbf16>, 1>
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 192], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 192], bf16>, %m: index):
  // expected-error@+1 {{cannot divide 'tensor<8x192xbf16>' among 2 blocks in whole chunks of columns or in multiples of 8 rows}}
  %p = hop.pipe.create "x" multicast : !hop.pipe<tensor<8x192xbf16>, 1>
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 192], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 192], bf16>, %m: index):
  %b = hop.buffer "x" : !hop.buffer<tensor<8x192xbf16>, 1>
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %t = hop.slot %b[%zero] : !hop.buffer<tensor<8x192xbf16>, 1> -> !hop.shared<tensor<8x192xbf16>, rows = 8>
    // expected-error@+1 {{cannot divide 'tensor<8x192xbf16>' among 2 blocks}}
    hop.bulk_load %x[%c0, %c0], %t, %full[%zero] multicast : !tile.view<[M, 192], bf16>, !hop.shared<tensor<8x192xbf16>, rows = 8>, !hop.barriers<1>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 192], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 192], bf16>, %m: index):
  %empty = hop.barriers "x.empty" count 4 : !hop.barriers<1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    // expected-error@+1 {{names 4 blocks of a cluster of 2}}
    hop.barrier.arrive %empty[%zero] blocks 4 : !hop.barriers<1>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[H, M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[H, M, 64], bf16>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 1>
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{'hop.pipe.load' op has the box [4, 8, 64], which does not make up 'tensor<64x64xbf16>'}}
    hop.pipe.load %kp, %x[%m, %m, %m] box [4, 8, 64] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[H, M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[H, M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[H, M, 64], bf16>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{'hop.bulk_store' op has a box of one extent per dimension of the view: expected 3, got 2}}
    hop.bulk_store %st, %x[%m, %m, %m] box [64, 64] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[H, M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[H, M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[H, M, 64], bf16>, %m: index):
  %b = hop.buffer "x" : !hop.buffer<tensor<48x64xbf16>, 1>
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %t = hop.slot %b[%zero] : !hop.buffer<tensor<48x64xbf16>, 1> -> !hop.shared<tensor<48x64xbf16>, rows = 48>
    // expected-error@+1 {{cannot divide the rows of the box [3, 16, 64] among 2 blocks in parts that are boxes}}
    hop.bulk_load %x[%c0, %c0, %c0] box [3, 16, 64], %t, %full[%zero] multicast : !tile.view<[H, M, 64], bf16>, !hop.shared<tensor<48x64xbf16>, rows = 48>, !hop.barriers<1>
  }
}

// -----

// expected-error@+1 {{has the attribute "hop.other", which is none of hop}}
"test.op"() {hop.other = 1 : i64} : () -> ()

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %o = hop.overlay %t[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{gives a slot away that is used later}}
    hop.pipe.release %kp, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the use}}
    hop.bulk_store %o, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{finds no room for '!hop.shared<tensor<128x64xbf16>, rows = 128>' in a slot of '!hop.shared<tensor<64x64xbf16>, rows = 64>'}}
    %o = hop.overlay %a[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{lies over slots of one type}}
    %o = hop.overlay %a, %b[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// expected-error@+1 {{there are 1 to 65536 slots, got 4611686018427387904}}
"test.op"() : () -> (!hop.pipe<tensor<64x64xbf16>, 4611686018427387904>)

// -----

// expected-error@+1 {{a tile has at most 16777216 elements, got 'tensor<4294967296x4294967296xbf16>'}}
"test.op"() : () -> (!hop.pipe<tensor<4294967296x4294967296xbf16>, 1>)

// -----

// expected-error@+1 {{a slot has at most 16777216 elements, got 4611686018427387904 rows of 'tensor<64x64xbf16>'}}
"test.op"() : () -> (!hop.shared<tensor<64x64xbf16>, rows = 4611686018427387904>)

// -----

// expected-error@+1 {{a tile has at most 16777216 elements, got 'tensor<4294967296x4294967296xf32>'}}
"test.op"() : () -> (!hop.flight<tensor<4294967296x4294967296xf32>>)

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  hop.role @one warpgroups(1) registers(240) {
  ^bb0(%wg: index):
  }
  // expected-error@+1 {{has 1 to 8 warpgroups, got 4611686018427387904}}
  hop.role @many warpgroups(4611686018427387904) registers(240) {
  ^bb0(%wg: index):
  }
}

// -----

// A value has no tile to wait for.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<1xi32>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{gives the tile of a slot, and one of 'tensor<1xi32>' holds a value}}
    %t = hop.pipe.wait %p : !hop.pipe<tensor<1xi32>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// Nobody chooses between pipes.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  %q = hop.pipe.create "q" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %first = arith.cmpi eq, %m, %c0 : index
    %r = arith.select %first, %p, %q : !hop.pipe<tensor<64x64xbf16>, 2>
    // expected-error@+1 {{takes '!hop.pipe<tensor<64x64xbf16>, 2>' straight from where the kernel declares it}}
    hop.pipe.load %r, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }
}

// -----

// The numbers of the blocks wrap.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-error@+1 {{records one or more thread blocks with numbers below 2^31}}
  hop.timeline blocks 2 from -1 events 8 stages []
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
  }
}

// -----

// Places in shared memory.

hop.kernel @place attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  // expected-error@+1 {{starts at a multiple of 1024 bytes below 2^31, got 512}}
  %b = hop.buffer "k" at 512 : !hop.buffer<tensor<64x64xbf16>, 2>
}

// -----

hop.kernel @place attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  // expected-error@+1 {{starts at a multiple of 512 bytes below 2^31, got -512}}
  %s = hop.staging "o" at -512 : !hop.shared<tensor<64x32xbf16>, rows = 64>
}

// -----

hop.kernel @place attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  // expected-error@+1 {{starts at a multiple of 8 bytes below 2^31, got 4}}
  %full = hop.barriers "full" count 1 at 4 : !hop.barriers<2>
}

// -----

hop.kernel @place attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>,
    shared_bytes = 1048 : i64} {
  %fits = hop.barriers "full" count 1 at 1032 : !hop.barriers<2>
  // expected-error@+1 {{ends at byte 1056 of the kernel's 1048}}
  %full = hop.barriers "empty" count 1 at 1040 : !hop.barriers<2>
}

// -----

// What is acquired is committed, once.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{is of a slot that one hop.pipe.commit in the same block hands on; it has 0}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// Twice.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{is of a slot that one hop.pipe.commit in the same block hands on; it has 2}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// On one of two ways.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c = arith.constant true
    // expected-error@+1 {{is of a slot that one hop.pipe.commit in the same block hands on; it has 1, in another block}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    scf.if %c {
     hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
  }
}

// -----

// A read that comes too late.
hop.kernel @k attributes {argument_names = ["r"], argument_types = [!tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%r: !tile.view<[B, M], f32>, %m: index):
  %p = hop.pipe.create "r" : !hop.pipe<tensor<64xf32>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64xf32>, 2> -> !hop.shared<tensor<64xf32>, rows = 64>
    // expected-error@+1 {{gives a slot away that is used later}}
    hop.pipe.release %p, %t : !hop.pipe<tensor<64xf32>, 2>, !hop.shared<tensor<64xf32>, rows = 64>
    // expected-note@+1 {{the use}}
    %f = hop.fetch %t : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xf32, #hop.layout<column>>
  }
}

// -----

// A write that comes too late.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{gives a slot away that is used later}}
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the use}}
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// A slot that is read is not one that is written.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{takes the result of a hop.pipe.acquire on the same pipe}}
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// Blocks of a cluster fill a multicast pipe together.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" multicast : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{writes a slot of this block alone, and the blocks of a cluster fill the multicast pipe together; use another pipe}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// Two of them gather halves of its rows.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 4>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" multicast : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %n = arith.constant dense<0> : tensor<64xi32>
    // expected-error@+1 {{is of a slot of which each of two blocks fills half, of a multiple of 8 rows; got 'tensor<64x64xbf16>' and a cluster of 4}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.gather %s, %x[%c0, %c0] rows %n : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// A slot that copies fill is no slot that threads write.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    // expected-error@+1 {{is of a slot that hop.gather fills, whose threads hand it on before the copies have come; nothing else can use it}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.gather %s, %x[%c0, %c0] rows %n : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// Copies that start behind the arrival.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{gives a slot away that is used later}}
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the use}}
    hop.gather %s, %x[%c0, %c0] rows %n : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32>
  }
}

// -----

// Numbers of other rows.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<32xi32>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{takes the number of each of 64 rows, i32 or i64, from a tile of rank 1, got 'tensor<32xi32>'}}
    hop.gather %s, %x[%c0, %c0] rows %n : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<32xi32>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// Numbers that are none.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0.0> : tensor<64xf32>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{takes the number of each of 64 rows, i32 or i64, from a tile of rank 1, got 'tensor<64xf32>'}}
    hop.gather %s, %x[%c0, %c0] rows %n : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xf32>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// Part of a slot.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<32xi32>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %h = hop.slice %s[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<32x64xbf16>, rows = 64>
    // expected-error@+1 {{fills a whole slot of a pipe, the result of hop.pipe.acquire}}
    hop.gather %h, %x[%c0, %c0] rows %n : !hop.shared<tensor<32x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<32xi32>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// Numbers that lie in other threads.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{copies by another layout than that of the numbers of its rows, 'tensor<64xi32>'}}
    hop.gather %s, %x[%c0, %c0] rows %n layout <registers = [8:(0, 1)], lanes = [8:(0, 8), 4:(1, 0)], warps = [4:(4, 0)]> : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// Less than 16 bytes.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32, #hop.layout<lanes = [8:0, 4:1], warps = [4:4]>>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{copies 16 bytes at a time, and its layout has 8 in a thread}}
    hop.gather %s, %x[%c0, %c0] rows %n layout <registers = [4:(0, 1)], lanes = [8:(0, 4), 4:(1, 0)], warps = [4:(4, 0)]> : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32, #hop.layout<lanes = [8:0, 4:1], warps = [4:4]>>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// One thread gathers nothing.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows elected {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    // expected-error@+1 {{runs on all threads of a warpgroup, and @rows is one elected thread; move it to a role with warpgroups}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.gather %s, %x[%c0, %c0] rows %n : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// One thread writes no tile.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{runs on all threads of a warpgroup, and @rows is one elected thread; move it to a role with warpgroups}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// expected-error@+1 {{the digits of a layout make up 32 lanes and 4 warps, got 16 and 4}}
"test.op"() : () -> (tensor<64x64xf32, #hop.layout<lanes = [16:(0, 1)], warps = [4:(1, 0)]>>)

// -----

// expected-error@+1 {{along axis 1 a step of 4 follows digits that span 2}}
"test.op"() : () -> (tensor<64x64xf32, #hop.layout<registers = [2:(0, 1)], lanes = [32:(0, 4)], warps = [4:(1, 0)]>>)

// -----

// expected-error@+1 {{a digit of a layout moves along one axis, got steps (1, 1)}}
"test.op"() : () -> (tensor<64x64xf32, #hop.layout<lanes = [32:(1, 1)], warps = [4:(32, 0)]>>)

// -----

// expected-error@+1 {{each digit moves to another element of a tile of rank 2}}
"test.op"() : () -> (tensor<64x64xf32, #hop.layout<lanes = [32:(0, 1)], warps = [4:(0, 0)]>>)

// -----

// expected-error@+1 {{the digits of a layout have as many steps, got 1 after 2}}
"test.op"() : () -> (tensor<64x64xf32, #hop.layout<lanes = [32:(0, 1)], warps = [4:0]>>)

// -----

// expected-error@+1 {{expected registers, lanes, warps or warpgroups, partial, or accumulator, row, row_partial, column, operand8 or accumulator8}}
"test.op"() : () -> (tensor<64x64xf32, #hop.layout<threads = [128:1]>>)

// -----

// expected-error@+1 {{a digit of a layout has 2 to 4096 values and steps of 0 or more, got 1 values}}
"test.op"() : () -> (tensor<64x64xf32, #hop.layout<registers = [1:(0, 1)], lanes = [32:(0, 1)], warps = [4:(1, 0)]>>)

// -----

// expected-error@+1 {{a layout is of rank 1 or 2, and partial only of rank 1}}
"test.op"() : () -> (tensor<64x64xf32, #hop.layout<lanes = [32:(0, 1)], warps = [4:(1, 0)], partial>>)

// -----

hop.kernel @bytes attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %p = arith.constant dense<1.0> : tensor<64x64xf8E4M3FN, #hop.layout<operand8>>
    // expected-error@+1 {{takes 8-bit tiles from accumulator8 to operand8, and others from accumulator to accumulator8 or back, got}}
    %a = hop.rearrange %p : tensor<64x64xf8E4M3FN, #hop.layout<operand8>> -> tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>
  }
}

// -----

hop.kernel @floats attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %p = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator8>>
    // expected-error@+1 {{takes 8-bit tiles from accumulator8 to operand8}}
    %a = hop.rearrange %p : tensor<64x64xf32, #hop.layout<accumulator8>> -> tensor<64x64xf32, #hop.layout<operand8>>
  }
}

// -----

!Bytes = !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
hop.kernel @innermost attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !Bytes
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{reads 8-bit elements along K, got operand b with N innermost}}
    %f = hop.mma_issue %v, %v : !Bytes, !Bytes -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %s = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----

!Bytes = !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
hop.kernel @fragment attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !Bytes
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %p = arith.constant dense<1.0> : tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>
    // expected-error@+1 {{takes an 8-bit fragment a in the layout #hop.layout<operand8>, got}}
    %f = hop.mma_issue %p, %v {transpose_b} : tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>, !Bytes -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %s = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----

hop.kernel @transposed attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !hop.shared<tensor<64x32xf8E4M3FN>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{writes 8-bit KxN elements as NxK, got}}
    hop.transpose %v, %v : !hop.shared<tensor<64x32xf8E4M3FN>, rows = 64>, !hop.shared<tensor<64x32xf8E4M3FN>, rows = 64>
  }
}

// -----

!Tile = tensor<64x32xf32, #hop.layout<accumulator>>
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %exchange = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 4>
  hop.role @consumer warpgroups(2) {
  ^bb0(%warpgroup: index):
    %tile = arith.constant dense<0.0> : !Tile
    // expected-error@+1 {{exchanges a value of each of 8 warps, got '!hop.buffer<tensor<1xi32>, 4>'}}
    %sum = hop.combine_all sum %tile through %exchange : !Tile, !hop.buffer<tensor<1xi32>, 4> -> f32
  }
}

// -----

!Tile = tensor<64x32xf32, #hop.layout<accumulator>>
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %exchange = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 128>
  hop.role @consumer warpgroups(2) {
  ^bb0(%warpgroup: index):
    %tile = arith.constant dense<0.0> : !Tile
    // expected-error@+1 {{exchanges 256 values, got '!hop.buffer<tensor<1xi32>, 128>'}}
    %sums = hop.scan sum %tile axis 0 through %exchange : !Tile, !hop.buffer<tensor<1xi32>, 128>
  }
}

// -----

!Tile = tensor<64x32xf32, #hop.layout<accumulator>>
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %exchange = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 128>
  hop.role @consumer warpgroups(2) {
  ^bb0(%warpgroup: index):
    %tile = arith.constant dense<0.0> : !Tile
    // expected-error@+1 {{scans whole elements along an axis that several warps of a role share, got 'tensor<64x32xf32, #hop.layout<accumulator>>'}}
    %sums = hop.scan sum %tile axis 1 through %exchange : !Tile, !hop.buffer<tensor<1xi32>, 128>
  }
}

// -----

!Half = tensor<64x32xf16, #hop.layout<accumulator>>
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %exchange = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 4>
  hop.role @consumer warpgroups(1) {
  ^bb0(%warpgroup: index):
    %tile = arith.constant dense<0.0> : !Half
    // expected-error@+1 {{combines whole elements of f32 that a role holds, got 'tensor<64x32xf16, #hop.layout<accumulator>>'}}
    %sum = hop.combine_all sum %tile through %exchange : !Half, !hop.buffer<tensor<1xi32>, 4> -> f32
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[B, M], f32>], grid = [], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[B, M], f32>):
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{takes one index per dimension of the view; got 1 for '!tile.view<[B, M], f32>'}}
    hop.l2_prefetch %x[%c0], 8 : !tile.view<[B, M], f32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M], f32>], grid = [], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M], f32>):
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{attribute 'count' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
    hop.l2_prefetch %x[%c0], 0 : !tile.view<[M], f32>
  }
}

// -----

hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M], f32>], grid = [], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M], f32>):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{one thread}}
    hop.l2_prefetch %x[%c0], 8 : !tile.view<[M], f32>
  }
}

// -----

hop.kernel @led_slots attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  // expected-error@+1 {{has 3 slots and goes with a pipe of 2; give both as many}}
  %v = hop.pipe.create "r" with %p : !hop.pipe<tensor<64x64xbf16>, 2> : !hop.pipe<tensor<64xf32>, 3>
}

// -----

hop.kernel @led_twice attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  %v = hop.pipe.create "r" with %p : !hop.pipe<tensor<64x64xbf16>, 2> : !hop.pipe<tensor<64xf32>, 2>
  // expected-error@+1 {{goes with a pipe that goes with another one; name that one}}
  %w = hop.pipe.create "s" with %v : !hop.pipe<tensor<64xf32>, 2> : !hop.pipe<tensor<64xf32>, 2>
}

// -----

hop.kernel @led_multicast attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  // expected-error@+1 {{goes with another pipe, and blocks of a cluster fill one of the two together; leave out with}}
  %v = hop.pipe.create "r" multicast with %p : !hop.pipe<tensor<64x64xbf16>, 2> : !hop.pipe<tensor<64x64xbf16>, 2>
}

// -----

hop.kernel @runs_of_short_rows attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 32], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 32], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x32xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error @+1 {{copies 16 rows of 'tensor<64x32xbf16>' at a time; copies move equal parts of tiles whose rows have 128 bytes or a multiple}}
    hop.pipe.load %p, %x[%c0, %c0] run 16 {
    ^bb0(%i: index):
      hop.yield %i, %i : index, index
    } : !hop.pipe<tensor<64x32xbf16>, 1>, !tile.view<[M, 32], bf16>
  }
}

// -----

hop.kernel @run_in_two_blocks attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{cannot divide 'tensor<48x64xbf16>' among 2 blocks in whole runs of 16 rows}}
  %p = hop.pipe.create "p" multicast : !hop.pipe<tensor<48x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %p, %x[%c0, %c0] run 16 {
    ^bb0(%i: index):
      hop.yield %i, %i : index, index
    } : !hop.pipe<tensor<48x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @rows_from_nowhere attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %b = hop.buffer "x" : !hop.buffer<tensor<64x64xbf16>, 1>
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %t = hop.slot %b[%zero] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error @+1 {{copies rows from one of the tile on; give both, or none of them}}
    "hop.bulk_load"(%x, %c0, %c0, %t, %full, %zero) {rows = 16 : i64, operandSegmentSizes = array<i32: 1, 2, 1, 1, 1, 0>}
      : (!tile.view<[M, 64], bf16>, index, index, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<1>, i32) -> ()
  }
}

// -----

hop.kernel @run_without_rows attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error @+1 {{which gives the run's places and how many rows of it there are}}
    hop.pipe.load %p, %x[%c0, %c0] run 16 {
    ^bb0(%i: index):
      hop.yield %i : index
    } : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @run_without_end attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error @+1 {{has a region of the number of a run and of what it takes from outside}}
    hop.pipe.load %p, %x[%c0, %c0] run 16 {
    ^bb0(%i: index):
      %j = arith.addi %i, %i : index
    } : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @run_of_another_capture attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error @+1 {{has a region of the number of a run and of what it takes from outside}}
    hop.pipe.load %p, %x[%c0, %c0] run 16 with (%m : index) {
    ^bb0(%i: index, %first: i32):
      hop.yield %i, %i : index, index
    } : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @more_runs_than_lanes attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<256x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error @+1 {{has 64 runs, and the lanes of a warp find 32; use longer ones}}
    hop.pipe.load %p, %x[%c0, %c0] run 4 {
    ^bb0(%i: index):
      hop.yield %i, %i : index, index
    } : !hop.pipe<tensor<256x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @lanes_of_two_warps attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error @+1 {{gives at least one place for each of as many numbers as the lanes of a warp, 32, or fewer}}
    %a = hop.in_lanes {
    ^bb0(%i: index):
      hop.yield %i : index
    } : vector<64xindex>
  }
}

// -----

hop.kernel @lanes_of_other_numbers attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error @+1 {{has a region of an index, which ends with a hop.yield of as many places as there are results}}
    %a, %b = hop.in_lanes {
    ^bb0(%i: index):
      hop.yield %i : index
    } : vector<8xindex>, vector<8xindex>
  }
}

// -----

hop.kernel @lanes_of_threads_that_multiply attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error @+1 {{takes the lanes of a warp that has nothing else to do, and @rows has threads that do; move it to an elected role}}
    %a = hop.in_lanes {
    ^bb0(%i: index):
      hop.yield %i : index
    } : vector<8xindex>
  }
}

// -----

hop.kernel @lanes_that_wait attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    %a = hop.in_lanes {
    ^bb0(%i: index):
      // expected-error @+1 {{stands in a hop.in_lanes, which has scalar arithmetic and loads of elements}}
      hop.barrier.wait %full[%zero], %zero : !hop.barriers<1>
      hop.yield %i : index
    } : vector<8xindex>
  }
}

// -----

hop.kernel @of_no_lane attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
    %steps = arith.constant dense<[0, 1]> : vector<2xindex>
    // expected-error @+1 {{takes what a hop.in_lanes gives}}
    %a = hop.of_lane %steps[%m] : vector<2xindex>
  }
}

// -----

hop.kernel @one_lane_that_does_not_wait attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    // expected-error @+1 {{begins with a hop.barrier.wait, which keeps ptxas from starting its copies in all parts of a warp whose lanes have parted}}
    hop.one_lane {
      hop.barrier.expect %full[%zero] bytes 16 : !hop.barriers<1>
    }
  }
}

// -----

hop.kernel @one_lane_of_a_warpgroup attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    // expected-error @+1 {{takes one lane of a warp that stays together, and @rows has threads of its own; use an scf.if of hop.elected}}
    hop.one_lane {
      hop.barrier.wait %full[%zero], %zero : !hop.barriers<1>
    }
  }
}

// -----

hop.kernel @one_lane_that_asks_others attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    %found = hop.in_lanes {
    ^bb0(%i: index):
      hop.yield %i : index
    } : vector<8xindex>
    hop.one_lane {
      hop.barrier.wait %full[%zero], %zero : !hop.barriers<1>
      // expected-error @+1 {{needs all lanes, and one alone comes here; move it before the hop.one_lane}}
      %own = hop.of_lane %found[%m] : vector<8xindex>
    }
  }
}

// -----

hop.kernel @one_lane_of_one_thread attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    // expected-error @+1 {{stands in a role without a hop.in_lanes, where one thread does all; write its operations without it}}
    hop.one_lane {
      hop.barrier.wait %full[%zero], %zero : !hop.barriers<1>
    }
  }
}
