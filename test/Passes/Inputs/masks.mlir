// Loops whose masks begin and end at every offset from the grid of the induction variable.

// From -5 in steps of 3, with columns 2 j + 1: one mask cuts on both sides, one needs not, one is the same in all
// iterations of a tile of rows.
tile.kernel @steps(%x: !tile.view<[S, 64], f16>, %z: !tile.view<[S, 64], f32>) grid(%m = S ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %first = arith.constant -5 : index
  %n = tile.dim "S"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x16xf32>
  %low = arith.constant dense<-1.0> : tensor<64x16xf32>
  %quarter = arith.constant dense<0.25> : tensor<64x16xf32>
  %ten = arith.constant dense<10> : tensor<64x16xi32>
  %true = arith.constant dense<true> : tensor<64x16xi1>
  %q = tile.load %x[%row, %c0] : !tile.view<[S, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %first to %n step %c3 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %k = tile.load %x[%j, %c0] : !tile.view<[S, 64], f16> -> tensor<16x64xf16>
    %kt = tile.transpose %k : tensor<16x64xf16> -> tensor<64x16xf16>
    %s0 = tile.dot %q, %kt : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
    %twice = arith.muli %j, %c2 : index
    %col = arith.addi %twice, %c1 : index
    %cols = tile.iota %col axis 1 : tensor<64x16xi32>
    %n32 = arith.index_cast %n : index to i32
    %end = tile.splat %n32 : i32 -> tensor<64x16xi32>
    %a = arith.cmpi sge, %cols, %ten : tensor<64x16xi32>
    %b = arith.cmpi slt, %cols, %end : tensor<64x16xi32>
    %ab = arith.andi %a, %b : tensor<64x16xi1>
    %s1 = arith.select %ab, %s0, %none : tensor<64x16xi1>, tensor<64x16xf32>
    %c = arith.subi %end, %cols : tensor<64x16xi32>
    %d = arith.cmpi sle, %c, %ten : tensor<64x16xi32>
    %nd = arith.xori %d, %true : tensor<64x16xi1>
    %h = arith.mulf %s1, %quarter : tensor<64x16xf32>
    %s2 = arith.select %nd, %h, %s1 : tensor<64x16xi1>, tensor<64x16xf32>
    %rows = tile.iota %row axis 0 : tensor<64x16xi32>
    %e = arith.cmpi sge, %rows, %end : tensor<64x16xi32>
    %s3 = arith.select %e, %low, %s2 : tensor<64x16xi1>, tensor<64x16xf32>
    %p = arith.truncf %s3 : tensor<64x16xf32> to tensor<64x16xf16>
    %v = tile.load %x[%col, %c0] : !tile.view<[S, 64], f16> -> tensor<16x64xf16>
    %r = tile.dot %p, %v, %acc : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>
    scf.yield %r : tensor<64x64xf32>
  }
  tile.store %sum, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[S, 64], f32>
}

// An induction variable of i32 that runs to 4 past S, and masks that are uniform before the loop begins, after it
// ends, or nowhere.
tile.kernel @outside(%x: !tile.view<[S, 64], f16>, %z: !tile.view<[S, 64], f32>) grid(%m = S ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero32 = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %four = arith.constant 4 : i32
  %n = tile.dim "S"
  %n32 = arith.index_cast %n : index to i32
  %past = arith.addi %n32, %four : i32
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x16xf32>
  %one = arith.constant dense<1.0> : tensor<64x16xf32>
  %minus = arith.constant dense<-3> : tensor<64x16xi32>
  %far = arith.constant dense<100000> : tensor<64x16xi32>
  %q = tile.load %x[%row, %c0] : !tile.view<[S, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %zero32 to %past step %two iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %ji = arith.index_cast %j : i32 to index
    %k = tile.load %x[%ji, %c0] : !tile.view<[S, 64], f16> -> tensor<16x64xf16>
    %kt = tile.transpose %k : tensor<16x64xf16> -> tensor<64x16xf16>
    %s0 = tile.dot %q, %kt : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
    %line = tile.iota %ji axis 0 : tensor<16xi32>
    %cols = tile.broadcast %line axis 0 : tensor<16xi32> -> tensor<64x16xi32>
    %a = arith.cmpi sgt, %cols, %minus : tensor<64x16xi32>
    %s1 = arith.select %a, %s0, %none : tensor<64x16xi1>, tensor<64x16xf32>
    %b = arith.cmpi sgt, %cols, %far : tensor<64x16xi32>
    %s2 = arith.select %b, %one, %s1 : tensor<64x16xi1>, tensor<64x16xf32>
    %end = tile.splat %n32 : i32 -> tensor<64x16xi32>
    %c = arith.cmpi slt, %cols, %end : tensor<64x16xi32>
    %d = arith.ori %c, %b : tensor<64x16xi1>
    %s3 = arith.select %d, %s2, %one : tensor<64x16xi1>, tensor<64x16xf32>
    %p = arith.truncf %s3 : tensor<64x16xf32> to tensor<64x16xf16>
    %v = tile.load %x[%ji, %c0] : !tile.view<[S, 64], f16> -> tensor<16x64xf16>
    %r = tile.dot %p, %v, %acc : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>
    scf.yield %r : tensor<64x64xf32>
  }
  tile.store %sum, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[S, 64], f32>
}
