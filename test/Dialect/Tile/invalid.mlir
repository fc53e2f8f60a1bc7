// RUN: tessera-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

// Kernels.

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

// expected-error@+1 {{'staging' is part of schedule field 'store'; write store = lent}}
#s = #tile.schedule<store = direct, staging = shared>

// -----

// expected-error@+1 {{schedule field 'cluster' takes 1, 2, 4 or exchange, got '3'}}
#s = #tile.schedule<cluster = 3>

// -----

// expected-error@+1 {{schedule field 'section' is 1, 2, 4, 8 or 16, got 24}}
#s = #tile.schedule<section = 24>

// -----

// expected-error@+1 {{schedule field 'producer_registers' is a multiple of 8 from 24 to 256, got 16}}
#s = #tile.schedule<producer_registers = 16>

// -----

// expected-error@+1 {{schedule field 'consumer_registers' is a multiple of 8 from 24 to 256, or a list of at most 8 such numbers, got 100}}
#s = #tile.schedule<consumer_registers = 100, placement = rows, helper_registers = 24, producer = operands, transpose = 0, sums = any, work = tiles>

// -----

// expected-error@+1 {{schedule field 'pingpong' takes true or false, got '2'}}
#s = #tile.schedule<pingpong = 2>

// -----

// expected-error@+1 {{schedule field 'stages' takes 1 to 8, or a list of at most 8 such numbers, got 'two'}}
#s = #tile.schedule<stages = two>

// -----

// expected-error@+1 {{schedule field 'store' takes direct, tma, lent or writer, got 'bulk'}}
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

// Memory.

tile.kernel @dim(%x: !tile.view<[M, N], f32>) grid(%m = M) {
  // expected-error@+1 {{'tile.dim' op names the dimension 'K', which no view of the kernel has; it has M, N}}
  %k = tile.dim "K"
}

// -----

tile.kernel @load_indices(%x: !tile.view<[M, N], f32>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op takes one index per dimension of the view: expected 2, got 1}}
  %t = tile.load %x[%m] : !tile.view<[M, N], f32> -> tensor<16xf32>
}

// -----

tile.kernel @load_element(%x: !tile.view<[M], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op has a tile of 'f32' and a view of 'f16'}}
  %t = tile.load %x[%m] : !tile.view<[M], f16> -> tensor<16xf32>
}

// -----

tile.kernel @load_scalar_element(%x: !tile.view<[M], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op has a tile of 'f32' and a view of 'f16'}}
  %t = tile.load %x[%m] : !tile.view<[M], f16> -> f32
}

// -----

tile.kernel @load_scalar_type(%x: !tile.view<[M], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op has a tile of 'i32' and a view of 'f16'; move elements of the view's type, and convert them}}
  %t = tile.load %x[%m] : !tile.view<[M], f16> -> i32
}

// -----

tile.kernel @load_rank(%x: !tile.view<[M], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op moves tiles of rank 1 or 2, at most the rank of the view (1), got 'tensor<16x16xf16>'}}
  %t = tile.load %x[%m] : !tile.view<[M], f16> -> tensor<16x16xf16>
}

// -----

tile.kernel @load_dynamic(%x: !tile.view<[M], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op result #0 must be statically shaped tensor of 16-bit float or bfloat16 type or 32-bit float or f8E4M3FN type or f8E5M2 type or 8-bit signless integer or 32-bit signless integer or 64-bit signless integer values or 16-bit float or bfloat16 type or 32-bit float or f8E4M3FN type or f8E5M2 type or 8-bit signless integer or 32-bit signless integer or 64-bit signless integer, but got 'tensor<?xf16>'}}
  %t = tile.load %x[%m] : !tile.view<[M], f16> -> tensor<?xf16>
}

// -----

tile.kernel @store_indices(%x: !tile.view<[M, N], f32>, %a: f32) grid(%m = M) {
  %t = tile.splat %a : f32 -> tensor<16xf32>
  // expected-error@+1 {{'tile.store' op takes one index per dimension of the view: expected 2, got 3}}
  tile.store %t, %x[%m, %m, %m] : tensor<16xf32>, !tile.view<[M, N], f32>
}

// -----

// Dots.

%a, %b = "test.tiles"() : () -> (tensor<64x32xf16>, tensor<64x32xf16>)
// expected-error@+1 {{'tile.dot' op contracts dimension 1 of a (32) with dimension 0 of b (64), which differ; transpose an operand?}}
%c = tile.dot %a, %b : tensor<64x32xf16>, tensor<64x32xf16> -> tensor<64x32xf32>

// -----

%a, %b = "test.tiles"() : () -> (tensor<64x32xf16>, tensor<32x16xf16>)
// expected-error@+1 {{'tile.dot' op result is 64x16 for 'tensor<64x32xf16>' and 'tensor<32x16xf16>', got 'tensor<64x32xf32>'}}
%c = tile.dot %a, %b : tensor<64x32xf16>, tensor<32x16xf16> -> tensor<64x32xf32>

// -----

%a, %b = "test.tiles"() : () -> (tensor<64x32xf16>, tensor<32xf16>)
// expected-error@+1 {{'tile.dot' op operands and result have rank 2}}
%c = tile.dot %a, %b : tensor<64x32xf16>, tensor<32xf16> -> tensor<64xf32>

// -----

%a, %b = "test.tiles"() : () -> (tensor<64x32xf16>, tensor<32x16xbf16>)
// expected-error@+1 {{'tile.dot' op operands have one element type, got 'f16' and 'bf16'}}
%c = tile.dot %a, %b : tensor<64x32xf16>, tensor<32x16xbf16> -> tensor<64x16xf32>

// -----

%a, %b = "test.tiles"() : () -> (tensor<64x32xf32>, tensor<32x16xf32>)
// expected-error@+1 {{'tile.dot' op operands are f16, bf16, f8E4M3FN or f8E5M2, got 'f32'; round them with arith.truncf, or give f32 a precision, as 'precision bf16x3'}}
%c = tile.dot %a, %b : tensor<64x32xf32>, tensor<32x16xf32> -> tensor<64x16xf32>

// -----

%a, %b = "test.tiles"() : () -> (tensor<64x32xf16>, tensor<32x16xf16>)
// expected-error@+1 {{'tile.dot' op accumulates in f32, got a result of 'f16'}}
%c = tile.dot %a, %b : tensor<64x32xf16>, tensor<32x16xf16> -> tensor<64x16xf16>

// -----

%a, %b, %c = "test.tiles"() : () -> (tensor<64x32xf16>, tensor<32x16xf16>, tensor<16x64xf32>)
// expected-error@+1 {{'tile.dot' op accumulator is 'tensor<16x64xf32>', the result 'tensor<64x16xf32>'}}
%d = "tile.dot"(%a, %b, %c) : (tensor<64x32xf16>, tensor<32x16xf16>, tensor<16x64xf32>) -> tensor<64x16xf32>

// -----

// Other computation.

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.reduce' op axis 2 is outside a tile of rank 2}}
%b = tile.reduce sum %a axis 2 : tensor<64x32xf32> -> tensor<64xf32>

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.reduce' op reduces a tile of rank 2 to one of rank 1 without axis 0: expected 'tensor<32xf32>', got 'tensor<64xf32>'}}
%b = tile.reduce max %a axis 0 : tensor<64x32xf32> -> tensor<64xf32>

// -----

%a = "test.tile"() : () -> tensor<64xf32>
// expected-error@+1 {{'tile.reduce' op reduces a tile of rank 2 to one of rank 1, got 'tensor<64xf32>'; tile.reduce_all makes a number of all elements}}
%b = tile.reduce min %a axis 0 : tensor<64xf32> -> tensor<f32>

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.reduce' op keeps the type of the elements, 'f32', got 'tensor<64xf16>'}}
%b = tile.reduce min %a axis 1 : tensor<64x32xf32> -> tensor<64xf16>

// -----

%a = "test.tile"() : () -> tensor<64x32xf16>
// expected-error@+1 {{'tile.reduce_all' op makes a number of the type of the elements, 'f16', got 'f32'}}
%b = tile.reduce_all sum %a : tensor<64x32xf16> -> f32

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.scan' op axis 2 is outside a tile of rank 2}}
%b = tile.scan sum %a axis 2 : tensor<64x32xf32>

// -----

%a = "test.tile"() : () -> tensor<64xi32>
// expected-error@+1 {{'tile.scan' op takes max or min of integers, which have no NaN, got maximum}}
%b = tile.scan maximum %a axis 0 : tensor<64xi32>

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.reduce' op makes a product, which tile.scan alone does; its last element is that of all, and tile.reduce takes sum, max, min, maximum or minimum}}
%b = tile.reduce product %a axis 1 : tensor<64x32xf32> -> tensor<64xf32>

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.reduce_all' op makes a product, which tile.scan alone does}}
%b = tile.reduce_all product %a : tensor<64x32xf32> -> f32

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.reduce_index' op makes a product, which tile.scan alone does}}
%b, %c = tile.reduce_index product %a axis 1 : tensor<64x32xf32> -> tensor<64xf32>, tensor<64xi32>

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.reduce' op has a limit, which sums of f32 take; leave it out for a max of 'f32'}}
%b = tile.reduce max %a axis 1 limit 448.0 : tensor<64x32xf32> -> tensor<64xf32>

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.reduce_index' op asks where a sum is, which is no element; max, min, maximum and minimum have an index, and tile.reduce makes a sum}}
%b, %c = tile.reduce_index sum %a axis 1 : tensor<64x32xf32> -> tensor<64xf32>, tensor<64xi32>

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.reduce_index' op reduces a tile of rank 2 to one of rank 1 without axis 1: expected 'tensor<64xi32>', got 'tensor<32xi32>'}}
%b, %c = tile.reduce_index max %a axis 1 : tensor<64x32xf32> -> tensor<64xf32>, tensor<32xi32>

// -----

%a = "test.tile"() : () -> tensor<64xf32>
// expected-error@+1 {{'tile.reduce_index' op reduces a tile of rank 2 to one of rank 1, got 'tensor<64xf32>'; tile.reduce_all makes a number of all elements}}
%b, %c = tile.reduce_index max %a axis 0 : tensor<64xf32> -> tensor<f32>, tensor<i32>

// -----

%a, %b = "test.tile"() : () -> (tensor<64x32xf16>, tensor<32x16xf16>)
// expected-error@+1 {{'tile.dot' op has a precision, which operands of f32 take; leave it out for 'f16'}}
%c = tile.dot %a, %b precision f16x3 : tensor<64x32xf16>, tensor<32x16xf16> -> tensor<64x16xf32>

// -----

%a, %b = "test.tiles"() : () -> (tensor<64x32xf32>, tensor<32x16xf32>)
// expected-error@+1 {{'tile.dot' op has precision tf32, which no pass lowers: wgmma reads it from shared memory with both operands along k; bf16x3 keeps 16 bits of each number, tf32 11}}
%c = tile.dot %a, %b precision tf32 : tensor<64x32xf32>, tensor<32x16xf32> -> tensor<64x16xf32>

// -----

%a, %b = "test.tiles"() : () -> (tensor<64x32xf32>, tensor<32x16xf32>)
// expected-error@+1 {{expected string or keyword containing one of the following enum values for attribute 'precision' [bf16, f16, bf16x3, f16x3, bf16x6, tf32]}}
%c = tile.dot %a, %b precision bf16x2 : tensor<64x32xf32>, tensor<32x16xf32> -> tensor<64x16xf32>

// -----

%a = "test.tile"() : () -> tensor<64xf32>
// expected-error@+1 {{'tile.broadcast' op repeats a rank-1 tile along axis 0 or 1 of a rank-2 tile of the same element type, whose other axis has its extent; got 'tensor<64xf32>' along axis 0 to 'tensor<64x32xf32>'}}
%b = tile.broadcast %a axis 0 : tensor<64xf32> -> tensor<64x32xf32>

// -----

%a = "test.scalar"() : () -> i32
// expected-error@+1 {{'tile.splat' op source is 'i32', the tile's elements are 'f32'}}
%b = tile.splat %a : i32 -> tensor<64xf32>

// -----

%a = "test.tile"() : () -> tensor<64x32xf32>
// expected-error@+1 {{'tile.transpose' op exchanges the axes of a rank-2 tile: got 'tensor<64x32xf32>' to 'tensor<64x32xf32>'}}
%b = tile.transpose %a : tensor<64x32xf32> -> tensor<64x32xf32>

// -----

%a = "test.index"() : () -> index
// expected-error@+1 {{'tile.iota' op makes a tile of rank 1 or 2 with indices along one of its axes; got axis 1 of 'tensor<64xi32>'}}
%b = tile.iota %a axis 1 : tensor<64xi32>

// -----

%a = "test.index"() : () -> index
// expected-error@+1 {{'tile.iota' op makes a tile of rank 1 or 2 with indices along one of its axes; got axis 0 of 'tensor<2x2x2xi32>'}}
%b = tile.iota %a axis 0 : tensor<2x2x2xi32>

// -----

tile.kernel @types(%y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %true = arith.constant true
  %a = arith.constant 1.0 : f32
  %i = arith.constant 1 : i32
  %r = tile.speculate -> f32 {
    // expected-error@+1 {{yields the results of the speculation, of types 'f32', got 'i32'}}
    tile.yield_if %true, %i : i1, i32
  } exact {
    tile.yield %a : f32
  }
}

// -----

tile.kernel @terminators(%y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %true = arith.constant true
  // expected-error@+1 {{ends its exact region with tile.yield}}
  tile.speculate {
    tile.yield_if %true : i1
  } exact {
    tile.yield_if %true : i1
  }
}

// -----

tile.kernel @two(%y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %true = arith.constant true
  // expected-note@+1 {{the first is here}}
  tile.speculate {
    tile.yield_if %true : i1
  } exact {
    tile.yield
  }
  // expected-error@+1 {{is the second of the kernel; a grid point succeeds or fails as a whole, so put both into one and join their predicates}}
  tile.speculate {
    tile.yield_if %true : i1
  } exact {
    tile.yield
  }
}

// -----

tile.kernel @in_place(%y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{may run a grid point twice, so the kernel may not load what it stores, and it does both with 'y'}}
  tile.speculate {
    tile.yield_if %true : i1
  } exact {
    tile.yield
  }
  %t = tile.load %y[%m, %c0] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
  tile.store %t, %y[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @in_a_loop(%y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %m step %c1 {
    // expected-error@+1 {{expects parent op to be one of 'tile.kernel, tile.split_reduce'}}
    tile.speculate {
      tile.yield_if %true : i1
    } exact {
      tile.yield
    }
  }
}

// -----

// Boxes and periods.

tile.kernel @box_rank(%x: !tile.view<[B, M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op has a box of one extent per dimension of the view: expected 3, got 2}}
  %t = tile.load %x[%m, %m, %m] box [64, 64] : !tile.view<[B, M, 64], f16> -> tensor<64x64xf16>
}

// -----

tile.kernel @box_rows(%x: !tile.view<[B, M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op has the box [2, 16, 64], which does not make up 'tensor<64x64xf16>': the last extent of the box is the columns of a rank-2 tile, the product of the others its rows}}
  %t = tile.load %x[%m, %m, %m] box [2, 16, 64] : !tile.view<[B, M, 64], f16> -> tensor<64x64xf16>
}

// -----

tile.kernel @box_columns(%x: !tile.view<[B, M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op has the box [2, 64, 32], which does not make up 'tensor<64x64xf16>'}}
  %t = tile.load %x[%m, %m, %m] box [2, 64, 32] : !tile.view<[B, M, 64], f16> -> tensor<64x64xf16>
}

// -----

tile.kernel @box_zero(%x: !tile.view<[B, M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op has the box [0, 64, 64], whose extents are at least 1 and whose elements are those of 'tensor<64x64xf16>'}}
  %t = tile.load %x[%m, %m, %m] box [0, 64, 64] : !tile.view<[B, M, 64], f16> -> tensor<64x64xf16>
}

// -----

// A product that would not fit 64 bits.
tile.kernel @box_large(%x: !tile.view<[B, M], f16>, %a: f32) grid(%m = M) {
  %t = tile.splat %a : f32 -> tensor<64xf32>
  %h = arith.truncf %t : tensor<64xf32> to tensor<64xf16>
  // expected-error@+1 {{'tile.store' op has the box [4611686018427387904, 4611686018427387904], whose extents are at least 1}}
  tile.store %h, %x[%m, %m] box [4611686018427387904, 4611686018427387904] : tensor<64xf16>, !tile.view<[B, M], f16>
}

// -----

tile.kernel @box_scalar(%x: !tile.view<[M], f16>) grid(%m = M) {
  // expected-error@+1 {{'tile.load' op moves one element, which has no box}}
  %t = tile.load %x[%m] box [1] : !tile.view<[M], f16> -> f16
}

// -----

tile.kernel @stores_an_element_of_a_box(%x: !tile.view<[M, 64], f32>, %a: f32) grid(%m = M) {
  // expected-error@+1 {{'tile.store' op moves one element, which has no box}}
  tile.store %a, %x[%m, %m] box [1, 1] : f32, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @stores_an_element_of_another_type(%x: !tile.view<[M, 64], f32>, %a: i32) grid(%m = M) {
  // expected-error@+1 {{'tile.store' op has a tile of 'i32' and a view of 'f32'; move elements of the view's type, and convert them}}
  tile.store %a, %x[%m, %m] : i32, !tile.view<[M, 64], f32>
}

// -----

tile.kernel @any_of_numbers(%x: !tile.view<[M, 64], i32>) grid(%m = M) {
  %t = tile.load %x[%m, %m] : !tile.view<[M, 64], i32> -> tensor<64xi32>
  // expected-error@+1 {{'tile.any' op operand #0 must be statically shaped tensor of 1-bit signless integer values}}
  %some = tile.any %t : tensor<64xi32>
}

// -----

%a = arith.constant 0 : index
// expected-error@+1 {{'tile.iota' op repeats in periods that divide the extent of the axis, 64; got 24}}
%b = tile.iota %a axis 0 period 24 : tensor<64x8xi32>

// -----

%a = arith.constant 0 : index
// expected-error@+1 {{'tile.iota' op repeats in periods that divide the extent of the axis, 8; got 0}}
%b = tile.iota %a axis 1 period 0 : tensor<64x8xi32>

// -----

// expected-error@+1 {{the factor of a requirement is 1 to 2^31 - 1, got 0}}
tile.kernel @factor(%x: !tile.view<[M, N], f16>) grid(%m = M) requires(0 * M divides N) {
}

// -----

// expected-error@+1 {{the bound of an extent is 1 to 2^31 - 1, got 0}}
tile.kernel @bound(%x: !tile.view<[M, N], f16>) grid(%m = M) requires(N <= 0) {
}

// -----

// expected-error@+1 {{'tile.kernel' op requires names the dimension 'K', which no view of the kernel has}}
tile.kernel @bound_name(%x: !tile.view<[M, N], f16>) grid(%m = M) requires(K <= 8) {
}

// -----

// expected-error@+1 {{'tile.kernel' op requires names the dimension 'K', which no view of the kernel has}}
tile.kernel @factor_name(%x: !tile.view<[M, N], f16>) grid(%m = M) requires(2 * K divides N) {
}

// -----

// Products of extents fit 64 bits, also before a loop or an exponential is weighed.
tile.kernel @huge(%x: !tile.view<[M, 2147483648], f16>) grid(%m = M) {
  // expected-error@+1 {{'arith.constant' op a tile has at most 16777216 elements, got 'tensor<2147483648x2147483648xf32>'}}
  %t = arith.constant dense<0.0> : tensor<2147483648x2147483648xf32>
}

// -----

func.func @huge_box(%x: !tile.view<[M, N], f16>, %m: index) {
  // expected-error@+1 {{'tile.load' op a tile has at most 16777216 elements, got 'tensor<4294967296x4294967296xf16>'}}
  %t = tile.load %x[%m, %m] box [4294967296, 4294967296] : !tile.view<[M, N], f16> -> tensor<4294967296x4294967296xf16>
  func.return
}

// -----

// The rule for what a kernel with a speculation loads and stores looks at operations that are not verified yet.
tile.kernel @stores_no_view(%x: i64, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  %v = arith.constant dense<true> : tensor<64xi1>
  %t = arith.constant dense<0.0> : tensor<64xf32>
  %r = tile.speculate -> tensor<64xf32> {
    tile.yield_if %v, %t : tensor<64xi1>, tensor<64xf32>
  } exact {
    tile.yield %t : tensor<64xf32>
  }
  // expected-error@+1 {{'tile.store' op operand #1 must be A strided tensor in global memory, but got 'i64'}}
  "tile.store"(%r, %x, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>}> : (tensor<64xf32>, i64, index) -> ()
}

// -----

// What passes know about loads.

tile.kernel @alike(%x: !tile.view<[M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{is alike in all blocks of a cluster in a pipe, and has none}}
  %t = tile.load %x[%m, %m] alike : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
}

// -----

tile.kernel @ahead(%x: !tile.view<[M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{is kept for the next load of its pipe, and has none}}
  %t = tile.load %x[%m, %m] ahead : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
}

// -----

tile.kernel @wide(%x: !tile.view<[M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{says how the tiles of its pipe lie in shared memory, and has none}}
  %t = tile.load %x[%m, %m] wide : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
}

// -----

tile.kernel @pipe(%x: !tile.view<[M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{attribute 'pipe' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %t = tile.load %x[%m, %m] pipe -1 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
}

// -----

tile.kernel @site(%x: !tile.view<[M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{attribute 'site' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %t = tile.load %x[%m, %m] site -1 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
}

// -----

tile.kernel @skip(%x: !tile.view<[M, 64], f16>) grid(%m = M) {
  // expected-error@+1 {{attribute 'pipes' failed to satisfy constraint: i64 dense array attribute whose value is non-negative}}
  tile.skip_loads [-1] times %m
}

// -----

// Attributes of the dialect on operations of others.

// expected-error@+1 {{has the attribute "tile.pipe", which is none of tile; known are tile.overridable, tile.gradient_of, tile.with_respect_to, tile.zero_sum_over, tile.parameters, tile.boundary, tile.polynomial, tile.polynomial_precise, tile.few_tiles}}
"test.op"() {tile.pipe = 1 : i64} : () -> ()

// -----

// expected-error@+1 {{has "tile.gradient_of" = unit; it is the name of a function, of a func.func}}
"test.op"() {tile.gradient_of} : () -> ()

// -----

// expected-error@+1 {{has "tile.with_respect_to" = ["x"]; it is an array of names beside tile.gradient_of}}
"test.op"() {tile.with_respect_to = ["x"]} : () -> ()

// -----

// expected-error@+1 {{has "tile.zero_sum_over" = 3 : i64; it is an i64 from 0 on beside tile.with_respect_to}}
"test.op"() {tile.zero_sum_over = 3 : i64} : () -> ()

// -----

// expected-error@+1 {{has "tile.boundary" = unit; it is a unit of an scf.for}}
"test.op"() {tile.boundary} : () -> ()

// -----

// expected-error@+1 {{has "tile.few_tiles" = unit; it is a unit of a tile.kernel}}
"test.op"() {tile.few_tiles} : () -> ()

// -----

func.func @boundary(%n: index) {
  // expected-error@+1 {{has "tile.boundary" = 1 : i64; it is a unit of an scf.for}}
  scf.for %i = %n to %n step %n {
  } {tile.boundary = 1 : i64}
  func.return
}

// -----

func.func @polynomial(%x: f32) {
  // expected-error@+1 {{has "tile.polynomial" = 17 : i64; it is an i64 from 1 to 16 of a math.exp2 or math.exp of f32}}
  %y = math.exp2 %x {tile.polynomial = 17 : i64} : f32
  func.return
}

// -----

func.func @polynomial(%x: f16) {
  // expected-error@+1 {{has "tile.polynomial" = 8 : i64; it is an i64 from 1 to 16 of a math.exp2 or math.exp of f32}}
  %y = math.exp2 %x {tile.polynomial = 8 : i64} : f16
  func.return
}

// -----

func.func @polynomial(%x: f32) {
  // expected-error@+1 {{has "tile.polynomial" = 8 : i32; it is an i64 from 1 to 16 of a math.exp2 or math.exp of f32}}
  %y = math.exp %x {tile.polynomial = 8 : i32} : f32
  func.return
}

// -----

func.func @polynomial(%x: f32) {
  // expected-error@+1 {{has "tile.polynomial" = 8 : i64; it is an i64 from 1 to 16 of a math.exp2 or math.exp of f32}}
  %y = math.tanh %x {tile.polynomial = 8 : i64} : f32
  func.return
}

// -----

func.func @precise(%x: f32) {
  // expected-error@+1 {{has "tile.polynomial_precise" = unit; it is a unit beside tile.polynomial}}
  %y = math.exp2 %x {tile.polynomial_precise} : f32
  func.return
}

// -----

// expected-error@+1 {{has "tile.parameters" = {D = 64 : i64}; it is a dictionary of a module}}
"test.op"() {tile.parameters = {D = 64 : i64}} : () -> ()

// -----

func.func @f(%x: f32) -> f32 {
  func.return %x : f32
}
tile.kernel @k(%x: f32) grid(%m = 1) {
  %r = tile.splat %x : f32 -> tensor<32xf32>
  // expected-error @+1 {{repeats operand 0 along axis 1 of a tile of rank 2; it is a tile of rank 1 with the other axis' extent, got 'tensor<32xf32>' for 'tensor<64x64xf32>'}}
  %y = tile.map @f(%r axis 1) : (tensor<32xf32>) -> tensor<64x64xf32>
}

// -----

tile.kernel @k(%x: f32) grid(%m = 1) {
  %r = tile.splat %x : f32 -> tensor<32x32xf32>
  // expected-error @+1 {{takes tiles of the results' shape, vectors with an axis, and scalars; operand 0 is 'tensor<32x32xf32>', a result 'tensor<64x64xf32>'}}
  %y = tile.map @f(%r) : (tensor<32x32xf32>) -> tensor<64x64xf32>
}

// -----

tile.kernel @k(%x: f32) grid(%m = 1) {
  // expected-error @+1 {{a vector is repeated along axis 0 or 1, got 2}}
  %y = tile.map @f(%x axis 2) : (f32) -> tensor<64x64xf32>
}

// -----

tile.kernel @k(%x: f32) grid(%m = 1) {
  // expected-error @+1 {{gives a tile for each result of the function; it has none}}
  tile.map @f(%x) : (f32) -> ()
}

// -----

tile.kernel @k(%x: f32) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{ends its region with tile.mask}}
  %first, %past = tile.visits %j = %c0 to %m {
    "test.end"() : () -> ()
  }
}

// -----

tile.kernel @k(%x: i32) grid(%m = 1) {
  // expected-error @+1 {{takes the least or the largest of integers, min or max; got sum}}
  %sum = tile.reduce_range sum %i to 8 -> i32 {
    tile.yield %x : i32
  }
}

// -----

tile.kernel @k(%x: i64) grid(%m = 1) {
  // expected-error @+1 {{ends its region with a tile.yield of 'i32'}}
  %least = tile.reduce_range min %i to 8 -> i32 {
    tile.yield %x : i64
  }
}

// -----

tile.kernel @k(%x: i32) grid(%m = 1) {
  %least = tile.reduce_range min %i to 8 -> i32 {
    // expected-error @+1 {{stands in a tile.reduce_range, which has scalar arithmetic and loads of elements}}
    %t = tile.splat %x : i32 -> tensor<8xi32>
    tile.yield %x : i32
  }
}

// -----

tile.kernel @k(%x: i32) grid(%m = 1) {
  // expected-error @+1 {{attribute 'count' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %least = tile.reduce_range min %i to 0 -> i32 {
    tile.yield %x : i32
  }
}

// -----

tile.kernel @k(%x: !tile.view<[M, 64], bf16>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{has runs of 24 rows, which do not divide a tile of 64}}
  %t = tile.gather_runs %x[%c0, %c0] run 24 {
  ^bb0(%i: index):
    tile.yield %i, %c0 : index, index
  } : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
}

// -----

tile.kernel @k(%x: !tile.view<[M, 64], bf16>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{has a region of an index, the number of a run, and of what it takes from outside}}
  %t = tile.gather_runs %x[%c0, %c0] run 16 with (%m : index) {
  ^bb0(%i: index):
    tile.yield %i, %c0 : index, index
  } : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
}

// -----

tile.kernel @k(%x: !tile.view<[M, 64], bf16>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{ends its region with a tile.yield of indices: of the run's places along 1 to 1 dimensions, and of how many rows of it there are}}
  %t = tile.gather_runs %x[%c0, %c0] run 16 {
  ^bb0(%i: index):
    tile.yield %i : index
  } : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
}

// -----

tile.kernel @k(%x: !tile.view<[M, 64], bf16>, %n: !tile.view<[M], i32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %t = tile.gather_runs %x[%c0, %c0] run 16 {
  ^bb0(%i: index):
    // expected-error @+1 {{says where runs lie, and the kernel stores to its view}}
    %number = tile.load %n[%i] : !tile.view<[M], i32> -> i32
    %row = arith.index_cast %number : i32 to index
    tile.yield %row, %c0 : index, index
  } : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  // expected-note @+1 {{stored here}}
  tile.store %one, %n[%m] : i32, !tile.view<[M], i32>
}

// -----

// expected-error @+1 {{has "tile.overridable" = unit; it is a unit of a func.func}}
"test.op"() {tile.overridable} : () -> ()

// -----

tile.kernel @gathers_one_element(%x: !tile.view<[M], f32>) grid(%m = M) {
  // expected-error@+1 {{'tile.gather_elements' op takes an index that is a tile; with scalars alone tile.load gives the element, and tile.splat a tile of it}}
  %t = tile.gather_elements %x[%m] : !tile.view<[M], f32>, index -> tensor<64xf32>
}

// -----

tile.kernel @gathers_another_shape(%x: !tile.view<[M], f32>) grid(%m = M) {
  %i = tile.iota %m axis 0 : tensor<32xi32>
  // expected-error@+1 {{'tile.gather_elements' op has indices of 'tensor<32xi32>' for a tile of 'tensor<64xf32>'; they have its shape}}
  %t = tile.gather_elements %x[%i] : !tile.view<[M], f32>, tensor<32xi32> -> tensor<64xf32>
}

// -----

tile.kernel @gathers_what_it_stores(%x: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  %i = tile.iota %m axis 0 : tensor<64xi32>
  // expected-error@+1 {{'tile.gather_elements' op loads from a view that the kernel stores to, where any element may be meant; do one of them in a kernel of its own}}
  %t = tile.gather_elements %x[%i] : !tile.view<[M], f32>, tensor<64xi32> -> tensor<64xf32>
  // expected-note@+1 {{stored here}}
  tile.store %t, %x[%m] : tensor<64xf32>, !tile.view<[M], f32>
}

// -----

tile.kernel @gathers_of_too_few_indices(%x: !tile.view<[M, N], f32>) grid(%m = M) {
  %i = tile.iota %m axis 0 : tensor<64xi32>
  // expected-error@+1 {{'tile.gather_elements' op takes one index per dimension of the view: expected 2, got 1}}
  %t = tile.gather_elements %x[%i] : !tile.view<[M, N], f32>, tensor<64xi32> -> tensor<64xf32>
}

// -----

tile.kernel @walks_in_steps_of_two(%x: !tile.view<[M], f32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %down = tile.walks_down
  // expected-note@+1 {{this loop has other steps; go through it in steps of 1, and multiply}}
  scf.for %i = %c0 to %m step %c2 {
    // expected-error@+1 {{'tile.walk' op is of a loop in steps of 1, so that it has the same iterations from either end}}
    %j = tile.walk %i from %c0 to %m down %down
  }
}

// -----

tile.kernel @walks_in_unknown_steps(%x: !tile.view<[M], f32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %n = tile.dim "M"
  %down = tile.walks_down
  // expected-note@+1 {{this loop has other steps}}
  scf.for %i = %c0 to %m step %n {
    // expected-error@+1 {{'tile.walk' op is of a loop in steps of 1}}
    %j = tile.walk %i from %c0 to %m down %down
  }
}

// -----

tile.kernel @largest_of_columns(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[64], f32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 64], f32> -> tensor<32x64xf32>
  // expected-error@+1 {{'tile.masked_max' op takes a tile of rank 1 for the rows of one of rank 2, got 'tensor<64xf32>' and 'tensor<32x64xf32>'}}
  %r = tile.masked_max %zero, %t : tensor<64xf32>, tensor<32x64xf32>
}

// -----

tile.kernel @reference_of_a_tile(%x: !tile.view<[M, 64], f32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 64], f32> -> tensor<32x64xf32>
  // expected-error@+1 {{'tile.reference' op takes a number of f32 for each row, got 'tensor<32x64xf32>'}}
  %r = tile.reference %t : tensor<32x64xf32>
}
