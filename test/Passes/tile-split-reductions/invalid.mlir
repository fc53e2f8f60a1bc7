// RUN: tessera-opt %s --tile-split-reductions -split-input-file -verify-diagnostics

!X = !tile.view<[K], f32>
!Y = !tile.view<[M], f32>
!Ends = !tile.view<[M], i32>

tile.kernel @loaded_end(%x: !X, %ends: !Ends, %y: !Y) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %end_i32 = tile.load %ends[%m] : !Ends -> i32
  %end = arith.index_cast %end_i32 : i32 to index
  // expected-error @+1 {{ends its range with a value that no extent bounds, so that a launch cannot know how many parts there are; take the arith.minsi of it and of what a tile.dim gives, or write 'fill' in place of 'part'}}
  %r = tile.split_reduce %first, %past = %c0 to %end part 4 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y
}

// -----

!X = !tile.view<[K], f32>
!Y = !tile.view<[M], f32>

tile.kernel @launched(%x: !X, %y: !Y) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %end = tile.dim "K"
  // expected-error @+1 {{splits a range of kernel 'launched', which a sequence launches; launch it by itself, or leave the range whole with 'part 0'}}
  %r = tile.split_reduce %first, %past = %c0 to %end part 4 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y
}
tile.sequence @all(%x: !X, %y: !Y) {
  // expected-note @+1 {{the launch}}
  tile.launch @launched(%x, %y) : !X, !Y
}

// -----

!X = !tile.view<[K], f32>
!Y = !tile.view<[M], f32>

tile.kernel @cut(%x: !X, %y: !Y) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %end = tile.dim "K"
  // expected-error @+1 {{splits a range of kernel 'cut', which a sequence launches; launch it by itself, or leave the range whole with 'balanced 0'}}
  %r = tile.split_reduce %first, %past = %c0 to %end balanced 1 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y
}
tile.sequence @all(%x: !X, %y: !Y) {
  // expected-note @+1 {{the launch}}
  tile.launch @cut(%x, %y) : !X, !Y
}

// -----

!X = !tile.view<[K], f32>
!Y = !tile.view<[M], f32>

tile.kernel @large(%x: !X, %y: !Y) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %k = tile.dim "K"
  %end = arith.ceildivsi %k, %c4 : index
  // expected-error @+1 {{has parts of more iterations than 64 bits count}}
  %r = tile.split_reduce %first, %past = %c0 to %end part 9223372036854775807 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y
}

// -----

!A = !tile.view<[M, K], bf16>
!C = !tile.view<[M, M], f32>
!At = tensor<64x64xbf16>
!Acc = tensor<64x64xf32>

tile.kernel @without_dots(%a: !A, %c: !C) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %end = tile.dim "K"
  %t = tile.load %a[%m, %c0] : !A -> !At
  // expected-error @+1 {{divides a range among the blocks of a cluster, and without dots these have the tiles of a grid point together; use 'part'}}
  %sum = tile.split_reduce %first, %past = %c0 to %end cluster 2 -> !Acc {
    %part = arith.extf %t : !At to !Acc
    tile.yield %part : !Acc
  } merge %left with %right {
    %both = arith.addf %left, %right : !Acc
    tile.yield %both : !Acc
  }
  tile.store %sum, %c[%m, %c0] : !Acc, !C
}
