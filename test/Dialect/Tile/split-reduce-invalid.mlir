// RUN: %cases %s | tessera-opt -split-input-file -verify-diagnostics

// FRAME
!X = !tile.view<[K], f32>
!Y = !tile.view<[M], f32>
tile.kernel @k(%x: !X, %y: !Y) grid(%m = M) {
  %c0 = arith.constant 0 : index
  // HERE
}

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  // expected-error @+1 {{has parts of -1 iterations; a part has at least one, and with 0 the range stays whole}}
  %r = tile.split_reduce %first, %past = %c0 to %n part -1 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %n = tile.dim "K"
  // expected-error @+1 {{has 33 shares for each multiprocessor; there are 1 to 32, and with 0 nothing is cut}}
  %r = tile.split_reduce %first, %past = %c0 to %n balanced 33 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %n = tile.dim "K"
  // expected-error @+1 {{has -1 shares for each multiprocessor; there are 1 to 32, and with 0 nothing is cut}}
  %r = tile.split_reduce %first, %past = %c0 to %n balanced -1 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %n = tile.dim "K"
  // expected-error @+1 {{has equal shares and parts that fill the GPU; leave out one of 'balanced' and 'fill'}}
  %r = tile.split_reduce %first, %past = %c0 to %n fill balanced 1 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  // expected-error @+1 {{has parts of 4 iterations and as many as fill the GPU; leave out one of 'part' and 'fill'}}
  %r = tile.split_reduce %first, %past = %c0 to %n part 4 fill -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  // expected-error @+1 {{has no state; give the types of what a part yields behind '->'}}
  tile.split_reduce %first, %past = %c0 to %n {
    tile.yield
  } merge with {
    tile.yield
  }

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  // expected-error @+1 {{has a state of 'i1', which no workspace holds; its values are numbers, vectors and tiles of what views hold, but i8: widen flags and indices}}
  %r = tile.split_reduce %first, %past = %c0 to %n -> i1 {
    %v = arith.cmpi eq, %first, %c0 : index
    tile.yield %v : i1
  } merge %a with %b {
    %s = arith.andi %a, %b : i1
    tile.yield %s : i1
  }

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  %r = tile.split_reduce %first, %past = %c0 to %n -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    // expected-error @+1 {{yields a state, of types 'f32', got 'f32', 'f32'}}
    tile.yield %a, %b : f32, f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  %r = tile.split_reduce %first, %past = %c0 to %n -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    // expected-error @+1 {{stores before the range of a tile.split_reduce has ended; a part yields its state, and what follows the operation stores}}
    tile.store %v, %y[%m] : f32, !Y
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  %one = arith.constant 1.0 : f32
  // expected-error @+1 {{stores before the range of a tile.split_reduce has ended, and each of its parts would store; move it behind the operation}}
  tile.store %one, %y[%m] : f32, !Y
  // expected-note @+1 {{the range}}
  %r = tile.split_reduce %first, %past = %c0 to %n -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  %r = tile.split_reduce %first, %past = %c0 to %n -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    // expected-error @+1 {{loads in the merge of a tile.split_reduce, which sees two states alone; load before the operation, or yield it with the state}}
    %v = tile.load %x[%c0] : !X -> f32
    tile.yield %v : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  %r = tile.split_reduce %first, %past = %c0 to %n -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    // expected-error @+1 {{stores in the merge of a tile.split_reduce, which sees two states alone; store behind the operation}}
    tile.store %a, %y[%m] : f32, !Y
    tile.yield %b : f32
  }

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  // expected-note @+1 {{the first is here}}
  %q = tile.split_reduce %first, %past = %c0 to %n -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  // expected-error @+1 {{is the second of the kernel, whose parts would need the results of the first; yield both states from one, or write two kernels}}
  %r = tile.split_reduce %first, %past = %c0 to %n -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %c1 = arith.constant 1 : index
  %n = tile.dim "K"
  %zero = arith.constant 0.0 : f32
  // expected-note @+1 {{around it here}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %zero) -> (f32) {
    // expected-error @+1 {{stands in a 'scf.for', and the parts of its range are grid points of a kernel, which know no loop around them; put it outside of loops and conditionals}}
    %q = tile.split_reduce %first, %past = %c0 to %n -> f32 {
      %v = tile.load %x[%first] : !X -> f32
      tile.yield %v : f32
    } merge %a with %b {
      %s = arith.addf %a, %b : f32
      tile.yield %s : f32
    }
    scf.yield %q : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %n = tile.dim "K"
  // expected-error @+1 {{has clusters of 3 blocks, whose states meet in pairs; use 2, 4 or 8, or 0 to leave the range whole}}
  %r = tile.split_reduce %first, %past = %c0 to %n cluster 3 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %n = tile.dim "K"
  // expected-error @+1 {{has parts for the blocks of a cluster, and others that a second kernel merges; leave out 'cluster', or the others}}
  %r = tile.split_reduce %first, %past = %c0 to %n part 4 cluster 2 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y

// CASE
  %n = tile.dim "K"
  // expected-error @+1 {{has a state of 'f32', and blocks of a cluster send tiles of f32; make it one, or use 'part'}}
  %r = tile.split_reduce %first, %past = %c0 to %n cluster 2 -> f32 {
    %v = tile.load %x[%first] : !X -> f32
    tile.yield %v : f32
  } merge %a with %b {
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %r, %y[%m] : f32, !Y
