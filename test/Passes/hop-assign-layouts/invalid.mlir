// Tiles that registers cannot hold, and tiles that would need two layouts.
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-assign-layouts))' -split-input-file -verify-diagnostics

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], f32>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[N], f32>, %m: index):
  // HERE
}

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %f = arith.constant 1.0 : f32
    // expected-error@+1 {{makes a tile of rank 3}}
    %a = builtin.unrealized_conversion_cast %f : f32 to tensor<4x4x4xf32>
  }

// CASE
  %pipe = hop.pipe.create "b" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %b = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s = hop.mma %b, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
    hop.pipe.release %pipe, %b : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{makes a tile of 32x64 for each warpgroup; registers hold multiples of 64 rows and 8 columns}}
    %a = tile.load %x[%m, %m] : !tile.view<[M, 64], f32> -> tensor<32x64xf32>
  }

// CASE
  %pipe = hop.pipe.create "b" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %b = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s = hop.mma %b, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
    hop.pipe.release %pipe, %b : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{makes a tile of 64x12 for each warpgroup}}
    %a = tile.load %x[%m, %m] : !tile.view<[M, 64], f32> -> tensor<64x12xf32>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{makes a tile without elements, 'tensor<0x64xf32>'}}
    %a = tile.load %x[%m, %m] : !tile.view<[M, 64], f32> -> tensor<0x64xf32>
  }

// CASE
  %pipe = hop.pipe.create "b" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %b = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s = hop.mma %b, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
    hop.pipe.release %pipe, %b : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{makes a tile of 17 rows for each warpgroup; registers hold multiples of 64}}
    %a = tile.load %y[%m] : !tile.view<[N], f32> -> tensor<17xf32>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{makes a tile 'tensor<64x64xindex>'; tiles in registers have a static shape and elements f16, bf16, f32, f8E4M3FN, f8E5M2, i8, i32, i64 or i1}}
    %a = tile.splat %m : index -> tensor<64x64xindex>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{makes a tile 'tensor<?xf32>'; tiles in registers have a static shape}}
    %a = builtin.unrealized_conversion_cast %m : index to tensor<?xf32>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = tile.load %y[%m] : !tile.view<[N], f32> -> tensor<64xf32>
    %c = tile.broadcast %a axis 1 : tensor<64xf32> -> tensor<64x64xf32>
    // expected-error@+1 {{needs a rank-1 tile both along rows and along columns}}
    %r = tile.broadcast %a axis 0 : tensor<64xf32> -> tensor<64x64xf32>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = tile.load %y[%m] : !tile.view<[N], f32> -> tensor<64xf32>
    %c = tile.broadcast %a axis 0 : tensor<64xf32> -> tensor<64x64xf32>
    %s = tile.reduce max %c axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    // expected-error@+1 {{needs a rank-1 tile both along rows and along columns}}
    %r = arith.addf %a, %s : tensor<64xf32>
  }

// CASE
  // expected-error@+1 {{128 threads that move 4 neighbours each cannot share 2x64 tiles; 2x256 would work: what is outside of a view loads as 0 and is not stored}}
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = tile.load %x[%m, %m] : !tile.view<[M, 64], f32> -> tensor<2x64xf32>
  }

// FRAME
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %m: index):
  %bytes = hop.staging "bytes" : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.fetch %bytes transposed : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
    %a = arith.extf %t : tensor<64x64xf8E4M3FN> to tensor<64x64xf16>
    %s = hop.mma %a, %b : tensor<64x64xf16>, !hop.shared<tensor<64x64xf16>, rows = 64> -> tensor<64x64xf32>
    // HERE
    tile.store %more, %x[%m, %m] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
  }
}

// CASE
// A product that goes on with a first operand in shared memory, whose rows are in order.
    // expected-error@+1 {{takes in order the rows of a product whose first operand is extended from 8 bits and transposed, and registers have these in pairs; store the product, and go on in a kernel of its own}}
    %more = hop.mma %b, %b acc(%s : tensor<64x64xf32>) : !hop.shared<tensor<64x64xf16>, rows = 64>, !hop.shared<tensor<64x64xf16>, rows = 64> -> tensor<64x64xf32>

// CASE
// A second operand goes through shared memory, and so does a first one that is transposed.
    %h = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    // expected-error@+1 {{takes in order the rows of a product whose first operand is extended from 8 bits and transposed}}
    %more = hop.mma %b, %h : !hop.shared<tensor<64x64xf16>, rows = 64>, tensor<64x64xf16> -> tensor<64x64xf32>

// CASE
// Elements of 8 bits are four to a register, of rows in order.
    // expected-error@+1 {{takes in order the rows of a product whose first operand is extended from 8 bits and transposed}}
    %rounded = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf8E4M3FN>
    %more = arith.extf %rounded : tensor<64x64xf8E4M3FN> to tensor<64x64xf32>
