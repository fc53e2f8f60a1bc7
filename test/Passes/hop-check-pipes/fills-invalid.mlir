// Pipes that nobody fills or reads, or that roles fill and read in other turns.
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-check-pipes))' -split-input-file -verify-diagnostics

// A pipe that nobody fills.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @unfilled attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{is filled by no role; load or put what its readers wait for, or remove it}}
  %a = hop.pipe.create "a" : !R1
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t1 = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %t1 : !R1, !T
  }
}

// -----
// A pipe that nobody reads.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @unread attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{is read by no role, so that nobody gives its slots back; wait for its tiles and release them, or remove it}}
  %a = hop.pipe.create "a" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R1, !V
  }
}

// -----
// A meeting to which one of three roles does not come.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @meeting attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %meet = hop.barriers "meet" count 2 : !hop.barriers<1>
  hop.role @first elected {
  ^bb0(%wg: index):
    hop.barrier.wait %meet[%zero], %zero : !hop.barriers<1>
    // expected-error@+1 {{comes to where the roles meet another time than @second does}}
    hop.barrier.wait %meet[%zero], %zero : !hop.barriers<1>
  }
  hop.role @second elected {
  ^bb0(%wg: index):
    hop.barrier.wait %meet[%zero], %zero : !hop.barriers<1>
  }
  hop.role @third warpgroups(1) {
  ^bb0(%wg: index):
    hop.barrier.wait %meet[%zero], %zero : !hop.barriers<1>
    hop.barrier.wait %meet[%zero], %zero : !hop.barriers<1>
  }
}

// FRAME
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  // HERE
}

// CASE written
// A slot that a role writes is filled when it is committed, and no sooner.
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = hop.pipe.create "a" : !R1
  %b = hop.pipe.create "b" : !R1
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i = %c0 to %m step %c1 {
      %t = hop.pipe.acquire %a : !R1 -> !T
      // expected-error@+1 {{waits for a tile of 'b', for which @other needs something of this role first}}
      %u = hop.pipe.wait %b : !R1 -> !T
      hop.pipe.commit %a, %t : !R1, !T
      hop.pipe.release %b, %u : !R1, !T
    }
  }
  hop.role @other elected {
  ^bb0(%wg: index):
    scf.for %i = %c0 to %m step %c1 {
      // expected-note@+1 {{@other waits here for a tile of 'a'}}
      %t = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.load %b, %x[%m, %c0] : !R1, !V
      hop.pipe.release %a, %t : !R1, !T
    }
  }

// CASE mixed
// Copies and threads.
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = hop.pipe.create "a" : !R1
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    // expected-note@+1 {{here}}
    %t = hop.pipe.acquire %a : !R1 -> !T
    hop.pipe.commit %a, %t : !R1, !T
    %first = hop.elected %wg
    scf.if %first {
      // expected-error@+1 {{fills a pipe whose other slots threads fill; use a pipe for each}}
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
  }
  hop.role @writer elected {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %t : !R1, !T
    %u = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %u : !R1, !T
  }

// CASE mixed
// Threads and gathers.
  %c0 = arith.constant 0 : index
  %a = hop.pipe.create "a" : !R1
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    // expected-note@+1 {{here}}
    %t = hop.pipe.acquire %a : !R1 -> !T
    hop.pipe.commit %a, %t : !R1, !T
    // expected-error@+1 {{fills a pipe whose other slots threads fill; use a pipe for each}}
    %u = hop.pipe.acquire %a : !R1 -> !T
    hop.gather %u, %x[%c0, %c0] rows %n : !T, !V, tensor<64xi32>
    hop.pipe.commit %a, %u : !R1, !T
  }
  hop.role @writer elected {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %t : !R1, !T
    %u = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %u : !R1, !T
  }

// CASE mixed
// Loads and gathers.
  %c0 = arith.constant 0 : index
  %a = hop.pipe.create "a" : !R1
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %n = arith.constant dense<0> : tensor<64xi32>
    %first = hop.elected %wg
    scf.if %first {
      // expected-error@+1 {{fills a pipe whose other slots are gathered; use a pipe for each}}
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
    // expected-note@+1 {{here}}
    %u = hop.pipe.acquire %a : !R1 -> !T
    hop.gather %u, %x[%c0, %c0] rows %n : !T, !V, tensor<64xi32>
    hop.pipe.commit %a, %u : !R1, !T
  }
  hop.role @writer elected {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %t : !R1, !T
    %u = hop.pipe.wait %a : !R1 -> !T
    hop.pipe.release %a, %u : !R1, !T
  }

// CASE one_way
// What is given back on one of two ways.
  %c0 = arith.constant 0 : index
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %a, %x[%m, %c0] : !R1, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{keeps its slot to the end of @consumer; release it on every way from here}}
    %t = hop.pipe.wait %a : !R1 -> !T
    scf.if %more {
      hop.pipe.release %a, %t : !R1, !T
    }
  }

// CASE region
// Control flow that no role has.
  %a = hop.pipe.create "a" : !R1
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %elected = hop.elected %wg
    scf.if %elected {
      hop.pipe.load %a, %x[%m, %c0] : !R1, !V
    }
    // expected-error@+1 {{stands around uses of pipes, and is no loop or conditional that a role can have there; use scf.for, scf.if or scf.while}}
    scf.execute_region {
      %t = hop.pipe.wait %a : !R1 -> !T
      hop.pipe.release %a, %t : !R1, !T
      scf.yield
    }
  }

// -----
// One thread of a role with warpgroups loads only sometimes what the role always waits for.
hop.kernel @sometimes attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %more = arith.cmpi ne, %m, %c0 : index
    %elected = hop.elected %wg
    scf.if %elected {
      scf.if %more {
        hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
      }
    }
    // expected-error@+1 {{waits for a tile of 'p', for which @rows needs something of this role first}}
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----
// Two loops that do not do the same are no pieces of one.
!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R2 = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @pieces attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = hop.pipe.create "a" : !R2
  hop.role @producer elected {
  ^bb0(%wg: index):
    scf.for %i = %c0 to %m step %c1 {
      hop.pipe.load %a, %x[%m, %c0] : !R2, !V
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.for %i = %c0 to %c1 step %c1 {
      %t = hop.pipe.wait %a : !R2 -> !T
      hop.pipe.release %a, %t : !R2, !T
    }
    // expected-error@+1 {{stands around uses of 'a', and @producer has no such operation around its own; roles that are joined run the same loops and conditionals}}
    scf.for %i = %c1 to %m step %c1 {
      %t = hop.pipe.wait %a : !R2 -> !T
      %u = hop.pipe.wait %a : !R2 -> !T
      hop.pipe.release %a, %t : !R2, !T
      hop.pipe.release %a, %u : !R2, !T
    }
  }
}
