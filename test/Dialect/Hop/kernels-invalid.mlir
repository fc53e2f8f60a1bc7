// What the verifiers of the dialect refuse of kernels, roles and turns.
// RUN: %cases %s | tessera-opt -allow-unregistered-dialect -split-input-file -verify-diagnostics

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

// FRAME
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  // HERE
  ^bb0(%wg: index):
  }
}

// CASE
// expected-error@+1 {{has roles that cannot have their registers: the warpgroups take 95232 registers (24 for each thread of @producer, 240 for each thread of @consumer in 3 warpgroups), and the launch gives the block 65536, 128 for each of 512 threads; use at most 160 for @consumer}}
  hop.role @producer elected registers(24) {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(3) registers(240) {

// CASE
// 512 times 128 is what a multiprocessor has; a block of 384 threads gets 168 for each.
// expected-error@+1 {{the warpgroups take 65536 registers (32 for each thread of @producer, 240 for each thread of @consumer in 2 warpgroups), and the launch gives the block 64512, 168 for each of 384 threads; use at most 24 for @producer or at most 232 for @consumer}}
  hop.role @producer elected registers(32) {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(2) registers(240) {

// CASE
// A role may keep what the launch gives.
// expected-error@+1 {{the warpgroups take 66560 registers (168 for each thread of @producer, 176 for each thread of @consumer in 2 warpgroups), and the launch gives the block 64512, 168 for each of 384 threads; use at most 168 for @consumer}}
  hop.role @producer elected {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(2) registers(176) {

// CASE
// expected-error@+1 {{has 9 warpgroups, a thread block has at most 8}}
  hop.role @loads elected {
  ^bb0(%wg: index):
  }
  hop.role @rows warpgroups(8) {
  ^bb0(%wg: index):
  }
  hop.role @stores elected {

// CASE
  // expected-error@+1 {{has 1 to 8 warpgroups, got 9}}
  hop.role @consumer warpgroups(9) registers(24) {

// CASE
// Elected roles share a warpgroup, which has four warps.
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

// CASE
  // expected-note@+1 {{the other role}}
  hop.role @loads elected registers(24) {
  ^bb0(%wg: index):
  }
  hop.role @rows warpgroups(1) registers(240) {
  ^bb0(%wg: index):
  }
  // expected-error@+1 {{asks for other registers than the role whose warpgroup it shares; setmaxnreg is of a whole warpgroup, so say the same for all of them}}
  hop.role @stores elected registers(40) {

// CASE
// Two warps beside three of another role.
  hop.role @moves warps(3) registers(40) {
  ^bb0(%wg: index):
    hop.warpgroup_sync
  }
  // expected-error@+1 {{needs warp 5 of the warpgroup that elected roles and those of warps share, which has 4; use fewer of them, or warpgroups(1)}}
  hop.role @more warps(2) registers(40) {

// CASE
  // expected-error@+1 {{has 1 to 3 warps of a warpgroup that roles share, got 4; a whole one is warpgroups(1)}}
  hop.role @moves warps(4) {

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

// FRAME
hop.kernel @k attributes {argument_names = ["x"], argument_types = [f32], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%x: f32, %m: index):
  hop.role @loads elected {
  ^bb0(%wg: index):
    // HERE
  }
}

// CASE
    // expected-error@+1 {{has a tile in registers, and @loads is one elected thread, which holds none; compute it in a role with warpgroups}}
    %t = arith.constant dense<0.0> : tensor<64x64xf32>

// CASE
    // expected-error@+1 {{runs on all threads of a warpgroup, and @loads is one elected thread; move it to a role with warpgroups}}
    hop.warpgroup_sync

// CASE
    // expected-error@+1 {{runs on all threads of a warpgroup, and @loads is one elected thread; move it to a role with warpgroups}}
    hop.turn.wait %wg

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // HERE
}

// CASE
  // expected-error@+1 {{body takes the index of the warpgroup within the role}}
  hop.role @consumer warpgroups(1) {
  ^bb0:
  }

// CASE
  // expected-error@+1 {{body takes the index of the warpgroup within the role}}
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: i32):
  }

// CASE
  // expected-error@+1 {{has 1 to 8 warpgroups, got 0}}
  hop.role @consumer warpgroups(0) registers(24) {
  ^bb0(%wg: index):
  }

// CASE
  // expected-error@+1 {{takes registers in multiples of 8 from 24 to 256, got 100}}
  hop.role @consumer warpgroups(1) registers(100) {
  ^bb0(%wg: index):
  }

// CASE
  // expected-error@+1 {{takes registers in multiples of 8 from 24 to 256, got 264}}
  hop.role @consumer warpgroups(1) registers(264) {
  ^bb0(%wg: index):
  }
