// What the verifiers of the dialect refuse of operations by where they stand and what they are used for.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

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

// -----

tile.kernel @row_behind_the_end(%x: !tile.view<[M, 64], f32>, %n: index) grid(%m = M) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'tile.row' op is read by 'arith.addi', and only loads and stores know where its rows end}}
  %row = tile.row %m below %n
  %next = arith.addi %row, %m : index
  %t = tile.load %x[%next, %c0] : !tile.view<[M, 64], f32> -> tensor<32x64xf32>
}
