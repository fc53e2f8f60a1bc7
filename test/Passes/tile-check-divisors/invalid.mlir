// Quotients and remainders by the constant 0, of indices, scalars and tiles.
// RUN: tessera-opt %s --tile-check-divisors -split-input-file -verify-diagnostics

tile.kernel @index(%y: !tile.view<[M], i32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{divides by 0; give the parameters values with which it does not, or leave it out where they have these with $if}}
  %q = arith.ceildivsi %m, %c0 : index
  %i = arith.index_cast %q : index to i32
  tile.store %i, %y[%m] : i32, !tile.view<[M], i32>
}

// -----

tile.kernel @scalar(%y: !tile.view<[M], i32>, %a: i32) grid(%m = M) {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{divides by 0}}
  %r = arith.remui %a, %zero : i32
  tile.store %r, %y[%m] : i32, !tile.view<[M], i32>
}

// -----

!T = tensor<64x64xi64>

tile.kernel @tile(%x: !tile.view<[M, 64], i64>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], i64> -> !T
  %zero = arith.constant dense<0> : !T
  // expected-error@+1 {{divides by 0}}
  %q = arith.floordivsi %t, %zero : !T
  tile.store %q, %x[%row, %c0] : !T, !tile.view<[M, 64], i64>
}

// -----

// What divides by another number, or divides 0, stays.
tile.kernel @others(%y: !tile.view<[M], i32>, %a: i32) grid(%m = M) {
  %zero = arith.constant 0 : i32
  %seven = arith.constant 7 : i32
  %q = arith.divsi %zero, %a : i32
  %r = arith.remsi %q, %seven : i32
  tile.store %r, %y[%m] : i32, !tile.view<[M], i32>
}
