// What the verifiers of the dialect refuse of kernels, schedules and what they load.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

// expected-error@+1 {{'tile.kernel' op has 1 to 3 grid dimensions, got 0}}
tile.kernel @no_grid(%x: !tile.view<[M], f32>) grid() {
}

// -----

// expected-error@+1 {{'tile.kernel' op has 1 to 3 grid dimensions, got 4}}
tile.kernel @large_grid(%x: !tile.view<[M], f32>) grid(%a = 1, %b = 1, %c = 1, %d = 1) {
}

// -----

// expected-error@+1 {{'tile.kernel' op argument 'x' is 'f64'; a kernel takes views, f32, i32, i64 and index}}
tile.kernel @argument_type(%x: f64) grid(%m = 1) {
}

// -----

// expected-error@+1 {{'tile.kernel' op argument 0 is named '0'; launches name arguments}}
tile.kernel @number_as_name(%0: f32) grid(%m = 1) {
}

// -----

// expected-error@+1 {{'tile.kernel' op grid names the dimension 'N', which no view of the kernel has}}
tile.kernel @grid_dimension(%x: !tile.view<[M], f32>) grid(%m = N) {
}

// -----

// expected-error@+1 {{'tile.kernel' op requires names the dimension 'N', which no view of the kernel has}}
tile.kernel @requirement(%x: !tile.view<[M], f32>) grid(%m = M) requires(M divides N) {
}

// -----

// expected-error@+1 {{the divisor of a grid extent is at least 1, got 0}}
tile.kernel @divisor(%x: !tile.view<[M], f32>) grid(%m = M ceildiv 0) {
}

// -----

// expected-error@+1 {{'tile.kernel' op has 1 argument types but 2 argument names}}
"tile.kernel"() <{sym_name = "k", argument_types = [f32], argument_names = ["a", "b"], grid = [#tile.grid_dim<4, 1>]}> ({
^bb0(%a: f32, %m: index):
  tile.return
}) : () -> ()

// -----

// expected-error@+1 {{'tile.kernel' op has two arguments named 'a'}}
"tile.kernel"() <{sym_name = "k", argument_types = [f32, f32], argument_names = ["a", "a"], grid = [#tile.grid_dim<4, 1>]}> ({
^bb0(%a: f32, %b: f32, %m: index):
  tile.return
}) : () -> ()

// -----

// expected-error@+1 {{'tile.kernel' op has 1 grid dimensions but 2 grid names}}
"tile.kernel"() <{sym_name = "k", argument_types = [], argument_names = [], grid = [#tile.grid_dim<4, 1>], grid_names = ["m", "n"]}> ({
^bb0(%m: index):
  tile.return
}) : () -> ()

// -----

// expected-error@+1 {{'tile.kernel' op body takes the arguments and one index per grid dimension: expected 2 block arguments, got 1}}
"tile.kernel"() <{sym_name = "k", argument_types = [f32], argument_names = ["a"], grid = [#tile.grid_dim<4, 1>]}> ({
^bb0(%a: f32):
  tile.return
}) : () -> ()

// -----

// expected-error@+1 {{'tile.kernel' op argument 0 is 'f32' but its block argument is 'i32'}}
"tile.kernel"() <{sym_name = "k", argument_types = [f32], argument_names = ["a"], grid = [#tile.grid_dim<4, 1>]}> ({
^bb0(%a: i32, %m: index):
  tile.return
}) : () -> ()

// -----

// expected-error@+1 {{'tile.kernel' op grid indices are of type index}}
"tile.kernel"() <{sym_name = "k", argument_types = [], argument_names = [], grid = [#tile.grid_dim<4, 1>]}> ({
^bb0(%m: i32):
  tile.return
}) : () -> ()

// -----

// expected-error@+1 {{'tile.kernel' op grid holds #tile.grid_dim, got 4 : i64}}
"tile.kernel"() <{sym_name = "k", argument_types = [], argument_names = [], grid = [4]}> ({
^bb0(%m: index):
  tile.return
}) : () -> ()

// -----

// expected-error@+1 {{'tile.kernel' op requires names the scalar 'm', which is no f32 argument of the kernel}}
tile.kernel @integer(%x: !tile.view<[M], f32>, %m: i32) grid(%i = M) requires(m > 0.0) {
}

// -----

// expected-error@+1 {{'tile.kernel' op requires names the scalar 'x', which is no f32 argument of the kernel}}
tile.kernel @view(%x: !tile.view<[M], f32>) grid(%i = M) requires(x > 0.0) {
}

// -----

// expected-error@+1 {{the bound of a scalar is a finite f64, got 1.000000e+00 : f32}}
"test.op"() {a = #tile.above<"scale", 1.0 : f32>} : () -> ()

// -----

// expected-error@+1 {{'tile.kernel' op requirements hold #tile.divides, #tile.at_most and #tile.above, got "M"}}
"tile.kernel"() <{sym_name = "k", argument_types = [], argument_names = [], grid = [#tile.grid_dim<4, 1>], requirements = ["M"]}> ({
^bb0(%m: index):
  tile.return
}) : () -> ()

// -----

// expected-error@+1 {{a grid extent is the name of a run-time dimension or an integer, got unit}}
"test.op"() {a = #tile.grid_dim<unit, 1>} : () -> ()

// -----

tile.kernel @outer(%x: !tile.view<[M], f32>) grid(%m = M) {
  // expected-error@+1 {{'tile.kernel' op expects parent op 'builtin.module'}}
  tile.kernel @inner(%y: !tile.view<[M], f32>) grid(%n = M) {
  }
}

// -----

// Views.

// expected-error@+1 {{a view has 1 to 4 dimensions, got 5}}
tile.kernel @rank(%x: !tile.view<[A, B, C, D, E], f32>) grid(%m = A) {
}

// -----

// expected-error@+1 {{a view has 1 to 4 dimensions, got 0}}
tile.kernel @rank0(%x: !tile.view<[], f32>) grid(%m = 1) {
}

// -----

// expected-error@+1 {{a static extent of a view is at least 1, got 0}}
tile.kernel @extent(%x: !tile.view<[M, 0], f32>) grid(%m = M) {
}

// -----

// expected-error@+1 {{the element type of a view is f16, bf16, f32, f8E4M3FN, f8E5M2, i8, i32 or i64, got 'i16'}}
tile.kernel @element(%x: !tile.view<[M], i16>) grid(%m = M) {
}

// -----

// Rows by their numbers.

tile.kernel @floats(%x: !tile.view<[V, 64], f32>, %l: !tile.view<[N], f32>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  %rows = tile.load %l[%n] : !tile.view<[N], f32> -> tensor<32xf32>
  // expected-error@+1 {{'tile.gather' op operand #3 must be variadic of statically shaped tensor of 32-bit signless integer or 64-bit signless integer values, but got 'tensor<32xf32>'}}
  %t = tile.gather %x[%c0, %c0] rows %rows : !tile.view<[V, 64], f32>, tensor<32xf32> -> tensor<32x64xf32>
}

// -----

tile.kernel @count(%x: !tile.view<[V, 64], f32>, %l: !tile.view<[N], i32>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  %rows = tile.load %l[%n] : !tile.view<[N], i32> -> tensor<16xi32>
  // expected-error@+1 {{takes the number of each row from a tile of rank 1: expected 'tensor<32xi32>' for 'tensor<32x64xf32>', got 'tensor<16xi32>'}}
  %t = tile.gather %x[%c0, %c0] rows %rows : !tile.view<[V, 64], f32>, tensor<16xi32> -> tensor<32x64xf32>
}

// -----

tile.kernel @place(%x: !tile.view<[V, 64], f32>, %l: !tile.view<[N], i32>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  %rows = tile.load %l[%n] : !tile.view<[N], i32> -> tensor<32xi32>
  // expected-error@+1 {{takes one index per dimension of the view: expected 2, got 1}}
  %t = tile.gather %x[%c0] rows %rows : !tile.view<[V, 64], f32>, tensor<32xi32> -> tensor<32x64xf32>
}

// -----

tile.kernel @elements(%x: !tile.view<[V, 64], f32>, %l: !tile.view<[N], i64>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  %rows = tile.load %l[%n] : !tile.view<[N], i64> -> tensor<32xi64>
  // expected-error@+1 {{has a tile of 'bf16' and a view of 'f32'; move elements of the view's type, and convert them}}
  %t = tile.gather %x[%c0, %c0] rows %rows : !tile.view<[V, 64], f32>, tensor<32xi64> -> tensor<32x64xbf16>
}

// -----

tile.kernel @too_many_numbers(%x: !tile.view<[V, 64], f32>, %l: !tile.view<[N], i32>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  %rows = tile.load %l[%n] : !tile.view<[N], i32> -> tensor<32xi32>
  // expected-error@+1 {{'tile.gather' op has numbers along 2 dimensions; a tile of 'tensor<32x64xf32>' of '!tile.view<[V, 64], f32>' takes 1 to 1}}
  %t = tile.gather %x[%c0, %c0] rows %rows, %rows : !tile.view<[V, 64], f32>, tensor<32xi32>, tensor<32xi32> -> tensor<32x64xf32>
}

// -----

tile.kernel @scatters_by_floats(%x: !tile.view<[V, 64], f32>, %l: !tile.view<[N], f32>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : tensor<32x64xf32>
  %rows = tile.load %l[%n] : !tile.view<[N], f32> -> tensor<32xf32>
  // expected-error@+1 {{'tile.scatter' op operand #4 must be variadic of statically shaped tensor of 32-bit signless integer or 64-bit signless integer values, but got 'tensor<32xf32>'}}
  tile.scatter %t, %x[%c0, %c0] rows %rows : tensor<32x64xf32>, !tile.view<[V, 64], f32>, tensor<32xf32>
}

// -----

tile.kernel @scatters_by_too_few(%x: !tile.view<[V, 64], f32>, %l: !tile.view<[N], i32>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : tensor<32x64xf32>
  %rows = tile.load %l[%n] : !tile.view<[N], i32> -> tensor<16xi32>
  // expected-error@+1 {{'tile.scatter' op takes the number of each row from a tile of rank 1: expected 'tensor<32xi32>' for 'tensor<32x64xf32>', got 'tensor<16xi32>'}}
  tile.scatter %t, %x[%c0, %c0] rows %rows : tensor<32x64xf32>, !tile.view<[V, 64], f32>, tensor<16xi32>
}

// -----

tile.kernel @scatters_to_what_it_loads(%x: !tile.view<[V, 64], f32>, %l: !tile.view<[N], i32>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  // expected-note@+1 {{loaded here}}
  %t = tile.load %x[%n, %c0] : !tile.view<[V, 64], f32> -> tensor<32x64xf32>
  %rows = tile.load %l[%n] : !tile.view<[N], i32> -> tensor<32xi32>
  // expected-error@+1 {{'tile.scatter' op stores to a view that the kernel loads from, where any row may be meant; do one of them in a kernel of its own}}
  tile.scatter %t, %x[%c0, %c0] rows %rows : tensor<32x64xf32>, !tile.view<[V, 64], f32>, tensor<32xi32>
}

// -----

// An index is of type index, whatever a table holds.

tile.kernel @index(%x: !tile.view<[V, 64], f32>, %l: !tile.view<[N], f32>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  %number = tile.load %l[%n] : !tile.view<[N], f32> -> f32
  // expected-error@+1 {{'arith.index_cast' op operand #0 must be signless-integer-like or memref of signless-integer, but got 'f32'}}
  %i = arith.index_cast %number : f32 to index
}

// -----

tile.kernel @wide(%x: !tile.view<[P, 16, 64], f32>, %l: !tile.view<[N], i32>) grid(%n = N) {
  %c0 = arith.constant 0 : index
  %number = tile.load %l[%n] : !tile.view<[N], i32> -> i32
  %page = arith.index_cast %number : i32 to index
  // expected-error@+1 {{has a box of 2 along dimension 0, whose index comes from memory; only the tile's own dimensions may reach outside the view, so take one at a time there}}
  %t = tile.load %x[%page, %c0, %c0] box [2, 16, 64] : !tile.view<[P, 16, 64], f32> -> tensor<32x64xf32>
}

// -----

// Schedules.

// expected-error@+1 {{schedule field 'consumers' is 1 to 4, got 5}}
#s = #tile.schedule<consumers = 5>

// -----

// expected-error@+1 {{schedule field 'stages' is 1 to 8, or a list of at most 8 such numbers, got 0}}
#s = #tile.schedule<stages = 0>

// -----

// expected-error@+1 {{schedule field 'overlap' takes 1, 2, 3, lead or scaled, got '4'}}
#s = #tile.schedule<overlap = 4>

// -----

// expected-error@+1 {{schedule field 'stages' is 1 to 8, or a list of at most 8 such numbers, got 9}}
#s = #tile.schedule<stages = [2, 9]>

// -----

// expected-error@+1 {{schedule field 'stages' takes 1 to 8, or a list of at most 8 such numbers, got '[1,2,1,2,1,2,1,2,1]'}}
#s = #tile.schedule<stages = [1, 2, 1, 2, 1, 2, 1, 2, 1]>

// -----

// Of the fields of the version before, what is left is said.
// expected-error@+1 {{'lead', 'rescale' and 'pack' are part of schedule field 'overlap', and this is none of its values; write overlap = 1, 2, 3, lead or scaled}}
#s = #tile.schedule<overlap = 2, lead = 1>

// -----

// expected-error@+1 {{'lead', 'rescale' and 'pack' are part of schedule field 'overlap', and this is none of its values; write overlap = 1, 2, 3, lead or scaled}}
#s = #tile.schedule<lead = 0>

// -----

// expected-error@+1 {{schedule field 'transpose' is the warps that transpose; write transpose = 4, or 1 to 3 for warps beside the producer, or 0}}
#s = #tile.schedule<transpose = apart, transposer_warps = many>

// -----

// expected-error@+1 {{'staging' is no field of a schedule any more; leave it out}}
#s = #tile.schedule<store = tma, staging = shared>

// -----

// expected-error@+1 {{schedule field 'store' takes direct, tma or writer, got 'lent'}}
#s = #tile.schedule<store = lent>

// -----

// expected-error@+1 {{schedule field 'cluster' takes 1, 2, 4, 8, 16 or exchange, got '3'}}
#s = #tile.schedule<cluster = 3>

// -----

// expected-error@+1 {{schedule field 'section' is 1, 2, 4, 8 or 16, got 24}}
#s = #tile.schedule<section = 24>

// -----

// expected-error@+1 {{schedule field 'producer_registers' is a multiple of 8 from 24 to 256, got 16}}
#s = #tile.schedule<producer_registers = 16>

// -----

// expected-error@+1 {{schedule field 'consumer_registers' is a multiple of 8 from 24 to 256, or a list of at most 8 such numbers, got 100}}
#s = #tile.schedule<consumer_registers = 100, placement = rows, producer = operands, transpose = 0, work = tiles>

// -----

// expected-error@+1 {{schedule field 'pingpong' takes true or false, got '2'}}
#s = #tile.schedule<pingpong = 2>

// -----

// expected-error@+1 {{schedule field 'stages' takes 1 to 8, or a list of at most 8 such numbers, got 'two'}}
#s = #tile.schedule<stages = two>

// -----

// expected-error@+1 {{schedule field 'store' takes direct, tma or writer, got 'bulk'}}
#s = #tile.schedule<store = bulk>

// -----

// expected-error@+1 {{'split' is no field of a schedule any more; leave it out, or compile with --no-split, which leaves masks in all iterations}}
#s = #tile.schedule<stages = 2, split = false>

// -----

// expected-error@+1 {{'pdl' is no field of a schedule any more; leave it out, or compile with --pdl}}
#s = #tile.schedule<pdl = true>

// -----

// expected-error@+1 {{'operands' is no field of a schedule any more; leave it out: computed first operands of dots are in registers}}
#s = #tile.schedule<operands = shared>

// -----

// expected-error@+1 {{'helper_registers' is no field of a schedule any more and took a number, not 'many'; leave it out: the program says what these roles need}}
#s = #tile.schedule<helper_registers = many>

// -----

// expected-error@+1 {{'sums' is no field of a schedule any more; leave it out, and write fixed_sums in the head of the kernel}}
#s = #tile.schedule<sums = fixed>

// -----

// expected-error@+1 {{'exchange' is part of schedule field 'cluster', and this is none of its values; write cluster = exchange, or 1, 2 or 4}}
#s = #tile.schedule<cluster = 2, exchange = 2>

// -----

// expected-error@+1 {{'exchange' is part of schedule field 'cluster', and this is none of its values}}
#s = #tile.schedule<cluster = 4, exchange = 1>

// -----

// expected-error@+1 {{'warp_specialize' and 'loads' are part of schedule field 'producer', and this is none of its values; write producer = none, operands or all}}
#s = #tile.schedule<warp_specialize = false, loads = pipe>

// -----

// expected-error@+1 {{'warp_specialize' and 'loads' are part of schedule field 'producer', and this is none of its values}}
#s = #tile.schedule<producer = all, warp_specialize = true>

// -----

// expected-error@+1 {{'pin_waits' is part of schedule field 'work', and this is none of its values; write work = pinned, or tiles}}
#s = #tile.schedule<pin_waits = true, work = elements>

// -----

// expected-error@+1 {{'pin_waits' is part of schedule field 'work', and this is none of its values}}
#s = #tile.schedule<pin_waits = 1>

// -----

// expected-error@+1 {{unknown schedule field 'depth'; known are producer, consumers, stages, outer_stages, overlap, polynomial_exp, pingpong, speculate, store, persistent, order, section, cluster, producer_registers, consumer_registers}}
#s = #tile.schedule<depth = 2>

// -----

// expected-error@+2 {{custom op 'tile.kernel' has fixed_sums behind schedule; in the head of a kernel stand grid, requires, fixed_sums, schedule and attributes, in this order}}
tile.kernel @head(%x: !tile.view<[M], f32>) grid(%i = M)
    schedule #tile.schedule<consumers = 2> fixed_sums {
}
