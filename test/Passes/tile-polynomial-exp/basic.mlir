// Exponentials whose results are rounded to 16 bits and summed are marked with the share of the schedule; of others a
// remark says where their f32 results are used. Outside of loops with dots nothing is marked.
//
// RUN: tessera-opt %s --tile-polynomial-exp -verify-diagnostics | FileCheck %s

!K = !tile.view<[N, 64], bf16>

// CHECK-LABEL: tile.kernel @marked
tile.kernel @marked(%a: !tile.view<[M, 64], bf16>, %k: !K, %o: !tile.view<[M, 64], f32>, %l: !tile.view<[M], f32>)
    grid(%i = M ceildiv 64) schedule #tile.schedule<polynomial_exp = 5> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %ones = arith.constant dense<1.0> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %row = arith.muli %i, %c64 : index
  %n = tile.dim "N"
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %acc, %sum = scf.for %j = %c0 to %n step %c64 iter_args(%old = %zero, %sum_old = %zeros) -> (tensor<64x64xf32>, tensor<64xf32>) {
    %kt = tile.load %k[%j, %c0] : !K -> tensor<64x64xbf16>
    %k_t = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %s = tile.dot %at, %k_t : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    // The exponential of a tanh: its result is divided by.
    // CHECK: math.exp2 %{{[^ ]+}} : tensor<64x64xf32>
    // expected-remark @+1 {{exponentials stay special functions, as their results are used in f32}}
    %t = math.exp2 %s : tensor<64x64xf32>
    // expected-note @+1 {{here; a rounding to 16 bits or a sum would do}}
    %t1 = arith.addf %t, %ones : tensor<64x64xf32>
    %x = arith.divf %ones, %t1 : tensor<64x64xf32>
    // Its sum is stored as f32.
    // CHECK: math.exp2 %{{[^ ]+}} {tile.polynomial = 5 : i64, tile.polynomial_precise} : tensor<64x64xf32>
    // expected-remark @+1 {{5 of 16 exponentials are polynomials, of fifth degree as their sums stay f32}}
    %p = math.exp2 %x : tensor<64x64xf32>
    %r = tile.reduce sum %p axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    // CHECK: math.exp %{{[^ ]+}} {tile.polynomial = 5 : i64} : tensor<64x64xf32>
    // expected-remark @+1 {{5 of 16 exponentials are polynomials}}
    %e = math.exp %s : tensor<64x64xf32>
    %p16 = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
    %e16 = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xf16>
    %e32 = arith.extf %e16 : tensor<64x64xf16> to tensor<64x64xf32>
    // A maximum is exact.
    // CHECK: math.exp2 %{{[^ ]+}} : tensor<64x64xf32>
    // expected-remark @+1 {{exponentials stay special functions, as their results are used in f32}}
    %m = math.exp2 %e32 : tensor<64x64xf32>
    // expected-note @+1 {{here; a rounding to 16 bits or a sum would do}}
    %max = tile.reduce max %m axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    // Row statistics are few.
    // CHECK: math.exp2 %{{[^ ]+}} : tensor<64xf32>
    %alpha = math.exp2 %max : tensor<64xf32>
    %sum_scaled = arith.mulf %sum_old, %alpha : tensor<64xf32>
    %sum_new = arith.addf %sum_scaled, %r : tensor<64xf32>
    %new = tile.dot %p16, %kt, %old : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    scf.yield %new, %sum_new : tensor<64x64xf32>, tensor<64xf32>
  }
  // CHECK: math.exp2 %{{[^ ]+}} : tensor<64x64xf32>
  %after = math.exp2 %acc : tensor<64x64xf32>
  %last = tile.reduce sum %after axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  %both = arith.addf %last, %sum : tensor<64xf32>
  tile.store %acc, %o[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
  tile.store %both, %l[%row] : tensor<64xf32>, !tile.view<[M], f32>
}

// A sum that only divides what is rounded, and through a speculation one of which the logarithm is stored.
// CHECK-LABEL: tile.kernel @normalised
tile.kernel @normalised(%a: !tile.view<[M, 64], bf16>, %k: !K, %o: !tile.view<[M, 64], bf16>, %l: !tile.view<[M], f32>)
    grid(%i = M ceildiv 64) schedule #tile.schedule<polynomial_exp = 16> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %row = arith.muli %i, %c64 : index
  %n = tile.dim "N"
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %acc, %sum = scf.for %j = %c0 to %n step %c64 iter_args(%old = %zero, %sum_old = %zeros) -> (tensor<64x64xf32>, tensor<64xf32>) {
    %kt = tile.load %k[%j, %c0] : !K -> tensor<64x64xbf16>
    %s = tile.dot %at, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    // CHECK: math.exp2 %{{[^ ]+}} {tile.polynomial = 16 : i64} : tensor<64x64xf32>
    // expected-remark @+1 {{16 of 16 exponentials are polynomials}}
    %p = math.exp2 %s : tensor<64x64xf32>
    %r = tile.reduce sum %p axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    %p16 = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
    %sum_new = arith.addf %sum_old, %r : tensor<64xf32>
    %new = tile.dot %p16, %kt, %old : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    scf.yield %new, %sum_new : tensor<64x64xf32>, tensor<64xf32>
  }
  %divisor = tile.broadcast %sum axis 1 : tensor<64xf32> -> tensor<64x64xf32>
  %quotient = arith.divf %acc, %divisor : tensor<64x64xf32>
  %ot = arith.truncf %quotient : tensor<64x64xf32> to tensor<64x64xbf16>
  tile.store %ot, %o[%row, %c0] : tensor<64x64xbf16>, !tile.view<[M, 64], bf16>
  %lse = tile.speculate -> tensor<64xf32> {
    %f = scf.for %j = %c0 to %n step %c64 iter_args(%sum_old = %zeros) -> tensor<64xf32> {
      %kt = tile.load %k[%j, %c0] : !K -> tensor<64x64xbf16>
      %s = tile.dot %at, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      // CHECK: math.exp2 %{{[^ ]+}} {tile.polynomial = 16 : i64, tile.polynomial_precise} : tensor<64x64xf32>
      // expected-remark @+1 {{16 of 16 exponentials are polynomials, of fifth degree as their sums stay f32}}
      %p = math.exp2 %s : tensor<64x64xf32>
      %r = tile.reduce sum %p axis 1 : tensor<64x64xf32> -> tensor<64xf32>
      %sum_new = arith.addf %sum_old, %r : tensor<64xf32>
      scf.yield %sum_new : tensor<64xf32>
    }
    %valid = arith.cmpf oge, %f, %zeros : tensor<64xf32>
    tile.yield_if %valid, %f : tensor<64xi1>, tensor<64xf32>
  } exact {
    tile.yield %zeros : tensor<64xf32>
  }
  %log = math.log %lse : tensor<64xf32>
  tile.store %log, %l[%row] : tensor<64xf32>, !tile.view<[M], f32>
}

// CHECK-LABEL: tile.kernel @none
tile.kernel @none(%a: !tile.view<[M, 64], bf16>, %k: !K, %l: !tile.view<[M], f32>)
    grid(%i = M ceildiv 64) schedule #tile.schedule<polynomial_exp = 0> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %row = arith.muli %i, %c64 : index
  %n = tile.dim "N"
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%old = %zeros) -> (tensor<64xf32>) {
    %kt = tile.load %k[%j, %c0] : !K -> tensor<64x64xbf16>
    %k_t = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %s = tile.dot %at, %k_t : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    // CHECK: math.exp2 %{{[^ ]+}} : tensor<64x64xf32>
    %p = math.exp2 %s : tensor<64x64xf32>
    %r = tile.reduce sum %p axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    %new = arith.addf %old, %r : tensor<64xf32>
    scf.yield %new : tensor<64xf32>
  }
  tile.store %sum, %l[%row] : tensor<64xf32>, !tile.view<[M], f32>
}
