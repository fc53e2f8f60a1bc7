// Nothing is said where elements from outside of a view stay 0, are hidden, dropped, or are not there.
//
// RUN: tessera-opt %s --tile-check-padding --split-input-file -verify-diagnostics -o /dev/null

!X = !tile.view<[M, 1000], f32>
!T = tensor<4x1024xf32>
!R = tensor<4xf32>
!M = tensor<4x1024xi1>
!C = tensor<4x1024xi32>

// Masks by places, of any form: a select, one of several comparisons, a product with 0 and 1.
tile.kernel @hidden(%x: !X, %y: !X, %z: !tile.view<[M], f32>, %limit: i32) grid(%m = M ceildiv 4) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %row = arith.muli %m, %c4 : index
  %t = tile.load %x[%row, %c0] : !X -> !T
  %cols = tile.iota %c0 axis 1 : !C
  %end = arith.constant dense<1000> : !C
  %inside = arith.cmpi slt, %cols, %end : !C
  %minus_inf = arith.constant dense<0xFF800000> : !T
  %s = arith.select %inside, %t, %minus_inf : !M, !T
  %max = tile.reduce max %s axis 1 : !T -> !R
  %all = tile.broadcast %max axis 1 : !R -> !T
  %less = arith.subf %s, %all : !T
  %e = math.exp %less : !T
  %sum = tile.reduce sum %e axis 1 : !T -> !R
  %limits = tile.splat %limit : i32 -> !C
  %before = arith.cmpi slt, %cols, %limits : !C
  %rows = tile.iota %row axis 0 : !C
  %below = arith.cmpi sle, %cols, %rows : !C
  %some = arith.andi %before, %below : !M
  %cos = math.cos %t : !T
  %zero = arith.constant dense<0.0> : !T
  %few = arith.select %some, %cos, %zero : !M, !T
  %sum_few = tile.reduce sum %few axis 1 : !T -> !R
  %as_number = arith.uitofp %inside : !M to !T
  %product = arith.mulf %cos, %as_number : !T
  %sum_product = tile.reduce sum %product axis 1 : !T -> !R
  %two = arith.addf %sum, %sum_few : !R
  %three = arith.addf %two, %sum_product : !R
  tile.store %three, %z[%row] : !R, !tile.view<[M], f32>
  // What is past the end of x is past the end of y.
  tile.store %cos, %y[%row, %c0] : !T, !X
}

// -----

// 0 stays 0 in products, quotients, differences of such, odd functions and conversions, through loops and products.
!X = !tile.view<[M, 1000], bf16>
!W = !tile.view<[1000, 64], bf16>
tile.kernel @zeros(%x: !X, %w: !W, %o: !tile.view<[M, 64], f32>, %z: !tile.view<[M], f32>, %a: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c1000 = arith.constant 1000 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %as = tile.splat %a : f32 -> tensor<64x64xf32>
  %acc, %most, %sums, %all = scf.for %col = %c0 to %c1000 step %c64
      iter_args(%acc_old = %zero, %most_old = %none, %sum_old = %none, %all_old = %zero)
      -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>) {
    %xt = tile.load %x[%row, %col] : !X -> tensor<64x64xbf16>
    %wt = tile.load %w[%col, %c0] : !W -> tensor<64x64xbf16>
    %acc_new = tile.dot %xt, %wt, %acc_old : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %f = arith.extf %xt : tensor<64x64xbf16> to tensor<64x64xf32>
    %size = math.absf %f : tensor<64x64xf32>
    // No size is below 0.
    %largest = tile.reduce maximum %size axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    %most_new = arith.maximumf %most_old, %largest : tensor<64xf32>
    %scaled = arith.mulf %f, %as : tensor<64x64xf32>
    %shrunk = arith.divf %scaled, %as : tensor<64x64xf32>
    %bent = math.tanh %shrunk : tensor<64x64xf32>
    %opposite = arith.negf %bent : tensor<64x64xf32>
    %difference = arith.subf %opposite, %f : tensor<64x64xf32>
    %sum = tile.reduce sum %difference axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    %sum_new = arith.addf %sum_old, %sum : tensor<64xf32>
    %all_new = arith.addf %all_old, %difference : tensor<64x64xf32>
    scf.yield %acc_new, %most_new, %sum_new, %all_new : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
  }
  %later = tile.reduce sum %all axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  %more = arith.addf %sums, %later : tensor<64xf32>
  %both = arith.addf %more, %most : tensor<64xf32>
  tile.store %both, %z[%row] : tensor<64xf32>, !tile.view<[M], f32>
  tile.store %acc, %o[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// Tiles that end with the view: by constants, by steps and by a requirement. Rows past the last one are dropped.
tile.kernel @inside(%x: !tile.view<[M, 1024], f32>, %v: !tile.view<[M, N], f32>, %y: !tile.view<[M], f32>)
    grid(%m = M ceildiv 64) requires(128 * M divides N) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c1024 = arith.constant 1024 : index
  %row = arith.muli %m, %c64 : index
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %sums = scf.for %col = %c0 to %c1024 step %c128 iter_args(%old = %none) -> (tensor<64xf32>) {
    %t = tile.load %x[%row, %col] : !tile.view<[M, 1024], f32> -> tensor<64x128xf32>
    %e = math.exp %t : tensor<64x128xf32>
    %sum = tile.reduce sum %e axis 1 : tensor<64x128xf32> -> tensor<64xf32>
    %new = arith.addf %old, %sum : tensor<64xf32>
    scf.yield %new : tensor<64xf32>
  }
  %last = tile.load %v[%row, %c128] : !tile.view<[M, N], f32> -> tensor<64x128xf32>
  %e_last = math.exp %last : tensor<64x128xf32>
  %sum_last = tile.reduce sum %e_last axis 1 : tensor<64x128xf32> -> tensor<64xf32>
  %all = arith.addf %sums, %sum_last : tensor<64xf32>
  tile.store %all, %y[%row] : tensor<64xf32>, !tile.view<[M], f32>
}

// -----

// A row in two tiles: zeros of the second one that are added to elements of the first are elements no more.
!X = !tile.view<[M, 1500], f32>
!T = tensor<4x1024xf32>
!R = tensor<4xf32>
tile.kernel @halves(%x: !X, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 4) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1024 = arith.constant 1024 : index
  %row = arith.muli %m, %c4 : index
  %first = tile.load %x[%row, %c0] : !X -> !T
  %second = tile.load %x[%row, %c1024] : !X -> !T
  %both = arith.addf %first, %second : !T
  %sum = tile.reduce sum %both axis 1 : !T -> !R
  %squares = arith.mulf %first, %first : !T
  %squares_2 = arith.mulf %second, %second : !T
  %all = arith.addf %squares_2, %squares : !T
  %root = math.sqrt %all : !T
  %sum_all = tile.reduce sum %root axis 1 : !T -> !R
  %result = arith.addf %sum, %sum_all : !R
  tile.store %result, %y[%row] : !R, !tile.view<[M], f32>
}
