// --check interprets random partitions of a range beside the whole one: a merge that is none is found.
//
// RUN: tessera run %s --kernel sums --shape M=3,K=37 --check | FileCheck %s --check-prefix=SUMS
// SUMS: max error {{.*}}: ok
// RUN: not tessera run %s --kernel forgets --shape M=3,K=37 --check 2>&1 | FileCheck %s --check-prefix=FORGETS
// FORGETS: error: parts of the range of its tile.split_reduce merge to another result than the whole range gives:
// FORGETS: y: max error {{.*}}: FAILED
// A range of one iteration has one part.
// RUN: tessera run %s --kernel forgets --shape M=3,K=1 --check
// RUN: not tessera run %s --kernel begins_anew --shape M=3,K=37 --check 2>&1 | FileCheck %s --check-prefix=BEGINS
// BEGINS: error: parts of the range of its tile.split_reduce merge to another result

!X = !tile.view<[M, K], f32>
!Y = !tile.view<[M], f32>

// The sum of each row, and its largest element where it is more.
tile.kernel @sums(%x: !X, %y: !Y) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tile.dim "K"
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %sum, %max = tile.split_reduce %first, %past = %c0 to %k part 5 -> f32, f32 {
    %s, %l = scf.for %i = %first to %past step %c1 iter_args(%s0 = %zero, %l0 = %low) -> (f32, f32) {
      %v = tile.load %x[%m, %i] : !X -> f32
      %s1 = arith.addf %s0, %v : f32
      %l1 = arith.maximumf %l0, %v : f32
      scf.yield %s1, %l1 : f32, f32
    }
    tile.yield %s, %l : f32, f32
  } merge %s0, %l0 with %s1, %l1 {
    %s = arith.addf %s0, %s1 : f32
    %l = arith.maximumf %l0, %l1 : f32
    tile.yield %s, %l : f32, f32
  }
  %more = arith.maximumf %sum, %max : f32
  tile.store %more, %y[%m] : f32, !Y
}

// The merge forgets what is behind.
tile.kernel @forgets(%x: !X, %y: !Y) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tile.dim "K"
  %zero = arith.constant 0.0 : f32
  %sum = tile.split_reduce %first, %past = %c0 to %k -> f32 {
    %s = scf.for %i = %first to %past step %c1 iter_args(%s0 = %zero) -> (f32) {
      %v = tile.load %x[%m, %i] : !X -> f32
      %s1 = arith.addf %s0, %v : f32
      scf.yield %s1 : f32
    }
    tile.yield %s : f32
  } merge %left with %right {
    tile.yield %left : f32
  }
  tile.store %sum, %y[%m] : f32, !Y
}

// Each part begins with what the first one should alone.
tile.kernel @begins_anew(%x: !X, %y: !Y) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tile.dim "K"
  %start = arith.constant 3.0 : f32
  %sum = tile.split_reduce %first, %past = %c0 to %k -> f32 {
    %s = scf.for %i = %first to %past step %c1 iter_args(%s0 = %start) -> (f32) {
      %v = tile.load %x[%m, %i] : !X -> f32
      %s1 = arith.addf %s0, %v : f32
      scf.yield %s1 : f32
    }
    tile.yield %s : f32
  } merge %left with %right {
    %both = arith.addf %left, %right : f32
    tile.yield %both : f32
  }
  tile.store %sum, %y[%m] : f32, !Y
}
