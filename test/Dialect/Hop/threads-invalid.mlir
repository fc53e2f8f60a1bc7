// Which threads of a role run an operation, and what copies have read when it ends.
// RUN: %cases %s | tessera-opt -split-input-file -verify-diagnostics

!Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
!Tile = !hop.shared<tensor<64x64xbf16>, rows = 64>
!View = !tile.view<[M, 64], bf16>

hop.kernel @load attributes {argument_names = ["x"], argument_types = [!View],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !View, %m: index):
  %p = hop.pipe.create "p" : !Pipe
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{runs on one thread, and all threads of @rows come here; put it into an scf.if of hop.elected or into an elected role}}
    hop.pipe.load %p, %x[%m, %c0] : !Pipe, !View
    %t = hop.pipe.wait %p : !Pipe -> !Tile
    hop.pipe.release %p, %t : !Pipe, !Tile
  }
}

// -----
!Pipe = !hop.pipe<tensor<1xi32>, 2>

hop.kernel @put attributes {argument_names = ["n"], argument_types = [i32], grid = [], schedule = #tile.schedule<>} {
^bb0(%n: i32):
  %p = hop.pipe.create "p" : !Pipe
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{runs on one thread, and all threads of @rows come here}}
    hop.pipe.put %p, %n : !Pipe
  }
}

// FRAME
!Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
!View = !tile.view<[M, 64], bf16>

hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!View],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !View, %m: index):
  %p = hop.pipe.create "p" : !Pipe
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // HERE
  }
}

// CASE condition
// Another condition chooses no thread, and neither does the other branch or a disjunction.
    %first = arith.cmpi eq, %m, %c0 : index
    scf.if %first {
      // expected-error@+1 {{runs on one thread, and all threads of @rows come here}}
      hop.pipe.load %p, %x[%m, %c0] : !Pipe, !View
    }

// CASE others
    %elected = hop.elected %wg
    scf.if %elected {
    } else {
      // expected-error@+1 {{runs on one thread, and all threads of @rows come here}}
      hop.pipe.load %p, %x[%m, %c0] : !Pipe, !View
    }

// CASE either
    %first = arith.cmpi eq, %m, %c0 : index
    %elected = hop.elected %wg
    %either = arith.ori %elected, %first : i1
    scf.if %either {
      // expected-error@+1 {{runs on one thread, and all threads of @rows come here}}
      hop.pipe.load %p, %x[%m, %c0] : !Pipe, !View
    }

// CASE elected
// One thread of all, in a loop and with a condition of its own.
    %c64 = arith.constant 64 : index
    %first = arith.cmpi eq, %m, %c0 : index
    %elected = hop.elected %wg
    %both = arith.andi %first, %elected : i1
    scf.if %both {
      scf.for %i = %c0 to %c64 step %c64 {
        hop.pipe.load %p, %x[%i, %c0] : !Pipe, !View
      }
    }

// -----
// What all threads do is not for the one that is elected.
!Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
!Tile = !hop.shared<tensor<64x64xbf16>, rows = 64>

hop.kernel @wait attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  %p = hop.pipe.create "p" : !Pipe
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %elected = hop.elected %wg
    // expected-note@+1 {{the conditional}}
    scf.if %elected {
      // expected-error@+1 {{runs on all threads of its role, and hop.elected chooses one here; move it out of the conditional}}
      %t = hop.pipe.wait %p : !Pipe -> !Tile
    }
  }
}

// -----
hop.kernel @sync attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %elected = hop.elected %wg
    // expected-note@+1 {{the conditional}}
    scf.if %elected {
      // expected-error@+1 {{runs on all threads of its role, and hop.elected chooses one here}}
      hop.warpgroup_sync
    }
  }
}

// -----
hop.kernel @number attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>} {
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{runs on one thread, and all threads of @rows come here}}
    %next = hop.next_tile
  }
}

// FRAME
!Tile = !hop.shared<tensor<64x64xf32>, rows = 64>
!View = !tile.view<[M, 64], f32>

hop.kernel @NAME attributes {argument_names = ["y"], argument_types = [!View],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !View, %m: index):
  %s = hop.staging "y" : !Tile
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // HERE
  }
}

// CASE unread
// Copies that still read shared memory when the role, and with it the thread block, ends.
    // expected-error@+1 {{may leave copies that read shared memory when @rows ends; put hop.bulk_read_wait behind it, on every way to the end}}
    hop.bulk_store %s, %y[%m, %c0] add in_flight 1 : !Tile, !View

// CASE one_way
    %first = arith.cmpi eq, %m, %c0 : index
    // expected-error@+1 {{may leave copies that read shared memory when @rows ends}}
    hop.bulk_store %s, %y[%m, %c0] in_flight 1 : !Tile, !View
    scf.if %first {
      hop.bulk_read_wait
    }

// CASE read
// A wait behind the loop is for the copies of all iterations, and a copy without `in_flight` waits for those before it.
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %m step %c64 {
      hop.bulk_store %s, %y[%i, %c0] in_flight 1 : !Tile, !View
    }
    hop.bulk_read_wait
    hop.bulk_store %s, %y[%m, %c0] in_flight 1 : !Tile, !View
    hop.bulk_store %s, %y[%m, %c0] : !Tile, !View
