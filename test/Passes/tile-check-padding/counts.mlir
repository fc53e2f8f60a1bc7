// Elements from outside of a view count where an operation made other numbers of their 0, and nothing hides them.
//
// RUN: tessera-opt %s --tile-check-padding --split-input-file -verify-diagnostics -o /dev/null

!X = !tile.view<[M, 1000], f32>
!T = tensor<4x1024xf32>
!R = tensor<4xf32>

// A softmax: the maximum takes zeros where all of a row is negative, and the sum takes exp(0 - max) of them.
tile.kernel @softmax(%x: !X, %y: !X) grid(%m = M ceildiv 4) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %row = arith.muli %m, %c4 : index
  // expected-note @below {{1024 are loaded here, of which those outside are 0}}
  %t = tile.load %x[%row, %c0] : !X -> !T
  // expected-warning @below {{elements of 'x' past its 1000 count in this maximum; hide them by arith.select on a comparison of tile.iota}}
  %max = tile.reduce max %t axis 1 : !T -> !R
  %all = tile.broadcast %max axis 1 : !R -> !T
  // expected-note @below {{0 becomes another number here}}
  %less = arith.subf %t, %all : !T
  %e = math.exp %less : !T
  // expected-warning @below {{elements of 'x' past its 1000 count in this sum}}
  %sum = tile.reduce sum %e axis 1 : !T -> !R
  %sums = tile.broadcast %sum axis 1 : !R -> !T
  %p = arith.divf %e, %sums : !T
  tile.store %p, %y[%row, %c0] : !T, !X
}

// -----

// Through a loop, whose last step reaches past the end, and a conditional. exp(0) is 1, and so is its square.
tile.kernel @steps(%x: !tile.view<[M, 1000], f32>, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c1000 = arith.constant 1000 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %all = scf.for %col = %c0 to %c1000 step %c64 iter_args(%old = %zero) -> (tensor<64x64xf32>) {
    // expected-note @below {{64 are loaded here}}
    %t = tile.load %x[%row, %col] : !tile.view<[M, 1000], f32> -> tensor<64x64xf32>
    %first = arith.cmpi eq, %col, %c0 : index
    %e = scf.if %first -> (tensor<64x64xf32>) {
      // expected-note @below {{0 becomes another number here}}
      %e = math.exp %t : tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    } else {
      scf.yield %t : tensor<64x64xf32>
    }
    %squares = arith.mulf %e, %e : tensor<64x64xf32>
    %new = arith.addf %old, %squares : tensor<64x64xf32>
    scf.yield %new : tensor<64x64xf32>
  }
  // expected-warning @below {{elements of 'x' past its 1000 count in this sum}}
  %sum = tile.reduce sum %all axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  tile.store %sum, %y[%row] : tensor<64xf32>, !tile.view<[M], f32>
}

// -----

// A product contracts them where neither operand is 0: weights of rows that the table does not have.
!Q = !tile.view<[M, 64], bf16>
!K = !tile.view<[1000, 64], bf16>
!V = !tile.view<[1024, 64], bf16>
tile.kernel @product(%q: !Q, %k: !K, %v: !V, %o: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c960 = arith.constant 960 : index
  %row = arith.muli %m, %c64 : index
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<64x64xbf16>
  // expected-note @below {{64 are loaded here}}
  %kt = tile.load %k[%c960, %c0] : !K -> tensor<64x64xbf16>
  %k_t = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
  %s = tile.dot %qt, %k_t : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  // expected-note @below {{0 becomes another number here}}
  %g = tile.sigmoid %s : tensor<64x64xf32>
  %p = arith.truncf %g : tensor<64x64xf32> to tensor<64x64xbf16>
  %vt = tile.load %v[%c960, %c0] : !V -> tensor<64x64xbf16>
  // expected-warning @below {{elements of 'k' past its 1000 count in this product}}
  %acc = tile.dot %p, %vt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %acc, %o[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// A longer view takes them; of a sum of all elements those of both axes count.
tile.kernel @stored(%x: !tile.view<[60, 60], f32>, %y: !tile.view<[60, 64], f32>, %z: !tile.view<[1], f32>) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{64 are loaded here}}
  %t = tile.load %x[%c0, %c0] : !tile.view<[60, 60], f32> -> tensor<64x64xf32>
  // expected-note @below {{0 becomes another number here}}
  %e = math.cos %t : tensor<64x64xf32>
  // expected-warning @below {{elements of 'x' past its 60 are stored here}}
  tile.store %e, %y[%c0, %c0] : tensor<64x64xf32>, !tile.view<[60, 64], f32>
  // expected-warning @below {{elements of 'x' past its 60 count in this sum}}
  %sum = tile.reduce_all sum %e : tensor<64x64xf32> -> f32
  tile.store %sum, %z[%c0] : f32, !tile.view<[1], f32>
}

// -----

// A mask along the other axis hides nothing, and neither does one by data that is 0 there too.
!X = !tile.view<[M, 100], f32>
!D = !tile.view<[100], i32>
!T = tensor<64x128xf32>
tile.kernel @other_mask(%x: !X, %d: !D, %y: !tile.view<[M, 2], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-note @below {{128 are loaded here}}
  %t = tile.load %x[%row, %c0] : !X -> !T
  // expected-note @below {{0 becomes another number here}}
  %e = math.exp %t : !T
  %zero = arith.constant dense<0.0> : !T
  %rows = tile.iota %row axis 0 : tensor<64x128xi32>
  %five = arith.constant dense<5> : tensor<64x128xi32>
  %few = arith.cmpi slt, %rows, %five : tensor<64x128xi32>
  %a = arith.select %few, %e, %zero : tensor<64x128xi1>, !T
  // expected-warning @below {{elements of 'x' past its 100 count in this sum}}
  %sum_a = tile.reduce sum %a axis 1 : !T -> tensor<64xf32>
  %kinds = tile.load %d[%c0] : !D -> tensor<128xi32>
  %all = tile.broadcast %kinds axis 0 : tensor<128xi32> -> tensor<64x128xi32>
  %none = arith.constant dense<0> : tensor<64x128xi32>
  %same = arith.cmpi eq, %all, %none : tensor<64x128xi32>
  %b = arith.select %same, %e, %zero : tensor<64x128xi1>, !T
  // expected-warning @below {{elements of 'x' past its 100 count in this sum}}
  %sum_b = tile.reduce sum %b axis 1 : !T -> tensor<64xf32>
  %both = arith.addf %sum_a, %sum_b : tensor<64xf32>
  %wide = tile.broadcast %both axis 1 : tensor<64xf32> -> tensor<64x2xf32>
  tile.store %wide, %y[%row, %c0] : tensor<64x2xf32>, !tile.view<[M, 2], f32>
}

// -----

// An extent that is known at launch only may be a multiple: a remark.
tile.kernel @later(%x: !tile.view<[M, N], f32>, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-note @below {{128 are loaded here}}
  %t = tile.load %x[%row, %c0] : !tile.view<[M, N], f32> -> tensor<64x128xf32>
  // expected-note @below {{0 becomes another number here}}
  %e = math.exp %t : tensor<64x128xf32>
  // expected-remark @below {{elements of 'x' past its N count in this sum where 128 does not divide N}}
  %sum = tile.reduce sum %e axis 1 : tensor<64x128xf32> -> tensor<64xf32>
  tile.store %sum, %y[%row] : tensor<64xf32>, !tile.view<[M], f32>
}

// -----

// A scan from the end takes what is past it first; one from the start gives its last value there, which a store drops.
tile.kernel @scans(%x: !tile.view<[1000], f32>, %y: !tile.view<[1000], f32>, %z: !tile.view<[1024], f32>, %w: !tile.view<[1000], f32>) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{1024 are loaded here}}
  %t = tile.load %x[%c0] : !tile.view<[1000], f32> -> tensor<1024xf32>
  %from_end = tile.scan sum %t axis 0 reverse : tensor<1024xf32>
  tile.store %from_end, %z[%c0] : tensor<1024xf32>, !tile.view<[1024], f32>
  // expected-note @below {{0 becomes another number here}}
  %from_start = tile.scan sum %t axis 0 : tensor<1024xf32>
  tile.store %from_start, %y[%c0] : tensor<1024xf32>, !tile.view<[1000], f32>
  // expected-warning @below {{elements of 'x' past its 1000 are stored here}}
  tile.store %from_start, %z[%c0] : tensor<1024xf32>, !tile.view<[1024], f32>
  // expected-warning @below {{elements of 'x' past its 1000 count in this maximum; hide them by arith.select}}
  %most = tile.scan max %t axis 0 reverse : tensor<1024xf32>
  tile.store %most, %y[%c0] : tensor<1024xf32>, !tile.view<[1000], f32>
  // expected-warning @below {{elements of 'x' past its 1000 count in this product; hide them by arith.select}}
  %product = tile.scan product %t axis 0 reverse : tensor<1024xf32>
  tile.store %product, %w[%c0] : tensor<1024xf32>, !tile.view<[1000], f32>
}

// -----

// Zeros that are loaded may be the largest.
tile.kernel @places(%x: !tile.view<[M, N], f32>, %n: !tile.view<[M], i32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-note @below {{128 are loaded here}}
  %t = tile.load %x[%row, %c0] : !tile.view<[M, N], f32> -> tensor<64x128xf32>
  // expected-remark @below {{elements of 'x' past its N count in this maximum where 128 does not divide N}}
  %most, %place = tile.reduce_index max %t axis 1 : tensor<64x128xf32> -> tensor<64xf32>, tensor<64xi32>
  tile.store %place, %n[%row] : tensor<64xi32>, !tile.view<[M], i32>
}

// -----

// What is added to a mean, which is no element, counts, and so does what is no zero beside elements, and a zero that they are multiplied by.
!X = !tile.view<[M, 1500], f32>
!T = tensor<4x1024xf32>
!R = tensor<4xf32>
tile.kernel @halves(%x: !X, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 4) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1024 = arith.constant 1024 : index
  %row = arith.muli %m, %c4 : index
  %first = tile.load %x[%row, %c0] : !X -> !T
  // expected-note @below {{1024 are loaded here}}
  %second = tile.load %x[%row, %c1024] : !X -> !T
  %mean = tile.reduce sum %first axis 1 : !T -> !R
  %means = tile.broadcast %mean axis 1 : !R -> !T
  // expected-note @below {{0 becomes another number here}}
  %raised = arith.addf %second, %means : !T
  // expected-warning @below {{elements of 'x' past its 1500 count in this sum}}
  %sum = tile.reduce sum %raised axis 1 : !T -> !R
  // expected-note @below {{0 becomes another number here}}
  %cos = math.cos %second : !T
  %both = arith.addf %first, %cos : !T
  // expected-warning @below {{elements of 'x' past its 1500 count in this sum}}
  %sum_both = tile.reduce sum %both axis 1 : !T -> !R
  %product = arith.mulf %first, %second : !T
  // expected-warning @below {{elements of 'x' past its 1500 count in this maximum}}
  %most = tile.reduce max %product axis 1 : !T -> !R
  %two = arith.addf %sum, %sum_both : !R
  %three = arith.addf %two, %most : !R
  tile.store %three, %y[%row] : !R, !tile.view<[M], f32>
}
