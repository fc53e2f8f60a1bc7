// What the verifiers of the dialect refuse of operations on tiles.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

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
