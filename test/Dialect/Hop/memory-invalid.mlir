// What the verifiers of the dialect refuse of shared memory, barriers, and pipes that threads fill.
// RUN: %cases %s | tessera-opt -allow-unregistered-dialect -split-input-file -verify-diagnostics

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // HERE
  }
}

// CASE
    %a = arith.constant dense<0.0> : tensor<64x64xf32>
    // expected-error@+1 {{writes a tile of 16 or 32 bits to one of its shape and type, got}}
    hop.stage %a, %st : tensor<64x64xf32>, !hop.shared<tensor<64x64xbf16>, rows = 64>

// CASE
    %a = arith.constant dense<0.0> : tensor<64x32xbf16>
    // expected-error@+1 {{writes a tile of 16 or 32 bits to one of its shape and type, got}}
    hop.stage %a, %st : tensor<64x32xbf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>

// CASE
    %a = arith.constant dense<0.0> : tensor<64x64xf16>
    // expected-error@+1 {{writes a tile of 16 or 32 bits to one of its shape and type, got}}
    hop.stage %a, %st : tensor<64x64xf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>

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
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %empty = hop.barriers "x.empty" count 1 : !hop.barriers<1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    %sums = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row_partial>>
    // expected-error@+1 {{waits for a tile of f32 in every thread, at this block's barrier; use all without blocks}}
    hop.barrier.arrive %empty[%zero] : !hop.barriers<1> after %sums : tensor<64xf32, #hop.layout<row_partial>>
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
    %o = hop.slice %t[%c0] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{gives a slot away that is used later}}
    hop.pipe.release %kp, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the use}}
    hop.bulk_store %o, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
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

// FRAME
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // HERE
}

// CASE
  hop.role @one warpgroups(1) registers(240) {
  ^bb0(%wg: index):
  }
  // expected-error@+1 {{has 1 to 8 warpgroups, got 4611686018427387904}}
  hop.role @many warpgroups(4611686018427387904) registers(240) {
  ^bb0(%wg: index):
  }

// CASE
// A value has no tile to wait for.
  %p = hop.pipe.create "p" : !hop.pipe<tensor<1xi32>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{gives the tile of a slot, and one of 'tensor<1xi32>' holds a value}}
    %t = hop.pipe.wait %p : !hop.pipe<tensor<1xi32>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
  }

// CASE
// Nobody chooses between pipes.
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

// CASE
// The numbers of the blocks wrap.
  // expected-error@+1 {{records one or more thread blocks with numbers below 2^31}}
  hop.timeline blocks 2 from -1 events 8 stages []
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
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

// FRAME
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    // HERE
  }
}

// CASE
// What is acquired is committed, once.
    // expected-error@+1 {{is of a slot that one hop.pipe.commit in the same block hands on; it has 0}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>

// CASE
// Twice.
    // expected-error@+1 {{is of a slot that one hop.pipe.commit in the same block hands on; it has 2}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>

// CASE
// On one of two ways.
    %c = arith.constant true
    // expected-error@+1 {{is of a slot that one hop.pipe.commit in the same block hands on; it has 1, in another block}}
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    scf.if %c {
     hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
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
