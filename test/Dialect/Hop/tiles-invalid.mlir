// What the verifiers of the dialect refuse of what moves and combines tiles.
// RUN: %cases %s | tessera-opt -allow-unregistered-dialect -split-input-file -verify-diagnostics

// FRAME
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  // HERE
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// CASE
// Numbers of other rows.
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<32xi32>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{takes the number of each of 64 rows, i32 or i64, from a tile of rank 1, got 'tensor<32xi32>'}}
    hop.gather %s, %x[%c0, %c0] rows %n : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<32xi32>

// CASE
// Numbers that are none.
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0.0> : tensor<64xf32>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{takes the number of each of 64 rows, i32 or i64, from a tile of rank 1, got 'tensor<64xf32>'}}
    hop.gather %s, %x[%c0, %c0] rows %n : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xf32>

// CASE
// Part of a slot.
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<32xi32>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %h = hop.slice %s[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<32x64xbf16>, rows = 64>
    // expected-error@+1 {{fills a whole slot of a pipe, the result of hop.pipe.acquire}}
    hop.gather %h, %x[%c0, %c0] rows %n : !hop.shared<tensor<32x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<32xi32>

// CASE
// Numbers that lie in other threads.
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{copies by another layout than that of the numbers of its rows, 'tensor<64xi32>'}}
    hop.gather %s, %x[%c0, %c0] rows %n layout <registers = [8:(0, 1)], lanes = [8:(0, 8), 4:(1, 0)], warps = [4:(4, 0)]> : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32>

// CASE
// Less than 16 bytes.
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32, #hop.layout<lanes = [8:0, 4:1], warps = [4:4]>>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{copies 16 bytes at a time, and its layout has 8 in a thread}}
    hop.gather %s, %x[%c0, %c0] rows %n layout <registers = [4:(0, 1)], lanes = [8:(0, 4), 4:(1, 0)], warps = [4:(4, 0)]> : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32, #hop.layout<lanes = [8:0, 4:1], warps = [4:4]>>

// CASE
// One thread gathers nothing.
  hop.role @rows elected {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    // expected-error@+1 {{runs on all threads of a warpgroup, and @rows is one elected thread; move it to a role with warpgroups}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.gather %s, %x[%c0, %c0] rows %n : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>, tensor<64xi32>

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
// expected-error@+1 {{expected registers, lanes, warps or warpgroups, partial, or accumulator, row, row_partial, column, row_pairs, operand8 or accumulator8}}
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

// FRAME
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // HERE
}

// CASE rows_from_nowhere
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

// CASE run_without_rows
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

// CASE run_without_end
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

// CASE run_of_another_capture
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

// CASE more_runs_than_lanes
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

// -----
!Part = tensor<1xf32, #hop.layout<lanes = [32:0], warps = [4:0], warpgroups = [2:0, 4:0], partial>>
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 1>],
    schedule = #tile.schedule<cluster = 4>, spread} {
^bb0(%m: index):
  %exchange = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 8>
  hop.role @consumer warpgroups(2) {
  ^bb0(%warpgroup: index):
    %part = arith.constant dense<0.0> : !Part
    // expected-error@+1 {{exchanges 12 values, got '!hop.buffer<tensor<1xi32>, 8>'}}
    %sum = hop.combine sum %part through %exchange : !Part, !hop.buffer<tensor<1xi32>, 8>
  }
}

// -----
// expected-error@+1 {{has tiles of the blocks of a cluster together, and clusters of one; leave spread out, or use cluster = 2, 4, 8 or 16}}
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 1>],
    schedule = #tile.schedule<cluster = 1>, spread} {
^bb0(%m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%warpgroup: index):
  }
}
