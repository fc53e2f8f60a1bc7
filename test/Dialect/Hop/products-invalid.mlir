// What the verifiers of the dialect refuse of products, flights and layouts.
// RUN: %cases %s | tessera-opt -allow-unregistered-dialect -split-input-file -verify-diagnostics

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // HERE
}

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<32x64xbf16>, rows = 32>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies 64x64 by 32x64 into 64x64}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<32x64xbf16>, rows = 32> -> tensor<64x64xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x32xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies 64x64 by 64x32 into 64x64}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x32xbf16>, rows = 64> -> tensor<64x64xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies 64x64 by 64x64 into 128x64}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<128x64xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies f16, bf16, f8E4M3FN, f8E5M2 or f32 tiles of one type into f32}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xf16>, rows = 64> -> tensor<64x64xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xi32>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xi32>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies f16, bf16, f8E4M3FN, f8E5M2 or f32 tiles of one type into f32}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xi32>, rows = 64>, !hop.shared<tensor<64x64xi32>, rows = 64> -> tensor<64x64xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xf32>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %r = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    // expected-error@+1 {{reads 32-bit elements along K, got operand b with N innermost}}
    %d = hop.mma_issue %a, %a : !hop.shared<tensor<64x64xf32>, rows = 64>, !hop.shared<tensor<64x64xf32>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %t = hop.mma_wait %d pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xf32>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %r = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    // expected-error@+1 {{reads 32-bit elements along K, got operand a with M innermost}}
    %d = hop.mma_issue %a, %a {transpose_a, transpose_b} : !hop.shared<tensor<64x64xf32>, rows = 64>, !hop.shared<tensor<64x64xf32>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %t = hop.mma_wait %d pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xf32>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %r = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    // expected-error@+1 {{reads f32 operands from shared memory, got 'tensor<64x64xf32, #hop.layout<accumulator>>'}}
    %d = hop.mma_issue %r, %a {transpose_b} : tensor<64x64xf32, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xf32>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %t = hop.mma_wait %d pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies f16, bf16, f8E4M3FN, f8E5M2 or f32 tiles of one type into f32}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<32x64xbf16>, rows = 32>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{of a warpgroup has M in multiples of 64, got 32; change the rows of the tile or the number of consumers}}
    %d = hop.mma %a, %b : !hop.shared<tensor<32x64xbf16>, rows = 32>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<32x64xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<8x64xbf16>, rows = 8>
  %b = hop.staging "b" : !hop.shared<tensor<8x64xbf16>, rows = 8>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{has K in multiples of 16, got 8}}
    %d = hop.mma %a, %b {transpose_a} : !hop.shared<tensor<8x64xbf16>, rows = 8>, !hop.shared<tensor<8x64xbf16>, rows = 8> -> tensor<64x64xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<24x64xbf16>, rows = 24>
  %b = hop.staging "b" : !hop.shared<tensor<24x64xbf16>, rows = 24>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{has K in multiples of 16, got 24}}
    %d = hop.mma %a, %b {transpose_a} : !hop.shared<tensor<24x64xbf16>, rows = 24>, !hop.shared<tensor<24x64xbf16>, rows = 24> -> tensor<64x64xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{multiplies tiles of rank 2, got}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64xf32>
  }

// CASE
// A second operand in registers is a share of a tile that shared memory can hold, for each warpgroup.
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %b = arith.constant dense<0.0> : tensor<64x64xbf16>
    // expected-error@+1 {{multiplies 64x64 by 128x64 into 64x64}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, tensor<64x64xbf16> -> tensor<64x64xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %b = arith.constant dense<0.0> : tensor<64x24xbf16>
    // expected-error@+1 {{reads b from shared memory, where its rows are a multiple of 32 bytes and their number one of 8; got 'tensor<64x24xbf16>'}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, tensor<64x24xbf16> -> tensor<64x24xf32>
  }

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %b = arith.constant dense<0.0> : tensor<bf16>
    // expected-error@+1 {{reads b from shared memory, where its rows are a multiple of 32 bytes and their number one of 8; got 'tensor<bf16>'}}
    %d = hop.mma %a, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, tensor<bf16> -> tensor<64x64xf32>
  }

// -----
// N = 12: no tile that wgmma could read as B.
// expected-error@+1 {{got 'tensor<12x64xbf16>' in 12 rows}}
"test.op"() : () -> (!hop.shared<tensor<12x64xbf16>, rows = 12>)

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // HERE
}

// CASE
  %a = hop.staging "a" : !hop.shared<tensor<96x64xbf16>, rows = 96>
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{of a warpgroup has M in multiples of 64, got 96}}
    %d = hop.mma %a, %b : !hop.shared<tensor<96x64xbf16>, rows = 96>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<96x64xf32>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xbf16>
    // expected-error@+1 {{multiplies tiles of rank 2, got}}
    %d = hop.mma %a, %st : tensor<64xbf16>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64x64xbf16>
    // expected-error@+1 {{cannot transpose an operand in registers; run hop-stage-operands}}
    %d = hop.mma_issue %a, %st {transpose_a} : tensor<64x64xbf16>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32>>
    %t = hop.mma_wait %d pending 0 : !hop.flight<tensor<64x64xf32>> -> tensor<64x64xf32>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{copies registers, and its operand a is in shared memory}}
    %d = hop.mma_issue %st, %st {copies_a} : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32>>
    %t = hop.mma_wait %d pending 0 : !hop.flight<tensor<64x64xf32>> -> tensor<64x64xf32>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    // expected-error@+1 {{accumulator is 'tensor<64x64xf32, #hop.layout<accumulator>>', the result 'tensor<64x64xf32>'}}
    %d = hop.mma %st, %st acc(%a : tensor<64x64xf32, #hop.layout<accumulator>>) : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64x64xf32>
    // expected-error@+1 {{accumulator is 'tensor<64x64xf32>', the flight 'tensor<64x64xf32, #hop.layout<accumulator>>'}}
    %f = hop.mma_issue %st, %st acc(%a : tensor<64x64xf32>) : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{flight is used once, by the next product, a wait or a loop; it has 2 uses}}
    %f = hop.mma_issue %st, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %e = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{flight is used once, by the next product, a wait or a loop; it has 0 uses}}
    %f = hop.mma_issue %st, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %f = hop.mma_issue %st, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    // expected-error@+1 {{turns each flight into one tile}}
    %d:2 = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64x64xf32, #hop.layout<accumulator>>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %f = hop.mma_issue %st, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    // expected-error@+1 {{into 'tensor<64x64xf32>'}}
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{makes whole elements of parts or parts of whole elements, got}}
    %b = hop.convert_layout sum %a : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row>>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{makes whole elements of parts or parts of whole elements, got}}
    %b = hop.convert_layout sum %a : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<column>>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<column>>
    // expected-error@+1 {{makes whole elements of parts or parts of whole elements, got}}
    %b = hop.convert_layout sum %a : tensor<64xf32, #hop.layout<column>> -> tensor<64xf32, #hop.layout<row_partial>>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{makes whole elements of parts or parts of whole elements, got}}
    %b = hop.convert_layout sum %a : tensor<64xf32, #hop.layout<row>> -> tensor<128xf32, #hop.layout<row_partial>>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row_partial>>
    // expected-error@+1 {{takes a whole tile of rank 1 as a partial one, got}}
    %b = hop.row_factor %a : tensor<64xf32, #hop.layout<row_partial>> -> tensor<64xf32, #hop.layout<row_partial>>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{takes a whole tile of rank 1 as a partial one, got}}
    %b = hop.row_factor %a : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row>>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<column>>
    // expected-error@+1 {{takes a whole tile of rank 1 as a partial one, got}}
    %b = hop.row_factor %a : tensor<64xf32, #hop.layout<column>> -> tensor<64xf32, #hop.layout<row_partial>>
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    %b = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<column>>
    // expected-error@+1 {{requires the same encoding for all operands and results}}
    %c = "arith.addf"(%a, %b) : (tensor<64xf32, #hop.layout<row>>, tensor<64xf32, #hop.layout<column>>) -> tensor<64xf32, #hop.layout<row>>
  }

// CASE
  %b = hop.staging "b" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %a = arith.constant dense<1.0> : tensor<64x64xbf16, #hop.layout<row_pairs>>
    // expected-error@+1 {{has the rows of a fragment a in the result, got #hop.layout<row_pairs> and #hop.layout<accumulator>}}
    %d = hop.mma %a, %b : tensor<64x64xbf16, #hop.layout<row_pairs>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
